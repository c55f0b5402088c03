/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - the attributes of a configuration, one by one; apply.c judges them
 * together.
 *
 * Attributes of Graphcore's IPUConfig that could change nothing here are known
 * by name and refused, so that a program does not believe that it has set
 * something. So are attributes that belong to a graph here, with the call that
 * sets them.
 */
#include "target/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/target.h"

struct attribute {
    const char *name;
    const char *value; /* the default, as JSON */
    /* the words allowed, with spaces around each; or NULL */
    const char *choices;
};

static const struct attribute attributes[] = {
    {"auto_select_ipus", "[]", NULL},
    {"convolutions.poplar_options.availableMemoryProportion", "0.6", NULL},
    {"device_connection.type", "\"ALWAYS\"",
     " ALWAYS ON_DEMAND PRE_COMPILE NEVER "},
    {"device_connection.version", "\"\"", NULL},
    {"experimental.multi_replica_distribution.process_count", "0", NULL},
    {"experimental.multi_replica_distribution.process_index", "0", NULL},
    {"io_tiles.available_memory_proportion", "0.9", NULL},
    {"io_tiles.num_io_tiles", "0", NULL},
    {"io_tiles.place_ops_on_io_tiles", "false", NULL},
    {"ipu_model.tiles_per_ipu", "0", NULL},
    {"ipu_model.version", "\"ipu2\"", " ipu1 ipu2 ipu21 "},
    {"matmuls.poplar_options.availableMemoryProportion", "0.6", NULL},
    {"norms.experimental.distributed_batch_norm_replica_group_size", "1", NULL},
    {"select_ipus", "[]", NULL},
    {"selection_order", "\"AUTO\"", " AUTO ZIGZAG SNAKE HOOF "},
    {"system", "\"M2000\"", NULL},
    {NULL, NULL, NULL},
};

/* The beginning of a name, and why it means nothing. */
static const struct {
    const char *name, *why;
} meaningless[] = {
    {"compilation_poplar_options", "there is no Poplar to pass options to"},
    {"gcl_poplar_options", "there is no GCL to pass options to"},
    {"convolutions.poplar_options", "there is no PopLibs to pass options to"},
    {"matmuls.", "there is no PopLibs to pass options to"},
    {"slices.poplar_options", "there is no PopLibs to pass options to"},
    {"pooling.poplar_options", "there is no PopLibs to pass options to"},
    {"ipu_model.compile_ipu_code", "no code is generated, only accounted for"},
    {"device_connection.enable_remote_buffers",
     "the system says whether there is streaming memory"},
    {"scheduling.", "the compiler has one order: gradients as early as can "
                    "be"},
    {"serialization_output_folder", "executables are saved by their program"},
    {"optimizations.", "the compiler decides that by itself"},
    {"floating_point_behaviour.",
     "there are no exceptions: NaN and infinity go through every op"},
    {"norms.use_stable_statistics", "statistics are always computed so"},
    {"experimental.always_rearrange_copies_on_the_host",
     "host and device have tensors in the same order"},
    {"experimental.enable_remote_buffer_embedding",
     "a program keeps rows in remote buffers itself: ipu_remote_buffer_new"},
    {"experimental.enable_prng_stability",
     "random numbers are always a function of seed, step and place"},
};

/* A name, and what to call instead: looked at before those above. */
static const struct {
    const char *name, *instead;
} elsewhere[] = {
    {"allow_recompute", "of a graph by ipu_allow_recompute, of a pipeline by "
                        "ipu_pipeline_options.recompute"},
    {"floating_point_behaviour.esr", "of a graph by ipu_stochastic_rounding"},
    {"optimizations.maximum_cross_replica_sum_buffer_size",
     "by ipu_replicas_options"},
    {"optimizations.minimum_remote_tensor_size",
     "by ipu_update_options.minimum_remote_bytes or ipu_update_offload"},
};

enum {
    NMEANINGLESS = sizeof meaningless / sizeof *meaningless,
    NELSEWHERE = sizeof elsewhere / sizeof *elsewhere
};

static const struct attribute *find_attribute(const char *name)
{
    const struct attribute *a = attributes;

    while (a->name && strcmp(a->name, name) != 0)
        a++;
    return a->name ? a : NULL;
}

