/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the pass that decides which nodes run, and when.
 *
 * Only nodes that a host call or an output needs are computed. Host calls come
 * first: the call that needs the fewest more nodes is served next, then the
 * same again for those that remain. So a gradient leaves as soon as it can, and
 * gradients of the last layers, which need little of the backward pass, leave
 * before those of the first. Among the nodes that a call needs, the order of
 * the graph is kept.
 *
 * Outputs leave at the end of a run, so nodes that only outputs need come
 * afterwards, by the same rule: gradients of the last layers first, whose
 * activations are then no longer needed.
 *
 * Assignments to variables come last: nothing may fail once a variable has been
 * written. First come ops that look at data and that assignments need, then the
 * new values, by the same rule as host calls. An op that reads the old value
 * and does not need the new one comes before it, so that the new one can be
 * computed in its place. The assignment itself follows as soon as no node reads
 * the old value any more.
 *
 * Collectives of the device's network leave next, in the order of the graph,
 * with the nodes that they need, as other devices wait for them. Their results
 * are waited for where an output or an assignment needs them, and before the
 * first assignment in any case.
 *
 * Loops and stores that change something run after host calls, even if nothing
 * needs their output; effects.c finds the nodes that must run before them.
 *
 * emit.c makes steps of nodes, required.c finds which nodes something needs.
 * Later passes begin with this order; order.c looks for one that needs less
 * memory, without moving calls.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"
#include "compiler/schedule/emit.h"
#include "compiler/schedule/required.h"

struct scheduler {
    const ipu_graph *graph;
    struct ipu__emitter emitter;
    struct ipu__required needs;
    /* Owned, as all arrays */
    bool *served;                      /* [sinks] */
    bool *computed;                    /* [assigns]: its value is there */
    bool *done;                        /* [assigns]: it is made */
    bool *assigned;                    /* [nodes]: some assignment needs it */
    int32_t *candidates;               /* [sinks and assigns] */
    struct ipu__required_known *known; /* [sinks and assigns] */
    int32_t *made;    /* [nodes]: an assignment of what it makes; -1: none */
    int32_t *next;    /* [assigns]: another of the same node; -1: none */
    int32_t *waiting; /* assignments with a computed value, ascending */
    int32_t nwaiting;
};

static void list_assign(struct scheduler *s, int32_t assign)
{
    int32_t i = s->nwaiting++;

    for (; i > 0 && s->waiting[i - 1] > assign; i--)
        s->waiting[i] = s->waiting[i - 1];
    s->waiting[i] = assign;
}

static int emit_needed(struct scheduler *s, int32_t tensor)
{
    int32_t count = ipu__required_find(&s->needs, &tensor, 1);

    for (int32_t i = 0; i < count; i++) {
        int32_t n = s->needs.nodes[i];

        IPU_TRY(ipu__emit_node(&s->emitter, n));
        s->needs.scheduled[n] = true;
        for (int32_t a = s->made[n]; a >= 0; a = s->next[a])
            list_assign(s, a);
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------- sinks */

/* Returns the host call, or output, that is not served and needs the fewest
 * more nodes, the first of several; -1 if none is left. */
static int32_t next_sink(struct scheduler *s, bool calls)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nsinks; i++)
        s->candidates[i] = s->served[i] || (g->sinks[i].fn != NULL) != calls
                               ? -1
                               : g->sinks[i].tensor;
    return ipu__required_fewest(&s->needs, s->candidates, g->nsinks, s->known);
}

static int emit_sinks(struct scheduler *s, bool calls)
{
    int32_t next;

    while ((next = next_sink(s, calls)) >= 0) {
        s->served[next] = true;
        IPU_TRY(emit_needed(s, s->graph->sinks[next].tensor));
        IPU_TRY(ipu__emit_sink(&s->emitter, &s->graph->sinks[next]));
    }
    return IPU_OK;
}

