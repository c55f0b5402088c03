/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a cluster, from the program, a file and the environment: what is
 * read, and with which error everything else is refused. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "hvd_cluster.h"
#include "suite.h"

/* The value of a TF_CONFIG with this cluster and this task. */
#define CONFIG(cluster, task)                                                  \
    "{\"cluster\": {" cluster "}, \"task\": {" task "}}"
#define WORKER_0 "\"type\": \"worker\", \"index\": 0"
#define TWO "\"worker\": [\"a:1\", \"b:2\"]"

static int parse(const char *text, int32_t flags, hvd_cluster **cluster)
{
    return hvd_cluster_parse(text, (int64_t)strlen(text), flags, cluster);
}

/* --------------------------------------------------------- what is accepted */

static const struct {
    const char *text, *canonical;
    int rank;
} accepted[] = {
    {"{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]},"
     "\"task\":{\"type\":\"worker\",\"index\":1}}",
     "{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]}}", 1},
    {"\n{\n  \"task\": {\"index\": 1, \"type\": \"worker\"},\n\t\"cluster\": "
     "{\"ps\": [\"p:1\"], \"worker\": [\"a:1\",\r\n \"b:1\"], \"chief\": "
     "[\"c:1\"]}}\n",
     "{\"cluster\":{\"chief\":[\"c:1\"],\"worker\":[\"a:1\",\"b:1\"],"
     "\"ps\":[\"p:1\"]}}",
     2},
    {CONFIG("\"chief\": [\"C:1\"], \"worker\": [\"a:1\"], \"evaluator\": "
            "[\"e:1\"]",
            "\"type\": \"chief\", \"index\": 0"),
     "{\"cluster\":{\"chief\":[\"c:1\"],\"worker\":[\"a:1\"],"
     "\"evaluator\":[\"e:1\"]}}",
     0},
    /* The old name of the chief. */
    {CONFIG("\"master\": [\"c:1\"], \"worker\": [\"a:1\"]",
            "\"type\": \"master\", \"index\": 0"),
     "{\"cluster\":{\"chief\":[\"c:1\"],\"worker\":[\"a:1\"]}}", 0},
    /* The evaluator need not be in the cluster, and has no rank. */
    {CONFIG(TWO, "\"type\": \"evaluator\", \"index\": 0"),
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]}}", HVD_ERR_ARGUMENT},
    {CONFIG(TWO ", \"ps\": [\"c:1\"]", "\"type\": \"ps\", \"index\": 0"),
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"],\"ps\":[\"c:1\"]}}",
     HVD_ERR_ARGUMENT},
    /* An empty list is as good as none. */
    {CONFIG(TWO ", \"ps\": []", WORKER_0),
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]}}", 0},
    /* Keys that mean something to TensorFlow only. */
    {"{\"environment\": \"cloud\", \"rpc_layer\": \"grpc\", \"job\": {\"a\": "
     "[]}, \"service\": {}, \"cluster\": {" TWO "}, \"task\": {\"trial\": "
     "\"7\", \"cloud\": \"x\", " WORKER_0 "}}",
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]}}", 0},
    /* What Kubeflow's operator writes. */
    {"{\"cluster\":{\"chief\":[\"mnist-chief-0.ns.svc:2222\"],\"worker\":["
     "\"mnist-worker-0.ns.svc:2222\",\"mnist-worker-1.ns.svc:2222\"]},"
     "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":"
     "\"cloud\"}",
     "{\"cluster\":{\"chief\":[\"mnist-chief-0.ns.svc:2222\"],\"worker\":["
     "\"mnist-worker-0.ns.svc:2222\",\"mnist-worker-1.ns.svc:2222\"]}}",
     2},
    /* Escapes. */
    {CONFIG("\"w\\u006frker\": [\"\\u0061:1\", \"b:2\"]", WORKER_0),
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]}}", 0},
};

