/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - builds the pipeline that the author of a training program would
 * make of it, and measures that: the forward pass cut into stages, the
 * optimiser after them. remedy.c calls it.
 *
 * The forward pass is cut where spread.c has put its tensors. The function
 * of a stage adds the nodes of its part to the stage's graph. The function of
 * the optimiser adds the nodes that the program has after its gradients, for
 * the variables that it is given. The pipeline itself makes derivatives. What a
 * later stage or the optimiser needs is handed through all stages between:
 * inputs of the program, too, of which scalars are arguments and the others
 * come from an infeed.
 *
 *     program    x, labels, rate -> loss, derivatives, w -= rate dw
 *     stage 0    rate, x, labels -> h, labels, rate
 *     stage 1    h, labels, rate -> loss, rate
 *     optimiser  loss, rate; w, dw -> w -= rate dw
 *
 * A variable is on one chip, with the stage that uses it. A variable that the
 * forward pass itself assigns, as a counter of steps, is in each stage that
 * uses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"
#include "pipeline/pipeline.h"
#include "target/target.h"

/* The stage that needs a tensor last, if none does. */
enum { NOBODY = -1 };

struct plan {
    const struct ipu__trial *trial;
    const ipu_graph *graph;
    int32_t nstages, first; /* first: the first node that is a derivative */
    int32_t loss;
    bool *staged;      /* [nodes]: it is in a stage */
    bool *depends;     /* [tensors]: it depends on derivatives */
    int32_t *assigned; /* [tensors]: number of its assignment; -1: none */
    int32_t *last;     /* [tensors]: the last stage that needs it; nstages: the
                          optimiser */
};

/* Copies nodes to another graph. */
struct copier {
    const struct plan *plan;
    int32_t stage; /* nstages: the optimiser */
    ipu_graph *to;
    ipu_tensor *map; /* owned, [tensors]: their copies there */
};

struct stage {
    const struct plan *plan;
    int32_t number;
};

/* --------------------------------------------------------- kinds of nodes */

static bool is_source(const ipu_graph *g, int32_t n)
{
    return g->nodes[n].op->ninputs == 0;
}

static int32_t stage_of(const struct plan *p, int32_t n)
{
    return p->graph->tensors[p->graph->nodes[n].output].shard;
}

static int find_loss(struct plan *p)
{
    const ipu_graph *g = p->graph;

    while (g->nodes[p->first].derived < 0)
        p->first++;
    p->loss = g->nodes[p->first].derived;
    if (g->tensors[p->loss].node < 0)
        return ipu__fail(IPU_ERR_STATE, "its loss is computed by nothing");
    return IPU_OK;
}

/* Marks the nodes that the marked nodes need. */
static void mark_inputs(const ipu_graph *g, bool *nodes)
{
    for (int32_t n = g->nnodes - 1; n >= 0; n--)
        for (int i = 0; nodes[n] && i < g->nodes[n].op->ninputs; i++) {
            int32_t maker = g->tensors[g->nodes[n].inputs[i]].node;

            if (maker >= 0)
                nodes[maker] = true;
        }
}

static bool node_reads(const struct ipu__node *node, int32_t tensor)
{
    for (int i = 0; i < node->op->ninputs; i++)
        if (node->inputs[i] == tensor)
            return true;
    return false;
}

/* Returns whether the forward pass makes an assignment: of a counter that a
 * stage reads, or of statistics that a stage makes. */
static bool is_forward(const struct plan *p, const struct ipu__assign *a)
{
    const ipu_graph *g = p->graph;
    int32_t maker = g->tensors[a->value].node;

    if (maker < 0 || maker >= p->first || p->depends[a->value])
        return false;
    for (int32_t n = 0; n < p->first; n++)
        if (p->staged[n] && node_reads(&g->nodes[n], a->variable))
            return true;
    for (int i = 0; i < g->nodes[maker].op->ninputs; i++) {
        int32_t from = g->tensors[g->nodes[maker].inputs[i]].node;

        if (from >= 0 && p->staged[from] && !is_source(g, from))
            return true;
    }
    return false;
}

