/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests altered files with a right checksum. The test loads a good program or
 * graph, changes one thing to something impossible, and saves it. Loading that
 * must fail with a text that says what is wrong.
 */
#include "device_file_loops.h"
#include "suite.h"

#include "compiler/program.h"
#include "graph/graph.h"

/* -------------------------------------------------------------------- files */

enum { LAYERS, LOOPS };
static const char *const programs[] = {"layers program", "loops program"};
static const char *const graphs[] = {"layers graph", "loops graph"};

static void set_up(void)
{
    struct loops_queues *queues = loops_queues_new();

    folder_make();
    for (int i = 0; i < 2; i++) {
        struct device d = device_new();

        if (i == LAYERS)
            file_build(d.graph);
        else
            file_build_loops(d.graph, queues);
        file_compile(d.graph, &d.executable);
        MUST(ipu_graph_save(d.graph, in_folder(graphs[i])));
        MUST(ipu_executable_save(d.executable, in_folder(programs[i])));
        device_free(&d);
    }
    loops_queues_free(queues);
}

static void tear_down(void)
{
    folder_remove();
}

/* Makes change number i to the loaded object, and returns the words of the
 * refusal; NULL if there is no such number. */
typedef const char *spoil_program(ipu_executable *e, int i);
typedef const char *spoil_graph(ipu_graph *g, int i);

static void check_words(int status, const char *words, int i)
{
    if (status != IPU_ERR_DATA || !strstr(ipu_last_error(), words))
        ck_abort_msg("number %d: '%s' is not in: %d, %s", i, words, status,
                     status < 0 ? ipu_last_error() : "");
}

static void check_programs(spoil_program *spoil, int program)
{
    const char *words = "";

    for (int i = 0; words; i++) {
        ipu_executable *e = NULL, *loaded = NULL;

        MUST(ipu_executable_load(in_folder(programs[program]), &e));
        words = spoil(e, i);
        if (words) {
            MUST(ipu_executable_save(e, in_folder("spoilt")));
            check_words(ipu_executable_load(in_folder("spoilt"), &loaded),
                        words, i);
        } else {
            ck_assert_int_gt(i, 1);
        }
        ipu_executable_free(e);
    }
}

static void check_graphs(spoil_graph *spoil, int graph)
{
    const char *words = "";

    for (int i = 0; words; i++) {
        ipu_graph *g = NULL, *loaded = NULL;

        MUST(ipu_graph_load(in_folder(graphs[graph]), &g));
        words = spoil(g, i);
        if (words) {
            MUST(ipu_graph_save(g, in_folder("spoilt")));
            check_words(ipu_graph_load(in_folder("spoilt"), &loaded), words, i);
        } else {
            ck_assert_int_gt(i, 1);
        }
        ipu_graph_free(g);
    }
}

/* ----------------------------------------------------------------- programs */

static struct ipu__step *step_of(ipu_executable *e, enum ipu__step_kind kind)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        if (e->steps[i].kind == kind)
            return &e->steps[i];
    ck_abort_msg("no step of kind %d", (int)kind);
}

static struct ipu__step *step_by_op(ipu_executable *e, const struct ipu__op *op)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        if (e->steps[i].kind == IPU__COMPUTE && e->steps[i].op == op)
            return &e->steps[i];
    ck_abort_msg("no step of %s", op->name);
}

static const char *spoil_values(ipu_executable *e, int i)
{
    struct ipu__value *v = &e->values[0];
    struct ipu__block *b = &e->blocks[v->block];

    switch (i) {
    case 0: e->memory_bytes = SIZE_MAX / 4; return "memory_bytes is";
    case 1: e->memory_bytes = 64; return "a block of";
    case 2: b->offset += 4; return "a block of";
    case 3: b->tiles = -1; return "a block that is never anywhere";
    case 4: b->death = e->nsteps + 1; return "a block that is never anywhere";
    case 5: v->kind = 7; return "no kind of values is 7";
    case 6: v->block = e->nblocks; return "has no place";
    case 7: v->inner = true; return "has no place";
    case 8: b->bytes -= 1; return "has no place";
    case 9: v->shard = IPU_MAX_IPUS; return "is on IPU 256";
    case 10: v->birth = -2; return "is never there";
    case 11: v->bound = true; return "1 values are bound to nothing";
    case 12: v->shape.dtype = 9; return "its shape: ";
    case 13: v->shape.extents[7] = 3; return "more extents than dimensions";
    case 14: e->tiles[1].peak_step = e->nsteps + 1; return "is never full";
    case 15: e->code_bytes = -1; return "a program: code_bytes is -1";
    case 16: e->tiles[0].peak_bytes = INT64_MAX; return "a tile: peak_bytes is";
    case 17:
        for (int32_t k = 0; k < e->nvalues; k++)
            if (v[k].kind == IPU__RESULT)
                v[k].shape = (struct ipu__shape){.dtype = IPU_FLOAT32,
                                                 .ndim = 1,
                                                 .extents = {INT64_C(1) << 57}};
        return "more values than memory can hold";
    case 18:
        memset(e->target.name, 'x', sizeof e->target.name); /* no end */
        return "the target's name is too long";
    default: return NULL;
    }
}

