/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.c - the source of tf.train.Examples in a file of records. The file
 * is read as a whole when the data set is made, and all checksums are verified;
 * the features of an element are taken from its record when they are asked for.
 *
 * An Example is {1: Features {1: map of {1: name, 2: Feature}}}; a Feature has
 * one of {1: list of bytes, 2: list of float32, 3: list of int64}, each of them
 * {1: values}, which may be packed.
 */
#include "dataset/stage.h"

#include "files/elements.h"
#include "files/gz.h"
#include "files/protobuf.h"
#include "files/record.h"
#include "output/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

struct records {
    char *path, *bytes;  /* owned */
    struct protobuf *at; /* [count], owned: in bytes */
    int64_t count;
};

static int64_t count_records(const hvd_dataset *set, const struct share *share)
{
    (void)share;
    return ((const struct records *)set->parameters)->count;
}

static int fail_in(const struct stage *stage, int64_t index, int32_t component,
                   const char *why)
{
    const struct records *records = stage->set->parameters;

    return problem_fail(HVD_ERR_FILE, "%s: record %lld: \"%s\" %s",
                        records->path, (long long)index,
                        stage->set->components[component].name, why);
}

/* Finds the first field of a number and type bytes: 1, 0 or -1. */
static int find_field(struct protobuf message, uint32_t number,
                      struct protobuf *bytes)
{
    struct protobuf_field field;
    int status;

    while ((status = protobuf_next(&message, &field)) > 0)
        if (field.number == number && field.type == PROTOBUF_BYTES) {
            *bytes = field.bytes;
            return 1;
        }
    return status;
}

/* Finds a feature of an example by its name: 1, 0 or -1. */
static int find_feature(struct protobuf example, const char *name,
                        struct protobuf *feature)
{
    struct protobuf features, key;
    struct protobuf_field entry;
    int status = find_field(example, 1, &features);

    while (status > 0 && (status = protobuf_next(&features, &entry)) > 0) {
        if (entry.number != 1 || entry.type != PROTOBUF_BYTES ||
            find_field(entry.bytes, 1, &key) <= 0)
            continue;
        if ((size_t)(key.end - key.at) == strlen(name) &&
            memcmp(key.at, name, strlen(name)) == 0)
            return find_field(entry.bytes, 2, feature);
    }
    return status;
}

/* A sink is where numbers go. */
struct sink {
    hvd_dtype dtype;
    void *out;
    int64_t room, count;
};

/* Keeps a number, if there is room; counts it in any case. */
static void put_number(struct sink *sink, int list, uint64_t bits)
{
    if (sink->count < sink->room) {
        enum safetensors_dtype to =
            (enum safetensors_dtype)safetensors_from_hvd(sink->dtype);

        if (sink->dtype == HVD_INT64 && list == INT64_LIST) {
            memcpy((int64_t *)sink->out + sink->count, &bits, sizeof bits);
        } else if (list == INT64_LIST) {
            element_put(to, sink->out, sink->count, (double)(int64_t)bits);
        } else {
            uint32_t low = (uint32_t)bits;
            float x;

            memcpy(&x, &low, sizeof x);
            element_put(to, sink->out, sink->count, (double)x);
        }
    }
    sink->count++;
}

/* Takes the values of one field of a list; -1 if they are none. */
static int take_values(const struct protobuf_field *field, int list,
                       struct sink *sink)
{
    struct protobuf packed = field->bytes;
    uint64_t bits = 0;

    if (field->type != PROTOBUF_BYTES) {
        if (field->type !=
            (list == FLOAT_LIST ? PROTOBUF_FIXED32 : PROTOBUF_VARINT))
            return -1;
        put_number(sink, list, field->value);
        return 0;
    }
    while (packed.at < packed.end) {
        if (list == INT64_LIST && protobuf_varint(&packed, &bits) < 0)
            return -1;
        if (list == FLOAT_LIST) {
            if (packed.end - packed.at < 4)
                return -1;
            memcpy(&bits, packed.at, 4);
            packed.at += 4;
        }
        put_number(sink, list, bits);
    }
    return 0;
}

