/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - describes the network of a trainer for people: inputs, variables,
 * and the pieces that use them, one after the other. A piece has the name that
 * its variables begin with ("conv1" of "conv1/kernel").
 */
#include "model/model.h"
#include "output/problem.h"
#include "trainer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 96 };

static bool is_needed(const struct model *m, int piece, int variable)
{
    return !m->needs || m->needs(m, piece, variable);
}

/* Writes the name of a piece, which is that of no variable. */
static void name_piece(const struct model *m, int piece, char *name)
{
    for (int v = 0; v < m->nvariables; v++) {
        const char *full = m->variables[v].name, *slash = strchr(full, '/');

        if (slash && is_needed(m, piece, v)) {
            snprintf(name, NAME_BYTES, "%.*s/piece %d", (int)(slash - full),
                     full, piece);
            return;
        }
    }
    snprintf(name, NAME_BYTES, "piece %d", piece);
}

/* Adds a piece, whose first input is the one before; its name replaces last. */
static int draw_piece(const struct model *m, int piece, char *last,
                      trainer_node_fn *add, void *context)
{
    const char **inputs = calloc((size_t)m->nvariables + 1, sizeof *inputs);
    char name[NAME_BYTES];
    int ninputs = 1, status;

    if (!inputs)
        return problem_set("no memory for a graph");
    inputs[0] = last;
    for (int v = 0; v < m->nvariables; v++)
        if (is_needed(m, piece, v))
            inputs[ninputs++] = m->variables[v].name;
    name_piece(m, piece, name);
    status = add(context, name, "Piece", ninputs, inputs);
    free(inputs);
    strcpy(last, name);
    return status;
}

int trainer_draw(const struct trainer *trainer, trainer_node_fn *add,
                 void *context)
{
    const struct model *m = trainer_model(trainer);
    const char *of_loss[MODEL_MOST_INPUTS + 1];
    char last[NAME_BYTES];
    int status = 0;

    if (m->graphs)
        return 0;
    for (int i = 0; i < m->ninputs && status == 0; i++)
        status = add(context, m->inputs[i].name, "Input", 0, NULL);
    for (int v = 0; v < m->nvariables && status == 0; v++)
        status = add(context, m->variables[v].name,
                     v < m->trained ? "Variable" : "Statistic", 0, NULL);
    snprintf(last, sizeof last, "%s", m->inputs[0].name);
    for (int p = 0; p < m->pieces && status == 0; p++)
        status = draw_piece(m, p, last, add, context);
    of_loss[0] = last;
    for (int i = 1; i < m->ninputs; i++)
        of_loss[i] = m->inputs[i].name;
    return status ? status : add(context, "loss", "Loss", m->ninputs, of_loss);
}
