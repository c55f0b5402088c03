/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.c - the cost of work that is spread evenly over all tiles: elements,
 * sums, stencils, a matrix times a vector.
 */
#include <math.h>

#include "base/error.h"
#include "target/cost.h"
#include "target/target.h"
#include "target/work.h"

static int check_counts(const char *what, int64_t count, int32_t element_bytes)
{
    if (count < 0 || count > (int64_t)1 << 48)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: %lld elements; 0 to 2^48", what,
                         (long long)count);
    if (element_bytes != 2 && element_bytes != 4)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: elements of %d bytes; 2 or 4",
                         what, (int)element_bytes);
    return IPU_OK;
}

static int64_t vectors_in_all(const ipu_target *target, int64_t elements,
                              int32_t element_bytes)
{
    return ipu__ceil_div(elements * element_bytes, target->vector_bytes);
}

/* Vectors of the busiest tile. */
static int64_t vectors_of(const ipu_target *target, int64_t elements,
                          int32_t element_bytes)
{
    return ipu__ceil_div(ipu__ceil_div(elements, target->tiles) * element_bytes,
                         target->vector_bytes);
}

int ipu__elements_cycles(const ipu_target *target, int64_t elements,
                         int32_t element_bytes, ipu_loop loop, int32_t loops,
                         ipu_cycles *cycles)
{
    ipu_cycles counted = {.size = sizeof counted};

    IPU_TRY(ipu__check_model(target, cycles));
    IPU_TRY(check_counts("elementwise", elements, element_bytes));
    loop.size = sizeof loop;
    loop.iterations = vectors_of(target, elements, element_bytes);
    if (elements > 0)
        IPU_TRY(ipu_model_loop(target, &loop, &counted));
    if (elements > 0)
        ipu__count_loops(target, loops, &counted);
    ipu__count_waiting(target, vectors_in_all(target, elements, element_bytes),
                       loop.iterations, ipu__start_cycles(target, loops),
                       &counted);
    counted.flops = (double)loop.arithmetic * (double)elements;
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

int ipu_model_elementwise(const ipu_target *target, int64_t elements,
                          int32_t element_bytes, int32_t loads,
                          int32_t arithmetic, ipu_cycles *cycles)
{
    const ipu_loop loop = {
        .tuned = 1, .loads = loads, .stores = 1, .arithmetic = arithmetic};

    return ipu__elements_cycles(target, elements, element_bytes, loop, 1,
                                cycles);
}

/* --------------------------------------------------------------------- sums */

/* Counts one stage of adding: each tile takes parts values of each of sums. */
static void count_stage(const ipu_target *target, int64_t sums, int64_t parts,
                        ipu_cycles *c)
{
    int64_t vectors = ipu__ceil_div(sums * parts * 4, target->vector_bytes);

    ipu__count_exchange(target, sums * parts * 4, parts, c);
    c->compute +=
        IPU__LAUNCH_CYCLES +
        (IPU__VERTEX_SLOTS + ipu__ceil_div(vectors, target->workers)) *
            target->workers;
    if (c->temporary_bytes < sums * parts * 4)
        c->temporary_bytes = c->partial_bytes = sums * parts * 4;
}

/* Counts adding the partial values of all tiles to one for each output, in
 * stages. */
static ipu_cycles add_up(const ipu_target *target, int64_t outputs,
                         int64_t partials, int stages)
{
    ipu_cycles c = {0};
    int64_t step = (int64_t)ceil(pow((double)partials, 1.0 / stages) - 1e-9);

    for (int64_t left = partials; left > 1; left = ipu__ceil_div(left, step)) {
        int64_t parts = ipu__least(left, step);
        int64_t sums = outputs * ipu__ceil_div(left, parts);
        int64_t here = ipu__ceil_div(sums, target->tiles);
        ipu_cycles stage = {0};

        count_stage(target, here, parts, &stage);
        ipu__count_waiting(target, sums, here, ipu__start_cycles(target, 1),
                           &stage);
        ipu__follow(&c, &stage);
    }
    c.total = c.compute + c.exchange + c.sync;
    return c;
}

ipu_cycles ipu__add_up(const ipu_target *target, int64_t outputs, int64_t parts)
{
    ipu_cycles best = {0};

    for (int stages = 1; stages <= 3; stages++) {
        ipu_cycles c = add_up(target, outputs, parts, stages);

        if (stages == 1 || c.total < best.total)
            best = c;
    }
    return best;
}

int ipu__reduce_cycles(const ipu_target *target, const struct ipu__work *work,
                       ipu_cycles *cycles)
{
    ipu_loop loop = {.size = sizeof loop,
                     .tuned = 1,
                     .loads = 2,
                     .arithmetic = work->arithmetic > 1 ? work->arithmetic : 1};
    ipu_cycles counted = {.size = sizeof counted}, best = {0};
    int64_t elements = work->elements, outputs = work->outputs;
    int64_t parts = work->parts, share = work->share;

    IPU_TRY(ipu__check_model(target, cycles));
    IPU_TRY(check_counts("reduce", elements, work->element_bytes));
    if (outputs < 0 || outputs > elements)
        return ipu__fail(IPU_ERR_ARGUMENT, "reduce: %lld elements to %lld sums",
                         (long long)elements, (long long)outputs);
    if (outputs > 0) {
        if (share == 0) {
            share = ipu__ceil_div(elements, target->tiles);
            parts = ipu__least(target->tiles, elements / outputs);
        }
        loop.iterations =
            ipu__ceil_div(share * work->element_bytes, target->vector_bytes);
        IPU_TRY(ipu_model_loop(target, &loop, &counted));
        ipu__count_loops(target, work->loops, &counted);
        ipu__count_waiting(
            target, vectors_in_all(target, elements, work->element_bytes),
            loop.iterations, ipu__start_cycles(target, work->loops), &counted);
        best = ipu__add_up(target, outputs, parts);
        counted.compute += best.compute;
        counted.waiting += best.waiting;
        counted.exchange = best.exchange;
        counted.sync = best.sync;
        counted.exchange_bytes = best.exchange_bytes;
        counted.temporary_bytes = best.temporary_bytes;
        counted.partial_bytes = best.partial_bytes;
        counted.code_bytes += best.code_bytes;
        counted.exchange_code_bytes = best.exchange_code_bytes;
        counted.flops = (double)(elements - outputs);
    }
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

int ipu_model_reduce(const ipu_target *target, int64_t elements,
                     int64_t outputs, int32_t element_bytes, ipu_cycles *cycles)
{
    const struct ipu__work work = {.elements = elements,
                                   .outputs = outputs,
                                   .element_bytes = element_bytes};

    return ipu__reduce_cycles(target, &work, cycles);
}

/* ----------------------------------------------------------------- stencils */

/* Hand-written loops take two cells at a time: aligned rows are loaded as
 * vectors, and each neighbour within a row needs a separate vector. Compiled
 * loops take one cell at a time, as the compiler cannot know that rows are
 * aligned. */
static ipu_loop cell_loop(int32_t points, int32_t tuned, int64_t cells)
{
    return (ipu_loop){
        .size = sizeof(ipu_loop),
        .tuned = tuned,
        .iterations = tuned ? ipu__ceil_div(cells, 2) : cells,
        .loads = points,
        .stores = 1,
        .arithmetic = points + 1,
        .control = 3,
    };
}

int ipu_model_stencil(const ipu_target *target, int32_t dims, int64_t side,
                      int32_t points, int32_t tuned, ipu_cycles *cycles)
{
    ipu_cycles counted = {.size = sizeof counted};
    double all, block, face;
    ipu_loop loop;
    int64_t cells;

    IPU_TRY(ipu__check_model(target, cycles));
    if (dims < 1 || dims > 3 || side < 1 || side > 1 << 16 || points < 1 ||
        points > 1 << 10)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a stencil of %d points on %lld^%d cells: 1 to 3 "
                         "dimensions of at most 65536",
                         (int)points, (long long)side, (int)dims);
    all = pow((double)side, dims);
    block = ceil(all / target->tiles);
    cells = (int64_t)block;
    face = pow(block, (dims - 1.0) / dims);
    if (2 * block * 4 > (double)target->bytes_per_tile)
        return ipu__fail(IPU_ERR_FULL,
                         "a stencil on %lld^%d cells does not fit on '%s': two "
                         "grids of %lld cells on a tile of %lld bytes",
                         (long long)side, (int)dims, target->name,
                         (long long)cells, (long long)target->bytes_per_tile);
    loop = cell_loop(points, tuned, cells);
    IPU_TRY(ipu_model_loop(target, &loop, &counted));
    if (cells < (int64_t)all)
        ipu__count_exchange(target, 2 * dims * 4 * (int64_t)ceil(face),
                            (int64_t)2 * dims, &counted);
    counted.temporary_bytes = 2 * dims * 4 * (int64_t)ceil(face);
    counted.flops = (points + 1.0) * all;
    counted.estimate = "blocks are taken to be cubes, whatever the side";
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

/* ----------------------------------------------------------- matrix, vector */

/* Returns the slots of a vertex of that many multiplications or additions, two
 * a slot. */
static int64_t dot_slots(int64_t count)
{
    const ipu_loop loop = {.tuned = 1, .loads = 2, .arithmetic = 1};

    return 5 + ipu__ceil_div(count, 2) * ipu__loop_slots(&loop);
}

static ipu_cycles matvec(const ipu_target *target, int64_t rows,
                         int64_t columns, int64_t split)
{
    int64_t width = ipu__ceil_div(columns, split);
    int64_t dots = ipu__ceil_div(rows * split, target->tiles);
    int64_t sums = ipu__ceil_div(rows, target->tiles);
    /* A tile's rows are of one part of the vector, or of a few. */
    int64_t vector = ipu__ceil_div(dots, rows) * width * 4;
    ipu_cycles c = {0};

    c.compute = ipu__vertices_cycles(target, dots, dot_slots(width)) +
                ipu__vertices_cycles(target, sums, dot_slots(split));
    c.exchange = ipu__words_cycles(target, vector) +
                 ipu__words_cycles(target, sums * split * 4);
    c.exchange_bytes = vector + sums * split * 4;
    c.temporary_bytes = c.exchange_bytes;
    return c;
}

int ipu_model_matvec(const ipu_target *target, int64_t rows, int64_t columns,
                     int64_t split, int64_t *split_used, ipu_cycles *cycles)
{
    ipu_cycles best = {0};
    int64_t from = split ? split : 1, to = split;

    IPU_TRY(ipu__check_model(target, cycles));
    if (rows < 1 || columns < 1 || rows > 1 << 24 || columns > 1 << 20 ||
        split < 0 || split > columns)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a matrix [%lld, %lld] in %lld parts, times a vector: "
                         "at most 2^24 rows and 2^20 columns, and no more "
                         "parts than those",
                         (long long)rows, (long long)columns, (long long)split);
    if (to == 0)
        to = columns - 1;
    for (int64_t s = from; s <= (to > from ? to : from); s++) {
        ipu_cycles c = matvec(target, rows, columns, s);

        if (s == from ||
            c.compute + c.exchange < best.compute + best.exchange) {
            best = c;
            split = s;
        }
    }
    best.sync = 2 * (target->sync_cycles + target->exchange_setup_cycles +
                     ipu__longest_path(target));
    best.flops = 2.0 * (double)rows * (double)columns;
    if (split_used)
        *split_used = split;
    ipu__finish(&best, cycles);
    return IPU_OK;
}
