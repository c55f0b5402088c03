/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_table.h - prints the table of nccl-tests, byte for byte.
 *
 * Programs read this table by column, so nothing may be added to it. Other
 * figures go into other tables and into the JSON file.
 */
#ifndef BENCH_NCCL_TABLE_H
#define BENCH_NCCL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The four columns of one placement. GB is 1e9 bytes. */
struct nccl_half {
    double time_us;
    double alg_bw;  /* GB/s */
    double bus_bw;  /* GB/s */
    int64_t nwrong; /* negative: not checked, printed as N/A */
};

struct nccl_row {
    int64_t bytes;
    int64_t count;
    const char *type;
    const char *redop; /* "none": no reduction */
    int root;          /* -1: no root */
    struct nccl_half out_of_place;
    struct nccl_half in_place;
};

/* The facts in the lines above the table. */
struct nccl_head {
    const char *version; /* the text after "# " in the first line */
    const char *program;
    int64_t min_bytes;
    int64_t max_bytes;
    int64_t step; /* a factor, or bytes */
    int step_is_factor;
    int warmup_iters;
    int iters;
    int check;
};

/* One process, as nccl-tests lists its devices. */
struct nccl_device {
    int rank;
    int pid;
    int local_rank;
    const char *host;
    const char *what; /* the processor */
};

/*
 * Writes value into text, at least width characters wide: with two decimals,
 * with fewer as the integer part grows, and finally with an exponent. text
 * holds size bytes; 32 are always enough.
 */
void nccl_table_number(char *text, size_t size, double value, int width);

/* Print the parts of the table, in this order: head, one line per device,
 * columns, rows, foot. */
void nccl_table_head(FILE *out, const struct nccl_head *head);
void nccl_table_device(FILE *out, const struct nccl_device *device);
void nccl_table_columns(FILE *out);
void nccl_table_row(FILE *out, const struct nccl_row *row);
/* least is the bandwidth that the average must reach; with 0, the line gives no
 * verdict. */
void nccl_table_foot(FILE *out, int64_t nwrong, double avg_bus_bw, double least,
                     const char *program);

#endif