/* Emits starts, or ends, of collectives of the network. */
static int emit_network(struct scheduler *s, enum ipu__network_part part)
{
    for (int32_t n = 0; n < s->graph->nnodes; n++)
        if (s->graph->nodes[n].op->network == part && !s->needs.scheduled[n])
            IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
    return IPU_OK;
}

static int emit_effects(struct scheduler *s)
{
    for (int32_t n = 0; s->needs.effects.live && n < s->graph->nnodes; n++)
        if (s->graph->nodes[n].effect && !s->needs.scheduled[n])
            IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
    return IPU_OK;
}

static int emit_enqueues(struct scheduler *s)
{
    for (int32_t i = 0; i < s->graph->nenqueues; i++) {
        const struct ipu__enqueue *enqueue = &s->graph->enqueues[i];

        for (int32_t k = 0; k < enqueue->count; k++)
            IPU_TRY(emit_needed(s, enqueue->tensors[k]));
        IPU_TRY(ipu__emit_enqueue(&s->emitter, enqueue));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------- assignments */

/* Marks what assignments need beyond what is scheduled. */
static void need_for_assigns(struct scheduler *s)
{
    const ipu_graph *g = s->graph;
    int32_t count;

    for (int32_t i = 0; i < g->nassigns; i++)
        s->candidates[i] = g->assigns[i].value;
    count = ipu__required_find(&s->needs, s->candidates, g->nassigns);
    for (int32_t i = 0; i < count; i++)
        s->assigned[s->needs.nodes[i]] = true;
}

static int emit_checks(struct scheduler *s)
{
    for (int32_t n = 0; n < s->graph->nnodes; n++)
        if (s->assigned[n] && !s->needs.scheduled[n] &&
            s->graph->nodes[n].op->checks && !s->graph->nodes[n].again)
            IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
    return IPU_OK;
}

static bool is_to_come(const struct scheduler *s, int32_t n)
{
    return s->assigned[n] && !s->needs.scheduled[n];
}

/* Returns whether a node that is to come reads the variable. */
static bool is_read(const struct scheduler *s, int32_t variable)
{
    const struct ipu__required *needs = &s->needs;

    for (int32_t i = needs->first[variable]; i < needs->first[variable + 1];
         i++)
        if (is_to_come(s, needs->readers[i]))
            return true;
    return false;
}

/* Emits assignments if their value has been computed and no node reads the old
 * value of the variable any more. */
static int emit_assigns(struct scheduler *s)
{
    int32_t left = 0;

    for (int32_t i = 0; i < s->nwaiting; i++) {
        const struct ipu__assign *a = &s->graph->assigns[s->waiting[i]];

        if (is_read(s, a->variable))
            s->waiting[left++] = s->waiting[i];
        else
            IPU_TRY(ipu__emit_assign(&s->emitter, a));
    }
    s->nwaiting = left;
    return IPU_OK;
}

/* Returns the next reader of an assigned variable that may come before its new
 * value, from number i in the list of readers on, in steps of one back or
 * forth; -1 if there is none. */
static int32_t next_reader(struct scheduler *s, const struct ipu__assign *a,
                           int32_t i, int32_t step)
{
    const ipu_graph *g = s->graph;
    struct ipu__required *needs = &s->needs;
    int32_t maker = g->tensors[a->value].node;

    for (; i >= needs->first[a->variable] && i < needs->first[a->variable + 1];
         i += step) {
        int32_t n = needs->readers[i];

        if (n == maker || !is_to_come(s, n))
            continue;
        ipu__required_find(needs, &g->nodes[n].output, 1);
        if (maker < 0 || !ipu__required_has(needs, maker))
            return i;
    }
    return -1;
}

/*
 * Emits nodes that read the variable and can come before its new value, and the
 * assignments that become possible on the way. Begins at the end of the graph,
 * where less is needed: if updates of many variables all read a counter of
 * steps, those of the last layers come first, and their activations are then
 * free.
 */
static int emit_readers(struct scheduler *s, const struct ipu__assign *a)
{
    const int32_t begin = s->needs.first[a->variable];
    const int32_t end = s->needs.first[a->variable + 1];
    int32_t first, last, step, i = next_reader(s, a, begin, 1);

    if (i < 0)
        return IPU_OK;
    first = s->needs.count;
    next_reader(s, a, end - 1, -1);
    last = s->needs.count;
    step = last < first ? -1 : 1;
    i = step < 0 ? end - 1 : begin;
    while ((i = next_reader(s, a, i, step)) >= 0) {
        int32_t n = s->needs.readers[i];

        IPU_TRY(emit_needed(s, s->graph->nodes[n].output));
        IPU_TRY(emit_assigns(s));
        i += step;
    }
    return IPU_OK;
}

static int32_t next_assign(struct scheduler *s)
{
    const ipu_graph *g = s->graph;

    for (int32_t i = 0; i < g->nassigns; i++)
        s->candidates[i] = s->computed[i] ? -1 : g->assigns[i].value;
    return ipu__required_fewest(&s->needs, s->candidates, g->nassigns,
                                s->known + g->nsinks);
}

static int emit_values(struct scheduler *s)
{
    int32_t next;

    need_for_assigns(s);
    IPU_TRY(emit_checks(s));
    while ((next = next_assign(s)) >= 0) {
        const struct ipu__assign *a = &s->graph->assigns[next];

        IPU_TRY(emit_readers(s, a));
        IPU_TRY(emit_needed(s, a->value));
        s->computed[next] = true;
        IPU_TRY(emit_assigns(s));
    }
    return IPU_OK;
}

/* --------------------------------------------------------------------- all */

/* Notes which assignments wait for which node. */
static void find_makers(struct scheduler *s)
{
    const ipu_graph *g = s->graph;

    memset(s->made, -1, (size_t)g->nnodes * sizeof *s->made);
    for (int32_t i = 0; i < g->nassigns; i++) {
        int32_t maker = g->tensors[g->assigns[i].value].node;

        if (maker < 0) {
            list_assign(s, i);
            continue;
        }
        s->next[i] = s->made[maker];
        s->made[maker] = i;
    }
}

static int emit_all(struct scheduler *s, struct ipu_executable *e)
{
    IPU_TRY(ipu__emitter_init(&s->emitter, s->graph, e));
    IPU_TRY(ipu__required_init(&s->needs, s->graph));
    find_makers(s);
    IPU_TRY(emit_sinks(s, true));
    IPU_TRY(emit_network(s, IPU__DEPARTS));
    IPU_TRY(emit_effects(s));
    IPU_TRY(emit_sinks(s, false));
    IPU_TRY(emit_enqueues(s));
    IPU_TRY(emit_network(s, IPU__ARRIVES));
    IPU_TRY(emit_values(s));
    return ipu__emit_inputs(&s->emitter);
}

int ipu__schedule(const ipu_graph *g, struct ipu_executable *e)
{
    size_t nsinks = (size_t)g->nsinks + 1, nassigns = (size_t)g->nassigns + 1;
    size_t nnodes = (size_t)g->nnodes + 1;
    struct scheduler s = {
        .graph = g,
        .served = calloc(nsinks, sizeof *s.served),
        .computed = calloc(nassigns, sizeof *s.computed),
        .assigned = calloc(nnodes, sizeof *s.assigned),
        .candidates = calloc(nsinks + nassigns, sizeof *s.candidates),
        .known = calloc(nsinks + nassigns, sizeof *s.known),
        .made = malloc(nnodes * sizeof *s.made),
        .next = calloc(nassigns, sizeof *s.next),
        .waiting = calloc(nassigns, sizeof *s.waiting),
    };
    int status = s.served && s.computed && s.assigned && s.candidates &&
                         s.known && s.made && s.next && s.waiting
                     ? emit_all(&s, e)
                     : ipu__fail_memory(nnodes * sizeof *s.made);

    free(s.served);
    free(s.computed);
    free(s.assigned);
    free(s.candidates);
    free(s.known);
    free(s.made);
    free(s.next);
    free(s.waiting);
    ipu__required_fini(&s.needs);
    return status;
}
