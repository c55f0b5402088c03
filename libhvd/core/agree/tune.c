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
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"

#define SAMPLE_NS INT64_C(20000000)
#define SAMPLE_BYTES INT64_C(1048576)
#define GAIN 1.02

enum { MOVES = 4 };

/* The ranges that are searched; that of the fusion threshold ends at the size
 * of the buffers. */
enum { LEAST_FUSION = 64 << 10, LEAST_DIRECT = 512, MOST_DIRECT = 256 << 10 };

/* Writes a setting to the log. Stops, with one warning, when that fails. */
static void add_line(struct hvd__tune *tune, double score, bool better)
{
    char line[160];
    int n = snprintf(line, sizeof line, "%zu,%zu,%.0f,%d\n",
                     tune->now.fusion_threshold, tune->now.direct_max, score,
                     better);
    int status =
        tune->log.is_open ? disk__output_write(&tune->log, line, (size_t)n) : 0;

    if (status >= 0)
        return;
    hvd__log(HVD__LOG_WARNING,
             "cannot write the log of autotuning: %s; it ends here",
             disk__text(status));
    disk__output_close(&tune->log);
}

static int cannot(const char *what, const char *path, int status)
{
    return hvd__fail(HVD_ERR_CONFIG, "cannot %s '%s': %s", what, path,
                     disk__text(status));
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
    return cannot("write the log of autotuning", path, status);
}

int hvd__tune_start(struct hvd__tune *tune, const struct hvd__knobs *first,
                    size_t most_fusion, const char *log)
{
    *tune = (struct hvd__tune){.now = *first,
                               .best = *first,
                               .most_fusion = most_fusion,
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

/* Moves a knob from its best value. Returns false at the end of its range. */
static bool move_knob(struct hvd__tune *tune)
{
    bool fusion = tune->move < 2, doubles = tune->move % 2 == 0;
    size_t most = fusion ? tune->most_fusion : MOST_DIRECT;
    size_t least = fusion ? LEAST_FUSION : LEAST_DIRECT;
    size_t *value =
        fusion ? &tune->now.fusion_threshold : &tune->now.direct_max;

    tune->now = tune->best;
    if (doubles ? *value > most / 2 : *value / 2 < least)
        return false;
    *value = doubles ? *value * 2 : *value / 2;
    return true;
}

/* Makes the next possible move. If there is none, tuning is over. */
static void choose_move(struct hvd__tune *tune, bool was_better)
{
    tune->nfailed = was_better ? 0 : tune->nfailed + 1;
    if (was_better && move_knob(tune))
        return;
    while (tune->nfailed < MOVES) {
        tune->move = (tune->move + 1) % MOVES;
        if (move_knob(tune))
            return;
        tune->nfailed++;
    }
    tune->now = tune->best;
    tune->active = false;
}

bool hvd__tune_step(struct hvd__tune *tune, int64_t bytes, int64_t now_ns)
{
    int64_t passed = now_ns - tune->since_ns;
    double score;
    bool better;

    if (!tune->active)
        return false;
    if (tune->since_ns == 0)
        tune->since_ns = now_ns;
    else
        tune->bytes += bytes;
    if (tune->since_ns == now_ns || passed < SAMPLE_NS ||
        tune->bytes < SAMPLE_BYTES)
        return false;
    if (tune->nsamples >= 0)
        tune->samples[tune->nsamples] =
            (double)tune->bytes / ((double)passed * 1e-9);
    tune->bytes = 0;
    tune->since_ns = now_ns;
    if (++tune->nsamples < HVD__TUNE_SAMPLES)
        return false;
    tune->nsamples = -1;
    qsort(tune->samples, HVD__TUNE_SAMPLES, sizeof *tune->samples, by_size);
    score = tune->samples[HVD__TUNE_SAMPLES / 2];
    better = score > tune->best_score * GAIN;
    add_line(tune, score, better);
    if (better) {
        tune->best = tune->now;
        tune->best_score = score;
    }
    choose_move(tune, better);
    return true;
}

/* ----------------------------------------------------------- what was found */

static const char format[] = "fusion_threshold=%zu\ndirect_max=%zu\n";

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
    if (n != 2)
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
