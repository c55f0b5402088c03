/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_table.h"

static void print_columns(FILE *out, const char *const names[12])
{
    fprintf(out, "# %10s  %8s  %6s  %6s", names[0], names[1], names[2],
            names[3]);
    fprintf(out, "  %9s  %9s  %6s  %9s  %9s  %6s", names[4], names[5], names[6],
            names[7], names[8], names[9]);
    fprintf(out, "  %8s  %6s\n", names[10], names[11]);
}

static void print_head(FILE *out)
{
    static const char *const names[] = {"size", "type",  "redop", "root",
                                        "hvd",  "MPI",   "ratio", "hvd",
                                        "MPI",  "ratio", "copy",  "share"};
    static const char *const units[] = {"(B)",  "",     "",       "",
                                        "(us)", "(us)", "",       "(us)",
                                        "(us)", "",     "(GB/s)", "(%)"};

    fputs("#\n"
          "# hvd beside raw MPI: medians of blocks measured in turn.\n"
          "# ratio: MPI / hvd, above 1 hvd is faster. copy: memcpy by every "
          "rank at once.\n"
          "# share: bus bandwidth in place / copy.\n"
          "#\n",
          out);
    fprintf(out, "# %36s%28s%30s\n", "", "out of place", "in place");
    print_columns(out, names);
    print_columns(out, units);
}

static void print_row(FILE *out, const struct result *r, int nranks)
{
    fprintf(out, "%12lld  %8s  %6s  %6d", (long long)r->bytes, r->type->name,
            result_redop(r), result_root(r));
    for (int p = 0; p < PLACEMENTS; p++)
        fprintf(out, "  %9.2f  %9.2f  %6.2f", 1e6 * r->placements[p].hvd_median,
                1e6 * r->placements[p].mpi_median,
                result_ratio(r, (enum placement)p));
    fprintf(out, "  %8.2f  %6.1f\n", result_copy_bw(r, IN_PLACE),
            100 * result_share(r, IN_PLACE, nranks));
}

void compare_table_print(FILE *out, const struct result *results, int n,
                         int nranks)
{
    struct summary summary;

    result_summarize(results, n, nranks, &summary);
    print_head(out);
    for (int i = 0; i < n; i++)
        print_row(out, &results[i], nranks);
    fprintf(out,
            "# %-20s : %.2f out of place, %.2f in place (geometric means)\n",
            "MPI / hvd", summary.ratio[OUT_OF_PLACE], summary.ratio[IN_PLACE]);
}
