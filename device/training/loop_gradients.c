/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_gradients.c - the derivative of a loop is another loop, which makes the
 * iterations in reverse order.
 *
 *     forward     for i = 0 .. n-1:  c = f(c, x), kept[i] = values of f
 *     backward    for i = n-1 .. 0:  dc, dx += f'(dc, kept[i])
 *
 * f is the body and f' its derivative, c are the carried values, x what the
 * body uses from around it. The backward loop carries dc, which begins as the
 * derivative with respect to what the loop has made of c, and ends as that with
 * respect to what c began with; and a sum for each x that needs one. A sequence
 * that the body reads row by row (gather by a counter) is an x, of which an
 * iteration adds to one row. One that the body writes row by row
 * (dynamic_update) is a c, of which an iteration reads one row.
 *
 * The steps, for which the body is a graph like any other:
 *
 *     1. loop_adjoints.c: find the c that need a derivative and have one
 *     2. differentiate the body in itself, from variables that stand for dc and
 *        for the sums
 *     3. loop_kept.c: have the forward loop keep what these nodes read
 *     4. loop_backward.c: move them to the body of a new loop
 *
 * Loops with a condition are refused, as nobody knows how many rows to keep,
 * and bodies that change what a derivative is asked for.
 */
#include "training/loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/training.h"

/* ------------------------------------------------- the body's derivatives */

/* The tensor of the body that an adjoint is the derivative with respect to. */
static int32_t tensor_of(const struct ipu__loop_back *b,
                         const struct ipu__adjoint *a)
{
    return a->is_import ? b->body->imports[a->number].inner
                        : b->graph->loops[b->loop].body.carried[a->number];
}

/* Makes the variables that stand for adjoints, and begins with them. */
static int add_seeds(struct ipu__loop_back *b)
{
    for (int32_t i = 0; i < b->nadjoints; i++) {
        int32_t of = tensor_of(b, &b->adjoints[i]);
        const struct ipu__shape shape = b->body->tensors[of].shape;

        b->adjoints[i].seed = ipu__tensor_add(
            b->body, strdup(b->body->tensors[of].name), &shape, IPU__VARIABLE);
        IPU_TRY(b->adjoints[i].seed);
    }
    return IPU_OK;
}

static int differentiate_body(struct ipu__loop_back *b, ipu_tensor *derivatives)
{
    ipu_graph *body = b->body;
    int32_t nforward = body->nnodes;
    int32_t last = nforward > 0 ? body->nodes[nforward - 1].output : IPU__NONE;

    for (int32_t i = 0; i < b->nadjoints; i++)
        if (b->adjoints[i].is_import)
            derivatives[tensor_of(b, &b->adjoints[i])] =
                ipu__handle(body, b->adjoints[i].seed);
    for (int32_t i = 0; i < b->nadjoints; i++) {
        const struct ipu__adjoint *a = &b->adjoints[i];
        int32_t next = ipu__next_of(body, tensor_of(b, a));

        if (!a->is_import)
            ipu__accumulate_of(body, next, &derivatives[next],
                               ipu__handle(body, a->seed));
    }
    IPU_TRY(ipu__graph_status(body));
    IPU_TRY(ipu__propagate(body, nforward, b->needed, derivatives));
    for (int32_t i = 0; i < b->nadjoints; i++)
        b->adjoints[i].result = derivatives[tensor_of(b, &b->adjoints[i])];
    b->nforward = last < 0 ? 0 : body->tensors[last].node + 1;
    b->nnodes = body->nnodes;
    return IPU_OK;
}

static int make_derivatives(struct ipu__loop_back *b)
{
    ipu_tensor *derivatives;
    int status;

    IPU_TRY(add_seeds(b));
    IPU_TRY(
        ipu__new_array(&derivatives, (size_t)b->ntensors, sizeof *derivatives));
    for (int32_t t = 0; t < b->ntensors; t++)
        derivatives[t] = (ipu_tensor){-1};
    status = differentiate_body(b, derivatives);
    free(derivatives);
    return status;
}

/* ------------------------------------------------------ the backward loop */

/* The tensor of the graph around the loop that an adjoint ends as the
 * derivative of, or, with is_after, begins as. */
static int32_t around(const struct ipu__loop_back *b,
                      const struct ipu__adjoint *a, bool is_after)
{
    const struct ipu__loop *loop = &b->graph->loops[b->loop];

    if (a->is_import)
        return b->body->imports[a->number].outer;
    return is_after ? loop->outputs[a->number] : loop->initial[a->number];
}

/* Sets what the backward loop begins with: the number of the last iteration,
 * and the derivatives that are there already. */
