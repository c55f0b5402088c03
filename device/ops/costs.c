/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c - the work of ops of a kind, for the cost functions in the ops' rows.
 *
 * Each function completes a struct ipu__work whose outputs and element size the
 * compiler has set; target/work.c turns it into cycles. It counts elements,
 * sums and bytes only, and knows nothing of tiles.
 */
#include "ops/costs.h"

#include "ops/norms/norm.h"

/*
 * Issue slots of a context for the functions, as Graphcore's estimates have
 * them (poplibs, lib/popops/popopsCycleEstimators.hpp): of two float32
 * elements, and of four halves. How many cycles an instruction takes depends on
 * its data; these are averages. sin, cos and powers are the library's, an
 * element at a time.
 */
static const struct {
    int32_t floats, halves;
} function_slots[] = {
    [IPU__NO_FUNCTION] = {0, 0},
    [IPU__EXP] = {6, 4},
    [IPU__LOG] = {12, 4},
    [IPU__TANH] = {10, 2},
    [IPU__SIGMOID] = {10, 4},
    [IPU__DIVIDE] = {10, 21},
    [IPU__SQRT] = {10, 23},
    [IPU__RSQRT] = {8, 19},
    [IPU__ERF] = {2 * 18, 4 * 16},
    [IPU__EXPM1] = {2 * 4, 5},
    [IPU__LOG1P] = {180, 180},
    [IPU__SIN] = {2 * 2300, 4 * 26},
    [IPU__POWER] = {2 * 312, 4 * 325},
};

bool ipu__knows_slots(const struct ipu__op *op)
{
    return op->slots || op->functions[0];
}

int32_t ipu__slots(const struct ipu__op *op, int32_t element_bytes)
{
    bool halves = element_bytes < 4;
    int32_t slots = halves && op->half_slots ? op->half_slots : op->slots;

    slots = slots > 0 ? slots : 0;
    for (int i = 0; i < 2; i++)
        slots += halves ? function_slots[op->functions[i]].halves
                        : function_slots[op->functions[i]].floats;
    return slots;
}

static int64_t count_of(const struct ipu__call *call, int i)
{
    return ipu__shape_count(&call->inputs[i].shape);
}

static void set_work(const struct ipu__call *call, struct ipu__work *work,
                     enum ipu__work_kind kind)
{
    work->kind = kind;
    work->elements = count_of(call, 0);
    work->arithmetic = ipu__slots(call->op, work->element_bytes);
    work->loops = call->op->loops;
}

void ipu__rows_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    set_work(call, work, IPU__WORK_ROWS);
    work->run = x->ndim > 0 ? x->extents[x->ndim - 1] : 1;
    work->run_outputs = 1;
    work->loads = 2 + call->op->ninputs;
    work->rows = work->run ? work->elements / work->run : 0;
    work->sums = 2;
}

/* Sets the sums of a normalisation: two for a group in each of the outer parts,
 * which are made together. */
static void set_run(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);

    work->run = n.rows * n.width;
    work->run_outputs = 2 * n.groups;
    work->rows = 2 * n.outer * n.groups;
    work->sums = 1;
}

void ipu__normalize_cost(const struct ipu__call *call, struct ipu__work *work)
{
    set_work(call, work, IPU__WORK_ELEMENTS);
    work->loads = 3;
    for (int i = 1; i < call->op->ninputs; i++)
        work->broadcast_bytes += count_of(call, i) * work->element_bytes;
}

void ipu__norm_grad_cost(const struct ipu__call *call, struct ipu__work *work)
{
    ipu__rows_cost(call, work);
    set_run(call, work);
}

void ipu__statistics_cost(const struct ipu__call *call, struct ipu__work *work)
{
    if (ipu__is_half(call->inputs[0].dtype))
        work->element_bytes = 2;
    set_work(call, work, IPU__WORK_ROWS);
    set_run(call, work);
    work->loads = 2;
    work->stores = 0;
}

void ipu__scale_grad_cost(const struct ipu__call *call, struct ipu__work *work)
{
    ipu__sum_cost(call, work);
    work->arithmetic = ipu__slots(call->op, work->element_bytes);
    work->loops = call->op->loops;
}

void ipu__read_once_cost(const struct ipu__call *call, struct ipu__work *work)
{
    set_work(call, work, IPU__WORK_ELEMENTS);
    work->loads = call->op->ninputs;
    if (work->outputs > work->elements)
        work->elements = work->outputs;
}

void ipu__sum_cost(const struct ipu__call *call, struct ipu__work *work)
{
    work->kind = IPU__WORK_SUM;
    work->elements = count_of(call, 0);
    work->run = work->elements;
    work->run_outputs = work->outputs;
    if (work->elements < work->outputs) /* of no elements */
        work->elements = work->outputs;
}

void ipu__axes_sum_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    ipu__sum_cost(call, work);
    for (int32_t i = 0; i < x->ndim && !call->attributes->axes[i]; i++)
        if (x->extents[i] > 0) {
            work->run /= x->extents[i];
            work->run_outputs /= x->extents[i];
        }
}

void ipu__by_number_cost(const struct ipu__call *call, struct ipu__work *work)
{
    int last = call->op->ninputs - 1;

    work->kind = IPU__WORK_MOVE;
    if (last > 1) /* updates, to their rows */
        work->outputs = count_of(call, last);
    work->estimate =
        "which rows are asked for is known only when it runs: they "
        "are taken to be spread evenly";
}
