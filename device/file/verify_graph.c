/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_graph.c - checks that a graph that was read is one that the builders
 * could have made.
 *
 * A correct checksum does not make the contents correct. So the functions here
 * check each node in turn: the tensors that it needs are made before it, and
 * its op computes the shape of its output once more. They also find the data
 * that the file leaves out: the node that makes each tensor, the tensors that a
 * body imports, and the tensors that are changed in place.
 *
 * The body of a loop is checked at the turn of the loop's node, because exactly
 * the tensors that it may import exist then. The variables of a body are its
 * carried values and imports, and its inputs are those of queues. All other
 * variables and inputs belong to the outermost graph.
 */
#include <string.h>

#include "base/error.h"
#include "file/queues.h"
#include "file/verify.h"
#include "ops/op.h"

static bool within(int64_t i, int64_t count)
{
    return i >= 0 && i < count;
}

static bool within_or_none(int64_t i, int64_t count)
{
    return i == IPU__NONE || within(i, count);
}

/* Returns true if the tensor has been made by now. */
static bool is_there(const ipu_graph *g, int32_t tensor)
{
    return within(tensor, g->ntensors) &&
           ((g->tensors[tensor].kind != IPU__RESULT &&
             g->tensors[tensor].renews < 0) ||
            g->tensors[tensor].node >= 0);
}

/* Returns true if the tensor is an int32 scalar. */
static bool is_number(const ipu_graph *g, int32_t tensor)
{
    const struct ipu__shape *shape;

    if (!within(tensor, g->ntensors))
        return false;
    shape = &g->tensors[tensor].shape;
    return shape->dtype == IPU_INT32 && shape->ndim == 0;
}

/* ------------------------------------------------------------------ tensors */

/* Checks the tensors that queues give. */
static int verify_feeds(const struct ipu__reader *r, ipu_graph *g)
{
    for (int32_t i = 0; i < g->nfeeds; i++) {
        const ipu_feed_tensor *tensors;
        int32_t count = ipu_infeed_tensors(g->feeds[i].infeed, &tensors);

        for (int32_t k = 0; k < count; k++) {
            int64_t index = (int64_t)g->feeds[i].first + k;
            struct ipu__tensor *t;
            struct ipu__shape shape;

            if (!within(index, g->ntensors))
                return ipu__damaged(r, "an infeed gives no tensors");
            t = &g->tensors[index];
            if (t->kind != IPU__INPUT || t->fed ||
                !ipu__queue_shape(tensors, count, k, &shape) ||
                !ipu__shape_equal(&shape, &t->shape))
                return ipu__damaged(r, "an infeed gives %.60s as another",
                                    t->name);
            t->fed = true;
            t->imported = true;
        }
    }
    return IPU_OK;
}

/* Checks a tensor. The node that makes it is found with the nodes. */
static int verify_tensor(const struct ipu__reader *r, const ipu_graph *g,
                         int32_t index)
{
    const struct ipu__tensor *t = &g->tensors[index];
    bool sources = !g->parent;

    if (t->map.first < 0 || t->map.tiles < 0)
        return ipu__damaged(r, "a tensor is mapped to no tiles");
    if (!within(t->shard, IPU_MAX_IPUS))
        return ipu__damaged(r, "%.60s is on IPU %d", t->name, (int)t->shard);
    if (!within(t->own, IPU__OWN_REASONS))
        return ipu__damaged(r, "%.60s is a replica's own for no reason",
                            t->name);
    if (t->offload < IPU_OFFLOAD_AUTO || t->offload > IPU_OFFLOAD_OFF)
        return ipu__damaged(r, "%.60s is nowhere", t->name);
    if (t->kind == IPU__INPUT && !t->fed && !sources)
        return ipu__damaged(r, "a body has an input of its own");
    if (t->renews != IPU__NONE
            ? t->kind != IPU__VARIABLE || !within(t->renews, index)
            : t->kind == IPU__VARIABLE && !t->imported && !sources)
        return ipu__damaged(r, "%.60s is a variable of nothing", t->name);
    if (t->remote && (t->kind != IPU__VARIABLE ||
                      (t->shape.ndim < 1 || t->shape.extents[0] < 1)))
        return ipu__damaged(r, "%.60s has no rows", t->name);
    return IPU_OK;
}

