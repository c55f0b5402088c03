/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/csv_table.h"

#include "tables/call.h"

void csv_table_begin(struct table *table, FILE *out)
{
    static const struct table_column columns[] = {
        {"collective", 0, 0}, {"bytes", 0, 0},        {"count", 0, 0},
        {"type", 0, 0},       {"redop", 0, 0},        {"root", 0, 0},
        {"ranks", 0, 0},      {"hosts", 0, 0},        {"memory", 0, 0},
        {"cache", 0, 0},      {"placement", 0, 0},    {"implementation", 0, 0},
        {"iterations", 0, 0}, {"mean_us", 0, 0},      {"median_us", 0, 0},
        {"min_us", 0, 0},     {"max_us", 0, 0},       {"p50_us", 0, 0},
        {"p95_us", 0, 0},     {"p99_us", 0, 0},       {"algbw_gbs", 0, 0},
        {"busbw_gbs", 0, 0},  {"mpi_over_hvd", 0, 0}, {"share_of_copy", 0, 0},
        {"wrong", 0, 0}};

    table_begin(table, out, TABLE_CSV, "", columns,
                sizeof columns / sizeof *columns);
}

static void put_what(struct table *t, const struct result *r, int nranks,
                     int nhosts)
{
    table_text(t, hvd_kind_name(r->kind));
    table_number(t, (double)r->bytes);
    table_number(t, (double)r->count);
    table_text(t, result_type(r));
    table_text(t, result_redop(r));
    table_number(t, result_root(r));
    table_number(t, nranks);
    table_number(t, nhosts);
}

static void put_times(struct table *t, const struct timing *timing)
{
    const double blocks[] = {timing->mean, timing->median, timing->least,
                             timing->most};
    const double each[] = {timing->each.median, timing->each.p95,
                           timing->each.p99};

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        table_number(t, 1e6 * blocks[i]);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        table_number_if(t, timing->each.most > 0, 1e6 * each[i]);
}

static void put_row(struct table *t, const struct result *r, int nranks,
                    enum placement placement, const struct timing *timing)
{
    const struct measured *m = &r->placements[placement];
    double algbw = timing->mean > 0 ? (double)r->bytes / timing->mean / 1e9 : 0;
    int is_hvd = timing == &m->hvd;

    put_times(t, timing);
    table_number(t, algbw);
    table_number(t, timing == &m->copy
                        ? algbw
                        : algbw * call_bus_factor(r->kind, nranks));
    table_number_if(t, is_hvd && m->mpi.median > 0, result_ratio(r, placement));
    table_number_if(t, is_hvd, result_share(r, placement, nranks));
    table_number_if(t, is_hvd && m->nwrong >= 0, (double)m->nwrong);
}

void csv_table_rows(struct table *t, const struct result *r, int nranks,
                    int nhosts, const char *memory, const char *cache)
{
    static const char *const placements[] = {"out_of_place", "in_place"};
    static const char *const names[] = {"hvd", "mpi", "copy"};

    for (int p = 0; p < PLACEMENTS; p++) {
        const struct measured *m = &r->placements[p];
        const struct timing *timings[] = {&m->hvd, &m->mpi, &m->copy};

        for (int i = 0; i < 3; i++) {
            if (timings[i]->median <= 0)
                continue;
            put_what(t, r, nranks, nhosts);
            table_text(t, memory);
            table_text(t, cache);
            table_text(t, placements[p]);
            table_text(t, names[i]);
            table_number(t, r->iters);
            put_row(t, r, nranks, (enum placement)p, timings[i]);
        }
    }
}
