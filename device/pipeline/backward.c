/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - makes the stages' backward graphs, and both directions as
 * programs.
 *
 * From the last position to the first, each part's graph is differentiated:
 * from the derivatives that the next position sends, one for each of its
 * outputs (several, if concurrent stages use it), to those of its inputs and of
 * its variables. The result is a joint graph of both directions, which is then
 * cut:
 *
 *     forward   the joint graph with sinks for its results: the outputs,
 *               and the stash, which is all that the backward graph reads of it
 *     backward  a copy of the rest, with the stash as inputs; it adds the
 *               gradients to accumulators
 *
 * The stash leaves out what both directions can see or make: variables,
 * constants, and other shapes of the same tensor. It includes a variable that
 * the stage itself assigns, which will have changed by then. So a counter of
 * steps is stashed, and dropout drops the same elements in both directions.
 *
 * Recomputation moves the cut: the stash holds the stage's inputs, variables as
 * above and checkpoints, and the backward graph computes the forward part again
 * first. With "then backpropagate" the whole part is computed again, in its
 * original order; with "interleaved" each piece of it is computed just before
 * it is needed. The last stage has nothing to wait for and keeps its results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compiler.h"
#include "ops/op.h"
#include "pipeline/extract.h"
#include "pipeline/pipeline.h"
#include "training/training.h"

/* ---------------------------------------------------------------- the seeds */

/* Seeds the loss. Returns the number of seeds: 1. */
static int seed_loss(const struct ipu_pipeline *p, struct ipu__stage_part *part,
                     int32_t output, ipu_tensor *of, ipu_tensor *seed)
{
    const struct ipu__port *loss = &part->outputs[output];

    if (loss->shape.dtype != IPU_FLOAT32 || loss->shape.ndim != 0)
        return ipu__fail(
            IPU_ERR_SHAPE, "the loss, output %d, is %s, not a float32 scalar",
            (int)p->options.loss, ipu__shape_print(&loss->shape).text);
    if (!loss->depends)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "the loss, output %d, does not depend on any variable "
                         "that is trained",
                         (int)p->options.loss);
    *of = ipu__handle(part->joint, loss->tensor);
    *seed = ipu__constant(part->joint, &loss->shape, 1);
    return seed->id < 0 ? part->joint->status : 1;
}

/* Makes the derivatives with respect to an output, from all parts that use it.
 * number: of the output among those of its position. */
static int seed_output(const struct ipu_pipeline *p,
                       struct ipu__stage_part *part, int32_t output,
                       int32_t number, ipu_tensor *of, ipu_tensor *seeds)
{
    const struct ipu__position *after = &p->positions[part->position + 1];
    const struct ipu__shape *s = &part->outputs[output].shape;
    int count = 0;

    for (int32_t i = 0; i < after->nparts; i++) {
        char name[32];

        if (!p->parts[after->first_part + i].sends[number])
            continue;
        snprintf(name, sizeof name, "grad:%d:%d", (int)number, (int)i);
        of[count] = ipu__handle(part->joint, part->outputs[output].tensor);
        seeds[count] =
            ipu_input(part->joint, name, s->dtype, s->ndim, s->extents);
        if (seeds[count++].id < 0)
            return part->joint->status;
    }
    return count;
}

static int find_seeds(const struct ipu_pipeline *p,
                      struct ipu__stage_part *part, ipu_tensor *of,
                      ipu_tensor *seeds)
{
    int32_t first = 0, count = 0;

    for (int32_t i = p->positions[part->position].first_part;
         &p->parts[i] < part; i++)
        first += p->parts[i].noutputs;
    for (int32_t k = 0; k < part->noutputs; k++) {
        int found = 0;

        if (part->position < p->npositions - 1)
            found =
                seed_output(p, part, k, first + k, of + count, seeds + count);
        else if (first + k == p->options.loss)
            found = seed_loss(p, part, k, of, seeds);
        IPU_TRY(found);
        count += found;
    }
    return count;
}

/* Makes the gradients from the derivatives that come in and from the loss. wrt
 * and found have room for all variables and inputs. */
