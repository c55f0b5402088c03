/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

enum { TAGS = 4, BOUNCE_BYTES = 1 << 17, POISON = 0x5a };

/* One end of a transfer. */
struct end {
    struct end *next; /* of the same pair and tag, later */
    struct way *way;
    const unsigned char *out;
    unsigned char *in;
    size_t bytes;
    bool done;
};

/* What is under way from one rank to another: the ends that have no match. */
struct way {
    struct end *sends, *receives;
};

struct rank {
    struct hvd__transport transport; /* first: algorithms hand it back */
    struct simulated *simulated;
    struct hvd__team team;
    struct hvd__hosts *hosts; /* NULL: no rank shares memory */
    struct hvd__shm shm;
    struct simulated_sent near, far;
};

struct simulated {
    int size;
    uint64_t seed;
    int *world;       /* 0, 1, 2 and so on */
    int *host_of;     /* by rank */
    struct way *ways; /* [size * size * TAGS] */
    struct rank *ranks;
    unsigned char **areas; /* owned, by rank */
};

/* No memory lies in a heap without bytes. */
static max_align_t no_heap[64];

int simulated_random(struct simulated *s, int n)
{
    s->seed = s->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((s->seed >> 33) % (uint64_t)n);
}

static struct way *way_of(struct simulated *s, int from, int to, int tag)
{
    SIMULATED_ASSERT(tag >= 0 && tag < TAGS && to >= 0 && to < s->size);
    return &s->ways[(from * s->size + to) * TAGS + tag];
}

static struct end *append(struct way *way, struct end **list,
                          struct hvd__transfer *transfer)
{
    struct end *end = calloc(1, sizeof *end);

    SIMULATED_ASSERT(end != NULL && transfer->request == NULL);
    while (*list)
        list = &(*list)->next;
    *list = end;
    end->way = way;
    transfer->request = end;
    return end;
}

static int send(struct hvd__transport *self, int peer, int tag,
                const void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct rank *rank = (struct rank *)self;
    struct simulated *s = rank->simulated;
    bool near = s->host_of[self->rank] == s->host_of[peer];
    struct simulated_sent *sent = near ? &rank->near : &rank->far;
    struct way *way = way_of(s, self->rank, peer, tag);
    struct end *end;

    transfer->request = NULL;
    if (bytes == 0)
        return 0;
    sent->messages++;
    sent->bytes += (int64_t)bytes;
    end = append(way, &way->sends, transfer);
    end->out = data;
    end->bytes = bytes;
    return 0;
}

static int receive(struct hvd__transport *self, int peer, int tag, void *data,
                   size_t bytes, struct hvd__transfer *transfer)
{
    struct simulated *s = ((struct rank *)self)->simulated;
    struct way *way = way_of(s, peer, self->rank, tag);
    struct end *end;

    transfer->request = NULL;
    if (bytes == 0)
        return 0;
    end = append(way, &way->receives, transfer);
    end->in = data;
    end->bytes = bytes;
    memset(data, POISON, bytes);
    return 0;
}

/* Matches the oldest ends of a way. */
static void match(struct way *way)
{
    struct end *out = way->sends, *in = way->receives;

    if (!out || !in)
        return;
    SIMULATED_ASSERT(out->bytes == in->bytes);
    memcpy(in->in, out->out, in->bytes);
    way->sends = out->next;
    way->receives = in->next;
    out->done = in->done = true;
}

static int test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    struct simulated *s = ((struct rank *)self)->simulated;
    struct end *end = transfer->request;

    if (end && !end->done && simulated_random(s, 3) == 0)
        match(end->way);
    if (end && !end->done)
        return 0;
    free(end);
    transfer->request = NULL;
    return 1;
}

/* ---------------------------------------------------------------- the hosts */

static size_t area_bytes(int n)
{
    return sizeof(struct hvd__area) +
           (size_t)n *
               (sizeof(struct hvd__shm_place) + sizeof(struct hvd__shm_pair)) +
           64 + BOUNCE_BYTES;
}

