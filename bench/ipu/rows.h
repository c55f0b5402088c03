/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - microbenchmarks of a modelled chip, as rows of a table.
 */
#ifndef BENCH_IPU_ROWS_H
#define BENCH_IPU_ROWS_H

#include <ipu_model.h>

struct ipu_row {
    const char *group; /* "memory" */
    const char *what;  /* "triad, by hand" */
    int64_t size;      /* size of a message, a matrix side, ... */
    int64_t cycles;
    double ns;
    double rate;          /* rate in unit; 0: only the time counts */
    const char *unit;     /* "TB/s" */
    double share;         /* share of the peak; 0: there is no peak */
    const char *estimate; /* reason, if it is an estimate; or NULL */
    double with_room; /* speed-up of a product if memory did not limit its plan;
                         1: it does not; 0: no product */
};

/* The receiver of rows. The strings of a row live as long as the program. */
struct ipu_sink {
    void (*put)(void *context, const struct ipu_row *row);
    void *context;
};

struct ipu_group {
    const char *name;
    /* Puts all rows of the group; leaves out sizes that do not fit on the chip.
     * Returns a negative status if the model fails. */
    int (*rows)(const ipu_system *system, const struct ipu_sink *sink);
};

/* The groups; ends with a NULL name. */
extern const struct ipu_group ipu_groups[];

int ipu_rows_memory(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_exchange(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_links(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_host(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_matmul(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_matvec(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_convolution(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_reduction(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_broadcast(const ipu_system *system, const struct ipu_sink *sink);
int ipu_rows_stencil(const ipu_system *system, const struct ipu_sink *sink);

/* Completes a row from cycles and puts it. amount is the number of bytes or
 * operations in that time (0: only the time counts), peak the highest possible
 * number per second (0: unknown). */
void ipu_row_put(const ipu_system *system, const struct ipu_sink *sink,
                 struct ipu_row row, const ipu_cycles *cycles, double amount,
                 double peak);

/* Returns the peaks of the system's chip, which must be valid. */
ipu_target_peaks ipu_row_peaks(const ipu_system *system);

#endif