static int unknown(const char *name)
{
    const char *near;

    for (int i = 0; i < NELSEWHERE; i++)
        if (strcmp(name, elsewhere[i].name) == 0)
            return ipu__fail(IPU_ERR_NAME,
                             "config: '%s' is not set here, but %s", name,
                             elsewhere[i].instead);
    for (int i = 0; i < NMEANINGLESS; i++)
        if (strncmp(name, meaningless[i].name, strlen(meaningless[i].name)) ==
            0)
            return ipu__fail(IPU_ERR_NAME,
                             "config: '%s' has no meaning for the software "
                             "IPU: %s; leave it out",
                             name, meaningless[i].why);
    near = ipu__nearest(name, attributes, sizeof *attributes);
    return ipu__fail(IPU_ERR_NAME, "config: there is no attribute '%s'%s%s%s",
                     name, near ? "; did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
}

/* ------------------------------------------------------------------- values */

static json_t *parse_value(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    return value ? value : json_string(text);
}

static bool is_list_of_ints(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_integer(json_array_get(value, i)))
            return false;
    return json_is_array(value);
}

/* Returns the name of the type that the default has, or NULL if the value is of
 * that type. One number is accepted for a list of one. */
static const char *expected(const json_t *standard, const json_t *value)
{
    if (json_is_array(standard))
        return is_list_of_ints(value) || json_is_integer(value)
                   ? NULL
                   : "a whole number or a list of them";
    if (json_is_string(standard))
        return json_is_string(value) ? NULL : "a word";
    if (json_is_boolean(standard))
        return json_is_boolean(value) ? NULL : "true or false";
    if (json_is_integer(standard))
        return json_is_integer(value) ? NULL : "a whole number";
    return json_is_number(value) ? NULL : "a number";
}

static int check_choice(const struct attribute *a, const json_t *value)
{
    char word[64];

    if (!a->choices)
        return IPU_OK;
    snprintf(word, sizeof word, " %s ", json_string_value(value));
    if (strstr(a->choices, word))
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "config: %s is '%s'; it can be:%s",
                     a->name, json_string_value(value), a->choices);
}

/* Poplar's options are words, also those that are numbers. */
static json_t *number_in(const struct attribute *a, json_t *value)
{
    json_t *number;

    if (!strstr(a->name, ".poplar_options.") || !json_is_string(value))
        return value;
    number = parse_value(json_string_value(value));
    json_decref(value);
    return number;
}

/* Takes value over. */
static int set_value(ipu_config *config, const char *name, json_t *value)
{
    const struct attribute *a = find_attribute(name);
    json_t *standard = a ? parse_value(a->value) : NULL;
    const char *wanted;
    int status = IPU_OK;

    value = a ? number_in(a, value) : value;
    wanted = a ? expected(standard, value) : NULL;
    json_decref(standard);
    if (!a) {
        status = unknown(name);
    } else if (wanted) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        status = ipu__fail(IPU_ERR_ARGUMENT,
                           "config: %s is %.80s; it must be "
                           "%s",
                           name, text ? text : "?", wanted);
        free(text);
    } else {
        status = check_choice(a, value);
    }
    if (status == IPU_OK && json_object_set(config->values, name, value) < 0)
        status = ipu__fail_memory(strlen(name));
    json_decref(value);
    return status;
}

int ipu_config_set(ipu_config *config, const char *attribute, const char *text)
{
    json_t *value;

    if (!config || !attribute || !text)
        return ipu__fail(IPU_ERR_ARGUMENT, "config: %s is NULL",
                         !config      ? "the configuration"
                         : !attribute ? "the attribute"
                                      : "the value");
    value = parse_value(text);
    if (!value)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "config: the value of %s is not "
                         "UTF-8",
                         attribute);
    return set_value(config, attribute, value);
}

int ipu_config_auto_select(ipu_config *config, int32_t ipus)
{
    char text[16];

    snprintf(text, sizeof text, "%d", (int)ipus);
    return ipu_config_set(config, "auto_select_ipus", text);
}

/* ------------------------------------------------------ as a whole, as text */

int ipu_config_new(ipu_config **config)
{
    ipu_config *c;

    if (!config)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "the place for a configuration is NULL");
    c = calloc(1, sizeof *c);
    if (c)
        c->values = json_object();
    if (!c || !c->values) {
        ipu_config_free(c);
        return ipu__fail_memory(sizeof *c);
    }
    for (const struct attribute *a = attributes; a->name; a++) {
        int status = set_value(c, a->name, parse_value(a->value));

        if (status < 0) {
            ipu_config_free(c);
            return status;
        }
    }
    *config = c;
    return IPU_OK;
}

