/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters that a program builds: addresses, tasks, ranks, texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hvd_cluster.h"
#include "suite.h"

static hvd_cluster *cluster;

static void begin(void)
{
    ck_assert_int_eq(hvd_cluster_new(&cluster), HVD_OK);
}

static void end(void)
{
    hvd_cluster_free(cluster);
}

/* ---------------------------------------------------------------- addresses */

static const struct {
    const char *given, *canonical;
} good[] = {
    {"localhost:3737", "localhost:3737"},
    {"Host-1.Example.ORG:1", "host-1.example.org:1"},
    {"name-worker-0.ns.svc:65535", "name-worker-0.ns.svc:65535"},
    {"my_service:80", "my_service:80"},
    {"0a1b2c3d4e5f:22", "0a1b2c3d4e5f:22"},
    {"h.:1", "h.:1"},
    {"127.0.0.1:10", "127.0.0.1:10"},
    {"255.255.255.255:10", "255.255.255.255:10"},
    {"[::1]:3737", "[::1]:3737"},
    {"[0:0:0::0001]:3737", "[::1]:3737"},
    {"[FE80::ABCD]:9", "[fe80::abcd]:9"},
    {"[::ffff:10.0.0.1]:9", "[::ffff:10.0.0.1]:9"},
};

LOOP_TEST(addresses_that_are_good, 0, sizeof good / sizeof *good)
{
    const char *address;

    ck_assert_msg(hvd_cluster_add(cluster, HVD_ROLE_PS, good[_i].given) == 0,
                  "%s", hvd_last_error());
    address = hvd_cluster_address(cluster, HVD_ROLE_PS, 0);
    ck_assert_str_eq(address, good[_i].canonical);
    /* The same host in another form is the same address. */
    ck_assert_int_eq(hvd_cluster_add(cluster, HVD_ROLE_WORKER, address),
                     HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "worker 0: ps 0 has the"));
}

#define LABEL "a123456789b123456789c123456789d123456789e123456789f123456789g12"

static const struct {
    const char *given, *error;
} bad[] = {
    {"", "worker 0: the address is empty: give host:port"},
    {"host", "'host' has no port"},
    {"host:", "'' is not a port: give a number from 1 to 65535"},
    {":3737", "':3737' has no host"},
    {"host:0", "'0' is not a port"},
    {"host:00", "'00' is not a port"},
    {"host:080", "'080' is not a port"},
    {"host:65536", "'65536' is not a port"},
    {"host:18446744073709551617", "is not a port"},
    {"host:80a", "'80a' is not a port"},
    {"host:-1", "'-1' is not a port"},
    {"host:+1", "'+1' is not a port"},
    {"host: 1", "' 1' is not a port"},
    {"host:1 ", "'1 ' is not a port"},
    {"host:port", "'port' is not a port"},
    {" host:1", "' host' is not the name of a host: give letters, digits"},
    {"ho st:1", "is not the name of a host"},
    {"h\xc3\xb6st:1", "is not the name of a host"},
    {"-host:1", "'-host' is not the name of a host"},
    {"host-:1", "is not the name of a host"},
    {"a..b:1", "is not the name of a host"},
    {".a:1", "is not the name of a host"},
    {".:1", "is not the name of a host"},
    {LABEL ":1", NULL},
    {LABEL "3:1", "is not the name of a host"},
    {LABEL "." LABEL "." LABEL "." LABEL ":1", "name is longer than 253 bytes"},
    {"host/path:1", "is not the name of a host"},
    {"host;rm:1", "is not the name of a host"},
    {"grpc://host:1", "'grpc://host:1' begins with a scheme: give host:port"},
    {"1.2.3:1", "'1.2.3' is not an IPv4 address: give four numbers from 0"},
    {"1.2.3.256:1", "'1.2.3.256' is not an IPv4 address"},
    {"010.0.0.1:1", "is not an IPv4 address"},
    {"17:1", "'17' is not an IPv4 address"},
    {"0x7f000001:1", "is not an IPv4 address"},
    {"0.0.0.0:1", "nobody can connect to the address 0.0.0.0"},
    {"::1:3737", "'::1:3737' has several colons: an IPv6 address is written in "
                 "brackets, as in [::1]:3737"},
    {"host:1:2", "has several colons"},
    {"[::1]", "'[::1]' has no port"},
    {"[::1]3737", "'[::1]3737' has no port"},
    {"[::1:3737", "'[::1:3737' lacks the ] of its IPv6 address"},
    {"[::1]x:3737", "'[::1]x:3737' has something between ] and the port"},
    {"[]:1", "'[]:1' has no host"},
    {"[host]:1", "'host' is not an IPv6 address"},
    {"[1.2.3.4]:1", "'1.2.3.4' is not an IPv6 address"},
    {"[fe80::1%eth0]:1", "'fe80::1%eth0' has a scope, which means something"},
    {"[::]:1", "nobody can connect to the address ::"},
};