/* Gives a rank the areas of the ranks of its host. */
static void share(struct simulated *s, struct rank *rank)
{
    int local, host = hvd__hosts_find(rank->hosts, rank->team.rank, &local);
    int n = hvd__hosts_size(rank->hosts, host);
    const int *members = rank->hosts->members + rank->hosts->first[host];

    rank->shm = (struct hvd__shm){.heap = (struct hvd__heap *)(void *)no_heap,
                                  .world = malloc((size_t)n * sizeof(int)),
                                  .rank = local,
                                  .size = n,
                                  .bounce_bytes = BOUNCE_BYTES,
                                  .areas = calloc((size_t)n, sizeof(void *))};
    SIMULATED_ASSERT(rank->shm.world && rank->shm.areas);
    for (int i = 0; i < n; i++) {
        unsigned char **area = &s->areas[members[i]];

        if (!*area)
            *area = aligned_alloc(64, (area_bytes(n) + 63) / 64 * 64);
        SIMULATED_ASSERT(*area != NULL);
        if (i == local)
            memset(*area, 0, area_bytes(n));
        rank->shm.world[i] = members[i];
        rank->shm.areas[i] = (struct hvd__area *)(void *)*area;
    }
    rank->shm.own = rank->shm.areas[local];
    rank->hosts->shm = &rank->shm;
    if (rank->hosts->n > 1)
        rank->team.hosts = rank->hosts;
    else
        rank->team.shm = &rank->shm;
}

static void place_on_hosts(struct simulated *s, const int *widths, int nwidths)
{
    for (int rank = 0, host = 0; rank < s->size; host++)
        for (int i = 0; i < widths[host % nwidths] && rank < s->size; i++)
            s->host_of[rank++] = host;
    for (int i = 0; i < s->size; i++) {
        s->ranks[i].hosts = hvd__hosts_new(s->size, i, s->host_of);
        SIMULATED_ASSERT(s->ranks[i].hosts != NULL);
        share(s, &s->ranks[i]);
    }
}

/* ----------------------------------------------------------------- the door */

struct simulated *simulated_new(int size, const int *widths, int nwidths,
                                uint64_t seed)
{
    struct simulated *s = calloc(1, sizeof *s);
    size_t n = (size_t)size;

    SIMULATED_ASSERT(s != NULL);
    *s = (struct simulated){.size = size,
                            .seed = seed,
                            .world = calloc(n, sizeof *s->world),
                            .host_of = calloc(n, sizeof *s->host_of),
                            .ways = calloc(n * n * TAGS, sizeof *s->ways),
                            .ranks = calloc(n, sizeof *s->ranks),
                            .areas = calloc(n, sizeof *s->areas)};
    SIMULATED_ASSERT(s->world && s->host_of && s->ways && s->ranks && s->areas);
    for (int i = 0; i < size; i++) {
        s->world[i] = s->host_of[i] = i;
        s->ranks[i].simulated = s;
        s->ranks[i].transport = (struct hvd__transport){.name = "simulated",
                                                        .rank = i,
                                                        .size = size,
                                                        .ntags = TAGS,
                                                        .send = send,
                                                        .receive = receive,
                                                        .test = test};
        s->ranks[i].team =
            (struct hvd__team){.transport = &s->ranks[i].transport,
                               .world = s->world,
                               .rank = i,
                               .size = size};
    }
    if (widths)
        place_on_hosts(s, widths, nwidths);
    return s;
}

void simulated_free(struct simulated *s)
{
    for (int i = 0; i < s->size * s->size * TAGS; i++)
        SIMULATED_ASSERT(!s->ways[i].sends && !s->ways[i].receives);
    for (int i = 0; i < s->size; i++) {
        if (s->ranks[i].hosts)
            s->ranks[i].hosts->shm = NULL;
        hvd__hosts_free(s->ranks[i].hosts);
        free(s->ranks[i].shm.world);
        free(s->ranks[i].shm.areas);
        free(s->areas[i]);
    }
    free(s->areas);
    free(s->ranks);
    free(s->ways);
    free(s->host_of);
    free(s->world);
    free(s);
}

const struct hvd__team *simulated_team(const struct simulated *s, int rank)
{
    return &s->ranks[rank].team;
}

struct simulated_sent simulated_sent(const struct simulated *s, int rank,
                                     bool far_only)
{
    struct simulated_sent sent = s->ranks[rank].far;

    if (far_only)
        return sent;
    sent.messages += s->ranks[rank].near.messages;
    sent.bytes += s->ranks[rank].near.bytes;
    return sent;
}