static void find_stages(struct plan *p)
{
    const ipu_graph *g = p->graph;

    for (int32_t n = 0; n < g->nnodes; n++) {
        p->depends[g->nodes[n].output] = g->nodes[n].derived >= 0;
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            p->depends[g->nodes[n].output] |= p->depends[g->nodes[n].inputs[i]];
    }
    p->staged[g->tensors[p->loss].node] = true;
    mark_inputs(g, p->staged);
    for (int32_t i = 0; i < g->nassigns; i++)
        if (is_forward(p, &g->assigns[i]))
            p->staged[g->tensors[g->assigns[i].value].node] = true;
    mark_inputs(g, p->staged);
}

static bool is_assigned_forward(const struct plan *p, int32_t variable)
{
    for (int32_t i = 0; i < p->graph->nassigns; i++)
        if (p->graph->assigns[i].variable == variable &&
            is_forward(p, &p->graph->assigns[i]))
            return true;
    return false;
}

/* Returns whether a node is the optimiser's: after the first derivative, and
 * none itself. */
static bool is_update(const struct plan *p, int32_t n)
{
    const struct ipu__node *node = &p->graph->nodes[n];

    return !p->staged[n] && node->derived < 0 && !node->again;
}

/* Returns whether stages hand a tensor on, to each other or to the optimiser.
 */
static bool is_handed(const struct plan *p, int32_t tensor)
{
    const struct ipu__tensor *t = &p->graph->tensors[tensor];

    return t->kind == IPU__INPUT || (t->node >= 0 && p->staged[t->node] &&
                                     !is_source(p->graph, t->node));
}

static int note_reads(struct plan *p, int32_t n, int32_t stage)
{
    const ipu_graph *g = p->graph;

    for (int i = 0; i < g->nodes[n].op->ninputs; i++) {
        int32_t t = g->nodes[n].inputs[i];

        if (stage < p->nstages && g->tensors[t].kind == IPU__VARIABLE &&
            p->last[t] >= 0 && p->last[t] != stage &&
            !is_assigned_forward(p, t))
            return ipu__fail(IPU_ERR_STATE, "%.40s is used by several stages",
                             g->tensors[t].name);
        if (p->last[t] < stage &&
            (is_handed(p, t) || g->tensors[t].kind == IPU__VARIABLE))
            p->last[t] = stage;
    }
    return IPU_OK;
}

static int find_last(struct plan *p)
{
    const ipu_graph *g = p->graph;

    for (int32_t n = 0; n < g->nnodes; n++)
        if (p->staged[n])
            IPU_TRY(note_reads(p, n, stage_of(p, n)));
    for (int32_t n = 0; n < g->nnodes; n++)
        if (is_update(p, n))
            for (int i = 0; i < g->nodes[n].op->ninputs; i++)
                if (is_handed(p, g->nodes[n].inputs[i]))
                    p->last[g->nodes[n].inputs[i]] = p->nstages;
    return IPU_OK;
}

/* Lists what leaves a stage or, with before -1, what comes into the first:
 * tensors in their order, at most IPU_MAX_STAGE_TENSORS. The loss comes first
 * of what leaves the last. Returns how many. */
static int find_border(const struct plan *p, int32_t before, int32_t *tensors)
{
    const ipu_graph *g = p->graph;
    int count = 0;

    if (before == p->nstages - 1)
        tensors[count++] = p->loss;
    for (int scalars = 1; scalars >= 0; scalars--)
        for (int32_t t = 0; t < g->ntensors; t++) {
            const struct ipu__tensor *of = &g->tensors[t];
            bool input = of->kind == IPU__INPUT;

            if (!is_handed(p, t) || p->last[t] <= before ||
                (before == p->nstages - 1 && t == p->loss) ||
                (before < 0 && !input) ||
                (!input && stage_of(p, of->node) > before) ||
                (of->shape.ndim == 0) != (scalars == 1))
                continue;
            if (count == IPU_MAX_STAGE_TENSORS)
                return ipu__fail(IPU_ERR_STATE,
                                 "more than %d tensors pass from one stage to "
                                 "the next",
                                 IPU_MAX_STAGE_TENSORS);
            tensors[count++] = t;
        }
    return count;
}

