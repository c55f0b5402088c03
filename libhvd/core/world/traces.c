/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces.c - starts, together with all ranks, the timeline and the metrics that
 * the settings ask for, and measures the offset between the clocks of two
 * hosts, which every timeline needs. world.c calls it; core/api/traces.c uses
 * the clock offset.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/world/world.h"

enum { CLOCK_SAMPLES = 9 };

static int meet_early(struct hvd__world *world, int64_t *stamp)
{
    struct hvd__transport *t = world->engine.transport;
    int64_t *all = calloc((size_t)t->size, sizeof *all);
    int status;

    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    status = t->exchange(t, stamp, all, sizeof *stamp);
    *stamp = all[0];
    free(all);
    return status;
}

/*
 * All ranks of a host read the same clock. For other hosts, rank 0 reads its
 * clock between two meetings: after this rank has come to the first and before
 * it leaves the second.
 */
int hvd__world_clock_offset(struct hvd__world *world, hvd__stamp_meeting *meet,
                            int64_t *offset)
{
    int64_t before[CLOCK_SAMPLES], theirs[CLOCK_SAMPLES], after[CLOCK_SAMPLES];

    *offset = 0;
    if (world->topology.local_size == world->engine.transport->size)
        return HVD_OK;
    for (int i = 0; i < CLOCK_SAMPLES; i++) {
        int64_t nothing = 0;

        before[i] = hvd__now_ns();
        HVD_TRY(meet(world, &nothing));
        theirs[i] = hvd__now_ns();
        HVD_TRY(meet(world, &theirs[i]));
        after[i] = hvd__now_ns();
    }
    *offset = hvd__clock_offset(before, theirs, after, CLOCK_SAMPLES);
    return HVD_OK;
}

/* A setting that names an unusable file is a wrong setting. */
static int as_setting(int status)
{
    char text[HVD__MESSAGE_MAX];

    if (status != HVD_ERR_FILE)
        return status;
    snprintf(text, sizeof text, "%s", hvd_last_error());
    return hvd__fail_text(HVD_ERR_CONFIG, text);
}

/* Begins the timeline before the world can be used, so the ranks agree over the
 * transport. */
static int start_timeline(struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;
    const char *path = world->engine.settings.timeline_file;
    int status = t->rank == 0 ? hvd__timeline_create(path, t->size) : HVD_OK;
    int64_t offset;

    HVD_TRY(hvd__world_meet(world, as_setting(status)));
    HVD_TRY(hvd__world_clock_offset(world, meet_early, &offset));
    return hvd__world_meet(world, as_setting(hvd__trace_writer_open(
                                      &world->engine.writer, path, offset)));
}

int hvd__world_start_traces(struct hvd__world *world)
{
    struct hvd__trace_writer *s = &world->engine.writer;
    const struct hvd__settings *settings = &world->engine.settings;

    s->metrics = &world->engine.metrics;
    s->rank = world->engine.transport->rank;
    s->metrics_interval_ns = settings->metrics_interval_ns;
    s->marks_cycles = settings->timeline_mark_cycles;
    if (settings->metrics_file[0])
        hvd__trace_writer_name_metrics(s, settings->metrics_file);
    /* Horovod's programs write this if they start it themselves, later. */
    if (settings->timeline_file[0] &&
        strcmp(settings->timeline_file, "DYNAMIC") != 0)
        HVD_TRY(start_timeline(world));
    return s->metrics_path[0] ? hvd__trace_writer_start(s) : HVD_OK;
}
