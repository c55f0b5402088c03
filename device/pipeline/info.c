/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.c - reports on a pipeline, and lets the host read and write its
 * variables.
 *
 * These are the public functions on a pipeline that is not running.
 */
#include <string.h>

#include "compiler/program.h"
#include "pipeline/pipeline.h"
#include "target/target.h"

static int check_arguments(const ipu_pipeline *p, const void *pointer,
                           const char *what)
{
    if (!p)
        return ipu__fail(IPU_ERR_ARGUMENT, "the pipeline is NULL");
    if (!pointer)
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %s is NULL", what);
    return IPU_OK;
}

static int check_bytes(const char *what, const char *name, const void *data,
                       size_t bytes, size_t wanted)
{
    if (bytes != wanted)
        return ipu__fail(IPU_ERR_SHAPE,
                         "pipeline: %s '%s' takes %zu bytes, not %zu", what,
                         name, wanted, bytes);
    if (!data && bytes > 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: %s '%s': the host memory is NULL", what,
                         name);
    return IPU_OK;
}

int ipu_pipeline_argument(ipu_pipeline *p, const char *name, const void *data,
                          size_t bytes)
{
    IPU_TRY(check_arguments(p, name, "the name of an argument"));
    for (int32_t i = 0; i < p->options.narguments; i++) {
        if (strcmp(p->argument_names[i], name) != 0)
            continue;
        IPU_TRY(check_bytes("argument", name, data, bytes,
                            p->copies[0].carried[0][i].bytes));
        for (int32_t r = 0; r < p->options.replicas && bytes > 0; r++)
            memcpy(ipu__ring_at(&p->copies[r].carried[0][i], 0), data, bytes);
        return IPU_OK;
    }
    return ipu__fail(IPU_ERR_NAME, "pipeline: there is no argument '%s'", name);
}

/* Finds a variable on the chips from *chip on: updates may make several of one
 * name. */
static const struct ipu__variable *find_next(const ipu_pipeline *p,
                                             const char *name, int32_t *chip)
{
    const struct ipu__variable *found = NULL;

    while (*chip < p->nchips && !found)
        found = ipu__chip_variable(&p->chips[(*chip)++], name);
    return found;
}

/* Returns the shape of a variable as the host sees it: the whole of what
 * replicas share. */
static struct ipu__shape shape_of(const struct ipu_pipeline *p,
                                  const struct ipu__variable *v, int32_t chip)
{
    struct ipu__shape shape = v->shape;

    if (v->share_of >= 0) {
        shape = p->chips[chip].variables[v->share_of].shape;
        shape.dtype = v->shape.dtype;
    }
    return shape;
}

/* Finds replica r's share of count bytes: its start and its length. */
static size_t share_at(const struct ipu__variable *v, int32_t r, size_t bytes,
                       size_t *first)
{
    *first = v->share_of >= 0 ? (size_t)r * v->bytes : 0;
    if (*first >= bytes)
        return 0;
    return bytes - *first < v->bytes ? bytes - *first : v->bytes;
}

int ipu_pipeline_write(ipu_pipeline *p, const char *name, const void *data,
                       size_t bytes)
{
    const struct ipu__variable *v;
    bool any = false;
    int32_t chip = 0;

    IPU_TRY(check_arguments(p, name, "the name of a variable"));
    while ((v = find_next(p, name, &chip)) != NULL) {
        int64_t index = v - p->chips[chip - 1].variables;

        const struct ipu__shape shape = shape_of(p, v, chip - 1);

        IPU_TRY(check_bytes("variable", name, data, bytes,
                            ipu__shape_bytes(&shape)));
        for (int32_t r = 0; r < p->options.replicas && bytes > 0; r++) {
            void *to =
                ipu__copy_variable(&p->copies[r], chip - 1, (int32_t)index);
            size_t first, there = share_at(v, r, bytes, &first);

            if (to != data && there > 0)
                memcpy(to, (const unsigned char *)data + first, there);
        }
        any = true;
    }
    return any ? IPU_OK
               : ipu__fail(IPU_ERR_NAME, "pipeline: there is no variable '%s'",
                           name);
}

