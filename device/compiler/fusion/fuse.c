/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c - the pass that fuses several steps into one.
 *
 * Ops by element that follow each other, over the same number of elements, and
 * that have a tensor in common, become the parts of one step. The step
 * processes the elements once, in blocks that stay in the nearest caches: all
 * parts on the first block, all on the second, and so on. Each part is run by
 * its op, as a single step would be, so results have the same bits.
 *
 *     conv2d     x, k -> a        step 0   conv2d + bias_add + relu
 *     bias_add   a, b -> c                 a part of a, when it is complete:
 *     relu       c    -> d                   a, b -> c -> d
 *
 * A value that passes between parts and that no other step needs has no memory.
 * The step keeps a block of it in a buffer, and on the chip it stays in
 * registers.
 *
 * A step may begin with a head: an op that makes its output in parts (a
 * product, a convolution), which the other parts use. Steps in between that are
 * small or only make another view of a tensor run before the fused step if they
 * need nothing of it, and after it if they do, or if they assign a variable. No
 * other step changes its place, so host calls run as early as before.
 *
 * A variable's new elements are written block by block, too. So nothing in a
 * step that assigns a variable may read more of it than the current block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"

enum {
    MOST_MOVED = 24,    /* steps in between */
    SMALL_BYTES = 1024, /* bytes of their output */
    BLOCK = 4096,       /* in elements: 16 KiB of each tensor */
    TEXT = IPU__MOST_PARTS * 32
};

/* A step that is being made. */
struct group {
    int32_t members[IPU__MOST_PARTS], n; /* steps */
    int32_t moved[MOST_MOVED], nmoved;   /* steps that run before it instead */
    int32_t kept[MOST_MOVED], nkept;     /* steps that run after it instead */
    int32_t next;                        /* the first step after them */
    int32_t moved_so_far, kept_so_far;   /* kept steps before the last member */
    int64_t count;  /* elements; -1: no op by element so far */
    int64_t period; /* a block is a multiple of it */
    bool has_head;
    int32_t work; /* ops that compute */
};

struct fuser {
    struct ipu_executable *e;
    struct group g;
    int32_t *uses;   /* [values]: reads of the whole program */
    int32_t *root;   /* [values]: the value that it is a view of */
    int32_t *stamp;  /* [values]: the number of the last group that makes it */
    int32_t *taken;  /* the same, of the last step that takes it */
    int32_t *beyond; /* the same, of the last to read past the block */
    int32_t *assigned;       /* the same, of the last step that assigns it */
    int32_t *late;           /* the same, of the last before a kept use */
    int32_t number;          /* number of this group */
    struct ipu__step *steps; /* as they become */
    int32_t nsteps;
};

/* ------------------------------------------------------------ known facts */

/* Counts reads by loops and by queues. */
static void count_uses_of_loops(struct fuser *f)
{
    const struct ipu_executable *e = f->e;
    int32_t v;

    for (int32_t i = 0; i < e->nsteps; i++)
        for (int32_t k = 0; (v = ipu__loop_read(e, &e->steps[i], k)) >= 0; k++)
            f->uses[v]++;
    for (int32_t i = 0; i < e->nfeeds; i++)
        for (int32_t k = 0; e->feeds[i].outfeed && k < e->feeds[i].count; k++)
            f->uses[e->feeds[i].values[k]]++;
}

static void count_uses(struct fuser *f)
{
    struct ipu_executable *e = f->e;

    for (int32_t v = 0; v < e->nvalues; v++)
        f->root[v] = v;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];

        if (s->gate >= 0)
            f->uses[s->gate]++;
        if (s->kind == IPU__HOST_CALL) {
            f->uses[s->output]++;
            continue;
        }
        for (int k = 0; k < s->op->ninputs; k++)
            f->uses[s->inputs[k]]++;
        if (s->op->alias)
            f->root[s->output] = f->root[s->inputs[ipu__in_place(s->op)]];
    }
    for (int32_t i = 0; i < e->nstreams; i++) {
        if (e->streams[i].kind == IPU__STREAM_OUT)
            f->uses[e->streams[i].value]++;
        if (e->streams[i].gate >= 0)
            f->uses[e->streams[i].gate]++;
    }
    count_uses_of_loops(f);
}

static int64_t count_of(const struct fuser *f, int32_t v)
{
    return ipu__shape_count(&f->e->values[v].shape);
}

static bool made_here(const struct fuser *f, int32_t v)
{
    return f->stamp[v] == f->number;
}

