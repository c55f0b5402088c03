/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - the cycles of a step: passes the work that an op describes to the
 * cost functions that count it.
 *
 * The compiler calls ipu__work_cycles for each step, once it has placed the
 * tensors; it passes the known plans of products.
 */
#include "target/work.h"

#include "base/error.h"
#include "target/cost.h"

/* Share of a tile with which a product is tried where there is no room: as much
 * as Graphcore's own large networks leave for one, 0.15 to 0.25. */
static const double LEAST_SHARE = 0.15;

/* Makes the exchange wait for data on few tiles, which takes longer to leave
 * than to arrive. */
static void wait_for_senders(const ipu_target *target, int64_t give_bytes,
                             ipu_cycles *cycles)
{
    int64_t more = ipu__words_cycles(target, give_bytes) -
                   ipu__words_cycles(target, cycles->exchange_bytes);

    if (more <= 0 || cycles->exchange_bytes == 0)
        return;
    cycles->exchange += more;
    cycles->total += more;
}

/* Counts a product that has no room next to other data: with the given room,
 * then twice that, and so on. */
static int count_without_room(const ipu_target *target,
                              const ipu_product *product,
                              const struct ipu__work *work, ipu_plan *plan,
                              ipu_cycles *cycles)
{
    const int64_t most = INT64_C(1) << 50;
    int64_t room = 1 + (int64_t)(LEAST_SHARE * (double)target->bytes_per_tile);
    int status = IPU_ERR_FULL;

    for (; status == IPU_ERR_FULL && room < most; room *= 2)
        status = ipu__product_within(target, product, room, work->plans, plan,
                                     cycles);
    return status;
}

static int count_product(const ipu_target *target, const struct ipu__work *work,
                         ipu_cycles *cycles, int64_t *tiles)
{
    ipu_product product = work->product;
    ipu_plan plan = {.size = sizeof plan};
    int status;

    product.size = sizeof product;
    product.element_bytes = work->element_bytes;
    status = ipu__product_beside(target, &product, work->others, work->plans,
                                 &plan, cycles);
    if (status == IPU_ERR_FULL)
        status = count_without_room(target, &product, work, &plan, cycles);
    *tiles = plan.tiles;
    if (status >= 0)
        wait_for_senders(target, work->give_bytes, cycles);
    return status;
}

static int count_elements(const ipu_target *target,
                          const struct ipu__work *work, ipu_cycles *cycles)
{
    int64_t share =
        ipu__ceil_div(work->elements, target->tiles) * work->element_bytes;
    const ipu_loop loop = {.tuned = !work->compiled,
                           .loads = work->loads,
                           .stores = work->stores,
                           .arithmetic = work->arithmetic,
                           .control = IPU__COUNT_SLOTS};
    int status = ipu__elements_cycles(
        target, work->elements, work->element_bytes, loop, work->loops, cycles);

    if (status >= 0 && work->elements > 0) {
        int64_t bytes = ipu__least(work->broadcast_bytes, share);

        ipu__count_exchange(target, bytes, 1, cycles);
        cycles->temporary_bytes += bytes;
    }
    return status;
}

/* Returns the number of tiles that a row is on: the given one, or an even
 * spread. */
static int64_t parts_of_rows(const ipu_target *target,
                             const struct ipu__work *work)
{
    int64_t vectors = work->elements * work->element_bytes /
                      target->vector_bytes / work->rows;

    if (work->share > 0)
        return work->parts;
    return ipu__least(target->tiles / work->rows, vectors);
}

/* Counts rows that lie on several tiles: each tile sums its part; the parts are
 * summed, and each tile receives its own sums. */
static int count_rows(const ipu_target *target, const struct ipu__work *work,
                      ipu_cycles *cycles)
{
    int status = count_elements(target, work, cycles);
    int64_t parts = work->rows ? parts_of_rows(target, work) : 0;
    int64_t here = work->run_outputs;

    if (status < 0 || parts <= 1)
        return status;
    if (work->share > work->run)
        here *= ipu__ceil_div(work->share, work->run);
    for (int32_t i = 0; i < work->sums; i++) {
        const ipu_cycles sums = ipu__add_up(target, work->rows, parts);

        ipu__follow(cycles, &sums);
        ipu__count_exchange(target, 4 * (here > 0 ? here : 1), 1, cycles);
    }
    return IPU_OK;
}

