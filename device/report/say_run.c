/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say_run.c - describes a run of a pipeline in a few sentences: its time and
 * the parts of that time, the slowest stage and the time that equal stages
 * would save, the idle share of the chips and its causes, the update, the
 * memory of the fullest chip, and the time on this machine.
 *
 * A profile may have only the slots of a pipeline. Sentences about unknown
 * figures are left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/run.h"
#include "report/text.h"

/* The profile, and the sum of its slots. */
struct teller {
    const struct ipu_profile *profile;
    const struct ipu__profile_run *run;
    struct ipu__slots_account slots;
    int64_t total; /* cycles of a run */
};

static struct ipu__number time_of(const struct teller *t, int64_t cycles)
{
    struct ipu__number number;

    if (t->run->nstages > 0)
        return ipu__seconds_text((double)cycles / t->run->clock_hz);
    snprintf(number.text, sizeof number.text, "%" PRId64 " cycles", cycles);
    return number;
}

static double share(const struct teller *t, int64_t cycles)
{
    return ipu__percent((double)cycles, (double)t->total);
}

/* Names the largest part of a run, and what would make it smaller. */
static const char *verdict(const struct ipu__profile_run *r)
{
    const struct {
        int64_t cycles;
        const char *text;
    } sides[] = {
        {r->work, "Bound by its stages"},
        {r->exchange, "Bound by the links between IPUs"},
        {r->sync, "Bound by the meetings of its IPUs"},
        {r->host, r->io_tiles ? "Host-bound"
                              : "Host-bound, which I/O tiles (io_tiles) would "
                                "help, since streams then overlap with stages"},
        {r->update, "Bound by its updates, which more mini-batches to an "
                    "update make fewer"},
    };
    size_t most = 0;

    for (size_t i = 1; i < sizeof sides / sizeof *sides; i++)
        if (sides[i].cycles > sides[most].cycles)
            most = i;
    return sides[most].text;
}

static void say_total(const struct teller *t, char *text)
{
    const struct ipu__profile_run *r = t->run;
    int n;

    if (r->nstages == 0) {
        snprintf(text, IPU__WORDS_TEXT,
                 "The slots of a run take %s: stages %.1f %%, updates %.1f %%.",
                 time_of(t, t->total).text, share(t, t->slots.stages),
                 share(t, t->slots.updates));
        return;
    }
    n = snprintf(text, IPU__WORDS_TEXT,
                 "%s: a run takes %s on %d IPU%s, for %" PRId64
                 " mini-batches through %d stages in %" PRId64 " slots",
                 verdict(r), time_of(t, t->total).text, (int)r->nchips,
                 r->nchips == 1 ? "" : "s", r->mini_batches, (int)r->nstages,
                 r->slots);
    if (r->updates > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      ", and %" PRId64 " update%s", r->updates,
                      r->updates == 1 ? "" : "s");
    snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
             ". Of that stages work for %.1f %%, tensors pass between IPUs for "
             "%.1f %%, all IPUs meet for %.1f %%, streams to and from the host "
             "take %.1f %%, and updates %.1f %%.",
             share(t, r->work), share(t, r->exchange), share(t, r->sync),
             share(t, r->host), share(t, r->update));
}

/* Writes "stage 'head' on IPU 2", or "stages 'a' and 'b' on IPU 2" for a chip
 * with several stages. */
static void name_chip(const struct teller *t, int32_t ipu, char *text,
                      size_t size)
{
    const char *names[2] = {"", ""};
    int found = 0;

    for (int32_t i = 0; i < t->run->nstages; i++)
        if (t->run->stages[i].ipu == ipu && ++found <= 2)
            names[found - 1] = t->run->stages[i].name;
    if (found == 0)
        snprintf(text, size, "IPU %d", (int)ipu);
    else if (found == 1)
        snprintf(text, size, "'%.40s' on IPU %d", names[0], (int)ipu);
    else
        snprintf(text, size, "'%.40s' and %s%.40s%s on IPU %d", names[0],
                 found > 2 ? "others" : "'", found > 2 ? "" : names[1],
                 found > 2 ? "" : "'", (int)ipu);
}

static void say_bottleneck(const struct teller *t, char *text)
{
    const struct ipu__slots_account *s = &t->slots;
    double mean = s->busy / s->ipus;
    char name[160];
    int n;

    name_chip(t, s->slowest, name, sizeof name);
    n = snprintf(text, IPU__WORDS_TEXT,
                 "The bottleneck is %s, with %.2f times the work of the mean "
                 "IPU",
                 name, mean > 0 ? (double)s->slowest_cycles / mean : 0);
    snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
             ": if the stages of each slot took equally long, a run would take "
             "%s (%.1f %%) less.",
             time_of(t, s->stages - s->level).text,
             share(t, s->stages - s->level));
}

static void say_idle(const struct teller *t, char *text)
{
    const struct ipu__slots_account *s = &t->slots;
    double all = (double)s->stages * s->ipus;

    snprintf(text, IPU__WORDS_TEXT,
             "While stages work, IPUs are idle for %.1f %% of their time: for "
             "%.1f %% because the pipeline fills and empties, of which more "
             "mini-batches to an update leave less, and for %.1f %% because "
             "other IPUs take longer.",
             ipu__percent(s->empty + s->waiting, all),
             ipu__percent(s->empty, all), ipu__percent(s->waiting, all));
}

