/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_data.h - the data that ipu-run trains with: batches of inputs and labels
 * from files.
 *
 *     .npz, .safetensors   an array for each input of the model, by its name,
 * and "labels"; or, for a model of one input, two arrays .npy, IDX the input,
 * and the labels in a second file a folder             test_data_set_0 and so
 * on as ONNX's tests have them: input_0.pb and so on, and the labels,
 * output_0.pb
 *
 * Rows lie along the first dimension of each array. Each batch is divided among
 * the ranks: together they train with the rows that one process would take.
 */
#ifndef MODELS_RUN_DATA_H
#define MODELS_RUN_DATA_H

#include "run/run_model.h"

#include <stdbool.h>

struct run_data_settings {
    const char *path;   /* NULL: there is no data set */
    const char *labels; /* the second file; NULL: there is none */
    int batch;          /* of all ranks; 0: not given */
    int seed;
    double divisor; /* of inputs that are integers in the file, and floats in
                       the model */
    bool in_order;  /* do not shuffle */
    bool classes;   /* labels are classes */
};

struct run_data;

/* Opens the data, and sets the open extents of the model's inputs, of which it
 * has to have all that were not given. Returns 0, or 1 after a complaint. */
int run_data_open(const struct run_data_settings *settings,
                  struct run_model *run, struct run_data **data);
void run_data_close(struct run_data *data); /* NULL is accepted */

/* Returns the steps of an epoch. */
int64_t run_data_steps(const struct run_data *data);

/* Describes the labels of one batch of this rank, as a tensor without data. */
ipu_onnx_tensor run_data_labels(const struct run_data *data);

/* Reads the next batch into the streams of the model, and into its labels; the
 * first of the next epoch follows the last. Returns 0, or 1 after a complaint.
 */
int run_data_next(struct run_data *data, struct run_model *run);

#endif