static int verify_tensors(const struct ipu__reader *r, const ipu_graph *g)
{
    for (int32_t i = 0; i < g->ntensors; i++)
        IPU_TRY(verify_tensor(r, g, i));
    return IPU_OK;
}

static int verify_regions(const struct ipu__reader *r, const ipu_graph *g)
{
    for (int32_t i = 0; i < g->nregions; i++) {
        const struct ipu__region *region = &g->regions[i];

        if (region->count < 1 || region->offload < IPU_OFFLOAD_AUTO ||
            region->offload > IPU_OFFLOAD_OFF || region->minimum_bytes < 0 ||
            !within_or_none(region->within, i) ||
            (region->count > 1 && !is_number(g, region->counter)) ||
            (region->due != -1 && !is_number(g, region->due)))
            return ipu__damaged(r, "an update region that never runs");
    }
    return IPU_OK;
}

/* -------------------------------------------------------------------- nodes */

static bool is_row_op(const struct ipu__op *op)
{
    return op == &ipu__row_load || op == &ipu__row_store;
}

static int verify_inputs(const struct ipu__reader *r, const ipu_graph *g,
                         int32_t n)
{
    const struct ipu__node *node = &g->nodes[n];

    for (int i = 0; i < node->op->ninputs; i++) {
        if (!is_there(g, node->inputs[i]))
            return ipu__damaged(
                r, "input %d of node %d, %s, is not made before it", i, (int)n,
                node->op->name);
        if (g->tensors[node->inputs[i]].remote !=
            (i == 0 && is_row_op(node->op)))
            return ipu__damaged(r, "input %d of node %d, %s, has %s rows", i,
                                (int)n, node->op->name,
                                g->tensors[node->inputs[i]].remote ? "only"
                                                                   : "no");
    }
    for (int i = node->op->ninputs; i < IPU__MAX_INPUTS; i++)
        if (node->inputs[i])
            return ipu__damaged(r, "node %d, %s, has an input too many", (int)n,
                                node->op->name);
    return IPU_OK;
}

/* Checks that the nodes that this one must follow exist, and that its region is
 * within those of its inputs: it may run less often than they do. */
static bool is_in_order(const ipu_graph *g, const struct ipu__node *node)
{
    int32_t needs[IPU__MAX_NEEDS];
    int count;

    if (!within_or_none(node->region, g->nregions) ||
        !within_or_none(node->derived, g->ntensors) ||
        !within_or_none(node->after, g->ntensors) ||
        !within_or_none(node->beside, g->ntensors))
        return false;
    for (int i = 0; i < node->op->ninputs; i++)
        if (!ipu__region_is_within(g, node->region,
                                   ipu__tensor_region(g, node->inputs[i])))
            return false;
    count = ipu__node_needs(g, node, needs);
    for (int i = 0; i < count; i++)
        if (!is_there(g, needs[i]))
            return false;
    return true;
}

/* Notes that node n makes tensor t, which no earlier node has made. */
static int make_result(const struct ipu__reader *r, ipu_graph *g, int32_t n,
                       int32_t t, const struct ipu__shape *shape)
{
    struct ipu__tensor *output;

    if (!within(t, g->ntensors))
        return ipu__damaged(r, "node %d, %s, makes no tensor", (int)n,
                            g->nodes[n].op->name);
    output = &g->tensors[t];
    if (output->kind != IPU__RESULT || output->node >= 0)
        return ipu__damaged(r, "what node %d, %s, makes is made already",
                            (int)n, g->nodes[n].op->name);
    if (!ipu__shape_equal(shape, &output->shape))
        return ipu__damaged(r, "node %d, %s, makes another shape", (int)n,
                            g->nodes[n].op->name);
    output->node = n;
    return IPU_OK;
}

/* Notes that node n makes the tensor state, the newest value of a tensor that
 * it changes in place. */
