/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - which nodes run, and when.
 *
 * Only what a host call or an output needs is computed. Host calls come first
 * in the order of how much has still to be computed for them: the call that
 * needs the fewest more nodes is served next, then the same again for those
 * that remain. So a gradient leaves as soon as it can: those of the last
 * layers, which need little of the backward pass, before those of the first.
 * Within what a call needs, nodes keep the order of the graph.
 *
 * Outputs leave at the end of a run, so what only they need comes after, by
 * the same rule: gradients of the last layers first, whose activations are
 * then no longer needed.
 *
 * Assignments to variables come last: nothing may fail once a variable has
 * been written. First come what they need of ops that look at data, then the
 * new values, by the same rule as host calls. Where another op reads the old
 * value and does not need the new one, it comes before, so that the new one
 * can be computed in its place; the assignment itself follows as soon as
 * nobody reads the old one any more.
 *
 * Loops and stores that change something run even if nothing needs what they
 * make, after host calls; effects.c says what must come before them.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/effects.h"
#include "compiler/program.h"
#include "graph/error.h"
#include "streams/streams.h"

struct scheduler {
    const ipu_graph *graph;
    struct ipu_executable *executable;
    bool *scheduled;   /* [nodes] */
    bool *wanted;      /* [nodes], for one sink */
    bool *assigned;    /* [nodes], for all assignments */
    int32_t *value_of; /* [tensors]; -1: not used so far */
    struct ipu__effects effects;
    size_t bytes;        /* of all values so far */
    int32_t *stack;      /* [nodes]: to be looked at */
    int32_t *looked;     /* [nodes]: the last look that came by */
    int32_t look;        /* its number */
    int32_t *candidates; /* [sinks and assigns] */
    int32_t *known; /* [sinks and assigns]: nodes that each seemed to need when
                       that was last counted */
};

/* Mark what a sink needs and is not scheduled; returns how many nodes. */
static int32_t need(struct scheduler *s, int32_t tensor)
{
    int32_t n = s->graph->tensors[tensor].node, count = 0, nneeds;
    int32_t needs[IPU__MAX_NEEDS];

    memset(s->wanted, 0, (size_t)s->graph->nnodes * sizeof *s->wanted);
    if (n < 0 || s->scheduled[n])
        return 0;
    s->wanted[n] = true;
    for (; n >= 0; n--) {
        const struct ipu__node *node = &s->graph->nodes[n];

        if (!s->wanted[n])
            continue;
        count++;
        nneeds = ipu__node_needs(s->graph, node, needs);
        for (int i = 0; i < nneeds; i++) {
            int32_t maker = s->graph->tensors[needs[i]].node;
            if (maker >= 0 && !s->scheduled[maker])
                s->wanted[maker] = true;
        }
        ipu__effects_want(&s->effects, n, s->scheduled, s->wanted);
    }
    return count;
}

/* How many nodes a tensor needs that are not scheduled; more than limit: one
 * more than that. */
static int32_t count_needed(struct scheduler *s, int32_t tensor, int32_t limit)
{
    int32_t n = s->graph->tensors[tensor].node, count = 0, depth = 0, nneeds;
    int32_t needs[IPU__MAX_NEEDS];

    if (s->effects.live)
        return need(s, tensor); /* what must come before, too */
    if (n < 0 || s->scheduled[n])
        return 0;
    s->look++;
    s->looked[n] = s->look;
    s->stack[depth++] = n;
    while (depth > 0 && count <= limit) {
        n = s->stack[--depth];
        count++;
        nneeds = ipu__node_needs(s->graph, &s->graph->nodes[n], needs);
        for (int i = 0; i < nneeds; i++) {
            int32_t maker = s->graph->tensors[needs[i]].node;

            if (maker < 0 || s->scheduled[maker] || s->looked[maker] == s->look)
                continue;
            s->looked[maker] = s->look;
            s->stack[depth++] = maker;
        }
    }
    return count;
}