/* Returns whether a step after the group makes a value, or assigns it. */
static bool is_made_late(const struct fuser *f, int32_t v)
{
    return f->late[f->root[v]] == 2 * f->number + 1;
}

/* Returns whether a step after the group uses a value. */
static bool is_used_late(const struct fuser *f, int32_t v)
{
    return f->late[f->root[v]] >= 2 * f->number;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;

    while (y) {
        int64_t rest = x % y;

        x = y;
        y = rest;
    }
    return a / x * b;
}

/* ------------------------------------------------------------------ members */

static bool is_assign(const struct ipu__step *s)
{
    return s->op == &ipu__assign_step;
}

/* Returns whether the group may have a step: by element, or a view of what it
 * makes. */
static bool is_kind(const struct fuser *f, const struct ipu__step *s)
{
    if (s->kind != IPU__COMPUTE)
        return false;
    if (s->op->alias)
        return made_here(f, s->inputs[ipu__in_place(s->op)]);
    return s->op->by_element;
}

/* Returns whether an op sees its inputs as a part can. */
static bool views_fit(const struct fuser *f, const struct ipu__step_op *part)
{
    int64_t period = ipu__period_of(f->e, part);

    for (int k = 0; k < part->op->ninputs; k++) {
        int32_t v = part->inputs[k];
        enum ipu__view view = ipu__view_of(f->e, part, k);

        if (view == IPU__NO_VIEW ||
            (view == IPU__ROW && count_of(f, v) != period &&
             count_of(f, v) != 1))
            return false;
        /* A value that this group makes, or assigns to a variable, exists only
         * as its current block. */
        if (made_here(f, v) && view != IPU__WHOLE)
            return false;
        if (f->assigned[f->root[v]] == f->number || is_made_late(f, v))
            return false;
    }
    return true;
}

static bool has_in_common(const struct fuser *f,
                          const struct ipu__step_op *part)
{
    for (int k = 0; k < part->op->ninputs; k++)
        if (ipu__view_of(f->e, part, k) == IPU__WHOLE &&
            (made_here(f, part->inputs[k]) ||
             f->taken[f->root[part->inputs[k]]] == f->number))
            return true;
    return false;
}

static bool period_fits(const struct fuser *f, const struct ipu__step_op *part)
{
    const struct group *g = &f->g;
    int64_t period = common_multiple(g->period, ipu__period_of(f->e, part));
    const struct ipu__step *head = &f->e->steps[g->members[0]];
    const struct ipu__shape *y = &f->e->values[head->output].shape;

    if (period > IPU__MOST_BLOCK)
        return false;
    /* A head hands over whole rows of its last dimension. */
    return !g->has_head || period == 1 || y->extents[y->ndim - 1] % period == 0;
}

/* Returns whether a step runs in the same runs, for the same purpose, on the
 * same chip.
 */
static bool runs_with(const struct fuser *f, const struct ipu__step *s)
{
    const struct ipu__step *first = &f->e->steps[f->g.members[0]];

    return s->gate == first->gate && s->count == first->count &&
           s->again == first->again &&
           f->e->values[s->output].shard == f->e->values[first->output].shard;
}

static bool can_join(const struct fuser *f, int32_t i)
{
    const struct ipu__step *s = &f->e->steps[i];
    const struct group *g = &f->g;
    struct ipu__step_op place;
    const struct ipu__step_op *part;

    if (!is_kind(f, s) || g->n == IPU__MOST_PARTS || !runs_with(f, s))
        return false;
    part = ipu__part_of(f->e, s, 0, &place);
    if (count_of(f, s->output) != g->count || !views_fit(f, part) ||
        !period_fits(f, part) || !has_in_common(f, part))
        return false;
    return !is_assign(s) ||
           (f->beyond[s->output] != f->number && !is_used_late(f, s->output));
}

static void note_group_member(struct fuser *f, int32_t i)
{
    const struct ipu__step *s = &f->e->steps[i];
    struct ipu__step_op place;
    const struct ipu__step_op *part = ipu__part_of(f->e, s, 0, &place);
    struct group *g = &f->g;

    for (int k = 0; k < part->op->ninputs; k++) {
        int32_t root = f->root[part->inputs[k]];

        if (part->op->by_element && ipu__view_of(f->e, part, k) == IPU__WHOLE)
            f->taken[root] = f->number;
        else if (!part->op->alias)
            f->beyond[root] = f->number;
    }
    if (is_assign(s))
        f->assigned[s->output] = f->number;
    else
        f->stamp[s->output] = f->number;
    if (part->op->by_element)
        g->period = common_multiple(g->period, ipu__period_of(f->e, part));
    g->work += !part->op->alias && !is_assign(s);
    g->members[g->n++] = i;
    g->moved_so_far = g->nmoved;
    g->kept_so_far = g->nkept;
    g->next = i + 1;
}