/* Checks all boundaries before the pipeline does: its errors would name a stage
 * only by number. */
static int check_borders(const struct plan *p)
{
    int32_t border[IPU_MAX_STAGE_TENSORS];

    for (int32_t before = -1; before < p->nstages; before++)
        IPU_TRY(find_border(p, before, border));
    return IPU_OK;
}

/* ------------------------------------------------------------------ copying */

static int copier_init(struct copier *c)
{
    size_t n = (size_t)c->plan->graph->ntensors + 1;

    c->map = malloc(n * sizeof *c->map);
    if (!c->map)
        return ipu__fail_memory(n * sizeof *c->map);
    memset(c->map, -1, n * sizeof *c->map);
    return IPU_OK;
}

static ipu_tensor make_source(struct copier *c, int32_t tensor)
{
    const struct ipu__tensor *t = &c->plan->graph->tensors[tensor];
    const struct ipu__shape *s = &t->shape;
    char name[IPU__NAME_MAX];

    if (t->kind == IPU__CONSTANT)
        return ipu_constant(c->to, s->dtype, s->ndim, s->extents, t->data);
    snprintf(name, sizeof name, "%s", t->name);
    /* Each stage has its own copy. */
    if (c->stage < c->plan->nstages && is_assigned_forward(c->plan, tensor))
        snprintf(name, sizeof name, "%.480s/%d", t->name, (int)c->stage);
    return ipu_variable(c->to, name, s->dtype, s->ndim, s->extents);
}

static ipu_tensor copy_of(struct copier *c, int32_t tensor)
{
    static const ipu_tensor no_inputs[1];
    const ipu_graph *g = c->plan->graph;

    if (c->map[tensor].id >= 0)
        return c->map[tensor];
    if (g->tensors[tensor].kind == IPU__VARIABLE ||
        g->tensors[tensor].kind == IPU__CONSTANT)
        c->map[tensor] = make_source(c, tensor);
    else if (g->tensors[tensor].node >= 0 &&
             is_source(g, g->tensors[tensor].node))
        c->map[tensor] =
            ipu__add(c->to, g->nodes[g->tensors[tensor].node].op, no_inputs,
                     &g->nodes[g->tensors[tensor].node].attributes);
    return c->map[tensor];
}

static int copy_node(struct copier *c, int32_t n)
{
    const struct ipu__node *node = &c->plan->graph->nodes[n];
    ipu_tensor inputs[IPU__MAX_INPUTS], made;

    if (c->map[node->output].id >= 0)
        return IPU_OK;
    for (int i = 0; i < node->op->ninputs; i++)
        inputs[i] = copy_of(c, node->inputs[i]);
    made = ipu__add(c->to, node->op, inputs, &node->attributes);
    if (c->plan->graph->tensors[node->output].checkpoint)
        made = ipu_recomputation_checkpoint(c->to, made);
    c->map[node->output] = made;
    return ipu__graph_status(c->to);
}

/* ------------------------------------------------------------------- stages */

static int assign_forward(struct copier *c)
{
    const ipu_graph *g = c->plan->graph;

    for (int32_t i = 0; i < g->nassigns; i++) {
        const struct ipu__assign *a = &g->assigns[i];

        if (c->map[a->variable].id >= 0 && c->map[a->value].id >= 0 &&
            is_forward(c->plan, a))
            IPU_TRY(ipu_assign(c->to, c->map[a->variable], c->map[a->value]));
    }
    return IPU_OK;
}

/* Copies assignments of counters that several stages have, each for itself. */
static int copy_counters(struct copier *c)
{
    const ipu_graph *g = c->plan->graph;

    for (int32_t i = 0; i < g->nassigns; i++) {
        const struct ipu__assign *a = &g->assigns[i];
        int32_t maker = g->tensors[a->value].node;

        if (c->map[a->variable].id >= 0 && maker >= 0 &&
            c->map[a->value].id < 0 && is_forward(c->plan, a) &&
            node_reads(&g->nodes[maker], a->variable))
            IPU_TRY(copy_node(c, maker));
    }
    return IPU_OK;
}

