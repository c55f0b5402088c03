/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - hill climbing on powers of two, one knob after the other.
 *
 * A setting is tried for HVD__TUNE_SAMPLES samples of at least SAMPLE_NS and
 * SAMPLE_BYTES each, after one that is thrown away; its score is their median.
 * A setting that is better than the best by more than GAIN becomes the best,
 * and the move is repeated; else the next move is tried from the best:
 * threshold up, threshold down, direct up, direct down. The search ends when
 * all four in a row have brought no gain. Programs repeat their steps, so the
 * same bytes come again and again and scores can be compared.
 */
#include "core/agree/tune.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"

#define SAMPLE_NS INT64_C(20000000)
#define SAMPLE_BYTES INT64_C(1048576)
#define GAIN 1.02

enum { KNOBS = 2, MOVES = 4 };

/* The ranges that are searched. */
static const size_t least[KNOBS] = {64 << 10, 512};
static const size_t most[KNOBS] = {SIZE_MAX, 256 << 10};

/* Stops writing the log, with one warning, when a write fails. */
__attribute__((format(printf, 2, 3))) static void add_line(
    struct hvd__tune *tune, const char *line_format, ...)
{
    char line[160];
    va_list arguments;
    int n, status;

    if (!tune->log.is_open)
        return;
    va_start(arguments, line_format);
    n = vsnprintf(line, sizeof line, line_format, arguments);
    va_end(arguments);
    status = disk__output_write(&tune->log, line, (size_t)n);
    if (status >= 0)
        return;
    hvd__log(HVD__LOG_WARNING,
             "cannot write the log of autotuning: %s; it ends here",
             disk__text(status));
    disk__output_close(&tune->log);
}

static int open_log(struct hvd__tune *tune, const char *path)
{
    static const char head[] =
        "fusion_threshold,direct_max,bytes_per_second,best\n";
    int status = disk__output_open(&tune->log, path,
                                   DISK__DIRECT | DISK__BRIEFLY | DISK__SWEEP);

    if (status >= 0)
        status = disk__output_write(&tune->log, head, sizeof head - 1);
    if (status >= 0)
        status = disk__output_place(&tune->log); /* readable as it grows */
    if (status >= 0)
        return HVD_OK;
    disk__output_close(&tune->log);
    return hvd__fail(HVD_ERR_CONFIG,
                     "cannot write the log of autotuning '%s': %s", path,
                     disk__text(status));
}

int hvd__tune_start(struct hvd__tune *tune, const struct hvd__knobs *first,
                    size_t most_fusion, const char *log)
{
    *tune = (struct hvd__tune){.now = *first,
                               .best = *first,
                               .most_fusion = most_fusion,
                               .direction = 1,
                               .nsamples = -1,
                               .active = true};
    return log[0] ? open_log(tune, log) : HVD_OK;
}

void hvd__tune_fini(struct hvd__tune *tune)
{
    disk__output_close(&tune->log);
    tune->active = false;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static size_t *knob_of(struct hvd__knobs *knobs, int knob)
{
    return knob == 0 ? &knobs->fusion_threshold : &knobs->direct_max;
}

/* Moves a knob from its best value. Returns false at the end of its range. */
static bool move_knob(struct hvd__tune *tune)
{
    size_t *value, top = most[tune->knob];

    if (tune->knob == 0 && tune->most_fusion < top)
        top = tune->most_fusion;
    tune->now = tune->best;
    value = knob_of(&tune->now, tune->knob);
    if (tune->direction > 0 ? *value > top / 2 : *value / 2 < least[tune->knob])
        return false;
    *value = tune->direction > 0 ? *value * 2 : *value / 2;
    return true;
}

/* Makes the next possible move. If there is none, tuning is over. */
static void choose_move(struct hvd__tune *tune, bool was_better)
{
    if (was_better)
        tune->nfailed = 0;
    else
        tune->nfailed++;
    if (was_better && move_knob(tune))
        return;
    while (tune->nfailed < MOVES) {
        if (tune->direction > 0) {
            tune->direction = -1;
        } else {
            tune->direction = 1;
            tune->knob = (tune->knob + 1) % KNOBS;
        }
        if (move_knob(tune))
            return;
        tune->nfailed++;
    }
    tune->now = tune->best;
    tune->active = false;
}

static void judge_setting(struct hvd__tune *tune)
{
    double score;
    bool better;

    qsort(tune->samples, HVD__TUNE_SAMPLES, sizeof *tune->samples, by_size);
    score = tune->samples[HVD__TUNE_SAMPLES / 2];
    better = score > tune->best_score * GAIN;
    add_line(tune, "%zu,%zu,%.0f,%d\n", tune->now.fusion_threshold,
             tune->now.direct_max, score, better);
    if (better) {
        tune->best = tune->now;
        tune->best_score = score;
    }
    choose_move(tune, better);
}

bool hvd__tune_step(struct hvd__tune *tune, int64_t bytes, int64_t now_ns)
{
    int64_t passed = now_ns - tune->since_ns;

    if (!tune->active)
        return false;
    if (tune->since_ns == 0) {
        tune->since_ns = now_ns;
        return false;
    }
    tune->bytes += bytes;
    if (passed < SAMPLE_NS || tune->bytes < SAMPLE_BYTES)
        return false;
    if (tune->nsamples >= 0)
        tune->samples[tune->nsamples] =
            (double)tune->bytes / ((double)passed * 1e-9);
    tune->nsamples++;
    tune->bytes = 0;
    tune->since_ns = now_ns;
    if (tune->nsamples < HVD__TUNE_SAMPLES)
        return false;
    tune->nsamples = -1;
    judge_setting(tune);
    return true;
}

/* -------------------------------------------------------------- what was found
 */

static const char format[] = "fusion_threshold=%zu\ndirect_max=%zu\n";

static int cannot(const char *what, const char *path, int status)
{
    return hvd__fail(HVD_ERR_CONFIG, "cannot %s '%s': %s", what, path,
                     disk__text(status));
}

int hvd__knobs_read(struct hvd__knobs *knobs, const char *path)
{
    int status, n;
    FILE *file = disk__read_stream(path, &status);
    struct hvd__knobs found;

    if (!file && status == -ENOENT) {
        /* A file that cannot be written is reported before hours of tuning. */
        status = disk__output_check(path, 0);
        return status < 0 ? cannot("write", path, status) : 0;
    }
    if (!file)
        return cannot("read", path, status);
    n = fscanf(file, format, &found.fusion_threshold, &found.direct_max);
    fclose(file);
    if (n != KNOBS)
        return hvd__fail(HVD_ERR_CONFIG,
                         "'%s' is not what autotuning has written: remove it",
                         path);
    *knobs = found;
    return 1;
}

int hvd__knobs_write(const struct hvd__knobs *knobs, const char *path)
{
    char text[100];
    int n = snprintf(text, sizeof text, format, knobs->fusion_threshold,
                     knobs->direct_max);
    int status = disk__replace(path, text, (size_t)n, DISK__SYNC | DISK__SWEEP);

    return status < 0 ? cannot("write", path, status) : HVD_OK;
}