static int find_gradients(const struct ipu_pipeline *p,
                          struct ipu__stage_part *part, int32_t *wrt,
                          ipu_tensor *found)
{
    enum { MOST = IPU_MAX_STAGE_TENSORS * IPU_MAX_STAGES };
    const struct ipu__position *at = &p->positions[part->position];
    ipu_tensor of[MOST], seeds[MOST];
    int32_t nwrt = part->ntrained;
    int nseeds = find_seeds(p, part, of, seeds);

    IPU_TRY(nseeds);
    for (int32_t i = 0; i < part->ntrained; i++)
        wrt[i] = part->trained[i].tensor;
    for (int32_t i = 0; i < at->ninputs; i++)
        if (part->inputs[i].depends)
            wrt[nwrt++] = part->inputs[i].tensor;
    IPU_TRY(
        ipu__gradients_from(part->joint, nseeds, of, seeds, nwrt, wrt, found));
    for (int32_t i = 0; i < part->ntrained; i++)
        part->trained[i].gradient = found[i];
    nwrt = part->ntrained;
    for (int32_t i = 0; i < at->ninputs; i++) {
        part->inputs[i].gradient = (ipu_tensor){-1};
        if (part->inputs[i].depends)
            part->inputs[i].gradient = found[nwrt++];
        part->sends[i] = part->inputs[i].gradient.id >= 0;
    }
    return IPU_OK;
}

static int differentiate(const struct ipu_pipeline *p,
                         struct ipu__stage_part *part)
{
    size_t count = (size_t)part->ntrained + IPU_MAX_STAGE_TENSORS;
    int32_t *wrt = calloc(count, sizeof *wrt);
    ipu_tensor *found = calloc(count, sizeof *found);
    int status;

    if (wrt && found)
        status = find_gradients(p, part, wrt, found);
    else
        status = ipu__fail_memory(count * sizeof *found);
    free(wrt);
    free(found);
    return status < 0 ? ipu__part_fail(part, status) : IPU_OK;
}

/* ---------------------------------------------------------------- the stash */

struct cut {
    struct ipu__stage_part *part;
    bool recompute;
    bool *needed;    /* owned, [tensors] */
    bool *constants; /* owned, [tensors]: made of constants alone */
};

static bool is_assigned(const ipu_graph *g, int32_t variable)
{
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].variable == variable)
            return true;
    return false;
}

/* Decides whether a tensor is taken from the stash, or made again in the
 * backward graph. */
static bool is_stashed(const struct cut *c, int32_t tensor)
{
    const ipu_graph *g = c->part->joint;
    const struct ipu__tensor *t = &g->tensors[tensor];

    if (t->kind == IPU__INPUT)
        return strncmp(t->name, "grad:", 5) != 0;
    if (t->kind == IPU__VARIABLE)
        return is_assigned(g, tensor);
    if (t->node < 0 || t->node >= c->part->nforward || c->constants[tensor])
        return false;
    if (c->recompute)
        return t->checkpoint;
    return !g->nodes[t->node].op->alias;
}

static int stash(struct ipu__stage_part *part, int32_t tensor)
{
    const struct ipu__tensor *t = &part->joint->tensors[tensor];

    IPU_TRY(ipu__reserve((void **)&part->stash, part->nstash,
                         &part->stash_capacity, sizeof *part->stash));
    part->stash[part->nstash++] = (struct ipu__stash){
        .tensor = tensor, .bytes = ipu__shape_bytes(&t->shape)};
    return IPU_OK;
}

static void mark(struct cut *c, ipu_tensor tensor)
{
    if (tensor.id >= 0)
        c->needed[ipu__index(c->part->joint, tensor)] = true;
}

static int walk(struct cut *c, int32_t ninputs)
{
    struct ipu__stage_part *part = c->part;
    const ipu_graph *g = part->joint;

    for (int32_t t = 0; t < g->ntensors; t++)
        c->constants[t] = g->tensors[t].kind == IPU__CONSTANT;
    for (int32_t n = 0; n < g->nnodes; n++) {
        bool constants = true;

        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            constants &= c->constants[g->nodes[n].inputs[i]];
        c->constants[g->nodes[n].output] = constants;
    }
    for (int32_t i = 0; i < part->ntrained; i++)
        mark(c, part->trained[i].gradient);
    for (int32_t i = 0; i < ninputs; i++)
        mark(c, part->inputs[i].gradient);
    for (int32_t n = g->nnodes - 1; n >= 0; n--)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            if (c->needed[g->nodes[n].output] &&
                !is_stashed(c, g->nodes[n].output))
                c->needed[g->nodes[n].inputs[i]] = true;
    part->nstash = 0;
    for (int32_t t = 0; t < g->ntensors; t++)
        if (c->needed[t] && is_stashed(c, t))
            IPU_TRY(stash(part, t));
    return IPU_OK;
}

