/* SPDX-License-Identifier: Apache-2.0 */
/*
 * osu_table.c - prints the table of the OSU micro-benchmarks. The first line
 * names hvd; from "# Size" on, the columns are those of OSU 7.4: "%-10s" and
 * then 20 characters each.
 */
#include "tables/osu_table.h"

static const char *title_of(hvd_kind kind)
{
    switch (kind) {
    case HVD_ALLREDUCE: return "Allreduce";
    case HVD_ALLGATHER: return "Allgather";
    case HVD_BROADCAST: return "Broadcast";
    case HVD_ALLTOALL: return "All-to-All Personalized Exchange";
    case HVD_BARRIER: return "Barrier";
    case HVD_REDUCESCATTER: return "Reduce_scatter";
    case HVD_GATHER: return "Gather";
    default: return "Reduce";
    }
}

void osu_table_head(FILE *out, const struct osu_head *head)
{
    fprintf(out, "\n# hvd-bench %s, %s Latency Test%s, table of OSU 7.4\n",
            hvd_version(), title_of(head->kind),
            head->in_place ? ", in place" : "");
    fprintf(out, "%-10s%20s%20s%20s%12s", "# Size", "Avg Latency(us)",
            "Min Latency(us)", "Max Latency(us)", "Iterations");
    if (head->check)
        fprintf(out, "%20s", "Validation");
    if (head->each)
        fprintf(out, "%20s%20s%20s", "P50 Tail Lat(us)", "P95 Tail Lat(us)",
                "P99 Tail Lat(us)");
    fputc('\n', out);
}

void osu_table_row(FILE *out, const struct osu_head *head,
                   const struct result *r)
{
    const struct measured *m =
        &r->placements[head->in_place ? IN_PLACE : OUT_OF_PLACE];
    const struct timing *hvd = &m->hvd;

    fprintf(out, "%-10lld%20.2f%20.2f%20.2f%12d", (long long)r->bytes,
            1e6 * hvd->mean, 1e6 * hvd->fastest_rank, 1e6 * hvd->slowest_rank,
            r->iters);
    if (head->check)
        fprintf(out, "%20s", m->nwrong == 0 ? "Pass" : "Fail");
    if (head->each)
        fprintf(out, "%20.2f%20.2f%20.2f", 1e6 * hvd->each.median,
                1e6 * hvd->each.p95, 1e6 * hvd->each.p99);
    fputc('\n', out);
}
