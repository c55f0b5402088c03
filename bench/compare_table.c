/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_table.h"

#include "stats.h"

double bus_factor(const struct bench_op *op, int nranks)
{
    return op ? 2.0 * (nranks - 1) / nranks : 1.0;
}

static void print_placement(FILE *out, const struct measured *m)
{
    fprintf(out, "  %9.2f  %9.2f  %6.2f", 1e6 * m->hvd_median,
            1e6 * m->mpi_median,
            m->hvd_median > 0 ? m->mpi_median / m->hvd_median : 0);
}

/* Bus bandwidth as a share of what the same ranks copy at the same time. */
static double share(const struct result *r, int nranks)
{
    double seconds = r->placements[IN_PLACE].hvd_median;

    return seconds > 0 ? bus_factor(r->op, nranks) * r->copy_seconds / seconds
                       : 0;
}

static void print_row(FILE *out, const struct result *r, int nranks)
{
    fprintf(out, "%12lld  %8s  %6s", (long long)r->bytes, r->type->name,
            r->op ? r->op->name : "none");
    for (int p = 0; p < PLACEMENTS; p++)
        print_placement(out, &r->placements[p]);
    fprintf(out, "  %8.2f  %5.1f%%\n",
            r->copy_seconds > 0 ? (double)r->bytes / r->copy_seconds / 1e9 : 0,
            100 * share(r, nranks));
}

void compare_table_print(FILE *out, const struct result *results, int n,
                         int nranks)
{
    struct stats_geomean means[PLACEMENTS] = {{0, 0}, {0, 0}};

    fprintf(out,
            "#\n"
            "# hvd beside raw MPI: medians of blocks measured in turn. ratio "
            "is MPI / hvd: above 1, hvd is faster.\n"
            "# copy: memcpy by all ranks at once; share: busbw in place / "
            "copy.\n"
            "#                                        out-of-place            "
            "          in-place\n"
            "# %10s  %8s  %6s  %9s  %9s  %6s  %9s  %9s  %6s  %8s  %6s\n"
            "# %10s  %8s  %6s  %9s  %9s  %6s  %9s  %9s  %6s  %8s  %6s\n",
            "size", "type", "redop", "hvd", "MPI", "ratio", "hvd", "MPI",
            "ratio", "copy", "share", "(B)", "", "", "(us)", "(us)", "", "(us)",
            "(us)", "", "(GB/s)", "");
    for (int i = 0; i < n; i++) {
        print_row(out, &results[i], nranks);
        for (int p = 0; p < PLACEMENTS; p++) {
            const struct measured *m = &results[i].placements[p];
            stats_geomean_add(&means[p], m->mpi_median / m->hvd_median);
        }
    }
    fprintf(out,
            "# Geometric mean of ratios : %.2f out-of-place, %.2f in-place\n",
            stats_geomean_value(&means[OUT_OF_PLACE]),
            stats_geomean_value(&means[IN_PLACE]));
}
