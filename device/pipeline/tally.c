/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - counts the cost of slots and updates as they run.
 *
 * A slot is a superstep of several IPUs: each runs its stages, all wait for the
 * slowest, then all tensors move to their next IPU at once, each link carrying
 * what its two ends exchange, and all meet. So
 *
 *     slot = max over IPUs (stages) + max over IPUs (sent or received) + sync
 *
 * and an IPU is idle while it waits for the slowest. Streams of the host are
 * added, unless I/O tiles let them overlap: then a slot takes the longer of the
 * two. Replicas do the same at the same time.
 */
#include <stdlib.h>

#include "pipeline/pipeline.h"
#include "target/cost.h"

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t task_cycles(const struct ipu_pipeline *p,
                           const struct ipu__task *task)
{
    const struct ipu__stage_part *part = &p->parts[task->part];

    return (task->kind == IPU_STAGE_FORWARD
                ? part->forward_cycles
                : part->backward_cycles + part->recompute_cycles) *
           p->options.batch_serialization_iterations;
}

static int record(struct ipu_pipeline *p, const ipu_pipeline_event *event)
{
    if (!p->options.record)
        return IPU_OK;
    if (p->nevents == p->event_capacity) {
        int64_t capacity = 2 * p->event_capacity + 64;
        void *grown = realloc(p->events, (size_t)capacity * sizeof *p->events);

        if (!grown)
            return ipu__fail_memory((size_t)capacity * sizeof *p->events);
        p->events = grown;
        p->event_capacity = capacity;
    }
    p->events[p->nevents++] = *event;
    return IPU_OK;
}

static int32_t ipu_of(const struct ipu_pipeline *p,
                      const struct ipu__chip_lane *lane)
{
    return lane->copy * p->ipus_per_copy + p->chips[lane->chip].ipu;
}

static int record_task(struct ipu_pipeline *p,
                       const struct ipu__chip_lane *lane,
                       const struct ipu__task *task, int64_t slot,
                       int64_t start)
{
    const struct ipu__stage_part *part = &p->parts[task->part];
    ipu_pipeline_event event = {
        .ipu = ipu_of(p, lane),
        .stage = task->part,
        .kind = task->kind,
        .replica = lane->copy,
        .slot = slot,
        .mini_batch = task->mini_batch,
        .start_cycles = p->info.total_cycles + start,
        .cycles = task_cycles(p, task),
    };

    if (task->kind == IPU_STAGE_BACKWARD && part->recomputes) {
        ipu_pipeline_event again = event;

        again.kind = IPU_STAGE_RECOMPUTE;
        again.cycles =
            part->recompute_cycles * p->options.batch_serialization_iterations;
        event.start_cycles += again.cycles;
        event.cycles -= again.cycles;
        IPU_TRY(record(p, &again));
    }
    return record(p, &event);
}

/* Counts the bytes and cycles of what a lane's tasks send and receive. */
static void count_transfers(struct ipu_pipeline *p, int64_t *link)
{
    int64_t serial = p->options.batch_serialization_iterations;

    for (int32_t i = 0; i < p->nlanes; i++) {
        int64_t sent = 0;

        for (int32_t k = 0; k < p->lanes[i].ntasks; k++) {
            const struct ipu__task *task = &p->lanes[i].tasks[k];
            const struct ipu__stage_part *part = &p->parts[task->part];
            bool there = task->kind == IPU_STAGE_FORWARD;

            sent += serial * (there ? part->forward_link : part->backward_link);
            p->info.inter_ipu_bytes +=
                serial * (there ? part->forward_sends : part->backward_sends);
        }
        *link = most(*link, sent);
    }
}

/* Counts the host streams of a slot. */
static int host_cycles(const struct ipu_pipeline *p, int64_t *cycles)
{
    int64_t bytes = 0;
    ipu_cycles c = {.size = sizeof c};

    for (int32_t i = 0; i < p->nchips; i++)
        for (int32_t k = 0; k < p->lanes[i].ntasks; k++) {
            const struct ipu__task *task = &p->lanes[i].tasks[k];
            const struct ipu__stage_part *part = &p->parts[task->part];

            if (task->kind != IPU_STAGE_FORWARD)
                continue;
            for (int32_t n = p->options.narguments;
                 part->position == 0 && n < p->positions[0].ninputs; n++)
                bytes += (int64_t)ipu__shape_bytes(&part->inputs[n].shape);
            for (int32_t n = 0;
                 part->position == p->npositions - 1 && n < part->noutputs; n++)
                bytes += (int64_t)ipu__shape_bytes(&part->outputs[n].shape);
        }
    *cycles = 0;
    if (bytes == 0)
        return IPU_OK;
    bytes *= p->options.batch_serialization_iterations;
    IPU_TRY(ipu_model_host(&p->system, bytes, &c));
    *cycles = c.total;
    return IPU_OK;
}

