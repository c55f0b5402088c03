/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - decides which stage works on which mini-batch in which slot.
 *
 * A mini-batch goes through positions 0 .. P - 1: the S stages forwards and, in
 * training, the same stages backwards, so that position S + k is stage S - 1 -
 * k. Each mini-batch enters at a different slot and advances by one position
 * per slot:
 *
 *     grouped      enters every slot          position p of m at slot m + p
 *     interleaved  enters every second slot   2 m + p, in training
 *     sequential   enters when the last left  P m + p
 *
 * In the interleaved schedule, the two positions of a stage (p and P - 1 - p)
 * differ by an odd number, and so never share a slot: an IPU runs one task at a
 * time. In inference a stage has one position, and both schedules are the same.
 *
 * As a program, L mini-batches make a round: the ramp-up lasts until the first
 * L have entered and every lane is busy, then come count / L - 1 rounds of the
 * steady state, then the ramp-down. count must be a multiple of L, which is P
 * if there are P lanes, S if there are S, and 1 if there is only one.
 *
 * With I/O tiles a mini-batch arrives one slot before its first stage and
 * leaves one slot after its last: this adds two slots, and all but the first
 * and last L + 2 lanes are one loop of a single slot, so that every count from
 * L + 2 on is possible.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "pipeline/schedule.h"
#include "target/target.h"

enum { MOST_STAGES = 64 };

const char *ipu_schedule_name(ipu_schedule schedule)
{
    static const char *const names[IPU_NUM_SCHEDULES] = {
        "grouped", "interleaved", "sequential"};

    return schedule >= 0 && schedule < IPU_NUM_SCHEDULES ? names[schedule]
                                                         : NULL;
}

/* Returns how many positions a mini-batch goes through, forwards and
 * backwards. */
static int32_t positions_of(const ipu_schedule_options *o)
{
    return o->training ? 2 * o->stages : o->stages;
}

/* Returns the slots between one mini-batch and the next. */
static int64_t stride(const ipu_schedule_options *o)
{
    if (o->schedule == IPU_SCHEDULE_SEQUENTIAL)
        return positions_of(o);
    return o->schedule == IPU_SCHEDULE_INTERLEAVED && o->training ? 2 : 1;
}

/* Returns how many mini-batches are under way at a time. */
static int32_t lanes(const ipu_schedule_options *o)
{
    return (int32_t)(positions_of(o) / stride(o));
}

static int check_options(const ipu_schedule_options *o)
{
    if (!o)
        return ipu__fail(IPU_ERR_ARGUMENT, "schedule: the options are NULL");
    IPU_TRY(ipu__check_size("schedule options", o->size, sizeof *o));
    if (!ipu_schedule_name(o->schedule))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule %d is none: 0 grouped, 1 interleaved, 2 "
                         "sequential",
                         (int)o->schedule);
    if (o->stages < 1 || o->stages > MOST_STAGES)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: %d stages, there may be 1 to %d",
                         (int)o->stages, MOST_STAGES);
    if (o->io_tiles && o->schedule != IPU_SCHEDULE_GROUPED)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: streams overlap with stages in the grouped "
                         "schedule only, this is the %s one: take no I/O tiles",
                         ipu_schedule_name(o->schedule));
    return IPU_OK;
}

static int check_count(const ipu_schedule_options *o)
{
    /* The limit lets slots and executions be counted in 64 bits. */
    const int64_t most = INT64_C(1) << 48;
    int32_t least = o->io_tiles ? lanes(o) + 2 : lanes(o);

    if (o->count > most)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "The number of iterations of the pipeline must be at "
                         "most %" PRId64 ", but it is %" PRId64 ".",
                         most, o->count);
    if (o->io_tiles && o->count < least)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "The number of iterations of the pipeline must be at "
                         "least %d, but it is %" PRId64 ".",
                         (int)least, o->count);
    if (o->count < 1 && lanes(o) == 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "The number of iterations of the pipeline must be at "
                         "least 1, but it is %" PRId64 ".",
                         o->count);
    if (!o->io_tiles && (o->count < 1 || o->count % lanes(o) != 0))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "The number of iterations of the pipeline must be a "
                         "multiple of %d, but it is %" PRId64 ".",
                         (int)lanes(o), o->count);
    return IPU_OK;
}

/* Counts the executions of the first count slots. */
static int64_t executions_before(const ipu_schedule_options *o, int64_t slots)
{
    int64_t sum = 0;

    for (int64_t s = 0; s < slots; s++)
        sum += ipu_schedule_slot(o, s, 0, NULL);
    return sum;
}

