/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - the memory and the engines of each replica.
 *
 * Variables are in memory of the pipeline, to which the engines of all programs
 * of an IPU are bound: nothing is copied between them. There are rings between
 * stages. A stage works on element e while the stage before makes e + 1 (or,
 * with batch serialization, the elements of a mini-batch one after the other),
 * so a ring between them has room for two mini-batches. The stash has room for
 * as many as the schedule lets wait, and the current one.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "engine/engine.h"
#include "ops/op.h"
#include "pipeline/pipeline.h"

enum { LINE = 64 };

void *ipu__pipeline_allocate(size_t bytes)
{
    size_t rounded = (bytes + LINE - 1) / LINE * LINE;
    void *memory = aligned_alloc(LINE, rounded ? rounded : LINE);

    if (memory)
        memset(memory, 0, rounded ? rounded : LINE);
    return memory;
}

static int ring_new(struct ipu__stage_buffer *ring, size_t bytes,
                    int64_t capacity)
{
    ring->bytes = bytes;
    ring->stride = (bytes + LINE - 1) / LINE * LINE;
    ring->capacity = capacity;
    if (__builtin_mul_overflow(ring->stride, (size_t)capacity, &bytes))
        return ipu__fail_memory(SIZE_MAX);
    ring->data = ipu__pipeline_allocate(bytes);
    return ring->data ? IPU_OK : ipu__fail_memory(bytes);
}

void *ipu__ring_at(const struct ipu__stage_buffer *ring, int64_t element)
{
    return ring->data + (size_t)(element % ring->capacity) * ring->stride;
}

/* ---------------------------------------------------------------- variables */

/* Makes the place of one variable in a replica. */
static int make_place(const struct ipu__variable *v, int32_t replica,
                      struct ipu__place *place)
{
    place->memory = ipu__pipeline_allocate(v->bytes);
    if (v->saved)
        place->saved = ipu__pipeline_allocate(v->bytes);
    if (!place->memory || (v->saved && !place->saved))
        return ipu__fail_memory(v->bytes);
    if (strcmp(v->name, IPU__REPLICA_INDEX) == 0)
        memcpy(place->memory, &replica, sizeof replica);
    return IPU_OK;
}

static int make_places(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    IPU_TRY(
        ipu__new_array(&copy->places, (size_t)p->nchips, sizeof *copy->places));
    for (int32_t c = 0; c < p->nchips; c++) {
        const struct ipu__chip *chip = &p->chips[c];
        size_t count = (size_t)chip->nvariables + 1;

        IPU_TRY(ipu__new_array(&copy->places[c], count, sizeof **copy->places));
        for (int32_t i = 0; i < chip->nvariables; i++)
            IPU_TRY(make_place(&chip->variables[i], (int32_t)(copy - p->copies),
                               &copy->places[c][i]));
    }
    return IPU_OK;
}

void *ipu__copy_variable(const struct ipu__copy *copy, int32_t chip,
                         int32_t variable)
{
    const struct ipu__place *place = &copy->places[chip][variable];

    return place->placed ? place->placed : place->memory;
}

static int make_engine(const struct ipu_pipeline *p, struct ipu__copy *copy,
                       int32_t ipu, const ipu_executable *executable,
                       ipu_engine **engine)
{
    const struct ipu__place *places;
    int32_t c = 0;

    while (p->chips[c].ipu != ipu) /* each part is on one of the chips */
        c++;
    places = copy->places[c];
    if (!executable || !places) /* the chip runs no such program */
        return IPU_OK;
    IPU_TRY(ipu_engine_new(executable, engine));
    if (p->options.record && copy == &p->copies[0])
        IPU_TRY(ipu_engine_profile(*engine, 1));
    for (int32_t v = 0; v < executable->nvalues; v++) {
        const struct ipu__value *value = &executable->values[v];
        const struct ipu__variable *variable;

        if (value->kind != IPU__VARIABLE)
            continue;
        if (executable == p->chips[c].update &&
            ipu__share_value(p, copy, c, value->name)) {
            IPU_TRY(ipu_engine_place(*engine, value->name,
                                     ipu__share_value(p, copy, c, value->name),
                                     value->bytes));
            continue;
        }
        variable = ipu__chip_variable(&p->chips[c], value->name);
        IPU_TRY(ipu_engine_place(
            *engine, value->name,
            places[variable - p->chips[c].variables].memory, value->bytes));
    }
    return IPU_OK;
}

