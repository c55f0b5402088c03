/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/places.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* -------------------------------------------------------------------- hosts */

static uint32_t hash(const char *name)
{
    uint32_t value = UINT32_C(0x811c9dc5); /* FNV-1a */

    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * UINT32_C(0x01000193);
    return value;
}

/* Returns the number of a rank's host, which is p->nhosts if it is new. slots
 * is a hash table of n entries with open addressing: 1 + the number of a host;
 * 0: none. */
static int find_host(const struct hvd__places *p, int *slots, uint32_t n,
                     const char *(*host)(const void *, int),
                     const void *context, int rank)
{
    const char *name = host(context, rank);
    uint32_t at = hash(name) % n;

    for (; slots[at] != 0; at = (at + 1) % n)
        if (strcmp(host(context, p->first[slots[at] - 1]), name) == 0)
            return slots[at] - 1;
    slots[at] = p->nhosts + 1;
    return p->nhosts;
}

/* Sorts the ranks by host. last is the highest rank of each host so far, and
 * size its ranks. */
static void sort(struct hvd__places *p, int *slots, int *last, int *size,
                 const char *(*host)(const void *, int), const void *context)
{
    for (int rank = 0; rank < p->nranks; rank++) {
        int h =
            find_host(p, slots, 2 * (uint32_t)p->nranks, host, context, rank);

        if (h == p->nhosts) {
            p->nhosts++;
            p->first[h] = rank;
        } else {
            p->next[last[h]] = rank;
        }
        p->host_of[rank] = h;
        p->next[rank] = p->line_of[rank] = -1;
        last[h] = rank;
        if (++size[h] > p->most)
            p->most = size[h];
    }
    p->host = p->host_of[p->rank];
}

int hvd__places_open(struct hvd__places *p, int rank, int nranks,
                     const char *(*host)(const void *, int),
                     const void *context)
{
    size_t n = (size_t)nranks;
    int *scratch = calloc(4 * n, sizeof *scratch), *first;

    *p = (struct hvd__places){.rank = rank, .nranks = nranks};
    p->host_of = calloc(n, sizeof *p->host_of);
    p->next = calloc(n, sizeof *p->next);
    p->first = calloc(n, sizeof *p->first);
    p->line_of = calloc(n, sizeof *p->line_of);
    if (!scratch || !p->host_of || !p->next || !p->first || !p->line_of) {
        free(scratch);
        hvd__places_close(p);
        return hvd__fail_memory(8 * n * sizeof *scratch);
    }
    sort(p, scratch, scratch + 2 * n, scratch + 3 * n, host, context);
    free(scratch);
    first = realloc(p->first, (size_t)p->nhosts * sizeof *first);
    if (first)
        p->first = first;
    hvd__places_add_lines(p, p->host);
    p->nlocal = p->nlines;
    return HVD_OK;
}

void hvd__places_close(struct hvd__places *p)
{
    free(p->host_of);
    free(p->next);
    free(p->first);
    free(p->line_of);
    *p = (struct hvd__places){0};
}

void hvd__places_add_lines(struct hvd__places *p, int host)
{
    for (int rank = p->first[host]; rank >= 0; rank = p->next[rank])
        p->line_of[rank] = p->nlines++;
}

int hvd__places_most_lines(const struct hvd__places *p)
{
    int others = p->nhosts - 1 < HVD__NEAR ? p->nhosts - 1 : HVD__NEAR;

    return p->nlocal + others * p->most;
}

/* --------------------------------------------------------------- neighbours */

static int root(int n)
{
    int r = 1;

    while ((r + 1) <= n / (r + 1))
        r++;
    return r;
}

int hvd__places_near(int n, int host, int near[HVD__NEAR])
{
    enum { HALF = HVD__NEAR / 2 };
    int second = root(n), fourth = root(second);
    int distances[HALF] = {1, fourth, second, fourth * second};
    int count = 0;

    if (n <= HVD__NEAR + 1) {
        for (int other = 0; other < n; other++)
            if (other != host)
                near[count++] = other;
        return count;
    }
    for (int i = 1; i < HALF; i++) {
        /* All distances are different, and less than half of the circle. */
        int most = (n - 1) / 2 - (HALF - 1 - i);

        if (distances[i] <= distances[i - 1])
            distances[i] = distances[i - 1] + 1;
        if (distances[i] > most)
            distances[i] = most;
    }
    for (int i = 0; i < HALF; i++) {
        near[count++] = (host + distances[i]) % n;
        near[count++] = (host + n - distances[i]) % n;
    }
    return count;
}