int ipu_schedule_plan(const ipu_schedule_options *options,
                      ipu_schedule_info *info)
{
    const ipu_schedule_options *o = options;
    int64_t positions, round;
    ipu_schedule_info made = {0};

    IPU_TRY(check_options(o));
    if (!info)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: the place for the plan is NULL");
    IPU_TRY(ipu__check_size("schedule info", info->size, sizeof *info));
    IPU_TRY(check_count(o));
    positions = positions_of(o);
    round = stride(o) * lanes(o);
    made.size = info->size;
    made.multiple_of = o->io_tiles ? 1 : lanes(o);
    made.at_least = o->io_tiles ? lanes(o) + 2 : lanes(o);
    made.executions = positions * o->count;
    made.slots = stride(o) * (o->count - 1) + positions + 2 * (o->io_tiles > 0);
    made.steady_slots = o->io_tiles ? 1 : round;
    if (o->schedule == IPU_SCHEDULE_SEQUENTIAL) {
        made.repeats = o->count;
    } else if (o->io_tiles) {
        made.ramp_up_slots = made.ramp_down_slots = positions + 1;
        made.repeats = made.slots - 2 * made.ramp_up_slots;
    } else {
        made.ramp_up_slots = round;
        made.repeats = o->count / lanes(o) - 1;
        made.ramp_down_slots =
            made.slots - made.ramp_up_slots - made.repeats * round;
    }
    made.ramp_up_executions = executions_before(o, made.ramp_up_slots);
    made.ramp_down_executions =
        made.executions - made.ramp_up_executions -
        (made.repeats > 0
             ? made.repeats * (executions_before(o, made.ramp_up_slots +
                                                        made.steady_slots) -
                               made.ramp_up_executions)
             : 0);
    *info = made;
    return IPU_OK;
}

int32_t ipu_schedule_stash(const ipu_schedule_options *options, int32_t stage)
{
    const ipu_schedule_options *o = options;

    IPU_TRY(check_options(o));
    if (stage < 0 || stage >= o->stages)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: there is no stage %d: there are 0 to %d",
                         (int)stage, (int)o->stages - 1);
    if (!o->training || o->schedule == IPU_SCHEDULE_SEQUENTIAL)
        return 0;
    return (o->stages - 1 - stage) *
           (o->schedule == IPU_SCHEDULE_GROUPED ? 2 : 1);
}

static ipu_schedule_entry entry_of(const ipu_schedule_options *o,
                                   int64_t position, int64_t mini_batch)
{
    bool backward = position >= o->stages;

    return (ipu_schedule_entry){
        .stage = (int32_t)(backward ? 2 * o->stages - 1 - position : position),
        .kind = backward ? IPU_STAGE_BACKWARD : IPU_STAGE_FORWARD,
        .mini_batch = mini_batch,
    };
}

int ipu_schedule_slot(const ipu_schedule_options *options, int64_t slot,
                      int32_t capacity, ipu_schedule_entry *entries)
{
    const ipu_schedule_options *o = options;
    int found = 0;

    IPU_TRY(check_options(o));
    if (capacity > 0 && !entries)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: the place for entries is NULL");
    /* Backward positions come first, as they read elements that were stashed
     * earlier. */
    for (int64_t p = positions_of(o) - 1; p >= 0; p--) {
        int64_t entered = slot < 0 ? -1 : slot - p - (o->io_tiles != 0);

        if (entered < 0 || entered % stride(o) != 0 ||
            entered / stride(o) >= o->count)
            continue;
        if (found < capacity)
            entries[found] = entry_of(o, p, entered / stride(o));
        found++;
    }
    return found;
}

/* ------------------------------------------------------------------ as text */

/* Returns the position of lane l, row slots after the phase began; outside [0,
 * P): no work. In the steady state a lane that leaves enters again. */
static int64_t position_at(const ipu_schedule_options *o, int32_t phase,
                           int64_t row, int64_t lane)
{
    int64_t positions = positions_of(o);
    int64_t last = positions - 1 - stride(o) * lane;

    if (o->schedule == IPU_SCHEDULE_SEQUENTIAL)
        return row;
    if (stride(o) == 1) /* the lane of each position stays the same */
        return phase == 0 ? row - lane : phase == 1 ? last : last + row + 1;
    if (phase == 0)
        return row - stride(o) * lane;
    row = row - stride(o) * lane;
    return phase == 1 ? (row + positions) % positions
           : row < 0  ? row + positions
                      : positions;
}

int64_t ipu_schedule_print(const ipu_schedule_options *options, int32_t phase,
                           char *text, int64_t size)
{
    const ipu_schedule_options *o = options;
    int64_t used = 0, rows;

    IPU_TRY(check_options(o));
    if (phase < 0 || phase > 2 || o->io_tiles || (size > 0 && !text))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "schedule: phases are 0, 1, 2, without I/O tiles");
    rows = stride(o) * lanes(o);
    if (o->schedule == IPU_SCHEDULE_SEQUENTIAL && phase != 1)
        rows = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t lane = 0; lane < lanes(o); lane++) {
            int64_t p = position_at(o, phase, row, lane);
            bool runs = p >= 0 && p < positions_of(o);

            if (used + 1 < size)
                text[used] = runs ? (char)('a' + p) : '.';
            used++;
        }
    if (size > 0)
        text[used < size ? used : size - 1] = 0;
    return used;
}