static int make_state(const struct ipu__reader *r, ipu_graph *g, int32_t n,
                      int32_t state, int32_t tensor)
{
    const struct ipu__tensor *old = &g->tensors[tensor], *new;
    bool remote;

    if (!within(state, g->ntensors))
        return ipu__damaged(r, "node %d, %s, changes no tensor", (int)n,
                            g->nodes[n].op->name);
    new = &g->tensors[state];
    if (new->renews != tensor || new->node >= 0 || old->kind != IPU__VARIABLE ||
        old->renewed >= 0 || !ipu__shape_equal(&old->shape, &new->shape))
        return ipu__damaged(r, "node %d, %s, changes another tensor", (int)n,
                            g->nodes[n].op->name);
    remote = new->remote;
    ipu__renew_as(g, state, tensor, n);
    return new->remote == remote
               ? IPU_OK
               : ipu__damaged(r, "%.60s has rows only now and then", new->name);
}

/* -------------------------------------------------------------------- loops */

static int verify(const struct ipu__reader *r, ipu_graph *g);

/* Finds the carried values of a body or a condition, which are those of the
 * loop. */
static int find_carried(const struct ipu__reader *r, const ipu_graph *g,
                        const struct ipu__loop *loop,
                        const struct ipu__block_graph *block)
{
    for (int32_t i = 0; i < loop->ncarried; i++) {
        struct ipu__tensor *t;

        if (!within(block->carried[i], block->graph->ntensors))
            return ipu__damaged(r, "a body carries what is not there");
        t = &block->graph->tensors[block->carried[i]];
        if (t->kind != IPU__VARIABLE || t->renews >= 0 || t->remote ||
            t->imported ||
            !ipu__shape_equal(&t->shape, &g->tensors[loop->initial[i]].shape))
            return ipu__damaged(r, "a body has not what its loop carries");
        t->imported = true;
        t->fixed = true;
    }
    return IPU_OK;
}

/* Finds the tensors that a body or a condition uses from the graph around
 * it. */
static int find_imports(const struct ipu__reader *r, const ipu_graph *g,
                        ipu_graph *body)
{
    for (int32_t i = 0; i < body->nimports; i++) {
        const struct ipu__import *import = &body->imports[i];
        const struct ipu__tensor *from;
        struct ipu__tensor *to;
        bool copied;

        if (!is_there(g, import->outer) ||
            !within(import->inner, body->ntensors))
            return ipu__damaged(r, "a body imports what is not there");
        from = &g->tensors[import->outer];
        to = &body->tensors[import->inner];
        copied = to->kind == IPU__CONSTANT && from->kind == IPU__CONSTANT;
        if (to->imported || to->renews >= 0 || to->remote != from->remote ||
            (to->kind != IPU__VARIABLE && !copied) ||
            !ipu__shape_equal(&to->shape, &from->shape))
            return ipu__damaged(r, "a body imports %.60s as something else",
                                from->name);
        to->imported = true;
        to->fixed = from->kind != IPU__VARIABLE || from->fixed || copied;
    }
    return IPU_OK;
}

static int verify_block(const struct ipu__reader *r, const ipu_graph *g,
                        const struct ipu__loop *loop,
                        const struct ipu__block_graph *block)
{
    ipu_graph *body = block->graph;

    IPU_TRY(find_carried(r, g, loop, block));
    IPU_TRY(find_imports(r, g, body));
    IPU_TRY(verify(r, body));
    ipu__find_written(body);
    return IPU_OK;
}

static int verify_body(const struct ipu__reader *r, const ipu_graph *g,
                       const struct ipu__loop *loop)
{
    const ipu_graph *body = loop->body.graph;

    IPU_TRY(verify_block(r, g, loop, &loop->body));
    for (int32_t i = 0; i < body->nsinks; i++)
        if (!body->sinks[i].fn)
            return ipu__damaged(r, "a body has an output");
    if (!loop->condition.graph &&
        ipu_update_check_iterations(body, "repeat", loop->count) < 0)
        return ipu__damaged(r, "%s", ipu_last_error());
    return IPU_OK;
}

