/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - makes values of tensors, steps of nodes, and streams of connections
 * to the host, in the order in which schedule.c requests them.
 *
 * A tensor becomes a value when it is first used, so unused tensors have no
 * value. Everything is copied: the program outlives the graph.
 */
#include "compiler/schedule/emit.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/streams.h"

static int copy_constant(struct ipu__value *value, const struct ipu__tensor *t)
{
    value->data = malloc(value->bytes ? value->bytes : 1);
    if (!value->data)
        return ipu__fail_memory(value->bytes);
    memcpy(value->data, t->data, value->bytes);
    return IPU_OK;
}

/* Copies a text, or NULL. Returns false if there is no memory. */
static bool copy_text(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

/* Returns the value of a tensor; makes it if it is new. */
static int emit_value(struct ipu__emitter *m, int32_t tensor)
{
    const struct ipu__tensor *t;
    struct ipu_executable *e = m->e;

    tensor = ipu__origin(m->graph, tensor);
    t = &m->graph->tensors[tensor];
    if (m->value_of[tensor] >= 0)
        return m->value_of[tensor];
    /* Every later sum of sizes, with their alignment, is less than twice
     * this one. */
    m->bytes += ipu__shape_bytes(&t->shape);
    if (m->bytes > PTRDIFF_MAX / 2)
        return ipu__fail(IPU_ERR_MEMORY,
                         "compile: the tensors up to %s are more bytes than "
                         "memory can hold",
                         t->name);
    e->values[e->nvalues] = (struct ipu__value){
        .name = strdup(t->name),
        .shape = t->shape,
        .kind = t->kind,
        .bytes = ipu__shape_bytes(&t->shape),
        .line = t->source.line,
        .map = t->map,
        .shard = t->shard,
    };
    e->nvalues++;
    if (!e->values[e->nvalues - 1].name ||
        !copy_text(t->source.file, &e->values[e->nvalues - 1].file) ||
        !copy_text(t->source.module, &e->values[e->nvalues - 1].module))
        return ipu__fail_memory(strlen(t->name) + 1);
    m->value_of[tensor] = e->nvalues - 1;
    e->values[e->nvalues - 1].remote = t->offloaded || t->remote;
    e->values[e->nvalues - 1].rows = t->remote;
    e->values[e->nvalues - 1].shared = t->renewed >= 0;
    e->values[e->nvalues - 1].own =
        m->graph->tensors[ipu__origin(m->graph, tensor)].own;
    e->values[e->nvalues - 1].bound = t->imported && t->kind == IPU__VARIABLE;
    e->values[e->nvalues - 1].carried =
        e->values[e->nvalues - 1].bound && t->fixed;
    if (t->kind == IPU__CONSTANT)
        IPU_TRY(copy_constant(&e->values[m->value_of[tensor]], t));
    return m->value_of[tensor];
}

/* Finds the value that a region's steps look at, and how often they run. The
 * value has been emitted; -1: none. */
static int find_gate(struct ipu__emitter *m, int32_t region, int32_t *gate,
                     int32_t *count)
{
    const struct ipu__region *r;

    *gate = IPU__NONE;
    *count = 0;
    if (region < 0)
        return IPU_OK;
    r = &m->graph->regions[region];
    *count = r->count;
    if (r->due < 0)
        return IPU_OK;
    *gate = emit_value(m, r->due);
    IPU_TRY(*gate);
    return IPU_OK;
}

/* Binds values of a body to values of this program. */
static int bind_values(struct ipu__emitter *m,
                       const struct ipu__block_graph *from,
                       const struct ipu__loop_code *code, struct ipu__inner *to)
{
    const ipu_graph *g = from->graph;
    int32_t n = 0;

    if (!g)
        return IPU_OK;
    while (n < code->ncarried) {
        to->outer[n] = code->outputs[n];
        n++;
    }
    for (int32_t i = 0; i < g->nimports; i++) {
        if (g->tensors[g->imports[i].inner].kind != IPU__VARIABLE)
            continue; /* the body has a copy */
        to->outer[n] = emit_value(m, g->imports[i].outer);
        IPU_TRY(to->outer[n]);
        n++;
    }
    return IPU_OK;
}

/* Fills in the rest of a loop's step. */
static int emit_loop(struct ipu__emitter *m, const struct ipu__node *node,
                     struct ipu__step *step)
{
    const struct ipu__loop *loop = &m->graph->loops[node->loop];
    struct ipu__loop_code *code = &m->e->loops[node->loop];

    step->kind = IPU__LOOP;
    step->loop = node->loop;
    for (int32_t i = 0; i < loop->ncarried; i++) {
        code->initial[i] = emit_value(m, loop->initial[i]);
        IPU_TRY(code->initial[i]);
        code->outputs[i] = emit_value(m, loop->outputs[i]);
        IPU_TRY(code->outputs[i]);
    }
    IPU_TRY(bind_values(m, &loop->body, code, &code->body));
    return bind_values(m, &loop->condition, code, &code->condition);
}

int ipu__emit_node(struct ipu__emitter *m, int32_t n)
{
    const struct ipu__node *node = &m->graph->nodes[n];
    struct ipu_executable *e = m->e;
    struct ipu__step *step;

    for (int i = 0; i < node->op->ninputs; i++)
        IPU_TRY(emit_value(m, node->inputs[i]));
    step = &e->steps[e->nsteps];
    ipu__step_init(step, IPU__COMPUTE, node->op);
    step->attributes = node->attributes;
    step->again = node->again;
    for (int i = 0; i < node->op->ninputs; i++)
        step->inputs[i] = emit_value(m, node->inputs[i]);
    step->output = emit_value(m, node->output);
    IPU_TRY(step->output);
    if (node->loop >= 0)
        IPU_TRY(emit_loop(m, node, step));
    IPU_TRY(find_gate(m, node->region, &step->gate, &step->count));
    e->nsteps++;
    return ipu__progress(e->progress, "schedule", e->nsteps, m->graph->nnodes);
}

/* ------------------------------------------------------------- the host */

static int add_stream(struct ipu__emitter *m, const char *name, int32_t tensor,
                      int32_t value, const struct ipu__sink *sink)
{
    struct ipu_executable *e = m->e;
    struct ipu__stream *stream = &e->streams[e->nstreams];

    *stream = (struct ipu__stream){
        .name = strdup(name),
        .value = value,
        .bytes = ipu__shape_bytes(&m->graph->tensors[tensor].shape),
        .gate = IPU__NONE,
        .kind = !sink      ? IPU__STREAM_IN
                : sink->fn ? IPU__STREAM_CALL
                           : IPU__STREAM_OUT,
        .fn = sink ? sink->fn : NULL,
        .context = sink ? sink->context : NULL,
    };
    e->nstreams++;
    return stream->name ? IPU_OK : ipu__fail_memory(strlen(name) + 1);
}

int ipu__emit_sink(struct ipu__emitter *m, const struct ipu__sink *sink)
{
    struct ipu_executable *e = m->e;
    int32_t value, region, gate, count;

    value = emit_value(m, sink->tensor);
    IPU_TRY(value);
    region = ipu__tensor_region(m->graph, sink->tensor);
    IPU_TRY(find_gate(m, region, &gate, &count));
    if (sink->fn) {
        struct ipu__step *step = &e->steps[e->nsteps++];

        ipu__step_init(step, IPU__HOST_CALL, NULL);
        step->output = value;
        step->stream = e->nstreams;
        step->gate = gate;
        step->count = count;
    }
    IPU_TRY(add_stream(m, sink->name, sink->tensor, value, sink));
    if (!sink->fn)
        e->streams[e->nstreams - 1].gate = gate;
    return IPU_OK;
}

int ipu__emit_assign(struct ipu__emitter *m, const struct ipu__assign *a)
{
    struct ipu_executable *e = m->e;
    struct ipu__step step;

    ipu__step_init(&step, IPU__COMPUTE, &ipu__assign_step);
    if (m->graph->tensors[a->variable].offloaded)
        step.op = &ipu__remote_store;
    step.inputs[0] = emit_value(m, a->value);
    IPU_TRY(step.inputs[0]);
    step.output = emit_value(m, a->variable);
    IPU_TRY(step.output);
    IPU_TRY(find_gate(m, ipu__tensor_region(m->graph, a->value), &step.gate,
                      &step.count));
    e->steps[e->nsteps++] = step;
    return IPU_OK;
}

/* Adds the code of a queue, with room for that many values. */
static struct ipu__feed_code *add_feed(struct ipu__emitter *m, int32_t count)
{
    struct ipu__feed_code *feed = &m->e->feeds[m->e->nfeeds];

    feed->values = calloc((size_t)count + 1, sizeof *feed->values);
    if (!feed->values)
        return NULL;
    feed->count = count;
    m->e->nfeeds++;
    return feed;
}

/* Adds the elements that queues give, once it is known which tensors are used.
 */
static int add_infeeds(struct ipu__emitter *m)
{
    for (int32_t i = 0; i < m->graph->nfeeds; i++) {
        const struct ipu__feed *from = &m->graph->feeds[i];
        struct ipu__feed_code *feed = add_feed(m, from->count);

        if (!feed)
            return ipu__fail_memory((size_t)from->count);
        ipu__infeed_retain(from->infeed);
        feed->infeed = from->infeed;
        for (int32_t k = 0; k < from->count; k++)
            feed->values[k] = m->value_of[from->first + k];
    }
    return IPU_OK;
}

int ipu__emit_enqueue(struct ipu__emitter *m,
                      const struct ipu__enqueue *enqueue)
{
    struct ipu__feed_code *feed = add_feed(m, enqueue->count);

    if (!feed)
        return ipu__fail_memory((size_t)enqueue->count);
    ipu__outfeed_retain(enqueue->outfeed);
    feed->outfeed = enqueue->outfeed;
    for (int32_t k = 0; k < enqueue->count; k++) {
        feed->values[k] = emit_value(m, enqueue->tensors[k]);
        IPU_TRY(feed->values[k]);
    }
    return IPU_OK;
}

int ipu__emit_inputs(struct ipu__emitter *m)
{
    const ipu_graph *g = m->graph;

    for (int32_t t = 0; t < g->ntensors; t++) {
        if (g->tensors[t].kind == IPU__VARIABLE)
            IPU_TRY(emit_value(m, t));
        if (g->tensors[t].kind == IPU__INPUT && !g->tensors[t].fed)
            IPU_TRY(add_stream(m, g->tensors[t].name, t, m->value_of[t], NULL));
    }
    return add_infeeds(m);
}

int ipu__emitter_init(struct ipu__emitter *m, const ipu_graph *g,
                      struct ipu_executable *e)
{
    size_t ntensors = (size_t)g->ntensors + 1;
    size_t nsteps =
        (size_t)g->nnodes + (size_t)g->nsinks + (size_t)g->nassigns + 1;
    size_t nstreams = (size_t)g->nsinks + ntensors;
    size_t nfeeds = (size_t)g->nfeeds + (size_t)g->nenqueues + 1;

    *m = (struct ipu__emitter){.graph = g, .e = e};
    e->values = calloc(ntensors, sizeof *e->values);
    e->steps = calloc(nsteps, sizeof *e->steps);
    e->streams = calloc(nstreams, sizeof *e->streams);
    e->feeds = calloc(nfeeds, sizeof *e->feeds);
    e->value_of = m->value_of = malloc(ntensors * sizeof *m->value_of);
    if (!e->values || !e->steps || !e->streams || !e->feeds || !m->value_of)
        return ipu__fail_memory(nsteps * sizeof *e->steps);
    memset(m->value_of, -1, ntensors * sizeof *m->value_of);
    return IPU_OK;
}