LOOP_TEST(texts_that_are_read, 0, sizeof accepted / sizeof *accepted)
{
    char text[300];
    hvd_cluster *cluster = NULL;

    ck_assert_msg(parse(accepted[_i].text, 0, &cluster) == HVD_OK, "%s: %s",
                  accepted[_i].text, hvd_last_error());
    ck_assert_int_eq(hvd_cluster_text(cluster, text, sizeof text),
                     (int)strlen(accepted[_i].canonical));
    ck_assert_str_eq(text, accepted[_i].canonical);
    ck_assert_int_eq(hvd_cluster_rank(cluster), accepted[_i].rank);
    hvd_cluster_free(cluster);
}

/* ---------------------------------------------------------- what is refused */

static const struct {
    const char *text, *error;
} refused[] = {
    /* No JSON. */
    {"", " is empty: give {\"cluster\": {\"worker\": [\"host:port\", ...]}"},
    {" \n", " is empty: give "},
    {"{\"cluster\": {", ", line 1, column 13: this is not valid JSON: "},
    {"{\"cluster\":\n {\"worker\" [", ", line 2, column 12: this is not valid"},
    {CONFIG(TWO, WORKER_0) " x", "column 81: this is not valid JSON: end of"},
    {"{cluster:{worker:[localhost:3737]}}",
     "; it has no double quotes, which JSON needs: a shell keeps them between "
     "single quotes, TF_CONFIG='{\"cluster\": ...}'"},
    {"{'cluster': {}}", "; it has no double quotes, which JSON needs"},
    {CONFIG(TWO, WORKER_0 ", \"index\": 1"), "duplicate object key"},
    {CONFIG("\"worker\": [\"a\xff:1\"]", WORKER_0),
     "unable to decode byte 0xff"},
    {CONFIG("\"worker\": [\"a\\u0000:1\"]", WORKER_0),
     "\\u0000 is not allowed"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": 1e999"), "real number over"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": 9999999999999999999"),
     "too big integer"},
    /* The top. */
    {"[]", ", line 1, column 1: this must be an object, {\"cluster\": "
           "{\"worker\": [\"host:port\", ...]}, \"task\": {\"type\": "
           "\"worker\", \"index\": 0}}, and not a list"},
    {" 3", ", line 1, column 2: this must be an object"},
    {"{}", ", line 1, column 1: \"cluster\" is missing, which lists the "},
    {"{\"cluster\": {" TWO "}}",
     ", line 1, column 1: \"task\" is missing, which says which task this "},
    {"{\"task\": {" WORKER_0 "}}", "\"cluster\" is missing"},
    {"{\"cluster\": {" TWO "}, \"tusk\": 1}",
     ", line 1, column 49: tusk: this key is unknown here: give \"cluster\" "
     "and \"task\""},
    {"{\"model_dir\": \"x\", " TWO "}",
     ": model_dir: the program's own options say that; remove this key"},
    {"{\"session_master\": \"grpc://x\"}", ": session_master: the program's "},
    {"{\"eval_session_master\": \"\"}", ": eval_session_master: the program"},
    {"{\"sparseCluster\": {" TWO "}, \"task\": {" WORKER_0 "}}",
     ": sparseCluster: clusters whose workers come and go are not supported"},
    /* The cluster. */
    {"{\"cluster\": [\"a:1\"], \"task\": {" WORKER_0 "}}",
     ", column 13: cluster: the cluster is an object, {\"worker\": "
     "[\"host:port\", ...]}, and not a list"},
    {CONFIG("", WORKER_0), ", column 13: cluster: the cluster has no tasks"},
    {CONFIG("\"worker\": []", WORKER_0), ": cluster: the cluster has no tasks"},
    {CONFIG("\"workers\": [\"a:1\"]", WORKER_0),
     ", column 25: cluster.workers: 'workers' is not a role: give chief, "
     "worker, ps or evaluator"},
    {CONFIG("\"Worker\": [\"a:1\"]", WORKER_0), "'Worker' is not a role"},
    {CONFIG("\"\": [\"a:1\"]", WORKER_0), "cluster.: '' is not a role"},
    {CONFIG("\"worker\": \"a:1\"", WORKER_0),
     ", column 24: cluster.worker: a role has a list of addresses, "
     "[\"host:port\", ...], and not a text"},
    {CONFIG("\"worker\": {\"0\": \"a:1\"}", WORKER_0), "and not an object"},
    {CONFIG("\"worker\": null", WORKER_0), "and not null"},
    {CONFIG("\"chief\": [\"a:1\", \"b:1\"]", WORKER_0),
     ", column 31: cluster.chief[1]: a cluster has at most one chief"},
    {CONFIG("\"evaluator\": [\"a:1\", \"b:1\"]", WORKER_0),
     ": cluster.evaluator[1]: a cluster has at most one evaluator"},
    {CONFIG("\"chief\": [\"a:1\"], \"master\": [\"b:1\"]", WORKER_0),
     ": cluster.master: \"master\" is the old name of \"chief\": give one of "
     "the two"},
    {CONFIG("\"worker\": [\"a:1\", 17]", WORKER_0),
     ", column 32: cluster.worker[1]: an address is a text, \"host:port\", and "
     "not a number"},
    {CONFIG("\"worker\": [\"a:1\", true]", WORKER_0), "not true or false"},
    {CONFIG("\"worker\": [[\"a:1\"]]", WORKER_0), "and not a list"},
    /* The column counts characters: after one that has two bytes. */
    {"{\"job\": \"\xc3\xa4\", \"cluster\": {\"worker\": [\"h\"]}}",
     ", column 37: cluster.worker[0]: 'h' has no port: give host:port"},
    {"{\"job\": \"a\\\"}b\", \"cluster\": {\"worker\": [\"h\"]}}",
     ", column 41: cluster.worker[0]: 'h' has no port"},
    {"{\"cluster\": {\n \"worker\": [\"a:1\",\n  \"b:0\"]}}",
     ", line 3, column 3: cluster.worker[1]: '0' is not a port"},
    {CONFIG("\"worker\": [\"a:1\", \"b:1\", \"A:1\"]", WORKER_0),
     ": cluster.worker[2]: worker 0 has the address 'a:1' already: give every "
     "task one of its own"},
    {CONFIG("\"ps\": [\"x:7\"], \"worker\": [\"a:1\", \"x:7\"]", WORKER_0),
     ": cluster.worker[1]: ps 0 has the address 'x:7' already"},
    /* A key with an escape is not found again, so there is no column. */
    {CONFIG("\"w\\u006frker\": [\"a\"]", WORKER_0),
     "the description of the cluster: cluster.worker[0]: 'a' has no port"},
    /* The task. */
    {"{\"cluster\": {" TWO "}, \"task\": \"worker\"}",
     ", column 49: task: the task is an object, {\"type\": \"worker\", "
     "\"index\": 0}, and not a text"},
    {CONFIG(TWO, "\"index\": 0"),
     ", column 49: task: \"type\" is missing: the role of this process"},
    {CONFIG(TWO, "\"type\": \"worker\""),
     ", column 49: task: \"index\" is missing: the number of this process "
     "among those of its type, from 0"},
    {CONFIG(TWO, WORKER_0 ", \"id\": 0"),
     ": task.id: this key is unknown here: a task has \"type\" and \"index\""},
    {CONFIG(TWO, "\"type\": 0, \"index\": 0"),
     ": task.type: a type is the name of a role, and not a number"},
    {CONFIG(TWO, "\"type\": \"server\", \"index\": 0"),
     ", column 58: task.type: 'server' is not a role: give chief, worker, ps "
     "or evaluator"},
    {CONFIG(TWO, "\"type\": \"chief\", \"index\": 0"),
     ": task.type: the cluster has no task of type chief"},
    {CONFIG(TWO, "\"type\": \"ps\", \"index\": 0"),
     ": task.type: the cluster has no task of type ps"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": 2"),
     ", column 77: task.index: 2 is not an index of a task of type worker: "
     "there are 0 to 1"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": -1"),
     ": task.index: -1 is "},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": 4294967296"),
     ": task.index: 4294967296 is not an index"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": \"1\""),
     ": task.index: an index is a whole number without quotes, and not a text"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": 1.0"),
     ": task.index: an index is a whole number, and not one with a point or an "
     "exponent"},
    {CONFIG(TWO, "\"type\": \"worker\", \"index\": null"), "and not null"},
    {CONFIG(TWO, "\"type\": \"evaluator\", \"index\": 1"),
     ": task.index: 1 is not an index of a task of type evaluator: the only "
     "one is 0"},
};

