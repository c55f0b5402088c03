/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - reads a TF_CONFIG. It is strict where TensorFlow is not, for what
 * TensorFlow ignores is mostly a mistake, and one that shows only when the
 * tasks wait for each other without an end: an unknown role or key, an index
 * beyond the list, an address twice. Keys that TensorFlow documents and that
 * mean nothing here are accepted and ignored.
 *
 * Every refusal names the text, the line and column, and the keys that lead to
 * the value. jansson checks that the text is JSON in valid UTF-8 without
 * duplicate keys and NULs, and limits its depth.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cluster/parts.h"

#define FORM                                                                   \
    "{\"cluster\": {\"worker\": [\"host:port\", ...]}, "                       \
    "\"task\": {\"type\": \"worker\", \"index\": 0}}"

struct reader {
    const struct hvd__source *source;
    int32_t flags;
    hvd_cluster *cluster;
};

static const struct hvd__json_place top = {NULL, NULL, -1};

static struct hvd__json_place at(const char *outer, const char *inner)
{
    return (struct hvd__json_place){outer, inner, -1};
}

/* ----------------------------------------------------------------- refusals */

static void add_path(struct hvd__text *text, struct hvd__json_place place)
{
    if (place.outer)
        hvd__text_add(text, ": %.*s", hvd__quoted(place.outer), place.outer);
    if (place.inner)
        hvd__text_add(text, ".%.*s", hvd__quoted(place.inner), place.inner);
    if (place.index >= 0)
        hvd__text_add(text, "[%lld]", (long long)place.index);
}

__attribute__((format(printf, 3, 4))) static int refuse_value(
    const struct reader *r, struct hvd__json_place place, const char *format,
    ...)
{
    char where[HVD__MESSAGE_MAX], reason[HVD__MESSAGE_MAX];
    struct hvd__text text = hvd__text_at(where, sizeof where);
    va_list arguments;
    int line, column;

    hvd__text_add(&text, "%.400s", r->source->name);
    if (hvd__place_find(r->source->text, r->source->bytes, place, &line,
                        &column))
        hvd__text_add(&text, ", line %d, column %d", line, column);
    add_path(&text, place);
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return hvd__fail(HVD_ERR_CONFIG, "%s: %s", where, reason);
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
    }
}

/* Shells remove double quotes that stand in no others. */
static const char *advice(const struct hvd__source *source)
{
    return memchr(source->text, '"', source->bytes)
               ? ""
               : "; it has no double quotes, which JSON needs: a shell keeps "
                 "them between single quotes, TF_CONFIG='{\"cluster\": ...}'";
}

static int refuse_json(const struct hvd__source *source,
                       const json_error_t *error)
{
    /* jansson has no word for it. Where it lacks memory for a word of the text,
     * it takes that for a mistake in the text. */
    if (!*error->text)
        return hvd__fail_memory(source->bytes);
    if (error->line <= 0)
        return hvd__fail(HVD_ERR_CONFIG, "%.400s is not valid JSON: %s%s",
                         source->name, error->text, advice(source));
    return hvd__fail(HVD_ERR_CONFIG,
                     "%.400s, line %d, column %d: this is not valid JSON: %s%s",
                     source->name, error->line, error->column, error->text,
                     advice(source));
}

/* --------------------------------------------------------------- known keys */

/* A key that is known. why: it is refused, for this reason. Without a reason
 * its value means nothing here, and is ignored. */
struct known_key {
    const char *key, *why;
};

#define ELSEWHERE "the program's own options say that; remove this key"

static const struct known_key top_keys[] = {
    {"environment", NULL}, /* the kind of machine: "cloud" */
    {"rpc_layer", NULL},   /* how TensorFlow's servers talk: "grpc" */
    {"job", NULL},         /* how a cloud's service has started the job */
    {"service", NULL},     /* TensorFlow's other services */
    {"session_master", ELSEWHERE},
    {"eval_session_master", ELSEWHERE},
    {"model_dir", ELSEWHERE},
    {"sparseCluster", "clusters whose workers come and go are not supported: "
                      "give all of them under \"cluster\""},
    {NULL, NULL},
};

static const struct known_key task_keys[] = {
    {"trial", NULL}, /* the number of a hyper-parameter search's trial */
    {"cloud", NULL},
    {NULL, NULL},
};

static int check_key(const struct reader *r, const char *outer, const char *key,
                     const struct known_key *known, const char *expected)
{
    struct hvd__json_place place = outer ? at(outer, key) : at(key, NULL);

    while (known->key && strcmp(known->key, key) != 0)
        known++;
    if (!known->key)
        return refuse_value(r, place, "this key is unknown here: %s", expected);
    return known->why ? refuse_value(r, place, "%s", known->why) : HVD_OK;
}

/* ------------------------------------------------------------------ cluster */

static int read_address(const struct reader *r, struct hvd__json_place place,
                        hvd_role role, const json_t *value)
{
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    int status;

    if (!json_is_string(value))
        return refuse_value(r, place,
                            "an address is a text, \"host:port\", and not %s",
                            type_name(value));
    status =
        hvd__cluster_insert(r->cluster, role, json_string_value(value), &why);
    return status == HVD_ERR_ARGUMENT ? refuse_value(r, place, "%s", reason)
                                      : status;
}

static int read_role(const struct reader *r, const json_t *cluster,
                     const char *name, const json_t *list)
{
    struct hvd__json_place place = at("cluster", name);
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    int role = hvd__role_find(name, &why);
    const json_t *value;
    size_t i;

    if (role < 0)
        return refuse_value(r, place, "%s", reason);
    if (strcmp(name, "master") == 0 && json_object_get(cluster, "chief"))
        return refuse_value(r, place,
                            "\"master\" is the old name of \"chief\": give one "
                            "of the two");
    if (!json_is_array(list))
        return refuse_value(r, place,
                            "a role has a list of addresses, [\"host:port\", "
                            "...], and not %s",
                            type_name(list));
    json_array_foreach(list, i, value)
    {
        place.index = (int64_t)i;
        HVD_TRY(read_address(r, place, role, value));
    }
    return HVD_OK;
}

