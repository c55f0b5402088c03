/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/own_time.h"
#include "base/status.h"
#include "transport/transport.h"

#define PASS_MAX_NS INT64_C(200000000)

enum { BATCHES = 3 };

struct ping {
    struct hvd__transport *transport;
    const struct hvd__asked *asked;
    int peer;
    int64_t limit_ns, spent_ns;
    struct hvd__own_time time;
};

/* Waits for a transfer. */
static int finish(struct ping *ping, struct hvd__transfer *transfer)
{
    struct hvd__transport *t = ping->transport;
    int done;

    while ((done = t->test(t, transfer)) == 0) {
        HVD_TRY(ping->asked->ask(ping->asked->context));
        ping->spent_ns +=
            hvd__own_time_pass(&ping->time, hvd__now_ns(), PASS_MAX_NS);
        if (ping->limit_ns && ping->spent_ns > ping->limit_ns)
            return hvd__fail(HVD_ERR_UNSUPPORTED,
                             "rank %d has heard nothing from rank %d over %s "
                             "for %.3g s",
                             t->rank, ping->peer, t->name,
                             (double)ping->limit_ns * 1e-9);
        sched_yield();
    }
    return done;
}

/* One half of a round trip. */
static int half(struct ping *ping, bool sends, void *data, size_t bytes)
{
    struct hvd__transport *t = ping->transport;
    struct hvd__transfer transfer;

    HVD_TRY(sends ? t->send(t, ping->peer, 0, data, bytes, &transfer)
                  : t->receive(t, ping->peer, 0, data, bytes, &transfer));
    return finish(ping, &transfer);
}

int hvd__ping(struct hvd__transport *transport, int peer, size_t bytes, int n,
              int64_t limit_ns, const struct hvd__asked *asked, int64_t *ns)
{
    struct ping ping = {
        .transport = transport,
        .asked = asked,
        .peer = peer,
        .limit_ns = limit_ns,
    };
    bool first = transport->rank < peer;
    void *data = calloc(1, bytes);
    int status = data ? HVD_OK : hvd__fail_memory(bytes);

    *ns = INT64_MAX;
    for (int i = 0; i < n && status >= 0; i++) {
        int64_t since = hvd__now_ns();

        status = half(&ping, first, data, bytes);
        if (status >= 0)
            status = half(&ping, !first, data, bytes);
        if (hvd__now_ns() - since < *ns)
            *ns = hvd__now_ns() - since;
    }
    if (status >= 0)
        free(data);
    /* After a failure the transport may still write to the memory, which
     * therefore stays. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return status < 0 ? status : HVD_OK;
}

/* Sends count messages each way at once, and waits for all. */
static int exchange(struct ping *ping, const unsigned char *out,
                    unsigned char *in, size_t bytes, int count)
{
    struct hvd__transport *t = ping->transport;
    struct hvd__transfer transfers[2 * HVD__PROBE_MESSAGES];

    for (int i = 0; i < count; i++) {
        HVD_TRY(t->receive(t, ping->peer, 0, in + (size_t)i * bytes, bytes,
                           &transfers[2 * i]));
        HVD_TRY(t->send(t, ping->peer, 0, out, bytes, &transfers[2 * i + 1]));
    }
    for (int i = 0; i < 2 * count; i++)
        HVD_TRY(finish(ping, &transfers[i]));
    return HVD_OK;
}

int hvd__probe(struct hvd__transport *transport, int peer, size_t bytes,
               int count, int n, const struct hvd__asked *asked, int64_t *ns)
{
    struct ping ping = {.transport = transport, .asked = asked, .peer = peer};
    size_t room = (size_t)(count + 1) * bytes;
    unsigned char *data = calloc(1, room);
    int status = data ? HVD_OK : hvd__fail_memory(room);

    *ns = INT64_MAX;
    /* The first one wakes both ends up. One end may be late when a batch
     * begins, which makes a single exchange seem short. */
    if (status >= 0)
        status = exchange(&ping, data, data + bytes, bytes, count);
    for (int batch = 0; batch < BATCHES && status >= 0; batch++) {
        int64_t since = hvd__now_ns(), each;

        for (int i = 0; i < n && status >= 0; i++)
            status = exchange(&ping, data, data + bytes, bytes, count);
        each = (hvd__now_ns() - since) / n;
        *ns = each < *ns ? each : *ns;
    }
    if (status >= 0)
        free(data);
    /* After a failure the transport may still write to the memory, which
     * therefore stays. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return status < 0 ? status : HVD_OK;
}