LOOP_TEST(addresses_that_are_not, 0, sizeof bad / sizeof *bad)
{
    int status = hvd_cluster_add(cluster, HVD_ROLE_WORKER, bad[_i].given);

    if (!bad[_i].error) {
        ck_assert_int_eq(status, 0);
        return;
    }
    ck_assert_msg(status == HVD_ERR_ARGUMENT, "%s", bad[_i].given);
    ck_assert_msg(strstr(hvd_last_error(), bad[_i].error), "%s: %s",
                  bad[_i].given, hvd_last_error());
    ck_assert_int_eq(hvd_cluster_count(cluster, HVD_ROLE_WORKER), 0);
}

/* ---------------------------------------------------------- tasks and ranks */

static void add(hvd_role role, int n)
{
    for (int i = 0; i < n; i++) {
        char address[32];

        snprintf(address, sizeof address, "%s-%d:%d", hvd_role_name(role), i,
                 1000 + i);
        ck_assert_int_eq(hvd_cluster_add(cluster, role, address), i);
    }
}

static void check_task_of(int rank, hvd_role role, int32_t index)
{
    hvd_role found = -1;
    int32_t place = -1;

    ck_assert_int_eq(hvd_cluster_task_of(cluster, rank, &found, &place),
                     HVD_OK);
    ck_assert_int_eq(found, role);
    ck_assert_int_eq(place, index);
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, role, index), rank);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, role, index), HVD_OK);
    ck_assert_int_eq(hvd_cluster_rank(cluster), rank);
    ck_assert_int_eq(hvd_cluster_is_chief(cluster), rank == 0);
    ck_assert_int_eq(hvd_cluster_task(cluster, &found, &place), HVD_OK);
    ck_assert_int_eq(found, role);
    ck_assert_int_eq(place, index);
}

LOOP_TEST(ranks_are_the_chief_and_the_workers, 0, 18)
{
    int nchiefs = _i % 2, nworkers = _i / 2;
    hvd_role role;
    int32_t index;

    add(HVD_ROLE_EVALUATOR, 1);
    add(HVD_ROLE_WORKER, nworkers);
    add(HVD_ROLE_PS, 2);
    add(HVD_ROLE_CHIEF, nchiefs);
    ck_assert_int_eq(hvd_cluster_size(cluster), nchiefs + nworkers);
    ck_assert_int_eq(hvd_cluster_count(cluster, HVD_ROLE_CHIEF), nchiefs);
    ck_assert_int_eq(hvd_cluster_count(cluster, HVD_ROLE_WORKER), nworkers);
    if (nchiefs)
        check_task_of(0, HVD_ROLE_CHIEF, 0);
    for (int i = 0; i < nworkers; i++)
        check_task_of(nchiefs + i, HVD_ROLE_WORKER, i);
    ck_assert_int_eq(
        hvd_cluster_task_of(cluster, nchiefs + nworkers, &role, &index),
        HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_task_of(cluster, -1, &role, &index),
                     HVD_ERR_ARGUMENT);
    /* The others have none. */
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_PS, 1),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(),
                     "ps 1 has no rank: it takes no part in the reduction");
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_EVALUATOR, 0),
                     HVD_OK);
    ck_assert_int_eq(hvd_cluster_rank(cluster), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_is_chief(cluster), 0);
}

