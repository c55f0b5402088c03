/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say.c - describes a program in a few sentences: its bottleneck, the use of
 * the chip, the memory of the fullest tile, the comparison with this machine,
 * and the figures that are estimates.
 *
 * A program is bound by the host if the chip waits for the host longer than it
 * works. The chip waits for copies through the streams and, if runs were
 * measured, for the host's work between runs. The sentence says that this work
 * can be prepared ahead of time.
 */
#include <stdio.h>
#include <string.h>

#include "report/analysis.h"
#include "report/text.h"

double ipu__program_peak(const struct ipu__program *program, const char **dtype)
{
    ipu_target_peaks peaks = {.size = sizeof peaks};
    double halves = 0, all = 0;

    for (int32_t i = 0; i < program->nsteps; i++) {
        const struct ipu__profile_step *s = &program->steps[i];

        all += s->flops * s->times;
        if (s->element_bytes < 4)
            halves += s->flops * s->times;
    }
    *dtype = halves > all / 2 ? "float16" : "float32";
    if (ipu_target_get_peaks(&program->target, &peaks) < 0)
        return 0;
    return program->ipus *
           (halves > all / 2 ? peaks.flops_float16 : peaks.flops_float32);
}

int64_t ipu__sum_categories(const struct ipu__program *program,
                            int64_t bytes[IPU_NUM_CATEGORIES])
{
    int64_t sum = 0;

    memset(bytes, 0, IPU_NUM_CATEGORIES * sizeof *bytes);
    for (int32_t i = 0; i < program->ntiles; i++) {
        const struct ipu__profile_tiles *t = &program->tiles[i];

        for (int c = 0; c < IPU_NUM_CATEGORIES; c++)
            bytes[c] += t->bytes[c] * t->count;
        sum += t->total * t->count;
    }
    return sum;
}

static double seconds(const struct ipu__program *p, int64_t cycles)
{
    return ipu_model_seconds(&p->target, cycles);
}

static void say_bound(const struct ipu__program *p, char *text)
{
    const ipu_program_cycles *c = &p->cycles;
    double device = seconds(p, c->compute + c->exchange + c->sync);
    double streams = seconds(p, c->host);
    /* The host does nothing between iterations of a loop. */
    double between =
        p->measured && !p->parent ? (double)p->times.between_ns / 1e9 : 0;
    int n = snprintf(
        text, IPU__WORDS_TEXT,
        "%s: of %s that a run would take on the chip, the chip works %s "
        "(%.0f %%); streams to and from the host take %s%s.",
        streams + between > device ? "Host-bound" : "Device-bound",
        ipu__seconds_text(c->seconds).text, ipu__seconds_text(device).text,
        ipu__percent(device, c->seconds), ipu__seconds_text(streams).text,
        p->target.io_tiles > 0 ? " beside that" : "");

    if (between > 0)
        snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                 " From one run to the next the host needed %s here, in which "
                 "the chip would wait unless the host prepares ahead.",
                 ipu__seconds_text(between).text);
}

/* Describes a program of a pipeline. What its chips wait for is described with
 * the pipeline. */
static void say_part(const struct ipu__program *p, char *text)
{
    int64_t moved = p->pipeline_cycles - p->cycles.total;
    int n = snprintf(text, IPU__WORDS_TEXT,
                     "A program of the pipeline: an execution takes %s there",
                     ipu__seconds_text(seconds(p, p->pipeline_cycles)).text);

    if (moved > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      ", of which %s to move what lies beside the chip, which "
                      "is not among its steps",
                      ipu__seconds_text(seconds(p, moved)).text);
    snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
             ". What it takes and gives waits on the chip or passes between "
             "IPUs; what bounds the pipeline is said of that.");
}

static void say_use(const struct ipu__program *p, char *text)
{
    const char *dtype;
    double peak = ipu__program_peak(p, &dtype);
    double rate =
        p->cycles.seconds > 0 ? p->cycles.flops / p->cycles.seconds : 0;
    double computing = seconds(p, p->cycles.compute);

    snprintf(
        text, IPU__WORDS_TEXT,
        "A run is %s in products and sums, %s: %.2g %% of the chip's peak "
        "in %s, and %.2g %% of it while it computes.",
        ipu__scaled_text(p->cycles.flops, "FLOP").text,
        ipu__scaled_text(rate, "FLOP/s").text, ipu__percent(rate, peak), dtype,
        computing > 0 ? ipu__percent(p->cycles.flops / computing, peak) : 0);
}

static void say_full(const struct ipu__program *p, char *text)
{
    const ipu_memory_info *m = &p->memory;
    int64_t excess = m->fullest_tile_bytes - m->bytes_per_tile;
    int n = snprintf(
        text, IPU__WORDS_TEXT,
        "Tile %d is the fullest, with %s of %s (%.1f %%)", (int)m->fullest_tile,
        ipu__bytes_text((double)m->fullest_tile_bytes).text,
        ipu__bytes_text((double)m->bytes_per_tile).text,
        ipu__percent((double)m->fullest_tile_bytes, (double)m->bytes_per_tile));

    if (p->nsteps > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      " at step %d, %s '%.60s'", (int)m->fullest_step,
                      p->steps[m->fullest_step].op,
                      p->steps[m->fullest_step].tensor);
    if (excess > 0)
        snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                 ": %s more than it has. The program does not fit.",
                 ipu__bytes_text((double)excess).text);
    else
        snprintf(text + n, IPU__WORDS_TEXT - (size_t)n, ".");
}