static int build_stage(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const struct stage *stage = context;
    const struct plan *p = stage->plan;
    struct copier c = {.plan = p, .stage = stage->number, .to = graph};
    int32_t border[IPU_MAX_STAGE_TENSORS];
    int status = copier_init(&c), count;

    count = find_border(p, stage->number - 1, border);
    if (status >= 0 && count != ninputs)
        status = count < 0 ? count : IPU_ERR_ARGUMENT;
    for (int i = 0; i < ninputs && status >= 0; i++)
        c.map[border[i]] = inputs[i];
    for (int32_t n = 0; n < p->graph->nnodes && status >= 0; n++)
        if (p->staged[n] && stage_of(p, n) == stage->number &&
            !is_source(p->graph, n))
            status = copy_node(&c, n);
    if (status >= 0)
        status = copy_counters(&c);
    if (status >= 0)
        status = assign_forward(&c);
    if (status >= 0)
        status = find_border(p, stage->number, border);
    for (int i = 0; i < status; i++)
        outputs[i] = copy_of(&c, border[i]);
    free(c.map);
    return status;
}

/* ---------------------------------------------------------------- optimiser */

static int32_t variable_named(const ipu_graph *g, const char *name)
{
    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].kind == IPU__VARIABLE &&
            strcmp(g->tensors[t].name, name) == 0)
            return t;
    return -1;
}

static const struct ipu__assign *assign_of(const struct plan *p,
                                           int32_t variable)
{
    int32_t i = p->assigned[variable];

    return i >= 0 ? &p->graph->assigns[i] : NULL;
}

static int is_trained(void *context, const char *variable)
{
    const struct plan *p = context;
    int32_t v = variable_named(p->graph, variable);
    const struct ipu__assign *a = v < 0 ? NULL : assign_of(p, v);

    return a && p->depends[a->value];
}

/* Marks the nodes of the optimiser that a tensor needs. Returns the one
 * gradient that they read; -1: none, -2: several. */
static int32_t mark_update(const struct plan *p, int32_t tensor, bool *nodes)
{
    const ipu_graph *g = p->graph;
    int32_t n = g->tensors[tensor].node, gradient = -1;

    if (n < 0)
        return -1;
    if (!is_update(p, n))
        return p->depends[tensor] ? tensor : -1;
    nodes[n] = true;
    for (; n >= 0; n--)
        for (int i = 0; nodes[n] && i < g->nodes[n].op->ninputs; i++) {
            int32_t t = g->nodes[n].inputs[i], maker = g->tensors[t].node;

            if (maker >= 0 && is_update(p, maker))
                nodes[maker] = true;
            else if (p->depends[t] && t != gradient)
                gradient = gradient == -1 ? t : -2;
        }
    return gradient;
}

/* Copies the update of one variable: its nodes, and those of the state that
 * they keep. */
static int copy_update(struct copier *c, int32_t variable, ipu_tensor gradient,
                       bool *nodes)
{
    const struct plan *p = c->plan;
    const ipu_graph *g = p->graph;
    const struct ipu__assign *a = assign_of(p, variable);
    int32_t from;

    memset(nodes, 0, (size_t)g->nnodes * sizeof *nodes);
    from = mark_update(p, a->value, nodes);
    if (from >= 0)
        c->map[from] = gradient;
    for (int32_t n = g->nnodes - 1; n >= 0; n--)
        for (int i = 0; nodes[n] && i < g->nodes[n].op->ninputs; i++) {
            const struct ipu__assign *kept =
                assign_of(p, g->nodes[n].inputs[i]);
            int32_t maker = kept ? g->tensors[kept->value].node : -1;

            if (maker >= 0 && !nodes[maker])
                mark_update(p, kept->value, nodes);
        }
    for (int32_t n = 0; n < g->nnodes; n++)
        if (nodes[n])
            IPU_TRY(copy_node(c, n));
    return IPU_OK;
}