TEST(tasks_that_are_not_there)
{
    add(HVD_ROLE_WORKER, 2);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, 1), HVD_OK);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, 2),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(),
                     "task: 2 is not an index of a task of type worker: there "
                     "are 0 to 1");
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_CHIEF, 0),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_EVALUATOR, 1),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, 4, 0), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_rank(cluster), 1); /* as before */
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_WORKER, 2),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(), "the cluster has no worker 2");
    ck_assert_ptr_null(hvd_cluster_address(cluster, HVD_ROLE_WORKER, -1));
    ck_assert_ptr_null(hvd_cluster_address(cluster, HVD_ROLE_CHIEF, 0));
    ck_assert_ptr_null(hvd_cluster_address(cluster, -1, 0));
    ck_assert_int_eq(hvd_cluster_count(cluster, HVD_NUM_ROLES),
                     HVD_ERR_ARGUMENT);
}

TEST(one_chief_and_one_evaluator)
{
    add(HVD_ROLE_CHIEF, 1);
    ck_assert_int_eq(hvd_cluster_add(cluster, HVD_ROLE_CHIEF, "x:1"),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(),
                     "chief 1: a cluster has at most one chief");
    add(HVD_ROLE_EVALUATOR, 1);
    ck_assert_int_eq(hvd_cluster_add(cluster, HVD_ROLE_EVALUATOR, "x:1"),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_add(cluster, HVD_ROLE_WORKER, NULL),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_add(cluster, -1, "x:1"), HVD_ERR_ARGUMENT);
}

TEST(roles_have_names)
{
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        ck_assert_int_eq(hvd_role_from_name(hvd_role_name(role)), role);
    ck_assert_ptr_null(hvd_role_name(HVD_NUM_ROLES));
    ck_assert_ptr_null(hvd_role_name(-1));
    ck_assert_int_eq(hvd_role_from_name("master"), HVD_ROLE_CHIEF);
    ck_assert_int_eq(hvd_role_from_name("client"), HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(), "'client' is not a role: give chief, "
                                       "worker, ps or evaluator");
    ck_assert_int_eq(hvd_role_from_name(NULL), HVD_ERR_ARGUMENT);
}

