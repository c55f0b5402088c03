/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - a small problem for tests of estimators: y = w x + b, learnt by
 * gradient descent, which a test can follow by itself. */
#ifndef HVD_TESTS_LINES_H
#define HVD_TESTS_LINES_H

#include <hvd_estimator.h>
#include <hvd_model.h>

#include "ranks.h"

enum { ROWS = 96, FEATURES = 3 };

extern float lines_x[ROWS][FEATURES], lines_y[ROWS];

#define MUST(call) ck_assert_msg((call) >= 0, "%s", hvd_last_error())

/* Writes lines_x and lines_y, which lines_data does, too. */
void lines_fill(void);

/* Returns the first rows of the data, with as many of its components x, y and
 * number: it is not batched. */
hvd_dataset *lines_data(int rows, int ncomponents);

/* The model of all tests, and options of plain gradient descent, with the rate
 * 0.1; lines_set_options sets both to that. */
extern hvd_model lines_model;
extern hvd_estimator_options lines_options;
void lines_set_options(void);

hvd_train_spec lines_steps(int64_t count);

/* Computes the slopes of the loss of a step, of a batch of so many rows, those
 * of all ranks together: of w, and of b behind them. slopes: [FEATURES + 1]. */
void lines_slopes(int batch, int step, const double *w, double b,
                  double *slopes);

/* Makes the steps first to end - 1 of gradient descent with the rate, in
 * batches of so many rows, those of all ranks together. */
void lines_descend(int batch, int first, int end, double rate, double *w,
                   double *b);

/* Returns the mean of the squared errors of the first rows. */
double lines_loss(int rows, const double *w, double b);

/* Reads the variables of an estimator: w [FEATURES] and b. */
void lines_read(const hvd_estimator *e, double *w, double *b);

/* Makes a folder for this rank; lines_remove removes it with its files. */
const char *lines_folder(void);
void lines_remove(void);

/* Returns the number that a log has for a tag at a step; NaN: there is none. */
double lines_logged(const char *log_dir, const char *tag, int step);

#endif