/* A value that is only within a fused step. */
static int32_t inner_of(const ipu_executable *e)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].inner)
            return v;
    ck_abort_msg("no value is only within a step");
}

static const char *spoil_steps(ipu_executable *e, int i)
{
    struct ipu__step *s = step_of(e, IPU__COMPUTE);
    struct ipu__step *call = step_of(e, IPU__HOST_CALL);

    switch (i) {
    case 0: s->output = -1; return "makes nothing, or nowhere";
    case 1: s->busy_tiles = 4; return "makes nothing, or nowhere";
    case 2: s->gate = e->nvalues; return "runs never";
    case 3: s->gate = 0; return "runs never"; /* images are no number */
    case 4: s->inputs[0] = e->nvalues; return "has no input 0";
    case 5: s->op = &ipu__loop_op; return "loop computes nothing";
    case 6:
        s->attributes.stride[0] = -1;
        return "step 0: conv2d: what it is told does not belong to its inputs";
    case 7: s->output = s->inputs[0]; return "makes something else";
    case 8: s->kind = IPU__HOST_CALL; return "calls nobody";
    case 9: s->kind = IPU__LOOP; return "repeats nothing";
    case 10: call->stream = e->nstreams; return "calls nobody";
    case 11: s->cycles.total = -1; return "a step: cycles.total is -1";
    case 12:
        for (int32_t k = 0; k < e->nsteps; k++)
            e->steps[k].cycles.compute = INT64_C(1) << 56;
        return "never ends";
    case 13:
        e->blocks[e->values[s->output].block].offset =
            e->blocks[e->values[s->inputs[0]].block].offset;
        return "writes over what it reads";
    case 14: s->output = inner_of(e); return "step 0 makes what has no place";
    default: return NULL;
    }
}

static const char *spoil_fused(ipu_executable *e, int i)
{
    struct ipu__step *s = step_of(e, IPU__FUSED);
    struct ipu__step_op *part;

    for (int32_t k = 0; k < e->nsteps && !(s->nparts > 1 && !s->head); k++)
        if (e->steps[k].kind == IPU__FUSED)
            s = &e->steps[k];
    part = &e->parts[s->first_part + s->nparts - 1];
    switch (i) {
    case 0: s->nparts = 0; return "is made of nothing";
    case 1: s->first_part = e->nparts; return "is made of nothing";
    case 2: s->block = IPU__MOST_BLOCK + 1; return "is made of nothing";
    case 3: part->output = e->nvalues; return "has a part of nothing";
    case 4: part->inputs[0] = -1; return "has a part of nothing";
    case 5: s->elements++; return "has a part that does not fit";
    case 6: part->op = &ipu__matmul; return "has a part";
    case 7:
        part->op = part->op->ninputs == 2 ? &ipu__less : &ipu__argmax;
        return "has a part that makes another";
    default: return NULL;
    }
}

static const char *spoil_streams(ipu_executable *e, int i)
{
    struct ipu__stream *s = &e->streams[0];

    while (s->kind != IPU__STREAM_OUT)
        s++;
    switch (i) {
    case 0: s->kind = 5; return "no kind of streams is 5";
    case 1: s->bytes++; return "is of no value";
    case 2: s->value = -2; return "is of no value";
    case 3: s->cycles = -1; return "a stream: cycles is -1";
    default: return NULL;
    }
}

