/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.c - the buffers of requests: filled before a request, and compared with
 * what must come (outcome.h) after it, element by element.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hvd.h"
#include "use.h"

enum { GUARD_BYTES = 16, GUARD = 0x5c };

struct memory {
    struct memory *next;
    void *data; /* owned; NULL: of a heap, which frees it */
};

static struct memory *memories;

static struct use uses[SCRIPT_RANKS][SCRIPT_OPS];

struct use *use_of(const struct context *c)
{
    return &uses[c->rank][c->number];
}

/* ----------------------------------------------------------------- elements */

/* What is compared with a run of elements of the output. */
struct check {
    const struct context *c;
    uint64_t salt;
    int64_t at; /* elements of the output so far */
    bool failed;
};

/* Compares with the next n elements, at most a block of them. */
static void compare(struct check *check, const double *want, int n)
{
    const struct context *c = check->c;
    const struct script_op *op = c->op;
    double got[OUTCOME_BLOCK];
    int ndifferent = 0;

    outcome_get(op->dtype, uses[c->rank][c->number].output, check->at, n, got);
    check->at += n;
    for (int i = 0; i < n; i++)
        ndifferent += got[i] != want[i];
    if (ndifferent == 0)
        return;
    for (int i = 0; i < n && !check->failed; i++) {
        if (fabs(got[i] - want[i]) <= outcome_tolerance(op->dtype, want[i]))
            continue;
        check->failed = true;
        sim_fail("phase %d repeat %d op %d (%s) on rank %d: element %lld is "
                 "%g, not %g",
                 c->phase, c->repeat, c->number, hvd_kind_name(op->kind),
                 c->rank, (long long)check->at - n + i, got[i], want[i]);
    }
}

/* Compares with n elements of a rank's input. */
static void compare_input(struct check *check, int rank, int64_t first,
                          int64_t n)
{
    uint32_t root = outcome_root(check->salt, rank);

    for (int64_t done = 0; done < n; done += OUTCOME_BLOCK) {
        int elements[OUTCOME_BLOCK], count = outcome_block(n - done);
        double want[OUTCOME_BLOCK];

        outcome_elements(check->c->op, root, rank, first + done, count,
                         elements);
        for (int i = 0; i < count; i++)
            want[i] = elements[i];
        compare(check, want, count);
    }
}

static void compare_parts(struct check *check)
{
    const struct script_op *op = check->c->op;
    int n = script_members(op), own = script_place(op, check->c->rank);

    for (int k = 0; k < n; k++) {
        int from = script_member(op, k);
        int64_t part = op->count / n, before = part * own;

        if (op->has_rows) {
            part = op->splits[from][own];
            before = 0;
            for (int j = 0; j < own; j++)
                before += op->splits[from][j];
        }
        compare_input(check, from, before, part);
    }
}

static void compare_output(const struct context *c)
{
    const struct script_op *op = c->op;
    struct check check = {.c = c, .salt = outcome_salt(c)};
    int n = script_members(op), own = script_place(op, c->rank);
    int64_t count = outcome_count(op, c->rank), first = 0;
    const double *values;

    switch (op->kind) {
    case HVD_BROADCAST: compare_input(&check, op->root, 0, count); break;
    case HVD_ALLGATHER:
    case HVD_GATHER:
        for (int k = 0; k < n && count > 0; k++)
            compare_input(&check, script_member(op, k), 0,
                          outcome_rows(op, script_member(op, k)));
        break;
    case HVD_ALLTOALL: compare_parts(&check); break;
    default:
        for (int k = 0; op->kind == HVD_REDUCESCATTER && k < own; k++)
            first += op->count / n + (k < op->count % n);
        values = outcome_reduction(c, check.salt);
        for (int64_t i = 0; i < count; i += OUTCOME_BLOCK)
            compare(&check, &values[first + i], outcome_block(count - i));
    }
}

/* ------------------------------------------------------------------- memory */

void *use_memory(size_t bytes)
{
    struct memory *memory = malloc(sizeof *memory);
    void *data = NULL;

    if (!memory)
        abort();
    *memory = (struct memory){.next = memories};
    if (script_has(WITH_HEAP) && sim.self->heap &&
        sim_once_in(&sim.self->random, 2))
        data = hvd_malloc(bytes);
    if (!data)
        data = memory->data = calloc(1, bytes);
    if (!data)
        abort();
    memories = memory;
    return data;
}

void use_allocate(const struct context *c)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    size_t element_bytes = (size_t)hvd_dtype_size(op->dtype);
    /* A rank that differs has elements of up to 8 bytes. */
    size_t room = op->fault == DIFFERS ? 8 : element_bytes;
    int64_t in = outcome_rows(op, c->rank), out = outcome_count(op, c->rank);
    bool is_one = op->in_place || op->kind == HVD_BROADCAST;

    *use = (struct use){0};
    use->input_bytes = (size_t)in * element_bytes;
    use->output_bytes = (size_t)out * element_bytes;
    use->output =
        use_memory((size_t)(out > in ? out : in) * room + GUARD_BYTES);
    use->input =
        is_one ? use->output : use_memory((size_t)in * room + GUARD_BYTES);
}

void use_fill(const struct context *c)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    int64_t n = outcome_rows(op, c->rank);
    uint32_t root = outcome_root(outcome_salt(c), c->rank);

    memset(use->output, GUARD, use->output_bytes + GUARD_BYTES);
    if (op->kind == HVD_BROADCAST && c->rank != op->root)
        return;
    for (int64_t i = 0; i < n; i += OUTCOME_BLOCK) {
        int elements[OUTCOME_BLOCK], count = outcome_block(n - i);

        outcome_elements(op, root, c->rank, i, count, elements);
        outcome_put(op->dtype, use->input, i, count, elements);
    }
}

void use_check(const struct context *c)
{
    const struct script_op *op = c->op;
    const struct use *use = use_of(c);
    const unsigned char *guard =
        (const unsigned char *)use->output + use->output_bytes;
    compare_output(c);
    for (int i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != GUARD) {
            sim_fail("phase %d op %d on rank %d: written behind the output",
                     c->phase, c->number, c->rank);
            return;
        }
    for (int k = 0; op->has_rows && k < script_members(op); k++) {
        int from = script_member(op, k);
        int64_t want = op->kind == HVD_ALLTOALL
                           ? op->splits[from][script_place(op, c->rank)]
                           : op->rows[from];

        if (op->kind == HVD_GATHER && c->rank != op->root)
            break;
        if (use->counts[k] != want)
            sim_fail("phase %d op %d on rank %d: %lld rows of rank %d, not "
                     "%lld",
                     c->phase, c->number, c->rank, (long long)use->counts[k],
                     from, (long long)want);
    }
}

void use_forget(void)
{
    while (memories) {
        struct memory *memory = memories;

        memories = memory->next;
        free(memory->data);
        free(memory);
    }
}