static int count_product_and_rows(const ipu_target *target,
                                  const struct ipu__work *work,
                                  ipu_cycles *cycles, int64_t *tiles)
{
    ipu_cycles rows = {.size = sizeof rows};

    IPU_TRY(count_product(target, work, cycles, tiles));
    if (work->rows == 0)
        return IPU_OK;
    IPU_TRY(count_rows(target, work, &rows));
    ipu__follow(cycles, &rows);
    return IPU_OK;
}

/* Words come in any order; each tile puts its own where they belong: vectors of
 * neighbours, or one element after the other. */
static int count_move(const ipu_target *target, const struct ipu__work *work,
                      ipu_cycles *cycles)
{
    int64_t elements = ipu__ceil_div(work->outputs, target->tiles);
    int64_t all =
        work->outputs; /* elements move in vectors, unless they are scattered */
    int64_t share = elements * work->element_bytes;
    const ipu_loop loop = {
        .size = sizeof loop,
        .tuned = 1,
        .loads = 1,
        .stores = 1,
        .iterations = work->scattered
                          ? elements
                          : ipu__ceil_div(share, target->vector_bytes)};

    if (work->outputs == 0)
        return IPU_OK;
    IPU_TRY(ipu_model_loop(target, &loop, cycles));
    if (!work->scattered)
        all = ipu__ceil_div(all * work->element_bytes, target->vector_bytes);
    ipu__count_waiting(target, all, loop.iterations,
                       ipu__start_cycles(target, 1), cycles);
    if (!work->followed) {
        ipu__count_exchange(target, share, 1, cycles);
        cycles->temporary_bytes += share;
    }
    return IPU_OK;
}

/* Counts one transfer after the other, none larger than the hardware allows. */
static int count_streaming(const ipu_target *target,
                           const struct ipu__work *work, ipu_cycles *cycles)
{
    const ipu_system system = {.size = sizeof system,
                               .ipu = *target,
                               .ipus = 1,
                               .ipus_per_board = 1,
                               .host_share = 1,
                               .streaming_bytes_per_board = INT64_MAX};
    int64_t left = work->outputs * work->element_bytes;
    ipu_cycles sum = {0}, one = {.size = sizeof one};

    for (; left > 0; left -= IPU__STREAMING_BYTES) {
        int status = ipu_model_streaming(
            &system, ipu__least(left, IPU__STREAMING_BYTES), &one);

        if (status < 0)
            return status;
        sum.sync += one.sync;
        sum.exchange += one.exchange;
        sum.exchange_bytes += one.exchange_bytes;
        sum.exchange_code_bytes += one.exchange_code_bytes;
        sum.estimate = one.estimate;
    }
    sum.size = cycles->size;
    *cycles = sum;
    return IPU_OK;
}

int ipu__work_cycles(const ipu_target *target, const struct ipu__work *work,
                     ipu_cycles *cycles, int64_t *tiles)
{
    ipu_cycles counted = {.size = sizeof counted};
    int64_t vector = target->vector_bytes / work->element_bytes;
    int64_t elements =
        work->kind == IPU__WORK_MOVE ? work->outputs : work->elements;
    int status = IPU_OK;

    *tiles =
        ipu__least(ipu__ceil_div(elements, vector ? vector : 1), target->tiles);
    switch (work->kind) {
    case IPU__WORK_PRODUCT:
        status = count_product_and_rows(target, work, &counted, tiles);
        break;
    case IPU__WORK_ELEMENTS:
        status = count_elements(target, work, &counted);
        break;
    case IPU__WORK_ROWS: status = count_rows(target, work, &counted); break;
    case IPU__WORK_MOVE: status = count_move(target, work, &counted); break;
    case IPU__WORK_STREAMING:
        *tiles = 0;
        status = count_streaming(target, work, &counted);
        break;
    case IPU__WORK_SUM:
        status = ipu__reduce_cycles(target, work, &counted);
        break;
    default: *tiles = 0;
    }
    if (work->estimate)
        counted.estimate = work->estimate;
    if (status >= 0)
        ipu__finish(&counted, cycles);
    return status;
}