LOOP_TEST(texts_that_are_refused, 0, sizeof refused / sizeof *refused)
{
    hvd_cluster *cluster = NULL;

    ck_assert_msg(parse(refused[_i].text, 0, &cluster) == HVD_ERR_CONFIG,
                  "%s was accepted", refused[_i].text);
    ck_assert_ptr_null(cluster);
    ck_assert_msg(strstr(hvd_last_error(), refused[_i].error), "%s: %s",
                  refused[_i].text, hvd_last_error());
    ck_assert_msg(
        strncmp(hvd_last_error(), "the description of the cluster", 30) == 0,
        "%s", hvd_last_error());
}

TEST(a_nul_is_no_end)
{
    const char text[] = CONFIG(TWO, WORKER_0) "\0 ";
    hvd_cluster *cluster;

    ck_assert_int_eq(hvd_cluster_parse(text, sizeof text - 1, 0, &cluster),
                     HVD_ERR_CONFIG);
    ck_assert_int_eq(hvd_cluster_parse("\0", 1, 0, &cluster), HVD_ERR_CONFIG);
}

TEST(what_is_too_long_or_too_deep)
{
    size_t bytes = HVD_CLUSTER_MAX_BYTES + 1;
    char *text = malloc(bytes);
    hvd_cluster *cluster;

    ck_assert_ptr_nonnull(text);
    memset(text, '[', bytes);
    ck_assert_int_eq(hvd_cluster_parse(text, (int64_t)bytes, 0, &cluster),
                     HVD_ERR_CONFIG);
    ck_assert_str_eq(hvd_last_error(),
                     "the description of the cluster is longer than 1048576 "
                     "bytes");
    ck_assert_int_eq(hvd_cluster_parse(text, (int64_t)bytes - 1, 0, &cluster),
                     HVD_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "depth"));
    /* A text of the greatest length is read. */
    memset(text, ' ', bytes);
    memcpy(text, CONFIG(TWO, WORKER_0), strlen(CONFIG(TWO, WORKER_0)));
    ck_assert_int_eq(hvd_cluster_parse(text, (int64_t)bytes - 1, 0, &cluster),
                     HVD_OK);
    hvd_cluster_free(cluster);
    free(text);
}