/* Returns the chip with the longest update. */
static const struct ipu__profile_chip *slowest_update(
    const struct ipu__profile_run *r)
{
    const struct ipu__profile_chip *slowest = &r->chips[0];

    for (int32_t i = 1; i < r->nchips; i++)
        if (r->chips[i].update > slowest->update)
            slowest = &r->chips[i];
    return slowest;
}

static void say_update(const struct teller *t, char *text)
{
    const struct ipu__profile_run *r = t->run;
    const struct ipu__profile_chip *slowest = slowest_update(r);
    double beside = 0; /* 64 bits may not hold the sum over all chips */
    bool automatic = false;
    int n = snprintf(text, IPU__WORDS_TEXT,
                     "Updates take %s of a run (%.1f %%), longest on IPU %d",
                     time_of(t, r->update).text, share(t, r->update),
                     (int)slowest->ipu);

    for (int32_t i = 0; i < r->nchips; i++) {
        beside += (double)r->chips[i].streaming_bytes;
        automatic |= r->chips[i].automatic_bytes > 0;
    }
    if (slowest->offload > 0)
        n += snprintf(
            text + n, IPU__WORDS_TEXT - (size_t)n,
            ": %s, %.1f %% of it, to move what lies beside the chips (%s in "
            "all%s)",
            time_of(t, slowest->offload).text,
            ipu__percent((double)slowest->offload, (double)slowest->update),
            ipu__bytes_text(beside).text,
            automatic ? ", because they would be too full" : "");
    snprintf(text + n, IPU__WORDS_TEXT - (size_t)n, ".");
}

static void say_full(const struct teller *t, char *text)
{
    const struct ipu__profile_chip *c = t->run->chips;
    const char *fits;

    for (int32_t i = 1; i < t->run->nchips; i++)
        if (t->run->chips[i].tile_bytes > c->tile_bytes)
            c = &t->run->chips[i];
    fits = c->tile_bytes <= c->bytes_per_tile ? "" : " It does not fit.";
    snprintf(
        text, IPU__WORDS_TEXT,
        "IPU %d is the fullest: its fullest tile holds %s of %s (%.1f %%), "
        "the whole chip %s of variables and %s of stashes.%s",
        (int)c->ipu, ipu__bytes_text((double)c->tile_bytes).text,
        ipu__bytes_text((double)c->bytes_per_tile).text,
        ipu__percent((double)c->tile_bytes, (double)c->bytes_per_tile),
        ipu__bytes_text((double)c->variable_bytes).text,
        ipu__bytes_text((double)c->stash_bytes).text, fits);
}

static void say_measured(const struct teller *t, char *text)
{
    const ipu_engine_times *m = &t->run->times;
    const struct ipu__profile_stage *longest = t->run->stages;
    double mean = (double)m->run_ns / 1e9 / (double)m->runs;
    int n;

    for (int32_t i = 1; i < t->run->nstages; i++)
        if (t->run->stages[i].ns > longest->ns)
            longest = &t->run->stages[i];
    n = snprintf(
        text, IPU__WORDS_TEXT,
        "On this machine %s run%s took %s on average, the fastest %s, "
        "%s times what the IPUs are modelled to take; '%.40s' is "
        "the slowest stage here, with %s for a mini-batch.",
        ipu__count_text(m->runs).text, m->runs == 1 ? "" : "s",
        ipu__seconds_text(mean).text,
        ipu__seconds_text((double)m->fastest_ns / 1e9).text,
        ipu__ratio_text(
            t->total > 0 ? mean * t->run->clock_hz / (double)t->total : 0)
            .text,
        longest->name, ipu__seconds_text((double)longest->ns / 1e9).text);
    if (m->between_ns > 0)
        snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                 " From one run to the next the host needed %s.",
                 ipu__seconds_text((double)m->between_ns / 1e9).text);
}

int ipu__say_run(const struct ipu_profile *profile,
                 char (*sentences)[IPU__WORDS_TEXT], int32_t *count)
{
    struct teller t = {.profile = profile, .run = &profile->run};
    int32_t n = 0;

    *count = 0;
    if (!ipu__has_pipeline(profile))
        return IPU_OK;
    IPU_TRY(ipu__account_slots(profile, &t.slots));
    t.total =
        t.run->nstages > 0 ? t.run->total : t.slots.stages + t.slots.updates;
    say_total(&t, sentences[n++]);
    if (t.slots.busy > 0 && t.slots.ipus > 1) {
        say_bottleneck(&t, sentences[n++]);
        say_idle(&t, sentences[n++]);
    }
    if (t.run->nchips > 0 && t.run->update > 0)
        say_update(&t, sentences[n++]);
    if (t.run->nchips > 0)
        say_full(&t, sentences[n++]);
    if (t.run->nstages > 0 && t.run->measured)
        say_measured(&t, sentences[n++]);
    for (int32_t i = 0; i < n; i++)
        ipu__make_printable(sentences[i]); /* a name may have been cut */
    *count = n;
    return IPU_OK;
}