/* Of candidates, tensors or -1, that which needs the fewest nodes; the first of
 * several; -1: there is none. known: [count], theirs. One that seemed to need
 * few is counted first, of several the last, as later layers need less: the
 * others need not be counted further than that. */
static int32_t fewest_of(struct scheduler *s, const int32_t *candidates,
                         int32_t count, int32_t *known)
{
    int32_t best = -1, fewest = INT32_MAX - 1;

    for (int32_t i = 0; i < count; i++)
        if (candidates[i] >= 0 && (best < 0 || known[i] <= known[best]))
            best = i;
    if (best >= 0)
        fewest = known[best] = count_needed(s, candidates[best], fewest);
    for (int32_t i = 0; i < count; i++) {
        int32_t needed;

        if (candidates[i] < 0 || i == best)
            continue;
        needed = count_needed(s, candidates[i], fewest);
        known[i] = needed;
        if (needed < fewest || (needed == fewest && i < best)) {
            fewest = needed;
            best = i;
        }
    }
    return best;
}

static int copy_constant(struct ipu__value *value, const struct ipu__tensor *t)
{
    value->data = malloc(value->bytes ? value->bytes : 1);
    if (!value->data)
        return ipu__fail_memory(value->bytes);
    memcpy(value->data, t->data, value->bytes);
    return IPU_OK;
}

/* The value of a tensor, made if it is new. */
static int value_of(struct scheduler *s, int32_t tensor)
{
    const struct ipu__tensor *t;
    struct ipu_executable *e = s->executable;

    tensor = ipu__origin(s->graph, tensor);
    t = &s->graph->tensors[tensor];
    if (s->value_of[tensor] >= 0)
        return s->value_of[tensor];
    /* Every later sum of sizes, with their alignment, is less than twice
     * this one. */
    s->bytes += ipu__shape_bytes(&t->shape);
    if (s->bytes > PTRDIFF_MAX / 2)
        return ipu__fail(IPU_ERR_MEMORY,
                         "compile: the tensors up to %s are more bytes than "
                         "memory can hold",
                         t->name);
    e->values[e->nvalues] = (struct ipu__value){
        .name = strdup(t->name),
        .shape = t->shape,
        .kind = t->kind,
        .bytes = ipu__shape_bytes(&t->shape),
        .file = t->source.file ? strdup(t->source.file) : NULL,
        .line = t->source.line,
        .map = t->map,
        .shard = t->shard,
    };
    e->nvalues++;
    if (!e->values[e->nvalues - 1].name ||
        (t->source.file && !e->values[e->nvalues - 1].file))
        return ipu__fail_memory(strlen(t->name) + 1);
    s->value_of[tensor] = e->nvalues - 1;
    e->values[e->nvalues - 1].remote = t->offloaded || t->remote;
    e->values[e->nvalues - 1].rows = t->remote;
    e->values[e->nvalues - 1].shared = t->renewed != 0;
    e->values[e->nvalues - 1].bound = t->imported && t->kind == IPU__VARIABLE;
    if (t->kind == IPU__CONSTANT)
        IPU_TRY(copy_constant(&e->values[s->value_of[tensor]], t));
    return s->value_of[tensor];
}

/* What a region's steps look at, and how often they run. due is there. */
static int gate(struct scheduler *s, int32_t region, int32_t *value,
                int32_t *count)
{
    const struct ipu__region *r;
    int due;

    *value = *count = 0;
    if (region == 0)
        return IPU_OK;
    r = &s->graph->regions[region - 1];
    *count = r->count;
    if (r->due < 0)
        return IPU_OK;
    due = value_of(s, r->due);
    IPU_TRY(due);
    *value = due + 1;
    return IPU_OK;
}

static int prepare_inputs(struct scheduler *s, const struct ipu__node *node)
{
    for (int i = 0; i < node->op->ninputs; i++)
        IPU_TRY(value_of(s, node->inputs[i]));
    return IPU_OK;
}

