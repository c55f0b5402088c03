/* SPDX-License-Identifier: Apache-2.0 */
/*
 * free.c - frees a program, and the programs in its loops.
 */
#include <stdlib.h>

#include "compiler/program.h"
#include "streams/streams.h"

static void free_inner(struct ipu__inner *inner)
{
    ipu_executable_free(inner->program);
    free(inner->inner);
    free(inner->outer);
}

static void free_loops_and_feeds(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nloops; i++) {
        free_inner(&e->loops[i].body);
        free_inner(&e->loops[i].condition);
        free(e->loops[i].initial);
        free(e->loops[i].outputs);
    }
    free(e->loops);
    for (int32_t i = 0; i < e->nfeeds; i++) {
        ipu__infeed_release(e->feeds[i].infeed);
        ipu__outfeed_release(e->feeds[i].outfeed);
        free(e->feeds[i].values);
    }
    free(e->feeds);
    free(e->value_of);
}

void ipu_executable_free(ipu_executable *e)
{
    if (!e)
        return;
    for (int32_t i = 0; i < e->nvalues; i++) {
        free(e->values[i].name);
        free(e->values[i].data);
        free(e->values[i].file);
        free(e->values[i].module);
    }
    for (int32_t i = 0; i < e->nstreams; i++)
        free(e->streams[i].name);
    for (int32_t i = 0; i < e->nsteps; i++)
        free(e->steps[i].text);
    free_loops_and_feeds(e);
    free(e->values);
    free(e->variables);
    free(e->by_name);
    free(e->blocks);
    free(e->tenants);
    free(e->steps);
    free(e->parts);
    free(e->streams);
    free(e->tiles);
    for (int32_t i = 0; i < e->ntexts; i++)
        free(e->texts[i]);
    free(e->texts);
    free(e);
}