TEST(without_a_cluster)
{
    uint64_t fingerprint;
    hvd_role role;
    int32_t index;

    hvd_cluster_free(NULL);
    ck_assert_int_eq(hvd_cluster_new(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_add(NULL, 0, "a:1"), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_set_task(NULL, 0, 0), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_count(NULL, 0), HVD_ERR_ARGUMENT);
    ck_assert_ptr_null(hvd_cluster_address(NULL, 0, 0));
    ck_assert_int_eq(hvd_cluster_task(NULL, &role, &index), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_size(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_rank(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_rank_of(NULL, 0, 0), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_task_of(NULL, 0, &role, &index),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_is_chief(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_check_allreduce(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_text(NULL, NULL, 0), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_tf_config(NULL, 0, 0, NULL, 0),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_fingerprint(NULL, &fingerprint),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(), "the cluster is NULL");
}

TEST(without_a_place_for_the_answer)
{
    hvd_role role;
    int32_t index;

    add(HVD_ROLE_WORKER, 1);
    ck_assert_int_eq(hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, 0), HVD_OK);
    ck_assert_int_eq(hvd_cluster_task(cluster, NULL, &index), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_task_of(cluster, 0, &role, NULL),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_fingerprint(cluster, NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_text(cluster, NULL, 1), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_text(cluster, NULL, -1), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(
        hvd_cluster_tf_config(cluster, HVD_ROLE_WORKER, 0, NULL, 1),
        HVD_ERR_ARGUMENT);
}

TEST(who_can_average)
{
    ck_assert_int_eq(hvd_cluster_check_allreduce(cluster), HVD_ERR_CONFIG);
    add(HVD_ROLE_EVALUATOR, 1);
    ck_assert_int_eq(hvd_cluster_check_allreduce(cluster), HVD_ERR_CONFIG);
    ck_assert_str_eq(hvd_last_error(), "the cluster has neither a chief nor a "
                                       "worker, so nobody trains");
    add(HVD_ROLE_CHIEF, 1);
    ck_assert_int_eq(hvd_cluster_check_allreduce(cluster), HVD_OK);
    add(HVD_ROLE_PS, 3);
    ck_assert_int_eq(hvd_cluster_check_allreduce(cluster), HVD_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "of type ps (3), which"));
}

TEST(servers_may_have_ranks_behind_the_workers)
{
    uint64_t before, after;
    hvd_role role;
    int32_t index;

    add(HVD_ROLE_CHIEF, 1);
    add(HVD_ROLE_WORKER, 2);
    ck_assert_int_eq(hvd_cluster_rank_servers(cluster), HVD_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "no tasks of type ps"));
    add(HVD_ROLE_PS, 2);
    add(HVD_ROLE_EVALUATOR, 1);
    ck_assert_int_eq(hvd_cluster_size(cluster), 3);
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_PS, 0),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_fingerprint(cluster, &before), HVD_OK);
    ck_assert_int_eq(hvd_cluster_rank_servers(cluster), 2);
    ck_assert_int_eq(hvd_cluster_fingerprint(cluster, &after), HVD_OK);
    ck_assert(before != after);
    ck_assert_int_eq(hvd_cluster_size(cluster), 5);
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_PS, 1), 4);
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_WORKER, 0), 1);
    ck_assert_int_eq(hvd_cluster_rank_of(cluster, HVD_ROLE_EVALUATOR, 0),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_task_of(cluster, 3, &role, &index), HVD_OK);
    ck_assert_int_eq(role, HVD_ROLE_PS);
    ck_assert_int_eq(index, 0);
    ck_assert_int_eq(hvd_cluster_task_of(cluster, 5, &role, &index),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_cluster_rank_servers(NULL), HVD_ERR_ARGUMENT);
}

/* -------------------------------------------------------------------- texts */

TEST(texts_are_cut_and_their_length_is_told)
{
    static const char whole[] =
        "{\"cluster\":{\"worker\":[\"worker-0:1000\",\"worker-1:1001\"]}}";
    char text[sizeof whole];

    ck_assert_int_eq(hvd_cluster_text(cluster, text, sizeof text),
                     HVD_ERR_ARGUMENT);
    ck_assert_str_eq(hvd_last_error(), "the cluster has no tasks");
    add(HVD_ROLE_WORKER, 2);
    for (size_t size = 0; size <= sizeof whole; size++) {
        memset(text, 'x', sizeof text);
        ck_assert_int_eq(
            hvd_cluster_text(cluster, size ? text : NULL, (int64_t)size),
            sizeof whole - 1);
        if (size == 0)
            continue;
        ck_assert_int_eq(strncmp(text, whole, size - 1), 0);
        ck_assert_int_eq(text[size - 1], '\0');
        ck_assert(size == sizeof whole || text[size] == 'x');
    }
}