/* What a text quotes is cut, between characters, and so is the whole error. */
TEST(long_words_are_cut)
{
    char text[2000] = "{\"cluster\": {\"x", *at = text + strlen(text);
    hvd_cluster *cluster;

    for (int i = 0; i < 800; i++, at += 2)
        memcpy(at, "\xc3\xa4", 2);
    strcpy(at, "\": []}}");
    ck_assert_int_eq(parse(text, 0, &cluster), HVD_ERR_CONFIG);
    ck_assert_uint_lt(strlen(hvd_last_error()), 400);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "\xc3\xa4' is not a role"));
}

TEST(a_text_for_others_needs_no_task)
{
    hvd_cluster *cluster;
    hvd_role role;
    int32_t index;

    ck_assert_int_eq(
        parse("{\"cluster\": {" TWO "}}", HVD_CLUSTER_NO_TASK, &cluster),
        HVD_OK);
    ck_assert_int_eq(hvd_cluster_task(cluster, &role, &index),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(),
                     "the cluster does not say which task this process is");
    ck_assert_int_eq(hvd_cluster_rank(cluster), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_is_chief(cluster), HVD_ERR_ARGUMENT);
    hvd_cluster_free(cluster);
    /* But one that is there is read. */
    ck_assert_int_eq(
        parse(CONFIG(TWO, WORKER_0), HVD_CLUSTER_NO_TASK, &cluster), HVD_OK);
    ck_assert_int_eq(hvd_cluster_rank(cluster), 0);
    hvd_cluster_free(cluster);
}