/* Checks that each variable is updated by its own gradient alone: those of
 * others are on other chips. */
static int check_updates(const struct plan *p)
{
    const ipu_graph *g = p->graph;
    bool *nodes;
    int status = IPU_OK;

    IPU_TRY(ipu__new_array(&nodes, (size_t)g->nnodes, sizeof *nodes));
    for (int32_t i = 0; i < g->nassigns && status >= 0; i++) {
        memset(nodes, 0, (size_t)g->nnodes * sizeof *nodes);
        if (mark_update(p, g->assigns[i].value, nodes) == -2)
            status = ipu__fail(IPU_ERR_STATE,
                               "the update of %.40s takes gradients that are "
                               "on other chips",
                               g->tensors[g->assigns[i].variable].name);
    }
    free(nodes);
    return status;
}

static int assign_updates(struct copier *c)
{
    const ipu_graph *g = c->plan->graph;

    for (int32_t i = 0; i < g->nassigns; i++) {
        const struct ipu__assign *a = &g->assigns[i];

        if (c->map[a->variable].id >= 0 && c->map[a->value].id >= 0 &&
            !is_forward(c->plan, a))
            IPU_TRY(ipu_assign(c->to, c->map[a->variable], c->map[a->value]));
    }
    return IPU_OK;
}

static int build_updates(struct copier *c, int32_t count,
                         const ipu_tensor *variables,
                         const ipu_tensor *gradients)
{
    const ipu_graph *g = c->plan->graph;
    bool *nodes = calloc((size_t)g->nnodes + 1, sizeof *nodes);
    int32_t *of = calloc((size_t)count + 1, sizeof *of);
    int status = IPU_OK;

    if (!nodes || !of) {
        free(nodes);
        free(of);
        return ipu__fail_memory((size_t)g->nnodes);
    }
    for (int32_t i = 0; i < count; i++) {
        const char *name = NULL;

        ipu_tensor_info(c->to, variables[i], NULL, NULL, &name);
        of[i] = variable_named(g, name);
        c->map[of[i]] = variables[i];
    }
    for (int32_t i = 0; i < count && status >= 0; i++)
        status = copy_update(c, of[i], gradients[i], nodes);
    if (status >= 0)
        status = assign_updates(c);
    free(nodes);
    free(of);
    return status;
}

static int build_optimizer(void *context, ipu_graph *graph, int32_t noutputs,
                           const ipu_tensor *outputs, int32_t count,
                           const ipu_tensor *variables,
                           const ipu_tensor *gradients)
{
    const struct plan *p = context;
    struct copier c = {.plan = p, .stage = p->nstages, .to = graph};
    int32_t border[IPU_MAX_STAGE_TENSORS];
    int status = copier_init(&c), n;

    if (status < 0)
        return status;
    n = find_border(p, p->nstages - 1, border);
    for (int i = 0; i < noutputs && i < n; i++)
        c.map[border[i]] = outputs[i];
    status = build_updates(&c, count, variables, gradients);
    free(c.map);
    return status;
}

/* ------------------------------------------------------------- the pipeline */

static int no_data(void *context, void *const *buffers)
{
    (void)context, (void)buffers;
    return 0;
}

static int describe_inputs(const struct plan *p, ipu_feed_tensor *tensors,
                           int32_t *narguments)
{
    int32_t border[IPU_MAX_STAGE_TENSORS];
    int count = find_border(p, -1, border);

    *narguments = 0;
    for (int i = 0; i < count; i++) {
        const struct ipu__tensor *t = &p->graph->tensors[border[i]];

        tensors[i] = (ipu_feed_tensor){
            .name = t->name, .dtype = t->shape.dtype, .ndim = t->shape.ndim};
        memcpy(tensors[i].shape, t->shape.extents, sizeof t->shape.extents);
        *narguments += t->shape.ndim == 0;
    }
    return count;
}

static bool computes_again(const ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (g->nodes[n].again)
            return true;
    return false;
}

