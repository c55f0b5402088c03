/* SPDX-License-Identifier: Apache-2.0 */
/* logs_once.c - what a log has once: settings, and the network as a graph. */
#include "command/logs.h"

#include "command/training_run.h"
#include "files/bytes.h"
#include "output/problem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Adds a row of a table in Markdown. */
static void add_row(struct bytes *table, const char *name, const char *value)
{
    bytes_print(table, "| %s | ", name);
    for (; *value; value++)
        switch (*value) {
        case '|': bytes_print(table, "¦"); break;
        case '\n': bytes_print(table, " "); break;
        default: bytes_add(table, value, 1);
        }
    bytes_print(table, " |\n");
}

/* Logs all settings, and the options that were given. */
int logs_settings(struct training_run *run)
{
    const struct options *o = run->options;
    json_t *settings =
        outcome_settings(&run->outcome, run->functions->settings(run));
    struct bytes text = {0};
    const char *name;
    json_t *value;
    int status = settings ? 0 : problem_set("the settings are no UTF-8");

    bytes_print(&text, "| setting | value |\n|---|---|\n");
    json_object_foreach(settings, name, value)
    {
        char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                            JSON_REAL_PRECISION(6));

        add_row(&text, name,
                json_is_string(value) ? json_string_value(value)
                : shown               ? shown
                                      : "");
        free(shown);
    }
    for (int i = 0; i < o->ngiven; i++) {
        char option[64];

        snprintf(option, sizeof option, "--%s", o->given[i].name);
        add_row(&text, option, o->given[i].value ? o->given[i].value : "");
    }
    bytes_add(&text, "", 1);
    if (status == 0 && text.failed)
        status = problem_set("no memory for the settings");
    if (status == 0)
        status =
            hvd_log_text(run->command->log.log, "configuration", 0, text.data);
    bytes_fini(&text);
    json_decref(settings);
    return status;
}

struct drawing {
    hvd_log_node *nodes; /* [count], owned */
    int32_t count;
    void **kept; /* [nkept], owned, each: what the nodes point to */
    int nkept;
};

/* Takes over memory; returns it, or NULL if there is no more. */
static void *keep(struct drawing *d, void *memory)
{
    void **grown = realloc(d->kept, ((size_t)d->nkept + 1) * sizeof *grown);

    if (grown)
        d->kept = grown;
    if (!grown || !memory) {
        free(memory);
        return NULL;
    }
    return grown[d->nkept++] = memory;
}

static int add_node(void *context, const char *name, const char *op,
                    int ninputs, const char *const *inputs)
{
    struct drawing *d = context;
    hvd_log_node *grown =
        realloc(d->nodes, ((size_t)d->count + 1) * sizeof *grown);
    const char **names = keep(d, calloc((size_t)ninputs + 1, sizeof *names));
    const char *own = keep(d, strdup(name));
    bool whole = grown && names && own;

    if (grown)
        d->nodes = grown;
    for (int i = 0; whole && i < ninputs; i++)
        whole = (names[i] = keep(d, strdup(inputs[i]))) != NULL;
    if (!whole)
        return problem_set("no memory for a graph");
    d->nodes[d->count++] = (hvd_log_node){own, op, names, ninputs};
    return 0;
}

static void free_drawing(struct drawing *d)
{
    for (int i = 0; i < d->nkept; i++)
        free(d->kept[i]);
    free(d->kept);
    free(d->nodes);
}

int logs_network(struct training_run *run)
{
    struct drawing drawing = {0};
    int status = trainer_draw(run->trainer, add_node, &drawing);

    if (status == 0 && drawing.count > 0)
        status =
            hvd_log_graph(run->command->log.log, drawing.nodes, drawing.count);
    free_drawing(&drawing);
    return status;
}