int ipu_pipeline_read(const ipu_pipeline *p, int32_t replica, const char *name,
                      void *data, size_t bytes)
{
    const struct ipu__variable *v;
    struct ipu__shape shape;
    int32_t chip = 0;

    IPU_TRY(check_arguments(p, name, "the name of a variable"));
    if (replica < 0 || replica >= p->options.replicas)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: there is no replica %d: there are 0 to %d",
                         (int)replica, (int)p->options.replicas - 1);
    v = find_next(p, name, &chip);
    if (!v)
        return ipu__fail(IPU_ERR_NAME, "pipeline: there is no variable '%s'",
                         name);
    shape = shape_of(p, v, chip - 1);
    IPU_TRY(
        check_bytes("variable", name, data, bytes, ipu__shape_bytes(&shape)));
    for (int32_t r = 0; r < p->options.replicas; r++) {
        size_t first, there = share_at(v, r, bytes, &first);

        if ((r == replica || v->share_of >= 0) && there > 0)
            memcpy(
                (unsigned char *)data + first,
                ipu__copy_variable(&p->copies[r], chip - 1,
                                   (int32_t)(v - p->chips[chip - 1].variables)),
                there);
    }
    return IPU_OK;
}

int ipu_pipeline_place(ipu_pipeline *p, const char *name, void *data,
                       size_t bytes)
{
    const struct ipu__variable *v;
    int32_t chip = 0, other;

    IPU_TRY(check_arguments(p, name, "the name of a variable"));
    if (p->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the pipeline is running: place '%s' between two runs",
                         name);
    if ((uintptr_t)data % sizeof(float))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: '%s' cannot be placed at an address that "
                         "is no multiple of %d",
                         name, (int)sizeof(float));
    v = find_next(p, name, &chip);
    if (!v)
        return ipu__fail(IPU_ERR_NAME, "pipeline: there is no variable '%s'",
                         name);
    other = chip;
    if (find_next(p, name, &other))
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: IPUs %d and %d have a variable '%s' each: "
                         "it cannot be in one place",
                         (int)p->chips[chip - 1].ipu,
                         (int)p->chips[other - 1].ipu, name);
    if (v->share_of >= 0)
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: replicas share '%s': it cannot be in one "
                         "place",
                         name);
    if (data)
        IPU_TRY(check_bytes("variable", name, data, bytes, v->bytes));
    return ipu__copy_place(p, &p->copies[0], chip - 1,
                           (int32_t)(v - p->chips[chip - 1].variables), data);
}

const char *ipu_pipeline_variable(const ipu_pipeline *p, int32_t number)
{
    return p && number >= 0 && number < p->ngradients
               ? p->gradients[number].name
               : NULL;
}

static void describe_variable(const struct ipu_pipeline *p, int32_t chip,
                              const struct ipu__variable *v,
                              ipu_variable_info *info)
{
    const struct ipu__shape shape = shape_of(p, v, chip);

    info->name = v->name;
    info->dtype = shape.dtype;
    info->ndim = shape.ndim;
    info->own = 0;
    memcpy(info->shape, shape.extents,
           (size_t)shape.ndim * sizeof *info->shape);
}

int ipu_pipeline_state(const ipu_pipeline *p, int32_t number,
                       ipu_variable_info *info)
{
    int32_t left = number;

    IPU_TRY(check_arguments(p, info, "the info"));
    IPU_TRY(ipu__check_size("variable info", info->size, sizeof *info));
    for (int32_t c = 0; c < p->nchips && left >= 0; c++)
        for (int32_t i = 0; i < p->chips[c].nvariables && left >= 0; i++) {
            const struct ipu__variable *v = &p->chips[c].variables[i];

            if (v->first && left-- == 0) {
                describe_variable(p, c, v, info);
                return IPU_OK;
            }
        }
    return ipu__fail(IPU_ERR_NAME, "the pipeline has no variable of number %d",
                     (int)number);
}

