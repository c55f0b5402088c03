/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - makes the stages' forward graphs.
 *
 * Position after position each stage's function is called once, with inputs of
 * the shapes that the position before outputs. The result is checked: the
 * number of outputs, whether they are tensors of this graph, which variables
 * are trained, and which tensors at the border depend on a trained variable,
 * here or before: derivatives come back only for those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/control/control.h"
#include "ops/op.h"
#include "pipeline/pipeline.h"

int ipu__part_fail(const struct ipu__stage_part *part, int status)
{
    char text[IPU__EXPLANATION_MAX];

    snprintf(text, sizeof text, "%s", ipu_last_error());
    return ipu__fail(status, "pipeline: stage %s: %s", part->name, text);
}

static bool is_float(const struct ipu__shape *shape)
{
    return shape->dtype != IPU_INT32;
}

/* --------------------------------------------------------------- its inputs */

static int check_inputs(const struct ipu_pipeline *p,
                        const struct ipu__stage_part *part, int32_t ninputs)
{
    const struct ipu__position *before;

    if (part->stage->inputs < 0 || part->stage->inputs == ninputs)
        return IPU_OK;
    if (part->position == 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "pipeline: stage %s takes %d inputs, but there are %d "
                         "arguments and %d elements of the infeed",
                         part->name, (int)part->stage->inputs,
                         (int)p->options.narguments,
                         (int)(ninputs - p->options.narguments));
    before = &p->positions[part->position - 1];
    return ipu__fail(
        IPU_ERR_SHAPE,
        "pipeline: stage %s takes %d inputs, but stage %s%s before "
        "it gives %d outputs",
        part->name, (int)part->stage->inputs, p->parts[before->first_part].name,
        before->nparts > 1 ? ", with those beside it," : "", (int)ninputs);
}

/* Fills the ports of the first position: arguments, then elements. Returns how
 * many. */
static int32_t first_ports(const struct ipu_pipeline *p,
                           struct ipu__port *ports)
{
    const ipu_pipeline_options *o = &p->options;
    const ipu_feed_tensor *elements = NULL;
    int32_t count = o->narguments;

    if (o->infeed)
        count += ipu_infeed_tensors(o->infeed, &elements);
    for (int32_t i = 0; i < count; i++) {
        const ipu_feed_tensor *s =
            i < o->narguments ? &o->arguments[i] : &elements[i - o->narguments];

        ports[i] = (struct ipu__port){0};
        ports[i].shape.dtype = s->dtype;
        ports[i].shape.ndim = s->ndim;
        memcpy(ports[i].shape.extents, s->shape,
               (size_t)s->ndim * sizeof *s->shape);
    }
    return count;
}

/* Fills the ports that a position outputs: the outputs of its parts, one after
 * the other. */
static void ports_after(const struct ipu_pipeline *p, int32_t position,
                        struct ipu__port *ports)
{
    const struct ipu__position *at = &p->positions[position];
    int32_t count = 0;

    for (int32_t i = 0; i < at->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[at->first_part + i];

        for (int32_t k = 0; k < part->noutputs; k++)
            ports[count++] = part->outputs[k];
    }
}

static int make_inputs(struct ipu__stage_part *part,
                       const struct ipu__port *ports, int32_t count,
                       ipu_tensor *inputs)
{
    for (int32_t i = 0; i < count; i++) {
        const struct ipu__shape *s = &ports[i].shape;
        char name[32];

        snprintf(name, sizeof name, "in:%d", (int)i);
        inputs[i] = ipu_input(part->joint, name, s->dtype, s->ndim, s->extents);
        if (inputs[i].id < 0)
            return ipu__part_fail(part, part->joint->status);
        part->inputs[i] = ports[i];
        part->inputs[i].tensor = ipu__index(part->joint, inputs[i]);
    }
    return IPU_OK;
}

/* ----------------------------------------------------------- built graphs */

static int check_sources(const struct ipu__stage_part *part, int32_t ninputs)
{
    const ipu_graph *g = part->joint;
    int32_t found = 0;

    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].kind == IPU__INPUT && found++ >= ninputs)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s makes the input '%s': what a "
                             "stage works on comes from the stage before, or "
                             "from arguments and infeed",
                             part->name, g->tensors[t].name);
    for (int32_t i = 0; i < g->nsinks; i++)
        if (!g->sinks[i].fn)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s makes the output '%s': what a "
                             "stage gives, its function writes to outputs",
                             part->name, g->sinks[i].name);
    return IPU_OK;
}

/* Refuses loops that differentiation cannot handle. */
static int check_loops(const struct ipu__stage_part *part)
{
    const ipu_graph *g = part->joint;
    bool remote = false;

    for (int32_t t = 0; t < g->ntensors; t++)
        remote |= g->tensors[t].remote;
    if (g->nloops > 0 || g->nfeeds > 0 || g->nenqueues > 0 || remote)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: stage %s has a %s: a pipeline that trains "
                         "cannot have that in its stages",
                         part->name,
                         g->nloops > 0      ? "loop of unknown length"
                         : g->nfeeds > 0    ? "queue that it dequeues"
                         : g->nenqueues > 0 ? "queue that it enqueues into"
                                            : "remote buffer");
    return IPU_OK;
}

