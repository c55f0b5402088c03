/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/compare_table.h"

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
    fprintf(out, "%12lld  %8s  %6s  %6d", (long long)r->bytes, result_type(r),
            result_redop(r), result_root(r));
    for (int p = 0; p < PLACEMENTS; p++)
        fprintf(out, "  %9.2f  %9.2f  %6.2f", 1e6 * r->placements[p].hvd.median,
                1e6 * r->placements[p].mpi.median,
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

static void print_each(FILE *out, const char *name,
                       const struct stats_spread *each)
{
    if (each->most > 0)
        fprintf(out, "  %4s  %9.2f  %9.2f  %9.2f  %9.2f  %9.2f", name,
                1e6 * each->least, 1e6 * each->median, 1e6 * each->p95,
                1e6 * each->p99, 1e6 * each->most);
}

void compare_table_percentiles(FILE *out, const struct result *results, int n)
{
    static const char *const names[] = {"out", "in"};

    fputs("#\n# Single operations (us): least, percentiles, most.\n#\n", out);
    fprintf(out, "# %10s  %8s  %6s  %5s", "size", "type", "redop", "place");
    for (int i = 0; i < 2; i++)
        fprintf(out, "  %4s  %9s  %9s  %9s  %9s  %9s", "", "min", "p50", "p95",
                "p99", "max");
    fputc('\n', out);
    for (int i = 0; i < n; i++)
        for (int p = 0; p < PLACEMENTS; p++) {
            const struct measured *m = &results[i].placements[p];

            fprintf(out, "%12lld  %8s  %6s  %5s", (long long)results[i].bytes,
                    result_type(&results[i]), result_redop(&results[i]),
                    names[p]);
            print_each(out, "hvd", &m->hvd.each);
            print_each(out, "MPI", &m->mpi.each);
            fputc('\n', out);
        }
}