/* Each task's TF_CONFIG gives the same cluster, and that task. */
TEST(the_configuration_of_each_task)
{
    static const int counts[HVD_NUM_ROLES] = {1, 3, 2, 0};
    char whole[400], text[400];
    uint64_t fingerprint, other;

    for (int role = 0; role < HVD_NUM_ROLES; role++)
        add(role, counts[role]);
    hvd_cluster_text(cluster, whole, sizeof whole);
    ck_assert_int_eq(hvd_cluster_fingerprint(cluster, &fingerprint), HVD_OK);
    for (int role = 0; role < HVD_NUM_ROLES; role++) {
        int n = role == HVD_ROLE_EVALUATOR ? 1 : counts[role];

        for (int i = 0; i < n; i++) {
            int length =
                hvd_cluster_tf_config(cluster, role, i, text, sizeof text);
            hvd_cluster *read = NULL;
            hvd_role found;
            int32_t index;

            ck_assert_int_eq(length, (int)strlen(text));
            ck_assert_int_eq(hvd_cluster_parse(text, length, 0, &read), HVD_OK);
            ck_assert_int_eq(hvd_cluster_task(read, &found, &index), HVD_OK);
            ck_assert_int_eq(found, role);
            ck_assert_int_eq(index, i);
            hvd_cluster_text(read, text, sizeof text);
            ck_assert_str_eq(text, whole);
            hvd_cluster_fingerprint(read, &other);
            ck_assert_uint_eq(other, fingerprint);
            hvd_cluster_free(read);
        }
        ck_assert_int_eq(
            hvd_cluster_tf_config(cluster, role, n, text, sizeof text),
            HVD_ERR_ARGUMENT);
    }
}

/* The fingerprint tells the smallest differences. */
TEST(fingerprints_differ)
{
    static const char *const texts[] = {
        "{\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]}}",
        "{\"cluster\":{\"worker\":[\"b:1\",\"a:1\"]}}",
        "{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]}}",
        "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]}}",
        "{\"cluster\":{\"worker\":[\"a:1\"],\"ps\":[\"b:1\"]}}",
        "{\"cluster\":{\"worker\":[\"a:1\",\"b:1\",\"c:1\"]}}",
    };
    enum { N = sizeof texts / sizeof *texts };
    uint64_t fingerprints[N];

    for (int i = 0; i < N; i++) {
        hvd_cluster *read;

        ck_assert_int_eq(hvd_cluster_parse(texts[i], (int64_t)strlen(texts[i]),
                                           HVD_CLUSTER_NO_TASK, &read),
                         HVD_OK);
        hvd_cluster_fingerprint(read, &fingerprints[i]);
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(fingerprints[i], fingerprints[j]);
        hvd_cluster_free(read);
    }
}

/* A cluster is built up to the limit of its text, and that text is read. */
TEST(many_tasks)
{
    char address[300], name[200] = "";
    char *text = malloc(HVD_CLUSTER_MAX_BYTES + 1);
    int n = 0, status = 0, length;
    hvd_cluster *read = NULL;

    while (strlen(name) < 180)
        strcat(name, "abcdefghij.");
    for (; status >= 0; n++) {
        snprintf(address, sizeof address, "%s%d-x:3737", name, n);
        status = hvd_cluster_add(cluster, HVD_ROLE_WORKER, address);
        ck_assert(status == n || status == HVD_ERR_ARGUMENT);
    }
    ck_assert_int_gt(n, 5000);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "the cluster's text would "
                                                   "be longer than 1048576"));
    length = hvd_cluster_text(cluster, text, HVD_CLUSTER_MAX_BYTES + 1);
    ck_assert_int_le(length, HVD_CLUSTER_MAX_BYTES);
    ck_assert_int_eq(
        hvd_cluster_parse(text, length, HVD_CLUSTER_NO_TASK, &read), HVD_OK);
    ck_assert_int_eq(hvd_cluster_size(read), n - 1);
    for (int i = 0; i < n - 1; i++)
        ck_assert_str_eq(hvd_cluster_address(read, HVD_ROLE_WORKER, i),
                         hvd_cluster_address(cluster, HVD_ROLE_WORKER, i));
    hvd_cluster_free(read);
    free(text);
}

TEST_MAIN("cluster_tasks", .set_up = begin, .tear_down = end)
