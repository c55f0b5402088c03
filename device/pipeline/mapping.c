/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - chooses the IPU of each stage.
 *
 * Unless the options say otherwise, stages are placed so that there are the
 * fewest hops between each stage and the next. A search goes from the first
 * stage on over the IPUs of one replica, nearest numbers first; it drops what
 * is no better than the best so far, and ends when every step is one hop. On a
 * ladder of pairs such a placement exists for any chain: 0, 1, 3, 2, 4, 5, 7,
 * 6. Concurrent stages may make it impossible; then the search gives up after
 * some time with the best so far.
 *
 * The IPUs of replica r begin at r times the number of IPUs of one replica.
 */
#include <string.h>

#include "pipeline/pipeline.h"
#include "target/target.h"

enum { MOST_TRIES = 200000 };

struct search {
    const struct ipu_pipeline *pipeline;
    int32_t nipus;
    bool taken[IPU_MAX_IPUS];
    int32_t chosen[IPU_MAX_STAGES], best[IPU_MAX_STAGES];
    int32_t fewest, least; /* hops of the best placement; the least possible */
    int32_t tries;
};

static int32_t distance(const struct search *s, int32_t from, int32_t to)
{
    int32_t hops = 0;

    ipu_system_path(&s->pipeline->system, from, to, NULL, &hops);
    return hops;
}

/* Counts the hops to the earlier parts that it receives from. */
static int32_t hops_to(const struct search *s, int32_t part, int32_t ipu)
{
    const struct ipu_pipeline *p = s->pipeline;
    int32_t position = p->parts[part].position, sum = 0;

    if (position == 0)
        return 0;
    for (int32_t i = 0; i < p->positions[position - 1].nparts; i++)
        sum += distance(s, s->chosen[p->positions[position - 1].first_part + i],
                        ipu);
    return sum;
}

static void look(struct search *s, int32_t part, int32_t hops)
{
    if (hops >= s->fewest || s->fewest == s->least)
        return;
    if (part == s->pipeline->nparts) {
        s->fewest = hops;
        memcpy(s->best, s->chosen, sizeof s->best);
        return;
    }
    for (int32_t ipu = 0; ipu < s->nipus; ipu++) {
        if (s->taken[ipu] || s->tries++ > MOST_TRIES)
            continue;
        s->taken[ipu] = true;
        s->chosen[part] = ipu;
        look(s, part + 1, hops + hops_to(s, part, ipu));
        s->taken[ipu] = false;
    }
}

static int32_t least_hops(const struct ipu_pipeline *p)
{
    int32_t sum = 0;

    for (int32_t i = 1; i < p->npositions; i++)
        sum += p->positions[i].nparts * p->positions[i - 1].nparts;
    return sum;
}

static void place_parts(struct ipu_pipeline *p)
{
    struct search s = {.pipeline = p,
                       .nipus = p->nparts + p->nparts % 2,
                       .fewest = INT32_MAX,
                       .least = least_hops(p)};

    if (s.nipus > p->system.ipus)
        s.nipus = p->nparts;
    look(&s, 0, 0);
    for (int32_t i = 0; i < p->nparts; i++)
        p->parts[i].ipu = s.best[i];
}

static int add_chips(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->nparts; i++) {
        int32_t c = 0;

        while (c < p->nchips && p->chips[c].ipu != p->parts[i].ipu)
            c++;
        p->chips[c].ipu = p->parts[i].ipu;
        if (c == p->nchips)
            p->nchips++;
    }
    return IPU_OK;
}

int ipu__pipeline_map(struct ipu_pipeline *p,
                      const ipu_pipeline_options *options)
{
    int32_t most = options->nmappings ? 0 : p->nparts;
    int64_t all;

    for (int32_t i = 0; i < options->nmappings; i++)
        if (most < options->device_mapping[i] + 1)
            most = options->device_mapping[i] + 1;
    all = (int64_t)most * options->replicas;
    IPU_TRY(ipu__find_system(options->system,
                             all < INT32_MAX ? (int32_t)all : INT32_MAX,
                             &p->system));
    if (p->system.ipus < all)
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: %d replicas of %d IPUs: '%s' has %d",
                         (int)options->replicas, (int)most, p->system.name,
                         (int)p->system.ipus);
    p->ipus_per_copy = most;
    for (int32_t i = 0; i < options->nmappings; i++)
        p->parts[i].ipu = options->device_mapping[i];
    if (options->nmappings == 0) {
        place_parts(p);
        for (int32_t i = 0; i < p->nparts; i++)
            if (p->ipus_per_copy < p->parts[i].ipu + 1)
                p->ipus_per_copy = p->parts[i].ipu + 1;
    }
    /* If an odd number of IPUs is spread over pairs, one IPU of a pair may stay
     * unused. */
    if (p->system.ipus < (int64_t)p->ipus_per_copy * options->replicas)
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: %d replicas of %d IPUs: '%s' has %d: set "
                         "device_mapping",
                         (int)options->replicas, (int)p->ipus_per_copy,
                         p->system.name, (int)p->system.ipus);
    return add_chips(p);
}