static int take_outputs(struct ipu__stage_part *part, int count,
                        const ipu_tensor *outputs)
{
    const ipu_graph *g = part->joint;

    if (g->status < 0) {
        ipu__graph_status(g);
        return ipu__part_fail(part, g->status);
    }
    if (count < 0)
        return ipu__fail(count, "pipeline: stage %s: its function returned %d",
                         part->name, count);
    if (count > IPU_MAX_STAGE_TENSORS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: stage %s gives %d outputs, there may be %d",
                         part->name, count, IPU_MAX_STAGE_TENSORS);
    for (int i = 0; i < count; i++) {
        int32_t index = ipu__index(g, outputs[i]);

        if (index < 0)
            return ipu__fail(index,
                             "pipeline: stage %s, output %d: it captures a "
                             "tensor that is not of this stage, or none: %s",
                             part->name, i, ipu_last_error());
        part->outputs[i].tensor = index;
        part->outputs[i].shape = g->tensors[index].shape;
    }
    part->noutputs = count;
    return IPU_OK;
}

static bool is_assigned(const ipu_graph *g, int32_t variable)
{
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].variable == variable)
            return true;
    return false;
}

static int add_trained(struct ipu_pipeline *p, struct ipu__stage_part *part,
                       int32_t tensor)
{
    const ipu_pipeline_options *o = &p->options;
    const struct ipu__tensor *t = &part->joint->tensors[tensor];
    struct ipu__trained made = {.shape = t->shape, .tensor = tensor};

    made.accumulator =
        o->accumulator_of
            ? o->accumulator_of(o->accumulator_context, t->name, t->shape.dtype)
            : o->accumulator;
    if (made.accumulator == IPU_ACCUMULATOR_SAME)
        made.accumulator = t->shape.dtype;
    if (!ipu__dtype_name(made.accumulator) || made.accumulator == IPU_INT32)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: stage %s: gradients of '%s' cannot be "
                         "added up in dtype %d",
                         part->name, t->name, (int)made.accumulator);
    IPU_TRY(ipu__reserve((void **)&part->trained, part->ntrained,
                         &part->trained_capacity, sizeof *part->trained));
    made.name = strdup(t->name);
    if (!made.name)
        return ipu__fail_memory(strlen(t->name));
    part->trained[part->ntrained++] = made;
    return IPU_OK;
}

static int find_trained(struct ipu_pipeline *p, struct ipu__stage_part *part)
{
    const ipu_pipeline_options *o = &p->options;
    const ipu_graph *g = part->joint;

    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].kind == IPU__VARIABLE &&
            is_float(&g->tensors[t].shape) && !is_assigned(g, t) &&
            (!o->trained || o->trained(o->trained_context, g->tensors[t].name)))
            IPU_TRY(add_trained(p, part, t));
    return IPU_OK;
}

/* Finds the outputs that depend on a trained variable. */
static int find_dependents(struct ipu__stage_part *part, int32_t ninputs)
{
    const ipu_graph *g = part->joint;
    bool *depends;

    IPU_TRY(ipu__new_array(&depends, (size_t)g->ntensors, sizeof *depends));
    for (int32_t i = 0; i < part->ntrained; i++)
        depends[part->trained[i].tensor] = true;
    for (int32_t i = 0; i < ninputs; i++)
        depends[part->inputs[i].tensor] |= part->inputs[i].depends;
    for (int32_t n = 0; n < g->nnodes; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            depends[g->nodes[n].output] |=
                depends[g->nodes[n].inputs[i]] &&
                is_float(&g->tensors[g->nodes[n].output].shape);
    for (int32_t i = 0; i < part->noutputs; i++)
        part->outputs[i].depends = depends[part->outputs[i].tensor];
    free(depends);
    return IPU_OK;
}

static int build_part(struct ipu_pipeline *p, struct ipu__stage_part *part,
                      const struct ipu__port *ports, int32_t ninputs)
{
    ipu_tensor inputs[IPU_MAX_STAGE_TENSORS];
    ipu_tensor outputs[IPU_MAX_STAGE_TENSORS];
    char where[64];
    int count;

    for (int i = 0; i < IPU_MAX_STAGE_TENSORS; i++)
        outputs[i] = (ipu_tensor){-1};
    IPU_TRY(check_inputs(p, part, ninputs));
    IPU_TRY(ipu_graph_new(&part->joint));
    part->joint->unrolls = p->training;
    IPU_TRY(make_inputs(part, ports, ninputs, inputs));
    count = part->stage->build(part->stage->context, part->joint, ninputs,
                               inputs, outputs);
    IPU_TRY(take_outputs(part, count, outputs));
    ipu__unrolled(part->joint);
    part->joint->source = (struct ipu__source){0};
    IPU_TRY(check_sources(part, ninputs));
    snprintf(where, sizeof where, "pipeline: stage %.40s", part->name);
    IPU_TRY(ipu_update_check_absent(part->joint, where));
    part->nforward = part->joint->nnodes;
    if (!p->training)
        return IPU_OK;
    IPU_TRY(check_loops(part));
    IPU_TRY(find_trained(p, part));
    return find_dependents(part, ninputs);
}

int ipu__pipeline_stages(struct ipu_pipeline *p)
{
    struct ipu__port ports[IPU_MAX_STAGES * IPU_MAX_STAGE_TENSORS];

    p->positions[0].ninputs = first_ports(p, ports);
    for (int32_t at = 0; at < p->npositions; at++) {
        struct ipu__position *position = &p->positions[at];

        if (at > 0) {
            ports_after(p, at - 1, ports);
            position->ninputs = p->positions[at - 1].noutputs;
        }
        for (int32_t i = 0; i < position->nparts; i++) {
            struct ipu__stage_part *part = &p->parts[position->first_part + i];

            IPU_TRY(build_part(p, part, ports, position->ninputs));
            position->noutputs += part->noutputs;
        }
        if (position->noutputs > IPU_MAX_STAGE_TENSORS)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s and those beside it give %d "
                             "outputs, there may be %d",
                             p->parts[position->first_part].name,
                             (int)position->noutputs, IPU_MAX_STAGE_TENSORS);
    }
    return IPU_OK;
}
