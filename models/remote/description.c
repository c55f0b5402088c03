/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/description.h"

#include "output/problem.h"

#include <string.h>

enum { FORMAT = 1, MOST_VALUE = 4096, MOST_COLUMNS = 10000 };
/* No file of a network is larger. */
#define MOST_FILE (INT64_C(1) << 36)

const char *const remote_file_names[REMOTE_FILES] = {
    [REMOTE_FILE_TRAINING] = "training.ipu",
    [REMOTE_FILE_EVALUATION] = "evaluation.ipu",
    [REMOTE_FILE_WEIGHTS] = "weights",
    [REMOTE_FILE_TEXT] = "text",
};

const char *const remote_result_names[REMOTE_RESULTS] = {
    [REMOTE_RESULT_SUMMARY] = "summary",
    [REMOTE_RESULT_WEIGHTS] = "trained",
    [REMOTE_RESULT_LOSSES] = "losses",
};

static const char *const programs[] = {"mnist", "char_gpt", NULL};

/* What is trained, on which data, and how. */
static const char *const sent[] = {"data",
                                   "train-images",
                                   "test-images",
                                   "model",
                                   "layers",
                                   "heads",
                                   "width",
                                   "context",
                                   "dropout",
                                   "tie",
                                   "epochs",
                                   "steps",
                                   "batch-size",
                                   "global-batch",
                                   "optimizer",
                                   "lr",
                                   "lr-schedule",
                                   "warmup",
                                   "weight-decay",
                                   "clip",
                                   "accumulate",
                                   "seed",
                                   "compression",
                                   "check-every",
                                   "serial",
                                   "available-memory-proportion",
                                   "threads",
                                   "eval-every",
                                   "eval-windows",
                                   "sample",
                                   "temperature",
                                   "prompt",
                                   NULL};

/* Returns the place of a name in a list that ends with NULL, or -1. */
static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

bool remote_option_is_sent(const char *name)
{
    return find_name(sent, name) >= 0;
}

/* ------------------------------------------------------------------ reading */

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    char why[240];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return problem_set("the description of the training: %s", why);
}

static int read_options(json_t *from, struct remote_description *d)
{
    const char *name;
    json_t *value;

    if (json_object_size(from) > REMOTE_MOST_OPTIONS)
        return refuse("there are more than %d options", REMOTE_MOST_OPTIONS);
    json_object_foreach(from, name, value)
    {
        if (!remote_option_is_sent(name))
            return refuse("'%.40s' is no option that a client may send", name);
        if (!json_is_true(value) && !json_is_string(value))
            return refuse("the value of '%s' is neither a text nor true", name);
        if (json_string_length(value) > MOST_VALUE)
            return refuse("the value of '%s' is longer than %d bytes", name,
                          MOST_VALUE);
        d->options[d->noptions++] =
            (struct remote_option){name, json_string_value(value)};
    }
    return 0;
}

static int read_files(const json_t *from, struct remote_description *d)
{
    size_t known = 0;

    for (int i = 0; i < REMOTE_FILES; i++) {
        const json_t *bytes = json_object_get(from, remote_file_names[i]);

        d->files[i] = -1;
        if (!bytes && i == REMOTE_FILE_TEXT)
            continue;
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 1 ||
            json_integer_value(bytes) > MOST_FILE)
            return refuse("the size of the file '%s' is missing or wrong",
                          remote_file_names[i]);
        d->files[i] = json_integer_value(bytes);
        known++;
    }
    if (json_object_size(from) != known)
        return refuse("there is a file that a server does not know");
    return 0;
}

static int find_result(const json_t *name)
{
    for (int i = 0; i < REMOTE_RESULTS && json_is_string(name); i++)
        if (strcmp(json_string_value(name), remote_result_names[i]) == 0)
            return i;
    return -1;
}