TEST(arguments)
{
    hvd_cluster *cluster = (hvd_cluster *)&cluster;

    ck_assert_int_eq(hvd_cluster_parse(NULL, 0, 0, &cluster), HVD_ERR_ARGUMENT);
    ck_assert_ptr_null(cluster);
    ck_assert_int_eq(hvd_cluster_parse("{}", 2, 0, NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_parse("{}", -1, 0, &cluster),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_parse("{}", 2, 2, &cluster), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_load(NULL, 0, &cluster), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_from_environment(NULL), HVD_ERR_ARGUMENT);
}

/* ----------------------------------------------------------- without memory */

static int allocations_left;

static void *give_some(size_t bytes)
{
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

/* Whichever allocation of the JSON library fails, nothing is lost or used after
 * its end, and the text is read or refused. */
TEST(memory_that_is_short)
{
    const char *text = accepted[1].text;
    int status = HVD_ERR_MEMORY, n = 0;
    char canonical[300];
    hvd_cluster *cluster;

    json_set_alloc_funcs(give_some, free);
    for (; status != HVD_OK; n++) {
        allocations_left = n;
        status = parse(text, 0, &cluster);
        ck_assert(n > 0 || status == HVD_ERR_MEMORY);
        ck_assert(status == HVD_OK || !cluster);
        ck_assert_int_lt(n, 1000);
    }
    hvd_cluster_text(cluster, canonical, sizeof canonical);
    ck_assert_str_eq(canonical, accepted[1].canonical);
    hvd_cluster_free(cluster);
    ck_assert_int_gt(n, 10);
}

/* -------------------------------------------------------- file, environment */

TEST(a_file)
{
    const char *path;
    char expected[400];
    hvd_cluster *cluster = NULL;

    folder_make();
    path = in_folder("cluster");
    file_write_text(path,
                    CONFIG(TWO, "\"type\": \"worker\", \"index\": 1") "\n");
    ck_assert_int_eq(hvd_cluster_load(path, 0, &cluster), HVD_OK);
    ck_assert_int_eq(hvd_cluster_rank(cluster), 1);
    hvd_cluster_free(cluster);
    file_write_text(path, "{\"cluster\":\n{}}");
    ck_assert_int_eq(hvd_cluster_load(path, 0, &cluster), HVD_ERR_CONFIG);
    snprintf(expected, sizeof expected,
             "'%s', line 2, column 1: cluster: the cluster has no tasks", path);
    ck_assert_str_eq(hvd_last_error(), expected);
    ck_assert_int_eq(truncate(path, HVD_CLUSTER_MAX_BYTES + 5), 0);
    ck_assert_int_eq(hvd_cluster_load(path, 0, &cluster), HVD_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "is longer than 1048576"));
    folder_remove();
    ck_assert_int_eq(hvd_cluster_load(path, 0, &cluster), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "No such file"));
    ck_assert_int_eq(hvd_cluster_load("/tmp", 0, &cluster), HVD_ERR_FILE);
    ck_assert_str_eq(hvd_last_error(),
                     "cannot read '/tmp': it is no regular file");
    ck_assert_ptr_null(cluster);
}

TEST(the_environment)
{
    hvd_cluster *cluster = (hvd_cluster *)&cluster;

    unsetenv("TF_CONFIG");
    ck_assert_int_eq(hvd_cluster_from_environment(&cluster), 0);
    ck_assert_ptr_null(cluster);
    setenv("TF_CONFIG", CONFIG(TWO, WORKER_0), 1);
    ck_assert_int_eq(hvd_cluster_from_environment(&cluster), 1);
    ck_assert_int_eq(hvd_cluster_is_chief(cluster), 1);
    hvd_cluster_free(cluster);
    setenv("TF_CONFIG", CONFIG(TWO, "\"type\": \"worker\", \"index\": 2"), 1);
    ck_assert_int_eq(hvd_cluster_from_environment(&cluster), HVD_ERR_CONFIG);
    ck_assert_ptr_null(cluster);
    ck_assert_str_eq(hvd_last_error(),
                     "TF_CONFIG, line 1, column 77: task.index: 2 is not an "
                     "index of a task of type worker: there are 0 to 1");
    /* An empty one is no missing one: a variable that was not expanded would
     * leave each task alone. */
    setenv("TF_CONFIG", "", 1);
    ck_assert_int_eq(hvd_cluster_from_environment(&cluster), HVD_ERR_CONFIG);
    unsetenv("TF_CONFIG");
}

TEST_MAIN("cluster_read")