TEST(programs_that_cannot_be)
{
    check_programs(spoil_values, LAYERS);
    check_programs(spoil_steps, LAYERS);
    check_programs(spoil_fused, LAYERS);
    check_programs(spoil_streams, LAYERS);
}

/* ------------------------------------------------------ programs with loops */

/* Returns the loop that is not within another. */
static struct ipu__loop_code *loop_of(ipu_executable *e)
{
    ck_assert_int_eq(e->nloops, 1);
    return &e->loops[0];
}

static const char *spoil_loops(ipu_executable *e, int i)
{
    struct ipu__loop_code *l = loop_of(e);
    struct ipu__inner *b = &l->body;
    struct ipu__value *bound = &b->program->values[b->inner[0]];

    switch (i) {
    case 0: l->count = -1; return "a loop runs less than 0 times";
    case 1: l->initial[0] = e->nvalues; return "a loop carries nothing";
    case 2: l->outputs[0] = -1; return "a loop carries nothing";
    case 3: l->initial[0] = l->initial[1]; return "a loop carries nothing";
    case 4: b->inner[0] = -1; return "a body is bound to nothing";
    case 5: b->outer[l->ncarried] = e->nvalues; return "bound to nothing";
    case 6: b->inner[1] = b->inner[0]; return "is bound to something else";
    case 7: bound->bound = false; return "is bound to something else";
    case 8: bound->kind = IPU__INPUT; return "is bound to something else";
    case 9: b->outer[0] = b->outer[1]; return "has not what its loop carries";
    case 10: b->nbound--; return "1 values are bound to nothing";
    case 11: b->nbound = 1; return "has not what its loop carries";
    case 12: step_of(e, IPU__LOOP)->loop = 1; return "repeats nothing";
    case 13: b->program->values[0].shard = -1; return "is on IPU -1";
    case 14:
        step_of(b->program, IPU__HOST_CALL)->stream = -1;
        return "calls nobody";
    default: return NULL;
    }
}

static const char *spoil_rows(ipu_executable *e, int i)
{
    ipu_executable *body = loop_of(e)->body.program;
    struct ipu__step *store = step_by_op(body, &ipu__row_store);
    struct ipu__step *load = step_by_op(body, &ipu__row_load);
    struct ipu__value *rows = &body->values[store->inputs[0]];

    switch (i) {
    case 0: store->inputs[2] = store->inputs[1]; return "a row of";
    case 1: load->output = store->inputs[1]; return "makes something else";
    case 2: rows->shape.extents[0] = 0; return "bound to something else";
    case 3: rows->kind = IPU__RESULT; return "bound to something else";
    case 4: load->inputs[0] = load->inputs[1]; return "there are no rows";
    default: return NULL;
    }
}

static const char *spoil_conditions(ipu_executable *e, int i)
{
    struct ipu__loop_code *l = loop_of(loop_of(e)->body.program);
    ipu_executable *c = l->condition.program;

    ck_assert_ptr_nonnull(c);
    switch (i) {
    case 0:
        c->streams[0].kind = IPU__STREAM_IN;
        return "a condition does not give one number";
    case 1:
        c->streams[0].value = l->condition.inner[1];
        c->streams[0].bytes = 8;
        return "a condition does not give one number";
    case 2: l->condition.nbound = 1; return "has not what its loop carries";
    default: return NULL;
    }
}

static const char *spoil_feeds(ipu_executable *e, int i)
{
    ipu_executable *body = loop_of(e)->body.program;
    struct ipu__feed_code *in = NULL, *out = NULL;

    for (int32_t k = 0; k < body->nfeeds; k++)
        *(body->feeds[k].infeed ? &in : &out) = &body->feeds[k];
    ck_assert(in && out);
    switch (i) {
    case 0: in->count = 1; return "a queue of 2 tensors has 1 values";
    case 1: in->values[0] = body->nvalues; return "tensor 0 of a queue is no";
    case 2: out->values[1] = -1; return "tensor 1 of a queue is no value";
    case 3: out->values[1] = out->values[0]; return "tensor 1 of a queue is no";
    case 4: in->values[0] = out->values[0]; return "tensor 0 of a queue is no";
    case 5: out->bytes = -1; return "a queue of no bytes";
    case 6: out->cycles = -1; return "or that never moves";
    default: return NULL;
    }
}