/* --------------------------------------------------------------- in between */

static bool is_independent(const struct fuser *f, const struct ipu__step *s)
{
    if (s->gate >= 0 && (made_here(f, s->gate) || is_made_late(f, s->gate)))
        return false;
    for (int k = 0; k < s->op->ninputs; k++)
        if (made_here(f, s->inputs[k]) || is_made_late(f, s->inputs[k]) ||
            f->assigned[f->root[s->inputs[k]]] == f->number)
            return false;
    return true;
}

static bool is_slight(const struct fuser *f, const struct ipu__step *s)
{
    return s->kind == IPU__COMPUTE && !s->op->effects &&
           (is_assign(s) || s->op->alias ||
            f->e->values[s->output].bytes <= SMALL_BYTES);
}

/* Returns whether a step may come before the group. */
static bool can_move(const struct fuser *f, int32_t i)
{
    const struct ipu__step *s = &f->e->steps[i];

    return is_slight(f, s) && !is_assign(s) && f->g.nmoved < MOST_MOVED &&
           is_independent(f, s);
}

/* Returns whether a step may come after the group. One that looks at data may
 * not: it comes before variables are written. */
static bool can_keep(const struct fuser *f, int32_t i)
{
    const struct ipu__step *s = &f->e->steps[i];

    return is_slight(f, s) && !s->op->checks && f->g.nkept < MOST_MOVED;
}

static void keep_step(struct fuser *f, int32_t i)
{
    const struct ipu__step *s = &f->e->steps[i];

    for (int k = 0; k < s->op->ninputs; k++)
        if (!is_used_late(f, s->inputs[k]))
            f->late[f->root[s->inputs[k]]] = 2 * f->number;
    f->late[f->root[s->output]] = 2 * f->number + 1;
    f->g.kept[f->g.nkept++] = i;
}

/* ------------------------------------------------------------------- groups */

/* Returns whether a step may be a head: a product or convolution of floats
 * whose output has rows. */
static bool can_head(const struct fuser *f, const struct ipu__step *s)
{
    const struct ipu__value *y = &f->e->values[s->output];

    if (s->kind != IPU__COMPUTE || !s->op->run_in_parts || y->shape.ndim == 0)
        return false;
    for (int k = 0; k < s->op->ninputs; k++)
        if (f->e->values[s->inputs[k]].shape.dtype != IPU_FLOAT32)
            return false;
    return y->shape.dtype == IPU_FLOAT32;
}

static bool can_start(const struct fuser *f, const struct ipu__step *s)
{
    struct ipu__step_op place;

    return s->kind == IPU__COMPUTE && s->op->by_element && !is_assign(s) &&
           views_fit(f, ipu__part_of(f->e, s, 0, &place)) &&
           ipu__period_of(f->e, &place) <= IPU__MOST_BLOCK;
}

/* Gathers the group that begins with step i. Returns false if there is none
 * that is worth it. */
static bool gather_group(struct fuser *f, int32_t i)
{
    const struct ipu__step *first = &f->e->steps[i];
    struct group *g = &f->g;

    f->number++;
    *g = (struct group){.period = 1};
    g->has_head = can_head(f, first);
    if (!g->has_head && !can_start(f, first))
        return false;
    g->count = count_of(f, first->output);
    if (g->count == 0)
        return false;
    note_group_member(f, i);
    for (i++; i < f->e->nsteps; i++)
        if (can_join(f, i))
            note_group_member(f, i);
        else if (can_move(f, i))
            g->moved[g->nmoved++] = i;
        else if (can_keep(f, i))
            keep_step(f, i);
        else
            break;
    g->nmoved = g->moved_so_far;
    g->nkept = g->kept_so_far;
    return g->work > 1;
}