static int make_engines(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    size_t nparts = (size_t)p->nparts;

    IPU_TRY(ipu__new_array(&copy->forward, nparts, sizeof *copy->forward));
    IPU_TRY(ipu__new_array(&copy->backward, nparts, sizeof *copy->backward));
    IPU_TRY(
        ipu__new_array(&copy->update, (size_t)p->nchips, sizeof *copy->update));
    /* cppcheck takes the member, an array of structs, for one of void. */
    /* cppcheck-suppress sizeofDereferencedVoidPointer */
    IPU_TRY(ipu__new_array(&copy->done, nparts, sizeof *copy->done));
    for (int32_t i = 0; i < p->nparts; i++) {
        IPU_TRY(make_engine(p, copy, p->parts[i].ipu, p->parts[i].forward,
                            &copy->forward[i]));
        IPU_TRY(make_engine(p, copy, p->parts[i].ipu, p->parts[i].backward,
                            &copy->backward[i]));
    }
    for (int32_t c = 0; c < p->nchips; c++)
        IPU_TRY(make_engine(p, copy, p->chips[c].ipu, p->chips[c].update,
                            &copy->update[c]));
    return IPU_OK;
}

/* Binds a variable of an engine to memory, if the engine has it. */
static int bind_variable(ipu_engine *engine, const char *name, void *data,
                         size_t bytes)
{
    int status = engine ? ipu_engine_place(engine, name, data, bytes) : IPU_OK;

    return status == IPU_ERR_NAME ? IPU_OK : status;
}

int ipu__copy_place(const struct ipu_pipeline *p, struct ipu__copy *copy,
                    int32_t chip, int32_t variable, void *data)
{
    const struct ipu__variable *v = &p->chips[chip].variables[variable];
    void *old = ipu__copy_variable(copy, chip, variable), *now;

    copy->places[chip][variable].placed = data;
    now = ipu__copy_variable(copy, chip, variable);
    if (now != old && v->bytes > 0)
        memmove(now, old, v->bytes);
    for (int32_t i = 0; i < p->nparts; i++) {
        if (p->parts[i].ipu != p->chips[chip].ipu)
            continue;
        IPU_TRY(bind_variable(copy->forward[i], v->name, now, v->bytes));
        IPU_TRY(bind_variable(copy->backward[i], v->name, now, v->bytes));
    }
    if (ipu__share_value(p, copy, chip, v->name))
        return IPU_OK; /* the update has a share in other memory */
    return bind_variable(copy->update[chip], v->name, now, v->bytes);
}

/* -------------------------------------------------------------------- rings */

/* Makes the rings of what each position receives, and of what leaves the last
 * one. */
static int make_carried(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    int64_t two = 2 * p->options.batch_serialization_iterations;

    IPU_TRY(ipu__new_array(&copy->carried, (size_t)p->npositions,
                           sizeof *copy->carried));
    for (int32_t i = 0; i < p->positions[0].ninputs; i++)
        IPU_TRY(ring_new(&copy->carried[0][i],
                         ipu__shape_bytes(&p->parts[0].inputs[i].shape),
                         i < p->options.narguments ? 1 : two));
    for (int32_t at = 0; at < p->npositions; at++) {
        const struct ipu__position *position = &p->positions[at];
        int32_t count = 0;

        for (int32_t i = 0; i < position->nparts; i++) {
            const struct ipu__stage_part *part =
                &p->parts[position->first_part + i];

            for (int32_t k = 0; k < part->noutputs; k++)
                IPU_TRY(ring_new(&copy->carried[at + 1][count++],
                                 ipu__shape_bytes(&part->outputs[k].shape),
                                 two));
        }
    }
    return IPU_OK;
}

static int make_returned(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    int64_t serial = p->options.batch_serialization_iterations;

    IPU_TRY(ipu__new_array(&copy->returned, (size_t)p->nparts,
                           sizeof *copy->returned));
    IPU_TRY(ipu__new_array(&copy->stashed, (size_t)p->nparts,
                           sizeof *copy->stashed));
    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[i];
        int64_t waiting = ipu_schedule_stash(&p->schedule, part->position) + 1;

        for (int32_t k = 0; k < p->positions[part->position].ninputs; k++)
            if (part->sends[k])
                IPU_TRY(ring_new(&copy->returned[i][k],
                                 ipu__shape_bytes(&part->inputs[k].shape),
                                 2 * serial));
        copy->stashed[i] =
            calloc((size_t)part->nstash + 1, sizeof **copy->stashed);
        if (!copy->stashed[i])
            return ipu__fail_memory((size_t)part->nstash);
        for (int32_t k = 0; k < part->nstash; k++)
            IPU_TRY(ring_new(&copy->stashed[i][k], part->stash[k].bytes,
                             waiting * serial));
    }
    return IPU_OK;
}