static int take_list(const struct stage *stage, int64_t index, int32_t c,
                     int list, struct protobuf values, struct sink *sink)
{
    struct protobuf_field field;
    int status;

    while ((status = protobuf_next(&values, &field)) > 0) {
        if (field.number != 1)
            continue;
        if (list == BYTES_LIST) {
            size_t length = (size_t)(field.bytes.end - field.bytes.at);

            if (field.type != PROTOBUF_BYTES)
                return fail_in(stage, index, c, "is no list of bytes");
            if (hvd_dtype_size(sink->dtype) != 1)
                return fail_in(stage, index, c,
                               "is a list of bytes: read it as uint8, int8 or "
                               "bool");
            if (sink->count + (int64_t)length <= sink->room)
                memcpy((char *)sink->out + sink->count, field.bytes.at, length);
            sink->count += (int64_t)length;
        } else if (take_values(&field, list, sink) < 0) {
            return fail_in(stage, index, c, "has values of another kind");
        }
    }
    return status < 0 ? fail_in(stage, index, c, "is no list") : 0;
}

static int take_feature(const struct stage *stage, int64_t index, int32_t c,
                        void *out)
{
    const struct records *records = stage->set->parameters;
    const hvd_component *component = &stage->set->components[c];
    struct sink sink = {component->dtype, out, component_count(component), 0};
    struct protobuf feature, values;
    char why[120];
    int status = find_feature(records->at[index], component->name, &feature),
        list = 0;

    if (status <= 0)
        return fail_in(stage, index, c,
                       status < 0 ? "is not found: this is no tf.train.Example"
                                  : "is missing");
    for (int i = BYTES_LIST; i <= INT64_LIST && list == 0; i++)
        if (find_field(feature, (uint32_t)i, &values) > 0)
            list = i;
    if (list == 0)
        return fail_in(stage, index, c, "is empty");
    status = take_list(stage, index, c, list, values, &sink);
    if (status < 0 || sink.count == sink.room)
        return status;
    snprintf(why, sizeof why, "has %lld values, expected %lld",
             (long long)sink.count, (long long)sink.room);
    return fail_in(stage, index, c, why);
}

static int get_example(struct stage *stage, int64_t index, char *room,
                       void *const *out)
{
    int status = 0;

    (void)room;
    for (int32_t i = 0; i < stage->set->ncomponents && status == 0; i++)
        status = take_feature(stage, index, i, out[i]);
    return status;
}

static void free_records(hvd_dataset *set)
{
    struct records *records = set->parameters;

    free(records->path);
    free(records->bytes);
    free(records->at);
}

static const struct kind tfrecord_kind = {.name = "tfrecord",
                                          .count = count_records,
                                          .get = get_example,
                                          .free = free_records};

/* Finds all records, and verifies them. */
static int find_records(struct records *records, size_t length)
{
    size_t offset = 0, size = 0;
    const unsigned char *at;
    int64_t room = 0;
    int status;

    while ((status = record_find(records->path, records->bytes, length, offset,
                                 &at, &size)) > 0) {
        if (records->count == room) {
            room = room ? 2 * room : 1024;
            struct protobuf *grown =
                realloc(records->at, (size_t)room * sizeof *grown);
            if (!grown)
                return problem_fail(HVD_ERR_MEMORY,
                                    "%s: no memory for %lld records",
                                    records->path, (long long)room);
            records->at = grown;
        }
        records->at[records->count++] = (struct protobuf){at, at + size};
        offset += RECORD_HEAD + size + RECORD_TAIL;
    }
    return status;
}

hvd_dataset *hvd_dataset_tfrecord(const char *path, int32_t ncomponents,
                                  const hvd_component *components)
{
    size_t length;
    hvd_dataset *set =
        node_make(&tfrecord_kind, 0, NULL, sizeof(struct records));

    set = node_components(set, ncomponents, components);
    if (!set)
        return NULL;
    struct records *records = set->parameters;
    set->random = true;
    int status = gz_read_file(path, &records->bytes, &length);
    if (status == 0 && !(records->path = strdup(path)))
        status = problem_fail(HVD_ERR_MEMORY, "%s: no memory", path);
    if (status == 0)
        status = find_records(records, length);
    if (status < 0) {
        hvd_dataset_free(set);
        return NULL;
    }
    return set;
}
