/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lobby_open.c - makes a lobby, and the transports of those who are in it: the
 * one with which a process looks for a world, and the one of a world.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/status.h"
#include "transport/tcp/lobby.h"

/* A handshake that has begun is given this time to come to its end. */
#define HANDSHAKE_NS INT64_C(20000000)

/* Allocates what depends on the number of ranks. */
static bool allocate(struct hvd__lobby *l, const struct hvd__tcp_options *o)
{
    size_t n = (size_t)o->size;

    l->addresses = hvd__tcp_copy_texts(o->addresses, o->size);
    l->names = hvd__tcp_copy_texts(o->names, o->size);
    l->is_member = calloc(n, sizeof *l->is_member);
    l->list = calloc(n, sizeof *l->list);
    l->fds = malloc(n * sizeof *l->fds);
    l->key = malloc(o->key_bytes + 1);
    for (int rank = 0; l->fds && rank < o->size; rank++)
        l->fds[rank] = -1;
    return l->addresses && l->names && l->is_member && l->list && l->fds &&
           l->key;
}

int hvd__lobby_open(const struct hvd__tcp_options *options, int least, int most,
                    struct hvd__lobby **lobby)
{
    struct hvd__lobby *l = calloc(1, sizeof *l);

    if (!l)
        return hvd__fail_memory(sizeof *l);
    l->host = l->listener = -1;
    l->job = (struct hvd__job){
        .rank = options->rank,
        .size = options->size,
        .cluster = hvd__lobby_mark(options->cluster),
        .key_bytes = options->key_bytes,
    };
    l->base = options->cluster;
    l->is_local = !options->key;
    l->least = least;
    if (!allocate(l, options)) {
        hvd__lobby_close(l);
        return hvd__fail_memory((size_t)options->size * sizeof *l->list);
    }
    l->guests.size = options->size;
    l->guests.most = most;
    l->guests.is_member = l->is_member;
    l->guests.list = l->list;
    if (options->key)
        memcpy(l->key, options->key, options->key_bytes);
    l->job.key = l->key;
    *lobby = l;
    return HVD_OK;
}

void hvd__lobby_close(struct hvd__lobby *l)
{
    if (!l)
        return;
    for (int rank = 0; l->fds && rank < l->job.size; rank++)
        if (l->fds[rank] >= 0)
            close(l->fds[rank]);
    hvd__lobby_leave(l);
    if (l->listener >= 0)
        close(l->listener);
    free(l->addresses);
    free(l->names);
    free(l->is_member);
    free(l->list);
    free(l->fds);
    free(l->key);
    free(l);
}

/* Returns what a transport of ranks of the cluster needs but the ranks. */
static struct hvd__tcp_options options_of(struct hvd__lobby *l)
{
    return (struct hvd__tcp_options){
        .key = l->is_local ? NULL : l->key,
        .key_bytes = l->job.key_bytes,
        .lobby = l,
    };
}

int hvd__lobby_phone(struct hvd__lobby *l, const struct hvd__asked *asked,
                     struct hvd__tcp **phone)
{
    struct hvd__tcp_options options = options_of(l);

    options.rank = l->job.rank;
    options.size = l->job.size;
    options.addresses = (const char *const *)l->addresses;
    options.names = (const char *const *)l->names;
    options.cluster = l->job.cluster;
    HVD_TRY(hvd__tcp_listen(&options, asked, phone));
    (*phone)->job.session = 0;
    return HVD_OK;
}

int hvd__lobby_connect(struct hvd__lobby *l,
                       const struct hvd__admission *admission,
                       const struct hvd__lobby_limits *limits,
                       const struct hvd__asked *asked,
                       struct hvd__transport **transport)
{
    struct hvd__tcp_options options = options_of(l);
    const char **texts = calloc(2 * (size_t)admission->n, sizeof *texts);
    int status;

    if (!texts)
        return hvd__fail_memory(2 * (size_t)admission->n * sizeof *texts);
    for (int i = 0; i < admission->n; i++) {
        texts[i] = l->addresses[admission->ranks[i]];
        texts[admission->n + i] = l->names[admission->ranks[i]];
        if (admission->ranks[i] == l->job.rank)
            options.rank = i;
    }
    options.size = admission->n;
    options.addresses = texts;
    options.names = texts + admission->n;
    options.cluster = hvd__mix(l->base + hvd__mix(admission->number));
    options.limit_ns = limits->limit_ns;
    options.report_ns = limits->report_ns;
    options.grace_ns = limits->grace_ns;
    status = hvd__tcp_open(&options, asked, transport);
    free(texts);
    return status;
}

int hvd__lobby_drive(struct hvd__lobby *l)
{
    int64_t end = hvd__now_ns() + HANDSHAKE_NS;

    if (!l->tcp)
        return HVD_OK;
    HVD_TRY(hvd__tcp_drive(l->tcp, 0));
    while (l->tcp->listener.callers && hvd__now_ns() < end)
        HVD_TRY(hvd__tcp_drive(l->tcp, 1));
    return HVD_OK;
}
