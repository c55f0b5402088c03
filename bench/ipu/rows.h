/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - microbenchmarks of a modelled chip, as rows.
 */
#ifndef BENCH_IPU_ROWS_H
#define BENCH_IPU_ROWS_H

#include <ipu_model.h>

struct ipu_row {
    const char *group; /* "memory" */
    const char *what;  /* "triad, by hand" */
    int64_t size;      /* bytes of a message, side of a matrix, ... */
    int64_t cycles;
    double ns;
    double rate;          /* in unit; 0: the time is the result */
    const char *unit;     /* "TB/s" */
    double share;         /* of the peak; 0: it has none */
    const char *estimate; /* why it is only one; or NULL */
    double with_room; /* how many times as fast a product would be if memory did
                         not limit its plan; 1: it does not; 0: no product */
};

/* Where rows go; what they point to lasts as long as the program. */
struct ipu_sink {
    void (*put)(void *context, const struct ipu_row *row);
    void *context;
};

struct ipu_group {
    const char *name;
    /* Puts all its rows; sizes that do not fit on the chip are left out. A
     * negative status otherwise. */
    int (*rows)(const ipu_system *system, const struct ipu_sink *sink);
};

/* Ended by a NULL name. */
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

/* Complete a row from cycles and put it. amount is how many bytes or
 * operations these took (0: the time is the result), peak how many a second
 * there could be (0: nobody says). */
void ipu_row_put(const ipu_system *system, const struct ipu_sink *sink,
                 struct ipu_row row, const ipu_cycles *cycles, double amount,
                 double peak);

/* Of the system's chip, which is one that has been checked. */
ipu_target_peaks ipu_row_peaks(const ipu_system *system);

#endif