int ipu__tally_slot(struct ipu_pipeline *p, int64_t slot)
{
    int64_t longest = 0, link = 0, host = 0, sync = 0, busy = 0;

    for (int32_t i = 0; i < p->nlanes; i++) {
        int64_t cycles = 0;

        for (int32_t k = 0; k < p->lanes[i].ntasks; k++) {
            IPU_TRY(record_task(p, &p->lanes[i], &p->lanes[i].tasks[k], slot,
                                cycles));
            cycles += task_cycles(p, &p->lanes[i].tasks[k]);
        }
        p->lanes[i].busy_cycles += cycles;
        busy += cycles;
        longest = most(longest, cycles);
    }
    count_transfers(p, &link);
    IPU_TRY(host_cycles(p, &host));
    if (p->nlanes > 1)
        IPU_TRY(ipu_model_global_sync(&p->system, &sync));
    if (p->options.io_tiles)
        host = host > longest ? host - longest : 0;
    p->info.slots++;
    p->info.compute_cycles += longest;
    p->info.exchange_cycles += link;
    p->info.sync_cycles += sync;
    p->info.host_cycles += host;
    p->info.total_cycles += longest + link + sync + host;
    p->work_cycles += longest * p->nlanes;
    p->idle_cycles += longest * p->nlanes - busy;
    return IPU_OK;
}

/* Counts half a ring, for bytes of which each replica sends or receives its
 * share. */
static int half_ring(struct ipu_pipeline *p, int64_t bytes, int64_t *cycles)
{
    int64_t sent = 0, whole;

    IPU_TRY(ipu__ring_cycles(&p->system, p->options.replicas, p->ipus_per_copy,
                             bytes, &sent, &whole));
    p->info.replica_bytes += sent / 2;
    *cycles += whole / 2;
    return IPU_OK;
}

/* Counts the gradients of one IPU between the replicas: sums of all elements;
 * or the reduction of each replica's share, and the shares of the new variables
 * sent to all. */
static int exchange_gradients(struct ipu_pipeline *p, int32_t chip,
                              int64_t *cycles)
{
    int64_t bytes = 0, scattered = 0, gathered = 0;

    for (int32_t i = 0; i < p->ngradients; i++) {
        const struct ipu__gradient *g = &p->gradients[i];
        const struct ipu__variable *v = &p->chips[chip].variables[g->variable];
        const struct ipu__variable *sum = &p->chips[chip].variables[g->sum];
        int64_t all = g->share * p->options.replicas;

        if (g->chip != chip)
            continue;
        if (g->share > 0) {
            scattered += all * (int64_t)ipu__dtype_bytes(sum->shape.dtype);
            gathered += all * (int64_t)ipu__dtype_bytes(v->shape.dtype);
            p->info.exchanges += 2;
        } else {
            bytes += (int64_t)sum->bytes;
            p->info.exchanges++;
        }
    }
    IPU_TRY(ipu__ring_cycles(&p->system, p->options.replicas, p->ipus_per_copy,
                             bytes, &p->info.replica_bytes, cycles));
    IPU_TRY(half_ring(p, scattered, cycles));
    return half_ring(p, gathered, cycles);
}

int ipu__tally_update(struct ipu_pipeline *p, int64_t slot, int64_t repeat)
{
    int64_t longest = 0, link = 0, sync = 0;

    for (int32_t c = 0; c < p->nchips; c++) {
        int64_t cycles = 0;

        longest = most(longest, p->chips[c].update_cycles);
        if (p->options.replicas > 1)
            IPU_TRY(exchange_gradients(p, c, &cycles));
        link = most(link, cycles);
    }
    if (p->nlanes > 1)
        IPU_TRY(ipu_model_global_sync(&p->system, &sync));
    for (int32_t i = 0; i < p->nlanes; i++) {
        const ipu_pipeline_event event = {
            .ipu = ipu_of(p, &p->lanes[i]),
            .stage = -1,
            .kind = IPU_STAGE_UPDATE,
            .replica = p->lanes[i].copy,
            .slot = slot,
            .mini_batch = repeat,
            .start_cycles = p->info.total_cycles + link,
            .cycles = p->chips[p->lanes[i].chip].update_cycles,
        };

        p->lanes[i].busy_cycles += event.cycles;
        IPU_TRY(record(p, &event));
    }
    p->info.updates++;
    p->info.sync_cycles += sync;
    p->info.update_cycles += longest + link;
    p->info.total_cycles += longest + link + sync;
    return IPU_OK;
}