TEST(loops_that_cannot_be)
{
    check_programs(spoil_loops, LOOPS);
    check_programs(spoil_rows, LOOPS);
    check_programs(spoil_conditions, LOOPS);
    check_programs(spoil_feeds, LOOPS);
}

/* ------------------------------------------------------------------- graphs */

static int32_t node_by_op(const ipu_graph *g, const struct ipu__op *op)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (g->nodes[n].op == op)
            return n;
    ck_abort_msg("no node of %s", op->name);
}

static struct ipu__tensor *tensor_of(ipu_graph *g, enum ipu__tensor_kind kind)
{
    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].kind == kind)
            return &g->tensors[t];
    ck_abort_msg("no tensor of kind %d", (int)kind);
}

static const char *spoil_tensors(ipu_graph *g, int i)
{
    struct ipu__tensor *t = tensor_of(g, IPU__VARIABLE);

    switch (i) {
    case 0: t->kind = 4; return "no kind of tensors is 4";
    case 1: t->map.tiles = -1; return "a tensor is mapped to no tiles";
    case 2: t->shard = -1; return "is on IPU -1";
    case 3: t->offload = 9; return "is nowhere";
    case 4: t->renews = g->ntensors; return "is a variable of nothing";
    case 5: tensor_of(g, IPU__INPUT)->remote = true; return "has no rows";
    case 6: t->remote = true; return "has only rows";
    case 7: t->kind = IPU__RESULT; return "is not made before it";
    case 8: t->shape.extents[0]++; return "node ";
    case 9: g->regions[0].count = 0; return "an update region that never runs";
    case 10: g->regions[0].due = 0; return "an update region that never runs";
    case 11: g->sinks[0].tensor = -1; return "an output is of no tensor";
    case 12: g->assigns[0].value = -1; return "an assignment is of no tensor";
    case 13:
        g->assigns[1] = g->assigns[0];
        return "a variable is assigned once";
    case 14: g->assigns[0].variable = 0; return "x is not a variable";
    case 15: tensor_of(g, IPU__RESULT)->shape.dtype = 3; return "another shape";
    case 16:
        g->rounding =
            (struct ipu__rounding){true, 1, ipu__handle(g, g->ntensors)};
        return "rounding has no step";
    case 17:
        g->rounding = (struct ipu__rounding){true, 1, ipu__handle(g, 0)};
        return "stochastic rounding: the step, x, is no int32 scalar";
    case 18:
        g->imports = calloc(1, sizeof *g->imports);
        g->nimports = 1;
        return "imports, and nothing to import from";
    case 19:
        g->assigns[0].value = g->assigns[0].variable;
        return "is assigned what it is";
    default: return NULL;
    }
}

static const char *spoil_nodes(ipu_graph *g, int i)
{
    struct ipu__node *n = &g->nodes[node_by_op(g, &ipu__relu)];
    struct ipu__node *conv = &g->nodes[node_by_op(g, &ipu__conv2d)];
    struct ipu__node *best = &g->nodes[node_by_op(g, &ipu__argmax)];

    switch (i) {
    case 0: n->inputs[0] = n->output; return "is not made before it";
    case 1: n->inputs[3] = 1; return "has an input too many";
    case 2: n->output = -1; return "makes no tensor";
    case 3: n->output = n->inputs[0]; return "makes is made already";
    case 4: n->after = n->output; return "comes before what it waits for";
    case 5: n->region = g->nregions; return "comes before what it waits for";
    case 6: n->beside = -2; return "comes before what it waits for";
    case 7: n->derived = -2; return "comes before what it waits for";
    case 8: n->op = &ipu__assign_step; return "is no node";
    case 9: n->op = &ipu__loop_op; return "loop is no node";
    case 10: n->loop = 0; return "relu is no node";
    case 11: n->op = &ipu__row_load; return "has no rows";
    case 12:
        conv->attributes.stride[0] = -5;
        return "conv2d: what it is told does not belong to its inputs";
    case 13: g->nnodes--; return "nothing makes";
    case 14:
        best->attributes.axis = 2;
        return ": argmax: there is no axis 2 in concat:";
    default: return NULL;
    }
}

static int shows(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)in, (void)noutputs, (void)out;
    return ipu_host_call(g, "call", *(const ipu_tensor *)context,
                         device_no_call, NULL);
}

