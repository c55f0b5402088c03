/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/member.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hvd.h"
#include "tables/stats.h"

struct member {
    const struct rounds *rounds;
    struct table table;
    float *values;
    double times[ROUNDS_MOST];
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs sums. *seconds becomes the time of one, the mean of all ranks. */
static int run(struct member *m, int64_t count, int niters, double *seconds)
{
    double start;
    int status = hvd_barrier();

    start = now();
    for (int i = 0; i < niters && status >= 0; i++)
        status =
            hvd_allreduce(m->values, m->values, count, HVD_FLOAT32, HVD_SUM);
    *seconds = (now() - start) / niters;
    if (status < 0)
        return status;
    return hvd_allreduce(seconds, seconds, 1, HVD_FLOAT64, HVD_AVERAGE);
}

static int measure(struct member *m, int64_t bytes)
{
    const int64_t count = bytes / (int64_t)sizeof(float);
    struct stats_spread spread;
    double one;
    int niters, status;

    /* Connections are made and memory is touched. */
    status = run(m, count, ROUNDS_TRIAL, &one);
    if (status >= 0)
        status = run(m, count, ROUNDS_TRIAL, &one);
    niters = rounds_iters(one);
    for (int i = 0; i < m->rounds->n && status >= 0; i++)
        status = run(m, count, niters, &m->times[i]);
    if (status < 0 || hvd_rank() != 0)
        return status;
    stats_spread_of(m->times, (size_t)m->rounds->n, &spread);
    table_number(&m->table, (double)bytes);
    table_number(&m->table, 1e6 * spread.median);
    table_number(&m->table, 1e6 * spread.least);
    return 0;
}

static int measure_all(struct member *m)
{
    const struct rounds *r = m->rounds;
    int status = 0;

    for (int64_t bytes = r->least; bytes <= r->most && status >= 0;
         bytes *= r->factor)
        status = measure(m, bytes);
    return status;
}

static int fail(void)
{
    fprintf(stderr, "hvd-bench: cluster: %s\n", hvd_last_error());
    return 1;
}

int member_run(const struct rounds *rounds, enum table_format format)
{
    static const struct table_column columns[] = {
        {"bytes", 10, 0}, {"p50_us", 11, 2}, {"min_us", 11, 2}};
    static struct member m;
    char title[80];

    m = (struct member){.rounds = rounds};
    if (hvd_init() < 0)
        return fail();
    m.values = hvd_malloc((size_t)rounds->most);
    if (!m.values) {
        fprintf(stderr, "hvd-bench: cluster: no memory for %lld bytes\n",
                (long long)rounds->most);
        return 1;
    }
    memset(m.values, 0, (size_t)rounds->most);
    snprintf(title, sizeof title, "allreduce of float32 in place, %d ranks",
             hvd_size());
    if (hvd_rank() == 0)
        table_begin(&m.table, stdout, format, title, columns,
                    sizeof columns / sizeof *columns);
    if (measure_all(&m) < 0)
        return fail();
    if (hvd_rank() == 0)
        table_end(&m.table);
    hvd_free(m.values);
    if (hvd_shutdown() < 0)
        return fail();
    return fflush(stdout) == 0 ? 0 : 1;
}