/* The values that a body's are bound to. */
static int bind(struct scheduler *s, const struct ipu__block_graph *from,
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
            continue; /* a copy */
        to->outer[n] = value_of(s, g->imports[i].outer);
        IPU_TRY(to->outer[n]);
        n++;
    }
    return IPU_OK;
}

/* The rest of a loop's step. */
static int emit_loop(struct scheduler *s, const struct ipu__node *node,
                     struct ipu__step *step)
{
    const struct ipu__loop *loop = &s->graph->loops[node->loop - 1];
    struct ipu__loop_code *code = &s->executable->loops[node->loop - 1];

    step->kind = IPU__LOOP;
    step->loop = node->loop - 1;
    for (int32_t i = 0; i < loop->ncarried; i++) {
        code->initial[i] = value_of(s, loop->initial[i]);
        IPU_TRY(code->initial[i]);
        code->outputs[i] = value_of(s, loop->outputs[i]);
        IPU_TRY(code->outputs[i]);
    }
    IPU_TRY(bind(s, &loop->body, code, &code->body));
    return bind(s, &loop->condition, code, &code->condition);
}

static int emit_node(struct scheduler *s, int32_t n)
{
    const struct ipu__node *node = &s->graph->nodes[n];
    struct ipu_executable *e = s->executable;
    struct ipu__step *step;

    IPU_TRY(prepare_inputs(s, node));
    step = &e->steps[e->nsteps];
    *step = (struct ipu__step){.kind = IPU__COMPUTE,
                               .op = node->op,
                               .attributes = node->attributes,
                               .again = node->again};
    for (int i = 0; i < node->op->ninputs; i++)
        step->inputs[i] = value_of(s, node->inputs[i]);
    step->output = value_of(s, node->output);
    IPU_TRY(step->output);
    if (node->loop)
        IPU_TRY(emit_loop(s, node, step));
    IPU_TRY(gate(s, node->region, &step->gate, &step->count));
    s->scheduled[n] = true;
    e->nsteps++;
    return ipu__progress(e->progress, "schedule", e->nsteps, s->graph->nnodes);
}

static int emit_needed(struct scheduler *s, int32_t tensor)
{
    need(s, tensor);
    for (int32_t n = 0; n < s->graph->nnodes; n++)
        if (s->wanted[n])
            IPU_TRY(emit_node(s, n));
    return IPU_OK;
}

static int add_stream(struct scheduler *s, const char *name, int32_t tensor,
                      int32_t value, const struct ipu__sink *sink)
{
    struct ipu_executable *e = s->executable;
    struct ipu__stream *stream = &e->streams[e->nstreams];

    *stream = (struct ipu__stream){
        .name = strdup(name),
        .value = value,
        .bytes = ipu__shape_bytes(&s->graph->tensors[tensor].shape),
        .kind = !sink      ? IPU__STREAM_IN
                : sink->fn ? IPU__STREAM_CALL
                           : IPU__STREAM_OUT,
        .fn = sink ? sink->fn : NULL,
        .context = sink ? sink->context : NULL,
    };
    e->nstreams++;
    return stream->name ? IPU_OK : ipu__fail_memory(strlen(name) + 1);
}

static int emit_sink(struct scheduler *s, const struct ipu__sink *sink)
{
    struct ipu_executable *e = s->executable;
    int32_t value, region, looks_at, count;

    IPU_TRY(emit_needed(s, sink->tensor));
    value = value_of(s, sink->tensor);
    IPU_TRY(value);
    region = ipu__tensor_region(s->graph, sink->tensor);
    IPU_TRY(gate(s, region, &looks_at, &count));
    if (sink->fn)
        e->steps[e->nsteps++] = (struct ipu__step){.kind = IPU__HOST_CALL,
                                                   .output = value,
                                                   .stream = e->nstreams,
                                                   .gate = looks_at,
                                                   .count = count};
    IPU_TRY(add_stream(s, sink->name, sink->tensor, value, sink));
    e->streams[e->nstreams - 1].gate = sink->fn ? 0 : looks_at;
    return IPU_OK;
}

