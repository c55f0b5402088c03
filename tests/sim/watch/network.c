/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - in place of libhvd/watch/socket.c: letters take a while, get lost
 * and overtake each other. A letter to a process that is gone comes back as a
 * refusal, if its host is still there. Descriptors stand for ranks, ports for
 * ranks, and addresses for a host and one of its names.
 */
#include <stdlib.h>
#include <string.h>

#include "../wraps.h"
#include "base/status.h"
#include "simulated.h"
#include "watch/socket.h"

/* MOST_WAITING is what the kernel keeps of what a process does not receive. */
enum { FIRST_FD = 1 << 20, MOST_WAITING = 256 };

SIM_WRAPS(hvd__socket_open);
SIM_WRAPS(hvd__socket_filter);
SIM_WRAPS(hvd__socket_send);
SIM_WRAPS(hvd__socket_receive);
SIM_WRAPS(hvd__socket_next_refusal);

static struct hvd__ip address_of(int host, int name)
{
    return (struct hvd__ip){{(uint64_t)host + 1, (uint64_t)name}};
}

int __wrap_hvd__socket_open(struct hvd__ip own, struct hvd__ip *addresses,
                            int32_t max, int32_t *naddresses, int32_t *port)
{
    const struct sim_rank *self = sim.current;
    const struct sim_host *host = &sim.hosts[self->host];

    (void)own;
    *naddresses = host->naddresses < max ? host->naddresses : max;
    for (int i = 0; i < *naddresses; i++)
        addresses[i] = address_of(self->host, i);
    *port = self->rank + 1;
    return FIRST_FD + self->rank;
}

void __wrap_hvd__socket_filter(int fd, uint32_t first, uint32_t second)
{
    (void)fd;
    (void)first;
    (void)second;
}

static struct sim_letter *new_letter(struct hvd__ip address, int port,
                                     const void *data, size_t bytes)
{
    struct sim_letter *letter = malloc(sizeof *letter + bytes);

    *letter = (struct sim_letter){0};
    letter->address = address;
    letter->port = port;
    letter->bytes = bytes;
    memcpy(letter->data, data, bytes);
    return letter;
}

static int64_t delay(void)
{
    int64_t jitter = sim.jitter_ns * sim_below(&sim.network, 1000) / 1000;

    /* A few letters take much longer than the others. */
    return sim.latency_ns +
           (sim_once_in(&sim.network, 50) ? 10 * jitter : jitter);
}

static bool is_lost(void)
{
    return sim_below(&sim.network, 1000) < sim.loss;
}

void __wrap_hvd__socket_send(int fd, struct hvd__ip address, int port,
                             const void *data, size_t bytes)
{
    struct sim_rank *from = &sim.ranks[fd - FIRST_FD];
    struct sim_host *here = &sim.hosts[from->host];
    int at = (int)address.words[0] - 1, name = (int)address.words[1];
    struct sim_host *there = &sim.hosts[at];
    struct sim_rank *to = &sim.ranks[port - 1];
    int64_t arrives = sim.now_ns + delay();
    int main_name = 0;

    here->letters++;
    here->bytes += (int64_t)bytes;
    if (at < 0 || at >= sim.nhosts || to->host != at || name >= SIM_NAMES)
        sim_fail("rank %d sends to an address that is none", from->rank);
    else if (!there->reaches[name] || here->side != there->side ||
             there->is_dead || is_lost())
        return;
    else if (to->state != SIM_RUNS) {
        if (!is_lost())
            sim_post_at(arrives + delay(), from, true,
                        new_letter(address, port, "", 0));
    } else {
        while (!here->reaches[main_name])
            main_name++;
        sim_post_at(
            arrives, to, false,
            new_letter(address_of(from->host, main_name), 0, data, bytes));
    }
}

void sim_deliver(struct sim_rank *rank, bool is_refusal,
                 struct sim_letter *letter)
{
    struct sim_post *post = is_refusal ? &rank->refusals : &rank->letters;

    if (rank->state != SIM_RUNS || post->n == MOST_WAITING) {
        free(letter);
        return;
    }
    letter->next = NULL;
    *post->last = letter;
    post->last = &letter->next;
    post->n++;
}

static struct sim_letter *take(struct sim_post *post)
{
    struct sim_letter *letter = post->first;

    if (!letter)
        return NULL;
    post->first = letter->next;
    if (!post->first)
        post->last = &post->first;
    post->n--;
    return letter;
}

int __wrap_hvd__socket_receive(int fd, void *data, size_t size,
                               struct hvd__ip *address)
{
    struct sim_letter *letter = take(&sim.ranks[fd - FIRST_FD].letters);
    size_t bytes;

    if (!letter)
        return -1;
    bytes = letter->bytes;
    *address = letter->address;
    memcpy(data, letter->data, bytes < size ? bytes : size);
    free(letter);
    return (int)bytes;
}

bool __wrap_hvd__socket_next_refusal(int fd, struct hvd__ip *address, int *port)
{
    struct sim_letter *letter = take(&sim.ranks[fd - FIRST_FD].refusals);

    if (!letter)
        return false;
    *address = letter->address;
    *port = letter->port;
    free(letter);
    return true;
}