int ipu_pipeline_variable_info(const ipu_pipeline *p, const char *name,
                               ipu_dtype *dtype, int64_t *shape)
{
    const struct ipu__variable *v;
    struct ipu__shape is;
    int32_t chip = 0;

    IPU_TRY(check_arguments(p, name, "the name of a variable"));
    v = find_next(p, name, &chip);
    if (!v)
        return ipu__fail(IPU_ERR_NAME, "pipeline: there is no variable '%s'",
                         name);
    is = shape_of(p, v, chip - 1);
    if (dtype)
        *dtype = is.dtype;
    if (shape)
        memcpy(shape, is.extents, (size_t)is.ndim * sizeof *is.extents);
    return is.ndim;
}

/* ----------------------------------------------------------------- accounts */

int ipu_pipeline_stage(const ipu_pipeline *p, int32_t stage,
                       ipu_pipeline_stage_info *info)
{
    const struct ipu__stage_part *part;
    ipu_pipeline_stage_info made;

    IPU_TRY(check_arguments(p, info, "the place for a stage's account"));
    IPU_TRY(ipu__check_size("pipeline stage info", info->size, sizeof *info));
    if (stage < 0 || stage >= p->nparts)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: there is no stage %d: there are 0 to %d",
                         (int)stage, (int)p->nparts - 1);
    part = &p->parts[stage];
    made = (ipu_pipeline_stage_info){
        .size = info->size,
        .name = part->name,
        .position = part->position,
        .ipu = part->ipu,
        .stash_bytes = part->stash_bytes,
        .sent_bytes = part->forward_sends + part->backward_sends,
        .forward_cycles = part->forward_cycles,
        .backward_cycles = part->backward_cycles,
        .recompute_cycles = part->recompute_cycles,
    };
    for (int32_t r = 0; r < p->options.replicas; r++) {
        const struct ipu__done *done = &p->copies[r].done[stage];

        made.forward_executions += done->forwards;
        made.backward_executions += done->backwards;
        made.recompute_executions += done->recomputes;
        if (made.stash_depth < done->most)
            made.stash_depth = done->most;
    }
    if (made.stash_depth > 0)
        made.stash_depth -= p->options.batch_serialization_iterations;
    *info = made;
    return IPU_OK;
}

int ipu_pipeline_ipu(const ipu_pipeline *p, int32_t number,
                     ipu_pipeline_ipu_info *info)
{
    const struct ipu__chip *chip;

    IPU_TRY(check_arguments(p, info, "the place for an IPU's account"));
    IPU_TRY(ipu__check_size("pipeline IPU info", info->size, sizeof *info));
    if (number < 0 || number >= p->nlanes)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: there is no IPU %d: it has 0 to %d",
                         (int)number, (int)p->nlanes - 1);
    chip = &p->chips[p->lanes[number].chip];
    *info = (ipu_pipeline_ipu_info){
        .size = info->size,
        .ipu = p->lanes[number].copy * p->ipus_per_copy + chip->ipu,
        .variable_bytes = chip->variable_bytes,
        .stash_bytes = chip->stash_bytes,
        .program_bytes = chip->program_bytes,
        .streaming_bytes = chip->streaming_bytes,
        .busy_cycles = p->lanes[number].busy_cycles,
        .bytes_per_tile = p->system.ipu.bytes_per_tile,
        .tile_bytes = chip->tile_bytes,
        .update_cycles = chip->update_cycles,
        .offload_cycles = chip->offload_cycles,
        .automatic_bytes = chip->automatic_bytes,
        .tile_bytes_without = chip->tile_bytes_without,
    };
    return IPU_OK;
}

int ipu_pipeline_stats(const ipu_pipeline *p, ipu_pipeline_info *info)
{
    uint32_t size;

    IPU_TRY(check_arguments(p, info, "the place for its account"));
    IPU_TRY(ipu__check_size("pipeline info", info->size, sizeof *info));
    size = info->size;
    *info = p->info;
    info->size = size;
    info->stages = p->nparts;
    info->ipus = p->nlanes;
    info->replicas = p->options.replicas;
    info->idle_fraction =
        p->work_cycles ? (double)p->idle_cycles / (double)p->work_cycles : 0;
    info->seconds = ipu_model_seconds(&p->system.ipu, info->total_cycles);
    return IPU_OK;
}

int64_t ipu_pipeline_events(const ipu_pipeline *p,
                            const ipu_pipeline_event **events)
{
    IPU_TRY(check_arguments(p, events, "the place for its events"));
    *events = p->events;
    return p->nevents;
}