static void say_measured(const struct ipu__program *p, char *text)
{
    const ipu_engine_times *t = &p->times;
    double mean = (double)t->run_ns / 1e9 / (double)t->runs;

    snprintf(
        text, IPU__WORDS_TEXT,
        "On this machine %s run%s took %s on average, the fastest %s (%s); "
        "the chip is modelled to take %s, which is %s times as fast.",
        ipu__count_text(t->runs).text, t->runs == 1 ? "" : "s",
        ipu__seconds_text(mean).text,
        ipu__seconds_text((double)t->fastest_ns / 1e9).text,
        ipu__scaled_text(t->fastest_ns > 0
                             ? p->cycles.flops / ((double)t->fastest_ns / 1e9)
                             : 0,
                         "FLOP/s")
            .text,
        ipu__seconds_text(p->cycles.seconds).text,
        ipu__ratio_text(p->cycles.seconds > 0 ? mean / p->cycles.seconds : 0)
            .text);
}

static void say_estimates(const struct ipu__program *p, char *text)
{
    int64_t cycles = 0, all = 0;
    int count = 0; /* a loop is one, however many steps its body has */

    for (int32_t i = 0; i < p->nsteps; i++) {
        int64_t total = p->steps[i].total * p->steps[i].times;

        all += total;
        cycles += p->steps[i].estimate ? total : 0;
        count += p->steps[i].estimate != NULL;
    }
    snprintf(text, IPU__WORDS_TEXT,
             "The cycles of %d of %d steps (%.0f %% of them) are estimates, "
             "marked ~; the reasons are given below.",
             count, (int)p->nsteps, ipu__percent((double)cycles, (double)all));
}

/* Describes variables in streaming memory: why they are there, and what that
 * costs. */
static void say_beside(const struct ipu__program *p, char *text)
{
    const ipu_memory_info *m = &p->memory;
    int n = snprintf(text, IPU__WORDS_TEXT,
                     "%s of tensors lie in the memory beside the chip",
                     ipu__bytes_text((double)m->remote_bytes).text);

    if (m->automatic_bytes > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      ", %s of them because the program does not fit otherwise "
                      "(IPU_OFFLOAD_AUTO): the fullest tile would hold %s",
                      m->automatic_bytes == m->remote_bytes
                          ? "all"
                          : ipu__bytes_text((double)m->automatic_bytes).text,
                      ipu__bytes_text((double)m->tile_bytes_without).text);
    snprintf(
        text + n, IPU__WORDS_TEXT - (size_t)n,
        ". Moving them there and back takes %s of a run%s (%.1f %%).",
        ipu__seconds_text(seconds(p, p->cycles.streaming)).text,
        p->cycles.mean_total < p->cycles.total ? " with an update" : "",
        ipu__percent((double)p->cycles.streaming, (double)p->cycles.total));
}

/* Describes updates that do not come in every run, and steps that compute
 * again. */
static void say_extra(const struct ipu__program *p, char *text)
{
    const ipu_program_cycles *c = &p->cycles;
    int n = 0;

    if (c->mean_total < c->total)
        n += snprintf(text, IPU__WORDS_TEXT,
                      "A run with an update takes %s, of which the update is "
                      "%s; the mean of all runs is %s. ",
                      ipu__seconds_text(c->seconds).text,
                      ipu__seconds_text(seconds(p, c->update)).text,
                      ipu__seconds_text(seconds(p, c->mean_total)).text);
    if (c->again > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      "Activations that are computed again take %s (%.1f %%). ",
                      ipu__seconds_text(seconds(p, c->again)).text,
                      ipu__percent((double)c->again, (double)c->total));
    if (c->streaming > 0 && p->memory.remote_bytes == 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      "Moving tensors to and from the memory beside the chip "
                      "takes %s (%.1f %%). ",
                      ipu__seconds_text(seconds(p, c->streaming)).text,
                      ipu__percent((double)c->streaming, (double)c->total));
    if (c->network_busy > 0)
        n += snprintf(text + n, IPU__WORDS_TEXT - (size_t)n,
                      "The network sends %s in %s, and the program waits %s "
                      "for it (%.1f %%). ",
                      ipu__bytes_text((double)c->network_bytes).text,
                      ipu__seconds_text(seconds(p, c->network_busy)).text,
                      ipu__seconds_text(seconds(p, c->network)).text,
                      ipu__percent((double)c->network, (double)c->total));
    text[n > 0 ? n - 1 : 0] = '\0';
}

static bool has_extra(const struct ipu__program *p)
{
    return p->cycles.mean_total < p->cycles.total || p->cycles.again > 0 ||
           p->cycles.network_busy > 0 ||
           (p->cycles.streaming > 0 && p->memory.remote_bytes == 0);
}

int32_t ipu__say(const struct ipu__program *program,
                 char (*sentences)[IPU__WORDS_TEXT])
{
    int32_t n = 0;

    if (program->pipeline_cycles > 0)
        say_part(program, sentences[n++]);
    else
        say_bound(program, sentences[n++]);
    say_use(program, sentences[n++]);
    say_full(program, sentences[n++]);
    if (has_extra(program))
        say_extra(program, sentences[n++]);
    if (program->memory.remote_bytes > 0)
        say_beside(program, sentences[n++]);
    if (program->measured)
        say_measured(program, sentences[n++]);
    if (program->cycles.estimates > 0)
        say_estimates(program, sentences[n++]);
    for (int32_t i = 0; i < n; i++)
        ipu__make_printable(sentences[i]); /* a name may have been cut */
    return n;
}

int ipu__find(const struct ipu__program *program,
              struct ipu__findings *findings)
{
    *findings = (struct ipu__findings){.ntime = 0};
    ipu__find_time(program, findings);
    IPU_TRY(ipu__find_memory(program, findings));
    for (int i = 0; i < IPU__MOST_FINDINGS; i++) {
        ipu__make_printable(findings->time[i].text);
        ipu__make_printable(findings->memory[i].text);
    }
    return IPU_OK;
}
