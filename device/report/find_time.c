/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_time.c - finds changes that would save cycles, and the most that each
 * could save.
 *
 *   balance   a step computes on some of the tiles. On all of them it would
 *             take their part of the time, but not less than it takes to
 *             start the contexts of a tile with next to nothing to do.
 *   exchange  a step waits longer for data than it computes. Were its inputs
 *             where they are needed, neither the exchange nor its sync would
 *             be there. Or it waits for the device's network.
 *   launch    steps that take hardly more than that start: fewer and larger
 *             ones would not pay it each time.
 *   streams   without I/O tiles a chip does not compute while it talks to the
 *             host. With some it does; they are then missing elsewhere.
 *
 * Each finding is independent: savings on the same step do not add up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/analysis.h"
#include "report/text.h"
#include "target/cost.h"

void ipu__note_finding(struct ipu__finding *list, int32_t *count, bool by_bytes,
                       const struct ipu__finding *finding)
{
    int64_t gain = by_bytes ? finding->bytes : finding->cycles;
    int32_t at = *count;

    while (at > 0 &&
           (by_bytes ? list[at - 1].bytes : list[at - 1].cycles) < gain)
        at--;
    if (at >= IPU__MOST_FINDINGS)
        return;
    if (*count < IPU__MOST_FINDINGS)
        ++*count;
    memmove(&list[at + 1], &list[at], (size_t)(*count - at - 1) * sizeof *list);
    list[at] = *finding;
}

static void note(struct ipu__findings *f, const struct ipu__finding *finding)
{
    ipu__note_finding(f->time, &f->ntime, false, finding);
}

/* Returns the cycles of a tile that starts its contexts and does one operation
 * in each. */
static int64_t launch_cycles(const ipu_target *target)
{
    return ipu__start_cycles(target, 1);
}

static void find_balance(const struct ipu__program *p, int32_t i,
                         struct ipu__findings *f)
{
    const struct ipu__profile_step *s = &p->steps[i];
    int64_t least = launch_cycles(&p->target);
    int64_t even =
        (int64_t)((double)s->compute * s->busy_tiles / p->target.tiles);
    struct ipu__finding finding = {"balance", i, s->block, 0, 0, ""};

    if (s->busy_tiles == 0 || s->busy_tiles >= p->target.tiles)
        return;
    finding.cycles =
        ipu__step_cycles(s, s->compute - (even > least ? even : least));
    if (finding.cycles <= 0)
        return;
    snprintf(finding.text, sizeof finding.text,
             "step %d, %s '%.60s', computes on %d of %d tiles; on all of them "
             "it would take %" PRId64 " cycles instead of %" PRId64,
             (int)i, s->op, s->tensor, (int)s->busy_tiles, (int)p->target.tiles,
             even > least ? even : least, s->compute);
    note(f, &finding);
}

static bool waits_for_network(const struct ipu__profile_step *s)
{
    return strncmp(s->op, "network_", 8) == 0;
}

static void say_network(const struct ipu__profile_step *s, int32_t i,
                        struct ipu__finding *finding)
{
    snprintf(finding->text, sizeof finding->text,
             "step %d, %s '%.60s', waits %" PRId64
             " cycles for the device's network: with more work between start "
             "and result, or fewer bytes (bfloat16 by a recipe), it would wait "
             "less",
             (int)i, s->op, s->tensor, s->exchange);
}

static void find_exchange(const struct ipu__program *p, int32_t i,
                          struct ipu__findings *f)
{
    const struct ipu__profile_step *s = &p->steps[i];
    struct ipu__finding finding = {"exchange", i, s->block, 0, 0, ""};

    if (s->exchange <= s->compute || s->exchange == 0)
        return;
    finding.cycles = ipu__step_cycles(s, s->exchange + s->sync);
    snprintf(finding.text, sizeof finding.text,
             "step %d, %s '%.60s', waits for data longer than it computes "
             "(%" PRId64 " cycles of exchange, %" PRId64
             " of compute): %s into the busiest tile; were they there "
             "already, the exchange and its sync would go",
             (int)i, s->op, s->tensor, s->exchange, s->compute,
             ipu__bytes_text((double)s->exchange_bytes).text);
    if (waits_for_network(s))
        say_network(s, i, &finding);
    note(f, &finding);
}

/* Finds steps that do next to nothing between their start and their end. */
static void find_launches(const struct ipu__program *p, struct ipu__findings *f)
{
    int64_t least = launch_cycles(&p->target);
    struct ipu__finding finding = {"launch", -1, -1, 0, 0, ""};
    int32_t n = 0;

    for (int32_t i = 0; i < p->nsteps; i++) {
        const struct ipu__profile_step *s = &p->steps[i];

        if (s->compute == 0 || s->compute > 2 * least)
            continue;
        n++;
        finding.cycles +=
            ipu__step_cycles(s, s->compute < least ? s->compute : least);
    }
    if (n < 2)
        return;
    snprintf(finding.text, sizeof finding.text,
             "%d of %d steps take hardly longer than it takes to start their "
             "contexts (%" PRId64 " cycles each): fewer and larger steps, or "
             "larger batches, would not pay that so often",
             (int)n, (int)p->nsteps, least);
    note(f, &finding);
}

static void find_streams(const struct ipu__program *p, struct ipu__findings *f)
{
    const ipu_program_cycles *c = &p->cycles;
    int64_t device = c->compute + c->exchange + c->sync;
    struct ipu__finding finding = {"streams", -1, -1, 0, 0, ""};

    if (p->target.io_tiles > 0 || c->host == 0)
        return;
    finding.cycles = device < c->host ? device : c->host;
    snprintf(finding.text, sizeof finding.text,
             "streams to and from the host take %" PRId64
             " cycles in which no tile computes: with I/O tiles "
             "(io_tiles.num_io_tiles) both would go on at once",
             c->host);
    if (finding.cycles > 0)
        note(f, &finding);
}

void ipu__find_time(const struct ipu__program *program,
                    struct ipu__findings *findings)
{
    for (int32_t i = 0; i < program->nsteps; i++) {
        find_balance(program, i, findings);
        find_exchange(program, i, findings);
    }
    find_launches(program, findings);
    find_streams(program, findings);
}