/* Finds the group's values that no other step needs. */
static void find_inner(struct fuser *f)
{
    struct ipu_executable *e = f->e;
    const struct group *g = &f->g;

    for (int32_t m = 0; m < g->n; m++) {
        const struct ipu__step *s = &e->steps[g->members[m]];

        for (int k = 0; k < s->op->ninputs; k++)
            if (made_here(f, s->inputs[k]))
                f->uses[s->inputs[k]]--;
        if (!is_assign(s))
            e->values[s->output].inner = m > 0 || !g->has_head;
    }
    /* A value that is needed is needed in all of its views. */
    for (int32_t m = g->n - 1; m >= 0; m--) {
        const struct ipu__step *s = &e->steps[g->members[m]];
        struct ipu__value *y = &e->values[s->output];

        if (is_assign(s))
            continue;
        if (f->uses[s->output] > 0 || y->map.tiles)
            y->inner = false; /* the program has mapped it */
        if (s->op->alias && !y->inner)
            e->values[s->inputs[ipu__in_place(s->op)]].inner = false;
    }
    for (int32_t m = 0; m < g->n; m++) {
        const struct ipu__step *s = &e->steps[g->members[m]];

        if (s->op->alias)
            e->values[s->output].inner =
                e->values[s->inputs[ipu__in_place(s->op)]].inner;
    }
}

static char *names_of(const struct fuser *f)
{
    char text[TEXT];
    size_t used = 0;

    for (int32_t m = 0; m < f->g.n && used < sizeof text; m++) {
        const struct ipu__step *s = &f->e->steps[f->g.members[m]];

        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 m ? ", " : "", s->op->name);
    }
    return strdup(text);
}

static int64_t block_of(const struct group *g)
{
    if (g->period >= BLOCK)
        return g->period;
    return BLOCK / g->period * g->period;
}

static int emit_group(struct fuser *f)
{
    struct ipu_executable *e = f->e;
    const struct group *g = &f->g;
    const struct ipu__step *first = &e->steps[g->members[0]];
    struct ipu__step *s;

    for (int32_t i = 0; i < g->nmoved; i++)
        f->steps[f->nsteps++] = e->steps[g->moved[i]];
    s = &f->steps[f->nsteps++];
    ipu__step_init(s, IPU__FUSED, &ipu__fused_step);
    s->first_part = e->nparts;
    s->nparts = g->n;
    s->head = g->has_head ? first->op : NULL;
    s->elements = g->count;
    s->block = block_of(g);
    s->text = names_of(f);
    s->gate = first->gate;
    s->count = first->count;
    s->again = first->again;
    if (!s->text)
        return ipu__fail_memory(1);
    find_inner(f);
    for (int32_t m = 0; m < g->n; m++) {
        struct ipu__step_op place;

        e->parts[e->nparts++] =
            *ipu__part_of(e, &e->steps[g->members[m]], 0, &place);
        s->output = e->steps[g->members[m]].output;
    }
    for (int32_t i = 0; i < g->nkept; i++)
        f->steps[f->nsteps++] = e->steps[g->kept[i]];
    return IPU_OK;
}

static int fuse_all(struct fuser *f)
{
    struct ipu_executable *e = f->e;

    count_uses(f);
    for (int32_t i = 0; i < e->nsteps;) {
        if (!gather_group(f, i)) {
            f->steps[f->nsteps++] = e->steps[i++];
            continue;
        }
        i = f->g.next;
        IPU_TRY(emit_group(f));
    }
    return IPU_OK;
}

int ipu__fuse(struct ipu_executable *e)
{
    size_t nvalues = (size_t)e->nvalues + 1, nsteps = (size_t)e->nsteps + 1;
    int32_t *room = calloc(7 * nvalues, sizeof *room);
    struct fuser f = {.e = e, .steps = calloc(nsteps, sizeof *f.steps)};
    int status;

    e->parts = calloc(nsteps, sizeof *e->parts);
    if (!room || !f.steps || !e->parts) {
        free(room);
        free(f.steps);
        return ipu__fail_memory(nsteps * sizeof *f.steps);
    }
    f.uses = room;
    f.root = room + nvalues;
    f.stamp = room + 2 * nvalues;
    f.taken = room + 3 * nvalues;
    f.beyond = room + 4 * nvalues;
    f.assigned = room + 5 * nvalues;
    f.late = room + 6 * nvalues;
    status = fuse_all(&f);
    if (status < 0) {
        for (int32_t i = 0; i < f.nsteps; i++)
            free(f.steps[i].text);
        free(f.steps);
    } else {
        free(e->steps);
        e->steps = f.steps;
        e->nsteps = f.nsteps;
    }
    free(room);
    return status;
}