static int find_stash(struct ipu__stage_part *part, int32_t ninputs,
                      bool recompute)
{
    const ipu_graph *g = part->joint;
    size_t ntensors = (size_t)g->ntensors + 1;
    struct cut c = {.part = part,
                    .recompute = recompute,
                    .needed = calloc(ntensors, sizeof(bool)),
                    .constants = calloc(ntensors, sizeof(bool))};
    int status;

    if (c.needed && c.constants)
        status = walk(&c, ninputs);
    else
        status = ipu__fail_memory(ntensors);
    free(c.needed);
    free(c.constants);
    return status;
}

/* ------------------------------------------------------------- the way back */

struct back {
    const struct ipu_pipeline *pipeline;
    const struct ipu__stage_part *part;
    ipu_graph *graph;
    struct ipu__extract extract;
    ipu_tensor weights[2]; /* weights of the old and the new value: inputs "old"
                              and "new", for a running mean */
};

static ipu_tensor add_up(const struct back *b, ipu_tensor sum, ipu_tensor g,
                         ipu_dtype dtype)
{
    ipu_graph *graph = b->graph;
    ipu_tensor old, new;

    switch (b->pipeline->options.reduction) {
    case IPU_REDUCTION_SUM: return ipu_add(graph, sum, g);
    case IPU_REDUCTION_MEAN:
        return ipu_add(
            graph, sum,
            ipu_scale(graph, g, 1 / (double)b->pipeline->options.count, 0));
    default:
        old = ipu_cast(graph, b->weights[0], dtype);
        new = ipu_cast(graph, b->weights[1], dtype);
        return ipu_add(graph, ipu_multiply(graph, sum, old),
                       ipu_multiply(graph, g, new));
    }
}

/* Takes a tensor of the stage's graph over, with what makes it. Returns its
 * index. */
static int32_t take_over(struct back *b, ipu_tensor tensor)
{
    return ipu__extract_tensor(
        &b->extract, ipu__index(b->part->joint, tensor),
        b->pipeline->info.recompute ==
                IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED
            ? b->part->nforward
            : 0);
}

static int accumulate(struct back *b, const struct ipu__trained *trained)
{
    ipu_graph *graph = b->graph;
    ipu_tensor sum, g;
    char name[IPU__NAME_MAX];
    int32_t index;

    if (trained->gradient.id < 0)
        return IPU_OK;
    index = take_over(b, trained->gradient);
    IPU_TRY(index);
    graph->source = (struct ipu__source){0};
    ipu__accumulator_name(trained->name, name);
    sum = ipu_variable(graph, name, trained->accumulator, trained->shape.ndim,
                       trained->shape.extents);
    g = ipu__handle(graph, index);
    if (trained->accumulator != trained->shape.dtype)
        g = ipu_cast(graph, g, trained->accumulator);
    return ipu_assign(graph, sum, add_up(b, sum, g, trained->accumulator));
}

static int send(struct back *b, int32_t input)
{
    const struct ipu__port *port = &b->part->inputs[input];
    char name[32];
    int32_t index;

    if (port->gradient.id < 0)
        return IPU_OK;
    index = take_over(b, port->gradient);
    IPU_TRY(index);
    snprintf(name, sizeof name, "dx:%d", (int)input);
    return ipu_output(b->graph, name, ipu__handle(b->graph, index));
}

static int build_back(struct back *b)
{
    const struct ipu__stage_part *part = b->part;
    static const char *const names[] = {"old", "new"};
    char name[32];

    for (int32_t i = 0; i < part->nstash; i++) {
        snprintf(name, sizeof name, "stash:%d", (int)i);
        IPU_TRY(ipu__extract_input(&b->extract, part->stash[i].tensor, name));
    }
    if (b->pipeline->options.reduction == IPU_REDUCTION_RUNNING_MEAN)
        for (int i = 0; i < 2; i++)
            b->weights[i] = ipu_input(b->graph, names[i], IPU_FLOAT32, 0, NULL);
    for (int32_t i = 0; i < part->ntrained; i++)
        IPU_TRY(accumulate(b, &part->trained[i]));
    for (int32_t i = 0; i < b->pipeline->positions[part->position].ninputs; i++)
        IPU_TRY(send(b, i));
    return ipu__graph_status(b->graph);
}

/* Removes the host from a program's streams: the data are in rings on the chips
 * or are sent between chips, which account.c counts. */