static int make_outfeed(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    int32_t count = p->positions[p->npositions - 1].noutputs;

    if (!p->options.accumulate_outfeed)
        return IPU_OK;
    IPU_TRY(
        ipu__new_array(&copy->outfeed, (size_t)count, sizeof *copy->outfeed));
    for (int32_t i = 0; i < count; i++) {
        copy->outfeed[i] =
            ipu__pipeline_allocate(copy->carried[p->npositions][i].bytes);
        if (!copy->outfeed[i])
            return ipu__fail_memory(copy->carried[p->npositions][i].bytes);
    }
    return IPU_OK;
}

int ipu__pipeline_lanes(struct ipu_pipeline *p)
{
    p->nlanes = p->options.replicas * p->nchips;
    IPU_TRY(ipu__new_array(&p->lanes, (size_t)p->nlanes, sizeof *p->lanes));
    for (int32_t i = 0; i < p->nlanes; i++) {
        struct ipu__chip_lane *lane = &p->lanes[i];

        lane->copy = i / p->nchips;
        lane->chip = i % p->nchips;
        IPU_TRY(ipu__new_array(&lane->tasks, 2 * (size_t)p->nparts,
                               sizeof *lane->tasks));
        IPU_TRY(ipu__new(&lane->message, IPU__EXPLANATION_MAX));
    }
    return IPU_OK;
}

int ipu__pipeline_copies(struct ipu_pipeline *p)
{
    IPU_TRY(ipu__new_array(&p->copies, (size_t)p->options.replicas,
                           sizeof *p->copies));
    for (int32_t r = 0; r < p->options.replicas; r++) {
        IPU_TRY(make_places(p, &p->copies[r]));
        IPU_TRY(ipu__shares_new(p, &p->copies[r]));
        IPU_TRY(make_engines(p, &p->copies[r]));
        IPU_TRY(make_carried(p, &p->copies[r]));
        IPU_TRY(make_returned(p, &p->copies[r]));
        IPU_TRY(make_outfeed(p, &p->copies[r]));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------ freeing */

static void free_places(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    for (int32_t c = 0; copy->places && c < p->nchips; c++) {
        for (int32_t i = 0; copy->places[c] && i < p->chips[c].nvariables;
             i++) {
            free(copy->places[c][i].memory);
            free(copy->places[c][i].saved);
        }
        free(copy->places[c]);
    }
    free(copy->places);
}

static void free_copy(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    for (int32_t i = 0; i < p->nparts; i++) {
        ipu_engine_free(copy->forward ? copy->forward[i] : NULL);
        ipu_engine_free(copy->backward ? copy->backward[i] : NULL);
        for (int k = 0; copy->returned && k < IPU_MAX_STAGE_TENSORS; k++)
            free(copy->returned[i][k].data);
        for (int32_t k = 0;
             copy->stashed && copy->stashed[i] && k < p->parts[i].nstash; k++)
            free(copy->stashed[i][k].data);
        free(copy->stashed ? copy->stashed[i] : NULL);
    }
    for (int32_t c = 0; copy->update && c < p->nchips; c++)
        ipu_engine_free(copy->update[c]);
    for (int32_t at = 0; copy->carried && at <= p->npositions; at++)
        for (int k = 0; k < IPU_MAX_STAGE_TENSORS; k++)
            free(copy->carried[at][k].data);
    for (int k = 0;
         copy->outfeed && k < p->positions[p->npositions - 1].noutputs; k++)
        free(copy->outfeed[k]);
    free_places(p, copy);
    ipu__shares_free(p, copy);
    free(copy->forward);
    free(copy->backward);
    free(copy->update);
    free(copy->carried);
    free(copy->returned);
    free(copy->stashed);
    free(copy->outfeed);
    free(copy->done);
}

void ipu__pipeline_copies_free(struct ipu_pipeline *p)
{
    for (int32_t r = 0; p->copies && r < p->options.replicas; r++)
        free_copy(p, &p->copies[r]);
    for (int32_t i = 0; p->lanes && i < p->nlanes; i++) {
        free(p->lanes[i].tasks);
        free(p->lanes[i].message);
    }
    free(p->copies);
    free(p->lanes);
}