/* The loop's output is an input instead, so that no tensor refers to the
 * missing node. */
TEST(a_loop_without_a_node)
{
    struct device d = device_new();
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 0, NULL);
    ipu_graph *g = NULL;

    MUST(ipu_repeat(d.graph, 2, shows, &v, 0, NULL, NULL, NULL));
    d.graph->nnodes--;
    d.graph->tensors[d.graph->ntensors - 1].kind = IPU__INPUT;
    MUST(ipu_graph_save(d.graph, in_folder("spoilt")));
    check_words(ipu_graph_load(in_folder("spoilt"), &g), "a loop is no node's",
                0);
    device_free(&d);
}

TEST(graphs_that_cannot_be)
{
    check_graphs(spoil_tensors, LAYERS);
    check_graphs(spoil_nodes, LAYERS);
}

/* -------------------------------------------------------- graphs with loops */

static const char *spoil_bodies(ipu_graph *g, int i)
{
    struct ipu__loop *l = &g->loops[0];
    ipu_graph *b = l->body.graph;
    struct ipu__import *import = &b->imports[0];
    struct ipu__node *node = &g->nodes[node_by_op(g, &ipu__loop_op)];
    struct ipu__tensor *carried = &b->tensors[l->body.carried[0]];

    switch (i) {
    case 0: node->loop = 1; return "is no loop of its own";
    case 1: node->output = l->outputs[1]; return "makes what its loop does not";
    case 2: l->count = -1; return "a loop runs less than 0 times";
    case 3:
        l->initial[0] = l->outputs[0];
        return "begins with what is not there";
    case 4: l->body.carried[0] = -1; return "a body carries what is not there";
    case 5: carried->kind = IPU__INPUT; return "has not what its loop carries";
    case 6:
        l->initial[0] = l->initial[1];
        return "has not what its loop carries";
    case 7: l->body.carried[1] = l->body.carried[0]; return "has not what its";
    case 8: import->outer = l->outputs[0]; return "imports what is not there";
    case 9: import->inner = b->ntensors; return "imports what is not there";
    case 10: import->inner = l->body.carried[0]; return "as something else";
    case 11: b->nimports--; return "is a variable of nothing";
    case 12: b->sinks[0].fn = NULL; return "a body has an output";
    case 13: l->nwritten--; return "changes more than it says";
    case 14: l->renewed[0] = l->renewed[1]; return "changes another tensor";
    case 15: l->renewed[0] = -1; return "changes no tensor";
    case 16:
        tensor_of(b, IPU__RESULT)->kind = IPU__INPUT;
        return "a body has an input of its own";
    default: return NULL;
    }
}

static const char *spoil_queues(ipu_graph *g, int i)
{
    ipu_graph *b = g->loops[0].body.graph;
    struct ipu__feed *feed = &b->feeds[0];
    struct ipu__enqueue *enqueue = &b->enqueues[0];
    ipu_outfeed *last = g->enqueues[0].outfeed;

    switch (i) {
    case 0: feed->first = b->ntensors; return "an infeed gives no tensors";
    case 1: feed->first = -1; return "an infeed gives no tensors";
    case 2: feed->first++; return "an infeed gives";
    case 3: enqueue->count = 1; return "an outfeed of 2 tensors gets 1";
    case 4:
        enqueue->tensors[1] = enqueue->tensors[0];
        return "an outfeed gets other tensors";
    case 5: /* of two bodies, one queue */
        g->enqueues[0].outfeed = enqueue->outfeed;
        enqueue->outfeed = last;
        return "an outfeed of";
    default: return NULL;
    }
}

static const char *spoil_states(ipu_graph *g, int i)
{
    ipu_graph *b = g->loops[0].body.graph;
    struct ipu__node *store = &b->nodes[node_by_op(b, &ipu__row_store)];
    struct ipu__node *load = &b->nodes[node_by_op(b, &ipu__row_load)];
    struct ipu__tensor *buffer = &b->tensors[store->inputs[0]];
    struct ipu__loop *tries = &b->loops[0];
    ipu_graph *c = tries->condition.graph;

    switch (i) {
    case 0:
        b->tensors[store->output].remote = false;
        return "rows has rows only now and then";
    case 1: buffer->remote = false; return "as something else";
    case 2: load->inputs[0] = load->inputs[1]; return "has no rows";
    case 3: store->inputs[2] = store->inputs[0]; return "has only rows";
    case 4: c->sinks[0].tensor = -1; return "an output is of no tensor";
    case 5:
        c->sinks[0].tensor = tries->condition.carried[1];
        return "a condition does not give one number";
    case 6:
        c->sinks[0].fn = device_no_call;
        return "a condition does not give one number";
    default: return NULL;
    }
}

