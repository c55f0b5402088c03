/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated_run.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1 };

static const int uneven[] = {3, 1, 2}, alone[] = {1}, pairs[] = {2};
const struct layout layouts[LAYOUTS] = {{uneven, 3}, {alone, 1}, {pairs, 1}};

bool has_little;
enum { FEW_TRANSFERS = 6, FEW_BYTES = 4096 };

struct run run_begin(int size, const int *widths, int nwidths, int seed)
{
    struct run run = {.simulated =
                          simulated_new(size, widths, nwidths, (uint64_t)seed),
                      .members = calloc((size_t)size, sizeof *run.members),
                      .size = size};

    SIMULATED_ASSERT(run.members != NULL);
    for (int i = 0; i < size; i++) {
        struct member *m = &run.members[i];

        SIMULATED_ASSERT(hvd__workspace_init(&m->workspace, size) == 0);
        /* As if there were many more ranks. */
        if (has_little)
            m->workspace.per_segment = FEW_TRANSFERS;
        if (has_little)
            m->workspace.segment_bytes = FEW_BYTES;
        m->collective = (struct hvd__collective){
            .team = simulated_team(run.simulated, i),
            .workspace = &m->workspace,
            .to = m->workspace.blocks,
            .from = m->workspace.blocks + size,
            .tag = TAG,
            .reduction = {.prescale = 1, .postscale = 1, .divisor = size},
        };
    }
    return run;
}

void run_end(struct run *run)
{
    for (int i = 0; i < run->size; i++) {
        struct member *m = &run->members[i];

        hvd__workspace_fini(&m->workspace);
        if (m->output != m->input)
            free(m->output);
        free(m->input);
    }
    free(run->members);
    simulated_free(run->simulated);
}

void give(struct member *m, size_t in, size_t out, bool in_place)
{
    m->bytes = out;
    m->input = malloc(in + out + 1);
    m->output = in_place ? m->input : malloc(out + 1);
    SIMULATED_ASSERT(m->input && m->output);
    memset(m->output, 0x55, out + 1);
    m->collective.input = m->input;
    m->collective.output = m->output;
}

void start_all(struct run *run, const struct hvd__algorithm *algorithm)
{
    for (int i = 0; i < run->size; i++) {
        struct hvd__collective *c = &run->members[i].collective;

        hvd__collective_start(c);
        if (algorithm) {
            c->algorithm = algorithm;
            c->total = algorithm->total(c);
        }
        SIMULATED_ASSERT(c->algorithm == run->members[0].collective.algorithm);
    }
}

void finish_all(struct run *run)
{
    int left = run->size;

    for (int64_t steps = 0; left > 0; steps++) {
        struct member *m =
            &run->members[simulated_random(run->simulated, run->size)];
        bool moved = false;
        int done = m->done ? 0 : hvd__collective_step(&m->collective, &moved);

        SIMULATED_ASSERT(done >= 0);
        m->done |= done != 0;
        left -= done;
        SIMULATED_ASSERT(steps < 10000000);
    }
}

void run_all(struct run *run, const struct hvd__algorithm *algorithm)
{
    start_all(run, algorithm);
    finish_all(run);
}

/* The data of a rank repeats itself. Of blocks, each pair of ranks has some. */
enum { PERIOD = 101 * 5, MOST_GIVERS = 4 * MOST_RANKS };
static unsigned char elements[MOST_GIVERS][PERIOD];
static int sums[MOST_RANKS + 1][PERIOD]; /* of so many ranks */

void make_data(void)
{
    for (int rank = 0; rank < MOST_GIVERS; rank++)
        for (int i = 0; i < PERIOD; i++)
            elements[rank][i] =
                (unsigned char)((i * 7 + rank * 31 + i * rank % 5) % 101);
    for (int n = 0; n < MOST_RANKS; n++)
        for (int i = 0; i < PERIOD; i++)
            sums[n + 1][i] = sums[n][i] + elements[n][i];
}

int given(int rank, int64_t i)
{
    return elements[rank][i % PERIOD];
}

int sum_of(int n, int64_t i)
{
    return sums[n][i % PERIOD];
}

int after(int n)
{
    return n < 9 || n % 4 != 1 || getenv("HVD_TEST_FULL") ? n + 1 : n + 3;
}

void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    has_little = false;
}