static int verify_condition(const struct ipu__reader *r, const ipu_graph *g,
                            const struct ipu__loop *loop)
{
    ipu_graph *condition = loop->condition.graph;
    bool computes;

    if (!condition)
        return IPU_OK;
    IPU_TRY(verify_block(r, g, loop, &loop->condition));
    if (condition->nsinks != 1 || condition->sinks[0].fn ||
        !is_number(condition, condition->sinks[0].tensor))
        return ipu__damaged(r, "a condition does not give one number");
    condition->nsinks = 0; /* a condition must have no effect */
    computes = !condition->nassigns && !ipu__has_effects(condition);
    condition->nsinks = 1;
    return computes ? IPU_OK
                    : ipu__damaged(r, "a condition does more than compute");
}

/* Finds which imports of the body the loop's node changes. */
static int find_written(const struct ipu__reader *r, ipu_graph *g, int32_t n,
                        struct ipu__loop *loop)
{
    const ipu_graph *body = loop->body.graph;
    int32_t count = loop->nwritten;

    loop->nwritten = 0;
    for (int32_t i = 0; i < body->nimports; i++) {
        if (!body->imports[i].written)
            continue;
        if (loop->nwritten == count)
            return ipu__damaged(r, "a loop changes more than it says");
        loop->written[loop->nwritten] = body->imports[i].outer;
        IPU_TRY(make_state(r, g, n, loop->renewed[loop->nwritten],
                           body->imports[i].outer));
        loop->nwritten++;
    }
    return loop->nwritten == count
               ? IPU_OK
               : ipu__damaged(r, "a loop changes less than it says");
}

static int make_outputs(const struct ipu__reader *r, ipu_graph *g, int32_t n,
                        const struct ipu__loop *loop)
{
    static const struct ipu__shape nothing = {.dtype = IPU_INT32, .ndim = 1};

    if (loop->ncarried == 0)
        return make_result(r, g, n, g->nodes[n].output, &nothing);
    if (g->nodes[n].output != loop->outputs[0])
        return ipu__damaged(r, "node %d makes what its loop does not", (int)n);
    for (int32_t i = 0; i < loop->ncarried; i++)
        IPU_TRY(make_result(r, g, n, loop->outputs[i],
                            &g->tensors[loop->initial[i]].shape));
    return IPU_OK;
}

static int verify_loop(const struct ipu__reader *r, ipu_graph *g, int32_t n)
{
    struct ipu__node *node = &g->nodes[n];
    struct ipu__loop *loop;

    if (!within(node->loop, g->nloops) || g->loops[node->loop].written)
        return ipu__damaged(r, "node %d is no loop of its own", (int)n);
    loop = &g->loops[node->loop];
    IPU_TRY(ipu__new_array(&loop->written, (size_t)loop->nwritten,
                           sizeof *loop->written));
    if (loop->count < 0)
        return ipu__damaged(r, "a loop runs less than 0 times");
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (!is_there(g, loop->initial[i]))
            return ipu__damaged(r, "a loop begins with what is not there");
    IPU_TRY(verify_condition(r, g, loop));
    IPU_TRY(verify_body(r, g, loop));
    node->effect = ipu__has_effects(loop->body.graph);
    IPU_TRY(make_outputs(r, g, n, loop));
    return find_written(r, g, n, loop);
}

static int verify_node(const struct ipu__reader *r, ipu_graph *g, int32_t n)
{
    struct ipu__node *node = &g->nodes[n];
    struct ipu__shape shape;

    if (node->op == &ipu__assign_step || node->op == &ipu__remote_load ||
        node->op == &ipu__remote_store ||
        (node->op == &ipu__loop_op) != (node->loop != IPU__NONE))
        return ipu__damaged(r, "%s is no node", node->op->name);
    IPU_TRY(verify_inputs(r, g, n));
    if (!is_in_order(g, node))
        return ipu__damaged(r, "node %d, %s, comes before what it waits for",
                            (int)n, node->op->name);
    if (node->op == &ipu__loop_op)
        return verify_loop(r, g, n);
    if (ipu__node_shape(g, node, &shape) < 0)
        return ipu__damaged(r, "node %d: %s", (int)n, ipu_last_error());
    if (node->op != &ipu__row_store)
        return make_result(r, g, n, node->output, &shape);
    node->effect = true;
    return make_state(r, g, n, node->output, node->inputs[0]);
}