/* The host call, or output, not yet served that needs the fewest more nodes;
 * the first of several. -1: none is left. */
static int32_t next_sink(struct scheduler *s, const bool *served, bool calls)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nsinks; i++)
        s->candidates[i] = served[i] || (g->sinks[i].fn != NULL) != calls
                               ? -1
                               : g->sinks[i].tensor;
    return fewest_of(s, s->candidates, g->nsinks, s->known);
}

/* ------------------------------------------------------------- assignments */

/* Mark what assignments need beyond what is scheduled. */
static void need_for_assigns(struct scheduler *s)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nassigns; i++) {
        need(s, g->assigns[i].value);
        for (int32_t n = 0; n < g->nnodes; n++)
            s->assigned[n] |= s->wanted[n];
    }
}

/* In whatever state. */
static bool reads(const ipu_graph *g, const struct ipu__node *node,
                  int32_t variable)
{
    int32_t t;

    for (int i = 0; i < node->op->ninputs; i++)
        if (ipu__origin(g, node->inputs[i]) == variable)
            return true;
    for (int32_t i = 0; (t = ipu__loop_need(g, node, i)) >= 0; i++)
        if (ipu__origin(g, t) == variable)
            return true;
    return false;
}

static int emit_checks(struct scheduler *s)
{
    for (int32_t n = 0; n < s->graph->nnodes; n++)
        if (s->assigned[n] && !s->scheduled[n] &&
            s->graph->nodes[n].op->checks && !s->graph->nodes[n].again)
            IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
    return IPU_OK;
}

/* Whether a node that is to come reads the variable. */
static bool is_read(const struct scheduler *s, int32_t variable)
{
    const ipu_graph *g = s->graph;

    for (int32_t n = 0; n < g->nnodes; n++)
        if (s->assigned[n] && !s->scheduled[n] &&
            reads(g, &g->nodes[n], variable))
            return true;
    return false;
}

static int emit_assign(struct scheduler *s, const struct ipu__assign *a)
{
    struct ipu_executable *e = s->executable;
    struct ipu__step step = {.kind = IPU__COMPUTE, .op = &ipu__assign_step};

    if (s->graph->tensors[a->variable].offloaded)
        step.op = &ipu__remote_store;
    step.inputs[0] = value_of(s, a->value);
    IPU_TRY(step.inputs[0]);
    step.output = value_of(s, a->variable);
    IPU_TRY(step.output);
    IPU_TRY(gate(s, ipu__tensor_region(s->graph, a->value), &step.gate,
                 &step.count));
    e->steps[e->nsteps++] = step;
    return IPU_OK;
}

/* The new values that have been computed and whose variables nobody reads any
 * more. done: [assigns] */
static int emit_assigns(struct scheduler *s, bool *done)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nassigns; i++) {
        const struct ipu__assign *a = &g->assigns[i];
        int32_t maker = g->tensors[a->value].node;

        if (done[i] || (maker >= 0 && !s->scheduled[maker]) ||
            is_read(s, a->variable))
            continue;
        IPU_TRY(emit_assign(s, a));
        done[i] = true;
    }
    return IPU_OK;
}

/* A node that reads the variable and may come before its new value, whose maker
 * is given; the first from node n on, in steps of one back or forth. -1: none.
 * count: of nodes that it needs. */
static int32_t next_reader(struct scheduler *s, int32_t variable, int32_t maker,
                           int32_t n, int32_t step, int32_t *count)
{
    const ipu_graph *g = s->graph;

    for (; n >= 0 && n < g->nnodes; n += step) {
        if (n == maker || !s->assigned[n] || s->scheduled[n] ||
            !reads(g, &g->nodes[n], variable))
            continue;
        *count = need(s, g->nodes[n].output);
        if (maker < 0 || !s->wanted[maker])
            return n;
    }
    return -1;
}

