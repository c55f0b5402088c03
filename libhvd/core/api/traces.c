/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces.c - the calls about the timeline and the metrics.
 */
#include <string.h>

#include "base/status.h"
#include "core/world/world.h"
#include "trace/metrics.h"
#include "trace/timeline.h"

static int meet_later(struct hvd__world *world, int64_t *stamp)
{
    (void)world;
    HVD_TRY(hvd_barrier());
    return hvd_broadcast(stamp, 1, HVD_INT64, 0);
}

int hvd_start_timeline(const char *path)
{
    struct hvd__world *world;
    char shared[HVD__SETTING_TEXT] = "";
    int32_t could[2];
    int64_t offset;

    HVD_TRY(hvd__world_get(&world));
    could[0] = HVD_OK;
    if (hvd__trace_writer_listens(&world->engine.writer))
        could[0] = hvd__fail(HVD_ERR_ARGUMENT,
                             "a timeline is being written already: stop it "
                             "first");
    else if (world->engine.transport->rank == 0 &&
             (!path || !path[0] || strlen(path) >= sizeof shared))
        could[0] = hvd__fail(HVD_ERR_ARGUMENT,
                             "the path of the timeline is NULL, empty or "
                             "longer than %zu bytes",
                             sizeof shared - 1);
    else if (world->engine.transport->rank == 0)
        could[0] = hvd__timeline_create(strcpy(shared, path),
                                        world->engine.transport->size);
    HVD_TRY(hvd_broadcast(shared, sizeof shared, HVD_UINT8, 0));
    HVD_TRY(hvd_allreduce(could, could + 1, 1, HVD_INT32, HVD_MIN));
    HVD_TRY(hvd__world_clock_offset(world, meet_later, &offset));
    if (could[1] == HVD_OK)
        could[0] =
            hvd__trace_writer_open(&world->engine.writer, shared, offset);
    HVD_TRY(hvd_allreduce(could, could + 1, 1, HVD_INT32, HVD_MIN));
    if (could[1] == HVD_OK)
        return HVD_OK;
    if (could[0] == HVD_OK) {
        hvd__trace_writer_close(&world->engine.writer);
        hvd__fail(could[1], "another rank cannot write the timeline '%s'",
                  shared);
    }
    return could[1];
}

int hvd_stop_timeline(void)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    hvd__trace_writer_close(&world->engine.writer);
    return HVD_OK;
}

int hvd_get_metrics(hvd_metrics *metrics)
{
    struct hvd__world *world;
    hvd_metrics copy = {0};

    HVD_TRY(hvd__world_get(&world));
    if (!metrics || metrics->size < sizeof copy)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "metrics is %s: set its size to sizeof(hvd_metrics)",
                         metrics ? "of an unknown version" : "NULL");
    copy.size = metrics->size;
    hvd__metrics_read(&world->engine.metrics, &copy);
    memset(metrics, 0, metrics->size);
    memcpy(metrics, &copy, sizeof copy);
    return HVD_OK;
}

int hvd_metrics_text(char *text, int64_t size)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    if (size < 0 || (size > 0 && !text))
        return hvd__fail(HVD_ERR_ARGUMENT, "no room for text: size is %lld%s",
                         (long long)size, text ? "" : ", text is NULL");
    HVD_TRY(hvd_get_metrics(&metrics));
    return (int)hvd__metrics_print(&metrics, hvd_rank(), text, (size_t)size);
}