/* Returns where the program's author has the state, or what AUTO means. */
static ipu_offload where_state_lies(const struct plan *p)
{
    ipu_offload asked = p->graph->nregions > 0 ? p->graph->regions[0].offload
                                               : IPU_OFFLOAD_AUTO;

    return asked == IPU_OFFLOAD_AUTO ? p->trial->automatic : asked;
}

static int measure_pipeline(struct plan *p, const ipu_target *target,
                            int64_t count, struct ipu__pipeline_cost *cost)
{
    ipu_feed_tensor tensors[IPU_MAX_STAGE_TENSORS];
    ipu_stage stages[IPU_MAX_STAGES];
    struct stage parts[IPU_MAX_STAGES];
    ipu_infeed_options feed;
    ipu_pipeline_options o;
    ipu_system system;
    int status = describe_inputs(p, tensors, &feed.ntensors);

    IPU_TRY(status);
    ipu_pipeline_options_init(&o, sizeof o);
    IPU_TRY(ipu__find_system(NULL, p->nstages, &system));
    system.ipu = *target;
    for (int32_t i = 0; i < p->nstages; i++) {
        parts[i] = (struct stage){.plan = p, .number = i};
        stages[i] = (ipu_stage){
            .build = build_stage, .context = &parts[i], .inputs = -1};
    }
    o.stages = stages;
    o.nstages = p->nstages;
    o.system = &system;
    o.count = count;
    o.narguments = feed.ntensors;
    o.arguments = tensors;
    o.optimizer = build_optimizer;
    o.optimizer_context = p;
    o.trained = is_trained;
    o.trained_context = p;
    o.recompute = computes_again(p->graph);
    o.offload_state = where_state_lies(p);
    ipu_infeed_options_init(&feed, sizeof feed);
    feed.name = "data";
    feed.ntensors = status - o.narguments;
    feed.tensors = tensors + o.narguments;
    feed.source.next = no_data;
    if (feed.ntensors > 0)
        IPU_TRY(ipu_infeed_new(&feed, &o.infeed));
    status =
        ipu__pipeline_measure(&o, p->trial->options, p->trial->plans, cost);
    ipu_infeed_free(o.infeed);
    return status;
}

static int build_and_measure(struct plan *p, const ipu_target *target,
                             int64_t count, struct ipu__pipeline_cost *cost)
{
    memset(p->last, -1, (size_t)p->graph->ntensors * sizeof *p->last);
    memset(p->assigned, -1, (size_t)p->graph->ntensors * sizeof *p->assigned);
    for (int32_t i = 0; i < p->graph->nassigns; i++)
        p->assigned[p->graph->assigns[i].variable] = i;
    IPU_TRY(find_loss(p));
    find_stages(p);
    for (int32_t s = 0; s < p->nstages; s++) {
        int32_t n = 0;

        while (n < p->first && !(p->staged[n] && stage_of(p, n) == s))
            n++;
        if (n == p->first)
            return ipu__fail(IPU_ERR_STATE, "it has not so many layers");
    }
    IPU_TRY(find_last(p));
    IPU_TRY(check_updates(p));
    IPU_TRY(check_borders(p));
    return measure_pipeline(p, target, count, cost);
}

int ipu__measure_stages(const struct ipu__trial *trial, const ipu_graph *graph,
                        const ipu_target *target, int32_t nstages,
                        int64_t count, struct ipu__pipeline_cost *cost)
{
    struct plan p = {
        .trial = trial,
        .graph = graph,
        .nstages = nstages,
        .staged = calloc((size_t)graph->nnodes + 1, sizeof *p.staged),
        .depends = calloc((size_t)graph->ntensors + 1, sizeof *p.depends),
        .assigned = malloc(((size_t)graph->ntensors + 1) * sizeof *p.assigned),
        .last = malloc(((size_t)graph->ntensors + 1) * sizeof *p.last),
    };
    int status = p.staged && p.depends && p.assigned && p.last
                     ? build_and_measure(&p, target, count, cost)
                     : ipu__fail_memory((size_t)graph->ntensors);

    free(p.staged);
    free(p.depends);
    free(p.assigned);
    free(p.last);
    return status;
}
