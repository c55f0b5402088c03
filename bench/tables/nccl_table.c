/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_table.c - prints the table of nccl-tests.
 *
 * Format: the rows, the three column lines and the two result lines below the
 * table are those of nccl-tests 2.19, character for character, trailing blanks
 * included. SuperBench takes the lines between the one that contains
 * "out-of-place" and the one that contains "Out of bounds values" and counts
 * columns from the right; other tools match rows and result lines with regular
 * expressions. The lines above the table keep their shape and say what is true
 * here: no GPU, and the processor where nccl-tests names a device.
 *
 * Numbers stay in their column: nccl-tests prints fewer decimals as the integer
 * part grows. If rounding itself adds a digit (999.999), its buffer would
 * overflow; this code drops one more decimal.
 */
#include "tables/nccl_table.h"

#include <limits.h>

/* Returns the number of digits before the decimal point; 0 below 1. */
static int integer_digits(double value)
{
    int digits = 0;

    for (double power = 1.0; value >= power && digits < 300; power *= 10.0) {
        digits++;
    }
    return digits;
}

static int decimals_of(int digits, int width)
{
    if (digits < width - 2) {
        return 2;
    }
    if (digits < width - 1) {
        return 1;
    }
    return digits < width + 1 ? 0 : -1;
}

void nccl_table_number(char *text, size_t size, double value, int width)
{
    for (int d = decimals_of(integer_digits(value), width); d >= 0; d--) {
        if (snprintf(text, size, "%*.*f", width, d, value) <= width) {
            return;
        }
    }
    (void)snprintf(text, size, "%*.*e", width, width >= 7 ? 1 : 0, value);
}

void nccl_table_head(FILE *out, const struct nccl_head *head)
{
    fprintf(out, "# %s\n", head->version);
    fprintf(out, "# Collective test starting: %s\n", head->program);
    fprintf(out,
            "# nThread %d nGpus %d minBytes %lld maxBytes %lld step: %lld(%s) "
            "warmup iters: %d iters: %d agg iters: %d validation: %d "
            "graph: %d unalign: %d\n",
            1, 0, (long long)head->min_bytes, (long long)head->max_bytes,
            (long long)head->step, head->step_is_factor ? "factor" : "bytes",
            head->warmup_iters, head->iters, 1, head->check, 0, 0);
    fprintf(out, "#\n# Using devices\n");
}

void nccl_table_device(FILE *out, const struct nccl_device *device)
{
    fprintf(out, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [cpu] %s\n",
            device->rank, 0, device->pid, device->host, device->local_rank,
            device->what);
}

static void print_left_columns(FILE *out, const char *size, const char *count,
                               const char *type, const char *redop,
                               const char *root)
{
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s", size, count, type, redop, root);
}

static void print_half_columns(FILE *out, const char *time, const char *algbw,
                               const char *busbw, const char *wrong)
{
    fprintf(out, "  %7s  %6s  %6s  %6s", time, algbw, busbw, wrong);
}

void nccl_table_columns(FILE *out)
{
    fprintf(out, "#\n");
    print_left_columns(out, "", "", "", "", "");
    fprintf(out, "%23s%31s%10s\n", "out-of-place", "in-place", "");
    print_left_columns(out, "size", "count", "type", "redop", "root");
    print_half_columns(out, "time", "algbw", "busbw", "#wrong");
    print_half_columns(out, "time", "algbw", "busbw", "#wrong");
    fprintf(out, " \n");
    print_left_columns(out, "(B)", "(elements)", "", "", "");
    print_half_columns(out, "(us)", "(GB/s)", "(GB/s)", "");
    print_half_columns(out, "(us)", "(GB/s)", "(GB/s)", "");
    fprintf(out, " \n");
}

static void print_half(FILE *out, const struct nccl_half *half)
{
    char time[32];
    char algbw[32];
    char busbw[32];

    nccl_table_number(time, sizeof(time), half->time_us, 7);
    nccl_table_number(algbw, sizeof(algbw), half->alg_bw, 6);
    nccl_table_number(busbw, sizeof(busbw), half->bus_bw, 6);
    fprintf(out, "  %7s  %6s  %6s", time, algbw, busbw);
    if (half->nwrong < 0) {
        fprintf(out, "    N/A");
    } else {
        fprintf(out, "  %6g", (double)half->nwrong);
    }
}

void nccl_table_row(FILE *out, const struct nccl_row *row)
{
    fprintf(out, "%12lld  %12lld  %8s  %6s  %6d", (long long)row->bytes,
            (long long)row->count, row->type, row->redop, row->root);
    print_half(out, &row->out_of_place);
    print_half(out, &row->in_place);
    fprintf(out, "\n");
}

void nccl_table_foot(FILE *out, int64_t nwrong, double avg_bus_bw, double least,
                     const char *program)
{
    const char *verdict = avg_bus_bw < least ? "FAILED" : "OK";
    int shown = nwrong > INT_MAX ? INT_MAX : (int)nwrong;

    fprintf(out, "# %-20s : %d %s\n", "Out of bounds values", shown,
            shown > 0 ? "FAILED" : "OK");
    /* The blank stays if there is no limit, as in nccl-tests. */
    fprintf(out, "# %-20s : %g %s\n", "Avg bus bandwidth", avg_bus_bw,
            least > 0 ? verdict : "");
    fprintf(out, "#\n# Collective test concluded: %s\n", program);
}