static void leave_to_chips(ipu_executable *executable)
{
    for (int32_t i = 0; i < executable->nstreams; i++) {
        executable->stream_cycles -= executable->streams[i].cycles;
        executable->streams[i].cycles = 0;
    }
}

int ipu__pipeline_compile(const struct ipu_pipeline *p, const ipu_graph *graph,
                          ipu_executable **executable)
{
    ipu_compile_options options = p->compiling;
    const struct ipu__setting setting = {.plans = p->plans};

    options.size = sizeof options;
    options.target = &p->system.ipu;
    options.allow_out_of_memory = 1;
    if (p->options.available_memory_proportion > 0)
        options.available_memory_proportion =
            p->options.available_memory_proportion;
    IPU_TRY(ipu__compile(graph, &options, &setting, executable));
    leave_to_chips(*executable);
    return IPU_OK;
}

static int make_back(const struct ipu_pipeline *p, struct ipu__stage_part *part,
                     bool recompute, ipu_executable **executable)
{
    struct back b = {.pipeline = p, .part = part};
    int status =
        find_stash(part, p->positions[part->position].ninputs, recompute);

    if (status == IPU_OK)
        status = ipu_graph_new(&b.graph);
    if (status == IPU_OK)
        status = ipu__extract_init(&b.extract, part->joint, b.graph);
    if (status == IPU_OK)
        status = build_back(&b);
    if (status == IPU_OK)
        status = ipu__pipeline_compile(p, b.graph, executable);
    ipu__extract_fini(&b.extract);
    ipu_graph_free(b.graph);
    return status;
}

/* ------------------------------------------------------------ the way there */

/* The stash of a variable holds its old value. */
static int show_stash(struct ipu__stage_part *part)
{
    ipu_graph *g = part->joint;

    for (int32_t i = 0; i < part->nstash; i++) {
        struct ipu__stash *s = &part->stash[i];
        ipu_tensor shown = ipu__handle(g, s->tensor);
        char name[32];

        if (g->tensors[s->tensor].kind == IPU__VARIABLE)
            shown = ipu__add(g, &ipu__identity, &shown, NULL);
        snprintf(name, sizeof name, "stash:%d", (int)i);
        IPU_TRY(ipu_output(g, name, shown));
        part->stash_bytes += (int64_t)s->bytes;
    }
    return IPU_OK;
}

static int make_forward(const struct ipu_pipeline *p,
                        struct ipu__stage_part *part)
{
    char name[32];

    for (int32_t i = 0; i < part->noutputs; i++) {
        snprintf(name, sizeof name, "out:%d", (int)i);
        IPU_TRY(ipu_output(part->joint, name,
                           ipu__handle(part->joint, part->outputs[i].tensor)));
    }
    IPU_TRY(show_stash(part));
    return ipu__pipeline_compile(p, part->joint, &part->forward);
}

/* Checks that the schedule allows checkpoints: it must be one in which
 * recomputation can be split. */
static int check_checkpoints(const struct ipu_pipeline *p,
                             const struct ipu__stage_part *part)
{
    const ipu_graph *g = part->joint;

    if (!p->info.recompute || p->options.schedule != IPU_SCHEDULE_INTERLEAVED)
        return IPU_OK;
    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].checkpoint)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s has recomputation "
                             "checkpoints: they need the grouped or the "
                             "sequential schedule, this is the interleaved one",
                             part->name);
    return IPU_OK;
}

static int make_part(struct ipu_pipeline *p, struct ipu__stage_part *part)
{
    int status = IPU_OK;

    if (p->training) {
        IPU_TRY(check_checkpoints(p, part));
        IPU_TRY(differentiate(p, part));
        part->recomputes =
            p->info.recompute && part->position < p->npositions - 1;
        if (part->recomputes) /* the program without recomputation */
            status = make_back(p, part, false, &part->plain);
        if (status == IPU_OK)
            status = make_back(p, part, part->recomputes, &part->backward);
    }
    if (status == IPU_OK)
        status = make_forward(p, part);
    return status < 0 ? ipu__part_fail(part, status) : IPU_OK;
}

int ipu__pipeline_backward(struct ipu_pipeline *p)
{
    for (int32_t at = p->npositions - 1; at >= 0; at--)
        for (int32_t i = 0; i < p->positions[at].nparts; i++)
            IPU_TRY(make_part(p, &p->parts[p->positions[at].first_part + i]));
    return IPU_OK;
}