/*
 * What reads the variable and can come before its new value; with what is
 * assigned on the way. From that end of the graph on where less is needed:
 * updates of many variables, which all read a counter of steps, are those of
 * the last layers first, whose activations are then free.
 */
static int emit_readers(struct scheduler *s, const struct ipu__assign *assign,
                        bool *done)
{
    const ipu_graph *g = s->graph;
    int32_t maker = g->tensors[assign->value].node, first = 0, last = 0, step;
    int32_t n = next_reader(s, assign->variable, maker, 0, 1, &first);

    if (n < 0)
        return IPU_OK;
    next_reader(s, assign->variable, maker, g->nnodes - 1, -1, &last);
    step = last < first ? -1 : 1;
    n = step < 0 ? g->nnodes - 1 : 0;
    while ((n = next_reader(s, assign->variable, maker, n, step, &first)) >=
           0) {
        IPU_TRY(emit_needed(s, g->nodes[n].output));
        IPU_TRY(emit_assigns(s, done));
        n += step;
    }
    return IPU_OK;
}

static int32_t next_assign(struct scheduler *s, const bool *computed)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nassigns; i++)
        s->candidates[i] = computed[i] ? -1 : g->assigns[i].value;
    return fewest_of(s, s->candidates, g->nassigns, s->known + g->nsinks);
}

/* computed and done: [assigns], of falses */
static int emit_values(struct scheduler *s, bool *computed, bool *done)
{
    int32_t next;

    need_for_assigns(s);
    IPU_TRY(emit_checks(s));
    while ((next = next_assign(s, computed)) >= 0) {
        const struct ipu__assign *a = &s->graph->assigns[next];

        IPU_TRY(emit_readers(s, a, done));
        IPU_TRY(emit_needed(s, a->value));
        computed[next] = true;
        IPU_TRY(emit_assigns(s, done));
    }
    return IPU_OK;
}

/* ---------------------------------------------------- loops and queues */

static int emit_effects(struct scheduler *s)
{
    for (int32_t n = 0; s->effects.live && n < s->graph->nnodes; n++)
        if (s->graph->nodes[n].effect && !s->scheduled[n])
            IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
    return IPU_OK;
}

/* Of a queue, with values for so many tensors. */
static struct ipu__feed_code *add_feed(struct scheduler *s, int32_t count)
{
    struct ipu__feed_code *feed = &s->executable->feeds[s->executable->nfeeds];

    feed->values = calloc((size_t)count + 1, sizeof *feed->values);
    if (!feed->values)
        return NULL;
    feed->count = count;
    s->executable->nfeeds++;
    return feed;
}

static int emit_enqueues(struct scheduler *s)
{
    for (int32_t i = 0; i < s->graph->nenqueues; i++) {
        const struct ipu__enqueue *enqueue = &s->graph->enqueues[i];
        struct ipu__feed_code *feed = add_feed(s, enqueue->count);

        if (!feed)
            return ipu__fail_memory((size_t)enqueue->count);
        ipu__outfeed_retain(enqueue->outfeed);
        feed->outfeed = enqueue->outfeed;
        for (int32_t k = 0; k < enqueue->count; k++) {
            IPU_TRY(emit_needed(s, enqueue->tensors[k]));
            feed->values[k] = value_of(s, enqueue->tensors[k]);
            IPU_TRY(feed->values[k]);
        }
    }
    return IPU_OK;
}