static int begin_backward(struct ipu__loop_back *b, int64_t count,
                          const ipu_tensor *derivatives, struct ipu__loop *loop)
{
    ipu_graph *g = b->graph;
    size_t n = (size_t)b->nadjoints + 1;
    ipu_tensor last;

    loop->count = count;
    loop->ncarried = b->nadjoints + 1;
    IPU_TRY(ipu__new_array(&loop->initial, n, sizeof *loop->initial));
    IPU_TRY(ipu__new_array(&loop->outputs, n, sizeof *loop->outputs));
    last = ipu_fill(g, IPU_INT32, 0, NULL, (double)(count - 1));
    loop->initial[0] = ipu__index(g, last);
    for (int32_t i = 0; i < b->nadjoints && g->status == IPU_OK; i++) {
        int32_t of = around(b, &b->adjoints[i], true);
        ipu_tensor first = derivatives[of];

        if (first.id < 0)
            first = ipu__constant(g, &g->tensors[of].shape, 0);
        loop->initial[i + 1] = ipu__index(g, first);
    }
    return ipu__graph_status(g);
}

static int add_backward(struct ipu__loop_back *b, const bool *needed,
                        ipu_tensor *derivatives)
{
    ipu_graph *g = b->graph;
    struct ipu__loop loop = {0};
    int64_t count = g->loops[b->loop].count;
    int status = begin_backward(b, count, derivatives, &loop);
    int32_t added = g->nloops;

    if (status < 0) {
        ipu__loop_fini(&loop);
        return status;
    }
    IPU_TRY(ipu__add_backward(b, &loop));
    for (int32_t i = 0; i < b->nadjoints; i++)
        if (b->adjoints[i].is_import)
            derivatives[around(b, &b->adjoints[i], false)] =
                ipu__handle(g, g->loops[added].outputs[i + 1]);
    for (int32_t i = 0; i < b->nadjoints; i++) {
        int32_t of = around(b, &b->adjoints[i], false);

        if (!b->adjoints[i].is_import && needed[of])
            ipu__accumulate_of(g, of, &derivatives[of],
                               ipu__handle(g, g->loops[added].outputs[i + 1]));
    }
    return ipu__graph_status(g);
}

/* A loop without iterations: what it carries stays. */
static int pass_on(ipu_graph *g, const struct ipu__loop *loop,
                   const bool *needed, ipu_tensor *derivatives)
{
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (needed[loop->initial[i]])
            ipu__accumulate_of(g, loop->initial[i],
                               &derivatives[loop->initial[i]],
                               derivatives[loop->outputs[i]]);
    return ipu__graph_status(g);
}

static int differentiate(struct ipu__loop_back *b, const bool *needed,
                         ipu_tensor *derivatives)
{
    IPU_TRY(ipu__find_adjoints(b, needed, derivatives));
    if (b->nadjoints == 0)
        return IPU_OK;
    IPU_TRY(make_derivatives(b));
    IPU_TRY(ipu__keep(b));
    return add_backward(b, needed, derivatives);
}

/* Returns 1 if the derivatives must pass the loop, 0 if they need not. */
static int check_loop(const ipu_graph *g, const struct ipu__loop *loop,
                      const bool *needed, const ipu_tensor *derivatives)
{
    int32_t reached = IPU__NONE;
    const char *why = NULL;

    for (int32_t i = 0; i < loop->nwritten; i++)
        if (needed[loop->renewed[i]] && derivatives[loop->renewed[i]].id >= 0)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "gradients: the loss depends on %s as a loop has "
                             "left it: carry it instead",
                             g->tensors[loop->renewed[i]].name);
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (needed[loop->outputs[i]] && derivatives[loop->outputs[i]].id >= 0)
            reached = loop->outputs[i];
    if (reached < 0)
        return 0;
    if (loop->condition.graph)
        why = "a loop with a condition: only ipu_repeat has gradients";
    else if (loop->count > INT32_MAX)
        why = "a loop of more than 2^31 - 1 iterations";
    else if (loop->body.graph->nregions > 0)
        why = "a loop with an update region: call ipu_gradients in its body";
    return why ? ipu__fail(IPU_ERR_ARGUMENT,
                           "gradients: the loss depends on %s, which is made "
                           "by %s",
                           g->tensors[reached].name, why)
               : 1;
}

int ipu__loop_gradient(ipu_graph *g, int32_t n, const bool *needed,
                       ipu_tensor *derivatives)
{
    const struct ipu__node node = g->nodes[n];
    const struct ipu__loop *loop = &g->loops[node.loop];
    struct ipu__loop_back b = {
        .graph = g,
        .body = loop->body.graph,
        .loop = node.loop,
        .ntensors = loop->body.graph->ntensors,
    };
    int32_t shard = g->shard;
    int status = check_loop(g, loop, needed, derivatives);

    if (status <= 0)
        return status;
    if (loop->count == 0)
        return pass_on(g, loop, needed, derivatives);
    g->shard = g->tensors[node.output].shard;
    g->beside = node.output;
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (derivatives[loop->outputs[i]].id >= 0)
            g->derived = ipu__index(g, derivatives[loop->outputs[i]]);
    status = differentiate(&b, needed, derivatives);
    g->shard = shard;
    g->derived = g->beside = IPU__NONE;
    free(b.needed);
    free(b.flows);
    free(b.adjoints);
    free(b.read);
    free(b.available);
    free(b.kept);
    return status;
}