static int verify_nodes(const struct ipu__reader *r, ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        IPU_TRY(verify_node(r, g, n));
    for (int32_t i = 0; i < g->ntensors; i++)
        if (!is_there(g, i))
            return ipu__damaged(r, "nothing makes %.60s", g->tensors[i].name);
    for (int32_t i = 0; i < g->nloops; i++)
        if (!g->loops[i].written)
            return ipu__damaged(r, "a loop is no node's");
    return IPU_OK;
}

/* --------------------------------------------------------------------- ends */

static int verify_sinks(const struct ipu__reader *r, const ipu_graph *g)
{
    for (int32_t i = 0; i < g->nsinks; i++)
        if (!within(g->sinks[i].tensor, g->ntensors))
            return ipu__damaged(r, "an output is of no tensor");
    return IPU_OK;
}

/* Repeats the assigns, one after the other, as the builders would make them. */
static int verify_assigns(const struct ipu__reader *r, ipu_graph *g)
{
    int32_t count = g->nassigns;

    g->nassigns = 0;
    for (int32_t i = 0; i < count; i++) {
        struct ipu__assign a = g->assigns[i], *made = &g->assigns[i];
        bool carried;

        if (!within(a.variable, g->ntensors) || !within(a.value, g->ntensors))
            return ipu__damaged(r, "an assignment is of no tensor");
        /* Only the loop assigns its carried variables. */
        carried = g->parent && g->tensors[a.variable].kind == IPU__VARIABLE &&
                  g->tensors[a.variable].fixed;
        for (int32_t k = 0; carried && k < g->nimports; k++)
            carried = g->imports[k].inner != a.variable;
        if (carried)
            g->tensors[a.variable].fixed = false;
        if (ipu_assign(g, ipu__handle(g, a.variable), ipu__handle(g, a.value)) <
            0)
            return ipu__damaged(r, "%s", ipu_last_error());
        if (made->variable != a.variable || made->value != a.value)
            return ipu__damaged(r, "%.60s is assigned what it is",
                                g->tensors[a.variable].name);
        if (carried)
            g->tensors[a.variable].fixed = true;
    }
    return IPU_OK;
}

static int verify_enqueues(const struct ipu__reader *r, const ipu_graph *g)
{
    for (int32_t i = 0; i < g->nenqueues; i++) {
        const struct ipu__enqueue *e = &g->enqueues[i];
        const ipu_feed_tensor *tensors;
        int32_t count = ipu__outfeed_tensors(e->outfeed, &tensors);

        if (count != e->count)
            return ipu__damaged(r, "an outfeed of %d tensors gets %d",
                                (int)count, (int)e->count);
        for (int32_t k = 0; k < count; k++) {
            struct ipu__shape shape;

            if (!within(e->tensors[k], g->ntensors) ||
                !ipu__queue_shape(tensors, count, k, &shape) ||
                !ipu__shape_equal(&shape, &g->tensors[e->tensors[k]].shape))
                return ipu__damaged(r, "an outfeed gets other tensors");
        }
    }
    return IPU_OK;
}

static int verify(const struct ipu__reader *r, ipu_graph *g)
{
    IPU_TRY(verify_feeds(r, g));
    IPU_TRY(verify_tensors(r, g));
    IPU_TRY(verify_regions(r, g));
    IPU_TRY(verify_nodes(r, g));
    IPU_TRY(verify_sinks(r, g));
    IPU_TRY(verify_assigns(r, g));
    return verify_enqueues(r, g);
}

int ipu__verify_graph(const struct ipu__reader *r, ipu_graph *g)
{
    if (g->nimports)
        return ipu__damaged(r, "imports, and nothing to import from");
    IPU_TRY(verify(r, g));
    return ipu__check_queues(r, g, NULL);
}