TEST(bodies_that_cannot_be)
{
    check_graphs(spoil_bodies, LOOPS);
    check_graphs(spoil_queues, LOOPS);
    check_graphs(spoil_states, LOOPS);
}

static int keeps(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)noutputs;
    if (context) {
        MUST(ipu_update_begin(g, 3));
        MUST(ipu_assign(g, *(const ipu_tensor *)context, in[0]));
        MUST(ipu_update_end(g));
    }
    out[0] = ipu_negate(g, in[0]);
    return 0;
}

TEST(a_loop_of_broken_updates)
{
    struct device d = device_new();
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(2));
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2));
    ipu_graph *g = NULL;

    MUST(ipu_repeat(d.graph, 3, keeps, &v, 1, &x, NULL, &x));
    d.graph->loops[0].count = 4;
    MUST(ipu_graph_save(d.graph, in_folder("spoilt")));
    check_words(ipu_graph_load(in_folder("spoilt"), &g),
                "repeat: gradients are accumulated over 3 mini-batches inside "
                "a loop of 4 iterations: 3 must divide",
                0);
    device_free(&d);
}

/* The loop's last value begins before its first has ended. */
TEST(a_loop_over_itself)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(64)), y;
    const struct ipu__loop_code *loop;
    ipu_executable *e, *loaded = NULL;

    MUST(ipu_repeat(d.graph, 3, keeps, NULL, 1, &x, NULL, &y));
    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_output(d.graph, "first", x));
    file_compile(d.graph, &d.executable);
    e = d.executable;
    loop = &e->loops[0];
    e->memory_bytes += 1024;
    e->blocks[e->values[loop->outputs[0]].block].offset =
        e->blocks[e->values[loop->initial[0]].block].offset + 128;
    MUST(ipu_executable_save(e, in_folder("spoilt")));
    check_words(ipu_executable_load(in_folder("spoilt"), &loaded),
                "a loop writes over what it begins with", 0);
    device_free(&d);
}

/* Somebody may have forgotten to put the op into the list. */
TEST(an_op_without_a_name)
{
    struct ipu__op mine = ipu__relu;
    struct device d = device_new();

    mine.name = "mine";
    ipu_relu(d.graph, device_floats(&d, "x", 1, SHAPE(2)));
    d.graph->nodes[0].op = &mine;
    MUST_FAIL(ipu_graph_save(d.graph, in_folder("spoilt")), IPU_ERR_STATE,
              "save: op 'mine' is not in the list of ops: a file cannot name "
              "it");
    device_free(&d);
}

/* With two equal names nobody could say which queue to connect. */
TEST(queues_of_one_name)
{
    struct device d = device_new();
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2));
    ipu_executable *loaded = NULL;
    ipu_outfeed *a, *b;
    ipu_graph *g = NULL;

    options.name = "a";
    MUST(ipu_outfeed_new(&options, &a));
    options.name = "b";
    MUST(ipu_outfeed_new(&options, &b));
    MUST(ipu_outfeed_enqueue(d.graph, a, 1, NULL, &x));
    MUST(ipu_outfeed_enqueue(d.graph, b, 1, NULL, &x));
    d.graph->enqueues[1].outfeed = a;
    file_compile(d.graph, &d.executable);
    MUST(ipu_graph_save(d.graph, in_folder("spoilt")));
    check_words(ipu_graph_load(in_folder("spoilt"), &g),
                "two outfeeds are called 'a'", 0);
    MUST(ipu_executable_save(d.executable, in_folder("spoilt")));
    check_words(ipu_executable_load(in_folder("spoilt"), &loaded),
                "two outfeeds are called 'a'", 1);
    d.graph->enqueues[1].outfeed = b;
    device_free(&d);
    ipu_outfeed_free(a);
    ipu_outfeed_free(b);
}

TEST_MAIN("device_file_verify", .set_up_once = set_up,
          .tear_down_once = tear_down, .seconds = 300)