/* Once it is known which tensors are used. */
static int add_infeeds(struct scheduler *s)
{
    for (int32_t i = 0; i < s->graph->nfeeds; i++) {
        const struct ipu__feed *from = &s->graph->feeds[i];
        struct ipu__feed_code *feed = add_feed(s, from->count);

        if (!feed)
            return ipu__fail_memory((size_t)from->count);
        ipu__infeed_retain(from->infeed);
        feed->infeed = from->infeed;
        for (int32_t k = 0; k < from->count; k++)
            feed->values[k] = s->value_of[from->first + k];
    }
    return IPU_OK;
}

static int emit_sinks(struct scheduler *s, bool *served, bool calls)
{
    int32_t next;

    while ((next = next_sink(s, served, calls)) >= 0) {
        served[next] = true;
        IPU_TRY(emit_sink(s, &s->graph->sinks[next]));
    }
    return IPU_OK;
}

static int emit_all(struct scheduler *s, bool *served, bool *assigns)
{
    const ipu_graph *g = s->graph;

    IPU_TRY(emit_sinks(s, served, true));
    IPU_TRY(emit_effects(s));
    IPU_TRY(emit_sinks(s, served, false));
    IPU_TRY(emit_enqueues(s));
    IPU_TRY(emit_values(s, assigns, assigns + g->nassigns));
    /* Every variable is kept, since the host may write and read it; every
     * input stays connectable. */
    for (int32_t t = 0; t < g->ntensors; t++) {
        if (g->tensors[t].kind == IPU__VARIABLE)
            IPU_TRY(value_of(s, t));
        if (g->tensors[t].kind == IPU__INPUT && !g->tensors[t].fed)
            IPU_TRY(add_stream(s, g->tensors[t].name, t, s->value_of[t], NULL));
    }
    return add_infeeds(s);
}

int ipu__schedule(const ipu_graph *graph, struct ipu_executable *e)
{
    size_t nnodes = (size_t)graph->nnodes + 1;
    size_t ntensors = (size_t)graph->ntensors + 1;
    size_t nsinks = (size_t)graph->nsinks + 1;
    size_t nassigns = (size_t)graph->nassigns;
    bool *served = calloc(nsinks, sizeof *served);
    bool *assigns = calloc(2 * nassigns + 1, sizeof *assigns);
    struct scheduler s = {
        .graph = graph,
        .executable = e,
        .scheduled = calloc(nnodes, sizeof *s.scheduled),
        .wanted = calloc(nnodes, sizeof *s.wanted),
        .assigned = calloc(nnodes, sizeof *s.assigned),
        .value_of = malloc(ntensors * sizeof *s.value_of),
        .stack = calloc(nnodes, sizeof *s.stack),
        .looked = calloc(nnodes, sizeof *s.looked),
        .candidates = calloc(nsinks + nassigns, sizeof *s.candidates),
        .known = calloc(nsinks + nassigns, sizeof *s.known),
    };
    int status;

    e->values = calloc(ntensors, sizeof *e->values);
    e->steps = calloc(nnodes + nsinks + nassigns, sizeof *e->steps);
    e->streams = calloc(nsinks + ntensors, sizeof *e->streams);
    e->feeds = calloc((size_t)graph->nfeeds + (size_t)graph->nenqueues + 1,
                      sizeof *e->feeds);
    if (served && assigns && s.scheduled && s.wanted && s.assigned &&
        s.value_of && s.stack && s.looked && s.candidates && s.known &&
        e->values && e->steps && e->streams && e->feeds) {
        memset(s.value_of, -1, ntensors * sizeof *s.value_of);
        status = ipu__effects_init(&s.effects, graph);
        if (status >= 0)
            status = emit_all(&s, served, assigns);
    } else {
        status = ipu__fail_memory(nnodes * sizeof *e->steps);
    }
    free(served);
    free(assigns);
    free(s.scheduled);
    free(s.wanted);
    free(s.assigned);
    ipu__effects_fini(&s.effects);
    e->value_of = s.value_of; /* who compiles the loop of a body asks for it */
    free(s.stack);
    free(s.looked);
    free(s.candidates);
    free(s.known);
    return status;
}