void ipu_config_free(ipu_config *config)
{
    if (!config)
        return;
    json_decref(config->values);
    free(config);
}

/* prefix: the names of the objects around, each with its dot. */
static int set_all(ipu_config *config, const char *prefix, json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        char name[256];

        if (snprintf(name, sizeof name, "%s%s", prefix, key) >=
            (int)sizeof name - 1)
            return ipu__fail(IPU_ERR_NAME,
                             "config: the attribute '%.40s...' has a name that "
                             "is too long",
                             name);
        if (json_is_object(value) && !find_attribute(name)) {
            strcat(name, ".");
            IPU_TRY(set_all(config, name, value));
        } else {
            IPU_TRY(set_value(config, name, json_incref(value)));
        }
    }
    return IPU_OK;
}

int ipu_config_load(ipu_config *config, const char *path)
{
    json_t *root;
    int status;

    if (!config || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "config: %s is NULL",
                         config ? "the file's name" : "the configuration");
    IPU_TRY(ipu__json_load(path, "", &root));
    if (json_is_object(root)) {
        status = set_all(config, "", root);
        if (status < 0)
            ipu__fail(status, "%s: %s", path, ipu_last_error());
    } else {
        status =
            ipu__fail(IPU_ERR_DATA,
                      "%s: a configuration is one object of attributes", path);
    }
    json_decref(root);
    return status;
}

int64_t ipu_config_print(const ipu_config *config, char *text, int64_t size)
{
    char *all;
    size_t length;

    if (!config)
        return ipu__fail(IPU_ERR_ARGUMENT, "config: the configuration is NULL");
    all = json_dumps(config->values,
                     JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(10));
    if (!all)
        return ipu__fail_memory(0);
    length = strlen(all);
    if (text && size > 0)
        snprintf(text, (size_t)size, "%s", all);
    free(all);
    return (int64_t)length;
}

/* ------------------------------------------------------- for apply.c */

int ipu_config_compile_options(const ipu_config *config,
                               ipu_compile_options *options)
{
    static const char matmuls[] =
        "matmuls.poplar_options.availableMemoryProportion";
    static const char convolutions[] =
        "convolutions.poplar_options.availableMemoryProportion";
    double matmul, convolution;

    if (!config || !options)
        return ipu__fail(IPU_ERR_ARGUMENT, "config: %s is NULL",
                         config ? "the place for compile options"
                                : "the configuration");
    IPU_TRY(ipu__check_size("compile options", options->size, sizeof *options));
    matmul = ipu__config_real(config, matmuls);
    convolution = ipu__config_real(config, convolutions);
    IPU_TRY(ipu__check_proportion(matmuls, matmul));
    IPU_TRY(ipu__check_proportion(convolutions, convolution));
    options->matmul_memory_proportion = matmul;
    options->convolution_memory_proportion = convolution;
    return IPU_OK;
}

static const json_t *get_value(const ipu_config *config, const char *attribute)
{
    return json_object_get(config->values, attribute);
}

int64_t ipu__config_int(const ipu_config *config, const char *attribute)
{
    return json_integer_value(get_value(config, attribute));
}

double ipu__config_real(const ipu_config *config, const char *attribute)
{
    return json_number_value(get_value(config, attribute));
}

bool ipu__config_bool(const ipu_config *config, const char *attribute)
{
    return json_is_true(get_value(config, attribute));
}

const char *ipu__config_text(const ipu_config *config, const char *attribute)
{
    return json_string_value(get_value(config, attribute));
}

static int32_t clamp(json_int_t number)
{
    return number > INT32_MAX   ? INT32_MAX
           : number < INT32_MIN ? INT32_MIN
                                : (int32_t)number;
}

int32_t ipu__config_list(const ipu_config *config, const char *attribute,
                         int32_t *numbers, int32_t capacity)
{
    const json_t *value = get_value(config, attribute);
    int32_t count = 1;

    if (json_is_integer(value)) {
        numbers[0] = clamp(json_integer_value(value));
        return count;
    }
    count = (int32_t)json_array_size(value);
    for (int32_t i = 0; i < count && i < capacity; i++)
        numbers[i] =
            clamp(json_integer_value(json_array_get(value, (size_t)i)));
    return count;
}