static int read_cluster(const struct reader *r, json_t *cluster)
{
    const char *role;
    json_t *list;
    int size = 0;

    if (!cluster)
        return refuse_value(r, top,
                            "\"cluster\" is missing, which lists the addresses "
                            "of each role: " FORM);
    if (!json_is_object(cluster))
        return refuse_value(r, at("cluster", NULL),
                            "the cluster is an object, {\"worker\": "
                            "[\"host:port\", ...]}, and not %s",
                            type_name(cluster));
    json_object_foreach(cluster, role, list)
    {
        HVD_TRY(read_role(r, cluster, role, list));
    }
    for (int i = 0; i < HVD_NUM_ROLES; i++)
        size += hvd_cluster_count(r->cluster, i);
    return size > 0 ? HVD_OK
                    : refuse_value(r, at("cluster", NULL),
                                   "the cluster has no tasks");
}

/* --------------------------------------------------------------------- task */

static int read_type(const struct reader *r, const json_t *type)
{
    struct hvd__json_place place = at("task", "type");
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    int role;

    if (!type)
        return refuse_value(r, at("task", NULL),
                            "\"type\" is missing: the role of this process");
    if (!json_is_string(type))
        return refuse_value(r, place,
                            "a type is the name of a role, and not %s",
                            type_name(type));
    role = hvd__role_find(json_string_value(type), &why);
    return role < 0 ? refuse_value(r, place, "%s", reason) : role;
}

static int check_index_type(const struct reader *r, const json_t *index)
{
    if (!index)
        return refuse_value(r, at("task", NULL),
                            "\"index\" is missing: the number of this process "
                            "among those of its type, from 0");
    if (json_is_integer(index))
        return HVD_OK;
    return refuse_value(r, at("task", "index"),
                        "an index is a whole number%s, and not %s",
                        json_is_string(index) ? " without quotes" : "",
                        json_is_real(index) ? "one with a point or an exponent"
                                            : type_name(index));
}

static int read_task(const struct reader *r, json_t *task)
{
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    const json_t *index = json_object_get(task, "index");
    json_t *value;
    const char *key;
    int role;

    if (!json_is_object(task))
        return refuse_value(r, at("task", NULL),
                            "the task is an object, {\"type\": \"worker\", "
                            "\"index\": 0}, and not %s",
                            type_name(task));
    json_object_foreach(task, key, value)
    {
        if (strcmp(key, "type") != 0 && strcmp(key, "index") != 0)
            HVD_TRY(check_key(r, "task", key, task_keys,
                              "a task has \"type\" and \"index\""));
    }
    role = read_type(r, json_object_get(task, "type"));
    HVD_TRY(role);
    HVD_TRY(check_index_type(r, index));
    if (hvd__cluster_may_be(r->cluster, role, json_integer_value(index), &why))
        return hvd_cluster_set_task(r->cluster, role,
                                    (int32_t)json_integer_value(index));
    return refuse_value(r,
                        at("task", hvd_cluster_count(r->cluster, role) > 0 ||
                                           role == HVD_ROLE_EVALUATOR
                                       ? "index"
                                       : "type"),
                        "%s", reason);
}

/* ---------------------------------------------------------------- all of it */

static int read_top(const struct reader *r, json_t *root)
{
    json_t *value, *task = json_object_get(root, "task");
    const char *key;

    if (!json_is_object(root))
        return refuse_value(r, top, "this must be an object, %s, and not %s",
                            FORM, type_name(root));
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "cluster") != 0 && strcmp(key, "task") != 0)
            HVD_TRY(check_key(r, NULL, key, top_keys,
                              "give \"cluster\" and \"task\""));
    }
    HVD_TRY(read_cluster(r, json_object_get(root, "cluster")));
    if (task)
        return read_task(r, task);
    if (r->flags & HVD_CLUSTER_NO_TASK)
        return HVD_OK;
    return refuse_value(r, top,
                        "\"task\" is missing, which says which task this "
                        "process is: {\"type\": \"worker\", \"index\": 0}");
}

static int check_bytes(const struct hvd__source *source)
{
    size_t blank = 0;

    if (source->bytes > HVD_CLUSTER_MAX_BYTES)
        return hvd__fail(HVD_ERR_CONFIG, "%.400s is longer than %d bytes",
                         source->name, HVD_CLUSTER_MAX_BYTES);
    while (blank < source->bytes && strchr(" \t\r\n", source->text[blank]) &&
           source->text[blank])
        blank++;
    if (blank == source->bytes)
        return hvd__fail(HVD_ERR_CONFIG, "%.400s is empty: give " FORM,
                         source->name);
    return HVD_OK;
}

int hvd__cluster_read(const struct hvd__source *source, int32_t flags,
                      hvd_cluster **cluster)
{
    struct reader r = {source, flags, NULL};
    json_error_t error;
    json_t *root;
    int status;

    HVD_TRY(check_bytes(source));
    root = json_loadb(source->text, source->bytes,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!root)
        return refuse_json(source, &error);
    status = hvd_cluster_new(&r.cluster);
    if (status >= 0)
        status = read_top(&r, root);
    json_decref(root);
    if (status < 0)
        hvd_cluster_free(r.cluster);
    else
        *cluster = r.cluster;
    return status < 0 ? status : HVD_OK;
}
