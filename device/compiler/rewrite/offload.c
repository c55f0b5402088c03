/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.c - the pass that chooses the variables in streaming memory, and
 * loads them to the chip.
 *
 * The pass moves a variable if only one update region uses it, as with an
 * optimiser's state: no other node reads it, and only that region may assign
 * it. The region may be in the body of a loop if the outer graph does not use
 * the variable. Weights, which the forward pass reads, and accumulators, which
 * each run writes, are moved only at the program's request. Small variables
 * stay on the chip, as the latency of a transfer does not depend on its bytes.
 *
 * A program may leave the choice to the compiler (IPU_OFFLOAD_AUTO). Then its
 * variables are moved if the executable's automatic is ON; compile.c tries OFF
 * first.
 *
 * A moved variable is loaded once for each phase of the program that reads it.
 * The phases are the nodes before the derivatives, the derivatives, and each
 * update region. Between phases the variable is not on the chip:
 *
 *     load w - forward   ...   load w - derivatives   ...   load w - update
 *                                                                store w
 *
 * A load is a node right before its first reader; a store takes the place of
 * the assignment (schedule.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/compiler.h"
#include "compiler/program.h"
#include "compiler/rewrite/draft.h"

enum { USUAL_BYTES = 128 };

/* The use of a variable is the index of the only update region that uses it, or
 * one of these. BY_LOOP: only an update region in the body of a loop uses it.
 * STAYS: its uses keep it on the chip. */
enum { UNUSED = -2, STAYS = -3, BY_LOOP = -4 };

struct chooser {
    const ipu_graph *graph;
    const ipu_target *target;
    ipu_offload automatic; /* IPU_OFFLOAD_AUTO means this: ON or OFF */
    int32_t *origin; /* owned, [tensors]: the variable that it is a state of */
    int32_t *use;    /* owned, [tensors]: use of origins */
};

static int choose_variables(const ipu_graph *g, const ipu_target *target,
                            ipu_offload automatic, bool *remote);

static void note_use(int32_t *use, int32_t by)
{
    if (by == IPU__NONE || (*use != UNUSED && *use != by))
        *use = STAYS;
    else
        *use = by;
}

static void note_loop(struct chooser *c, const struct ipu__loop *loop,
                      const bool *by_body)
{
    const ipu_graph *body = loop->body.graph;
    const ipu_graph *condition = loop->condition.graph;

    for (int32_t i = 0; i < loop->ncarried; i++)
        c->use[c->origin[loop->initial[i]]] = STAYS;
    for (int32_t i = 0; condition && i < condition->nimports; i++)
        c->use[c->origin[condition->imports[i].outer]] = STAYS;
    for (int32_t i = 0; i < body->nimports; i++) {
        int32_t *use = &c->use[c->origin[body->imports[i].outer]];

        note_use(use, *use == BY_LOOP || !by_body[body->imports[i].inner]
                          ? STAYS
                          : BY_LOOP);
    }
}

static int note_loops(struct chooser *c)
{
    for (int32_t i = 0; i < c->graph->nloops; i++) {
        const ipu_graph *body = c->graph->loops[i].body.graph;
        bool *by_body = calloc((size_t)body->ntensors + 1, sizeof *by_body);
        int status =
            by_body ? choose_variables(body, c->target, c->automatic, by_body)
                    : ipu__fail_memory((size_t)body->ntensors);

        if (status >= 0)
            note_loop(c, &c->graph->loops[i], by_body);
        free(by_body);
        IPU_TRY(status);
    }
    return IPU_OK;
}

static int note_uses(struct chooser *c)
{
    const ipu_graph *g = c->graph;

    for (int32_t t = 0; t < g->ntensors; t++) {
        int32_t before = g->tensors[t].renews;

        c->use[t] = UNUSED;
        c->origin[t] = before >= 0 ? c->origin[before] : t;
    }
    for (int32_t n = 0; n < g->nnodes; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            note_use(&c->use[c->origin[g->nodes[n].inputs[i]]],
                     g->nodes[n].region);
    for (int32_t i = 0; i < g->nassigns; i++)
        note_use(&c->use[c->origin[g->assigns[i].variable]],
                 ipu__tensor_region(g, g->assigns[i].value));
    for (int32_t i = 0; i < g->nsinks; i++)
        if (g->sinks[i].fn) /* the host reads it in each run */
            c->use[c->origin[g->sinks[i].tensor]] = STAYS;
    for (int32_t i = 0; i < g->nenqueues; i++)
        for (int32_t k = 0; k < g->enqueues[i].count; k++)
            c->use[c->origin[g->enqueues[i].tensors[k]]] = STAYS;
    return note_loops(c);
}

/* Returns what the program has asked for; in a body, for the variable around
 * it. */
static ipu_offload asked_for(const ipu_graph *g, int32_t tensor)
{
    for (int32_t i = 0; g->parent && i < g->nimports; i++)
        if (g->imports[i].inner == tensor)
            return asked_for(g->parent,
                             ipu__origin(g->parent, g->imports[i].outer));
    return g->tensors[tensor].offload;
}

static bool wants_offload(const struct chooser *c, int32_t tensor)
{
    const struct ipu__tensor *t = &c->graph->tensors[tensor];
    int64_t bytes = (int64_t)ipu__shape_bytes(&t->shape);
    int64_t least = USUAL_BYTES;
    int32_t use = c->use[tensor];
    ipu_offload asked;

    /* Carried values stay on the chip, and rows are always in streaming memory.
     */
    if (t->kind != IPU__VARIABLE || t->fixed || t->remote || t->renews >= 0 ||
        !(c->target->streaming_bytes_per_second > 0))
        return false;
    asked = asked_for(c->graph, tensor);
    if (asked == IPU_OFFLOAD_AUTO) {
        const struct ipu__region *region;

        if (use < 0)
            return use == BY_LOOP;
        region = &c->graph->regions[use];
        asked = region->offload == IPU_OFFLOAD_AUTO ? c->automatic
                                                    : region->offload;
        if (region->minimum_bytes > 0)
            least = region->minimum_bytes;
    }
    return asked == IPU_OFFLOAD_ON && bytes >= least;
}

/* Chooses variables by how this graph and the loops in it use them. remote:
 * [tensors], all false. */
static int choose_variables(const ipu_graph *g, const ipu_target *target,
                            ipu_offload automatic, bool *remote)
{
    size_t n = (size_t)g->ntensors + 1;
    struct chooser c = {.graph = g,
                        .target = target,
                        .automatic = automatic,
                        .origin = calloc(n, sizeof *c.origin),
                        .use = calloc(n, sizeof *c.use)};
    int status = IPU_OK;

    if (c.origin && c.use) {
        status = note_uses(&c);
        for (int32_t t = 0; t < g->ntensors && status >= 0; t++)
            remote[t] = wants_offload(&c, t);
    } else {
        status = ipu__fail_memory(n * sizeof *c.use);
    }
    free(c.origin);
    free(c.use);
    return status;
}

/* Chooses variables that the graphs around a body do not use in another way. */
static int choose_with_parents(const ipu_graph *g, const ipu_target *target,
                               ipu_offload automatic, bool *remote)
{
    bool *outside;
    int status = choose_variables(g, target, automatic, remote);

    if (status < 0 || !g->parent)
        return status;
    IPU_TRY(
        ipu__new_array(&outside, (size_t)g->parent->ntensors, sizeof *outside));
    status = choose_with_parents(g->parent, target, automatic, outside);
    for (int32_t i = 0; i < g->nimports && status >= 0; i++)
        remote[g->imports[i].inner] &=
            outside[ipu__origin(g->parent, g->imports[i].outer)];
    free(outside);
    return status;
}

static int check_target(const ipu_graph *g, const ipu_target *target)
{
    const char *what = NULL;

    if (target->streaming_bytes_per_second > 0)
        return IPU_OK;
    for (int32_t r = 0; r < g->nregions; r++)
        if (g->regions[r].offload == IPU_OFFLOAD_ON)
            what = "variables of the update are";
    for (int32_t t = 0; t < g->ntensors && !what; t++)
        if (g->tensors[t].offload == IPU_OFFLOAD_ON)
            what = g->tensors[t].name;
    return !what
               ? IPU_OK
               : ipu__fail(IPU_ERR_ARGUMENT,
                           "compile: %s%s to be kept beside the chip, but '%s' "
                           "has no streaming memory: do not ask for it, or "
                           "take another target",
                           what, strchr(what, ' ') ? "" : " is", target->name);
}

/* -------------------------------------------------------------------- loads */

/* Phases of the program. FORWARD: nodes that do not depend on derivatives.
 * BACKWARD: derivatives. UPDATE: other nodes that depend on derivatives.
 * REGIONS and more: the update regions; their nodes are in no other phase. */
enum { FORWARD, BACKWARD, UPDATE, REGIONS };

struct loader {
    struct ipu__draft *draft;
    const bool *remote; /* [tensors], as many as there were */
    int32_t ntensors;
    int32_t nphases;
    bool *depends;   /* owned, [tensors]: it depends on derivatives */
    int32_t *loaded; /* owned, [tensors, phases]: the loaded copy; -1: none so
                        far */
    struct ipu__node *nodes; /* owned: nodes in their new order */
    int32_t nnodes, capacity;
};

static int32_t phase_of(const struct loader *l, const struct ipu__node *node)
{
    if (node->region >= 0)
        return REGIONS + node->region;
    if (node->derived >= 0 || node->again)
        return BACKWARD;
    return l->depends[node->output] ? UPDATE : FORWARD;
}

static void note_dependence(struct loader *l, const struct ipu__node *node)
{
    bool depends = node->derived >= 0;

    for (int i = 0; i < node->op->ninputs; i++)
        depends |= l->depends[node->inputs[i]];
    l->depends[node->output] = depends;
}

static int push_node(struct loader *l, const struct ipu__node *node)
{
    IPU_TRY(ipu__reserve((void **)&l->nodes, l->nnodes, &l->capacity,
                         sizeof *l->nodes));
    /* A tensor that has become a constant has no maker any more. */
    if (l->draft->graph.tensors[node->output].node >= 0)
        l->draft->graph.tensors[node->output].node = l->nnodes;
    l->nodes[l->nnodes++] = *node;
    return IPU_OK;
}

/* Returns "loaded w", owned by the draft. */
static char *name_of_copy(struct loader *l, const char *name)
{
    static const char loaded[] = "loaded ";
    size_t length = strlen(name) + sizeof loaded;
    char *copy = ipu__draft_keep(l->draft, malloc(length));

    if (copy)
        snprintf(copy, length, "%s%s", loaded, name);
    return copy;
}

/* Returns the copy on the chip of what a tensor shows, made for the node of a
 * phase that reads it; NULL: its reader is no node. */
static int load_tensor(struct loader *l, int32_t tensor,
                       const struct ipu__node *node)
{
    ipu_graph *g = &l->draft->graph;
    const struct ipu__tensor t = g->tensors[tensor];
    int32_t phase = node ? phase_of(l, node) : FORWARD;
    int32_t *loaded = &l->loaded[tensor * l->nphases + phase];
    struct ipu__node made;
    struct ipu__tensor *copy;
    char *name;

    if (*loaded >= 0)
        return *loaded;
    name = name_of_copy(l, t.name);
    if (!name)
        return ipu__fail_memory(strlen(t.name));
    ipu__node_init(&made, &ipu__remote_load);
    made.inputs[0] = tensor;
    made.output = g->ntensors++;
    copy = &g->tensors[made.output];
    ipu__tensor_init(copy, name, &t.shape, IPU__RESULT);
    copy->node = l->nnodes;
    copy->shard = t.shard;
    copy->map = t.map;
    copy->source = t.source;
    if (node) {
        made.region = node->region;
        made.again = node->again;
        /* The derivatives do not load it while the forward pass is still under
         * way. */
        if (phase == BACKWARD)
            made.after = node->again ? node->after : node->derived;
    }
    *loaded = made.output;
    IPU_TRY(push_node(l, &made));
    return made.output;
}

/* Returns whether a tensor is a state of a variable that is not on the chip. */
static bool is_off_chip(const struct loader *l, int32_t tensor)
{
    return tensor < l->ntensors &&
           l->remote[ipu__origin(&l->draft->graph, tensor)];
}

/* Loads a tensor for a reader that is not a node. An output is read where it is
 * stored, and is not loaded. */
static int load_for(struct loader *l, int32_t *tensor)
{
    int status;

    if (!is_off_chip(l, *tensor))
        return IPU_OK;
    status = load_tensor(l, *tensor, NULL);
    IPU_TRY(status);
    *tensor = status;
    return IPU_OK;
}

static int load_for_nodes(struct loader *l)
{
    const ipu_graph *g = &l->draft->graph;

    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__node node = g->nodes[n];

        note_dependence(l, &node);
        for (int i = 0; i < node.op->ninputs; i++) {
            int status;

            if (!is_off_chip(l, node.inputs[i]))
                continue;
            status = load_tensor(l, node.inputs[i], &node);
            IPU_TRY(status);
            node.inputs[i] = status;
        }
        IPU_TRY(push_node(l, &node));
    }
    return IPU_OK;
}

/* Loads for host calls, and for variables that become another. */
static int load_for_ends(struct loader *l)
{
    ipu_graph *g = &l->draft->graph;

    for (int32_t i = 0; i < g->nsinks; i++)
        if (g->sinks[i].fn)
            IPU_TRY(load_for(l, &g->sinks[i].tensor));
    for (int32_t i = 0; i < g->nassigns; i++)
        IPU_TRY(load_for(l, &g->assigns[i].value));
    return IPU_OK;
}

static int add_nodes_with_loads(struct loader *l)
{
    ipu_graph *g = &l->draft->graph;

    for (int32_t t = 0; t < l->ntensors; t++)
        g->tensors[t].offloaded = l->remote[t];
    IPU_TRY(load_for_nodes(l));
    IPU_TRY(load_for_ends(l));
    free(g->nodes);
    g->nodes = l->nodes;
    g->nnodes = l->nnodes;
    g->node_capacity = l->capacity;
    l->nodes = NULL;
    return IPU_OK;
}

/* Makes room for as many more tensors as there may be loads. */
static int make_room(struct loader *l, int32_t count)
{
    ipu_graph *g = &l->draft->graph;
    size_t n = (size_t)g->ntensors + (size_t)count * (size_t)l->nphases + 1;
    size_t nloaded = (size_t)l->ntensors * (size_t)l->nphases + 1;
    struct ipu__tensor *tensors = realloc(g->tensors, n * sizeof *tensors);

    if (tensors)
        g->tensors = tensors;
    l->loaded = malloc(nloaded * sizeof *l->loaded);
    l->depends = calloc(n, sizeof *l->depends);
    if (!tensors || !l->loaded || !l->depends)
        return ipu__fail_memory(n * sizeof *tensors);
    memset(l->loaded, -1, nloaded * sizeof *l->loaded);
    return IPU_OK;
}

static int insert_loads(struct ipu__draft *draft, const bool *remote)
{
    const ipu_graph *g = &draft->graph;
    struct loader l = {.draft = draft,
                       .remote = remote,
                       .ntensors = g->ntensors,
                       .nphases = REGIONS + g->nregions};
    int32_t states = 0;
    int status = IPU_OK;

    for (int32_t t = 0; t < g->ntensors; t++)
        states += is_off_chip(&l, t);
    if (states > 0) {
        status = make_room(&l, states);
        if (status >= 0)
            status = add_nodes_with_loads(&l);
    }
    free(l.depends);
    free(l.loaded);
    free(l.nodes);
    return status;
}

static bool may_offload(const ipu_graph *g)
{
    bool any = g->nregions > 0 || g->nloops > 0 || g->parent;

    for (int32_t t = 0; t < g->ntensors && !any; t++)
        any = g->tensors[t].offload == IPU_OFFLOAD_ON;
    return any;
}

bool ipu__leaves_offload(const ipu_graph *g)
{
    for (int32_t r = 0; r < g->nregions; r++)
        if (g->regions[r].offload == IPU_OFFLOAD_AUTO)
            return true;
    for (int32_t i = 0; i < g->nloops; i++)
        if (ipu__leaves_offload(g->loops[i].body.graph))
            return true;
    return false;
}

/* Counts bytes that are on the chip, but would be in streaming memory if
 * automatic were ON. remote: the variables that are there. */
static int count_spared(const ipu_graph *g, const ipu_target *target,
                        const bool *remote, int64_t *bytes)
{
    bool *would;
    int status;

    IPU_TRY(ipu__new_array(&would, (size_t)g->ntensors, sizeof *would));
    status = choose_with_parents(g, target, IPU_OFFLOAD_ON, would);
    for (int32_t t = 0; t < g->ntensors && status >= 0; t++)
        if (would[t] && !remote[t])
            *bytes += (int64_t)ipu__shape_bytes(&g->tensors[t].shape);
    free(would);
    return status;
}

int ipu__offload(struct ipu__draft *draft, struct ipu_executable *e)
{
    const ipu_graph *graph = &draft->graph;
    bool *remote;
    int status;

    if (!may_offload(graph))
        return IPU_OK;
    IPU_TRY(check_target(graph, &e->target));
    IPU_TRY(ipu__new_array(&remote, (size_t)graph->ntensors, sizeof *remote));
    status = choose_with_parents(graph, &e->target, e->automatic, remote);
    if (status >= 0 && e->automatic == IPU_OFFLOAD_OFF)
        status = count_spared(graph, &e->target, remote, &e->spared_bytes);
    if (status >= 0)
        status = insert_loads(draft, remote);
    free(remote);
    return status;
}