static int read_results(const json_t *from, struct remote_description *d)
{
    for (size_t i = 0; i < json_array_size(from); i++) {
        const int result = find_result(json_array_get(from, i));

        if (result < 0 || d->results[result])
            return refuse("entry %d of the results is none, or is there twice",
                          (int)i);
        d->results[result] = true;
    }
    return 0;
}

static int read_terminal(json_t *from, struct remote_description *d)
{
    json_error_t error;
    int colour = 0;

    if (!from)
        return 0;
    if (json_unpack_ex(from, &error, JSON_STRICT, "{s:i, s:b}", "columns",
                       &d->columns, "colour", &colour) < 0 ||
        d->columns < 1 || d->columns > MOST_COLUMNS)
        return refuse("'terminal' needs \"columns\", from 1 to %d, and "
                      "\"colour\"",
                      MOST_COLUMNS);
    d->colour = colour;
    return 0;
}

static int read_root(struct remote_description *d)
{
    json_t *options, *files, *results, *terminal = NULL;
    json_error_t error;
    int format = 0;

    if (json_unpack_ex(d->root, &error, JSON_STRICT,
                       "{s:i, s:s, s:o, s:o, s:o, s?o}", "format", &format,
                       "program", &d->program, "options", &options, "files",
                       &files, "results", &results, "terminal", &terminal) < 0)
        return refuse("%s", error.text);
    if (format != FORMAT)
        return refuse("it is of format %d, and this server reads format %d",
                      format, FORMAT);
    if (find_name(programs, d->program) < 0)
        return refuse("'%.40s' is no program of a server", d->program);
    if (!json_is_object(options) || !json_is_object(files) ||
        !json_is_array(results))
        return refuse("\"options\" and \"files\" are objects, and \"results\" "
                      "is a list");
    if (read_options(options, d) < 0 || read_files(files, d) < 0 ||
        read_results(results, d) < 0)
        return PROBLEM;
    return read_terminal(terminal, d);
}

int remote_description_read(const void *text, size_t bytes,
                            struct remote_description *d)
{
    json_error_t error;
    int status;

    *d = (struct remote_description){
        .root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error)};
    status = d->root ? read_root(d)
                     : refuse("line %d, column %d: %s", error.line,
                              error.column, error.text);
    if (status < 0)
        remote_description_fini(d);
    return status;
}

/* ------------------------------------------------------------------ writing */

static json_t *pack_options(const struct remote_description *d)
{
    json_t *options = json_object();

    for (int i = 0; i < d->noptions; i++) {
        const struct remote_option *o = &d->options[i];

        json_object_set_new(options, o->name,
                            o->value ? json_string(o->value) : json_true());
    }
    return options;
}

static json_t *pack_files(const struct remote_description *d)
{
    json_t *files = json_object();

    for (int i = 0; i < REMOTE_FILES; i++)
        if (d->files[i] >= 0)
            json_object_set_new(files, remote_file_names[i],
                                json_integer(d->files[i]));
    return files;
}

static json_t *pack_results(const struct remote_description *d)
{
    json_t *results = json_array();

    for (int i = 0; i < REMOTE_RESULTS; i++)
        if (d->results[i])
            json_array_append_new(results, json_string(remote_result_names[i]));
    return results;
}

char *remote_description_write(const struct remote_description *d)
{
    json_t *root =
        json_pack("{s:i, s:s, s:o, s:o, s:o}", "format", FORMAT, "program",
                  d->program, "options", pack_options(d), "files",
                  pack_files(d), "results", pack_results(d));
    char *text;

    if (root && d->columns > 0)
        json_object_set_new(root, "terminal",
                            json_pack("{s:i, s:b}", "columns", d->columns,
                                      "colour", (int)d->colour));
    text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        problem_set("the options cannot be sent as JSON: are they UTF-8?");
    return text;
}

void remote_description_fini(struct remote_description *d)
{
    json_decref(d->root);
    *d = (struct remote_description){.root = NULL};
}
