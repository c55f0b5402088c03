/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a network as the training programs see it: variables, one input, a
 * class to be found for each row, and a function that builds the forward pass,
 * piece by piece. trainer/ makes the rest of it: loss, gradients and optimiser
 * (program.h), stages on several IPUs (model_backend.h), and averages over the
 * ranks (trainer.h).
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <ipu.h>
#include <stdbool.h>

/* The first values of a variable. */
enum model_start {
    MODEL_ZEROS,
    MODEL_ONES,
    MODEL_EVEN,  /* evenly distributed in ±spread */
    MODEL_NORMAL /* normally distributed around 0, deviation spread */
};

struct model_variable {
    char name[48];   /* "conv1/kernel" */
    char stream[60]; /* stream of its gradient: "gradient/conv1/kernel" */
    int32_t ndim;
    int64_t shape[4];
    int64_t count; /* elements */
    enum model_start start;
    double spread;
};

/* The purpose of a forward pass. */
struct model_pass {
    bool training;
    ipu_tensor step; /* number of the batch; only in training */
    uint64_t seed;   /* seed of what is random in training */
};

struct model {
    const char *name;
    /* The order is that in which the backward pass completes their
     * gradients. */
    struct model_variable *variables; /* owned */
    int nvariables, capacity;
    const char *input_name; /* "images" */
    const char *label_name; /* "labels" */
    ipu_dtype input_dtype;
    int32_t input_ndim;
    int64_t input_shape[4];
    int64_t rows, classes; /* labels: [rows] int32 */
    /* The network consists of pieces, from the input to the logits [rows,
     * classes]; x is the result of the piece before. A pipeline may put
     * neighbours into one stage. variables has those that the piece needs, at
     * the places that they have in the model. Failures stay in the graph. */
    int pieces;
    ipu_tensor (*piece)(const struct model *model, ipu_graph *graph, int piece,
                        const ipu_tensor *variables, ipu_tensor x,
                        const struct model_pass *pass);
    bool (*needs)(const struct model *model, int piece, int variable);
    /* Returns about how many products a row's forward pass takes, by which the
     * pieces are partitioned into stages. */
    int64_t (*work)(const struct model *model, int piece);
    bool draws;          /* true: something is random in training */
    const void *context; /* borrowed; for the functions */
};

/* Adds a variable, and returns its number or PROBLEM. name is copied. */
int model_add(struct model *model, const char *name, enum model_start start,
              double spread, int32_t ndim, const int64_t *shape);

/* Returns the spread sqrt(6 / (inputs + outputs)) of Glorot and Bengio
 * (2010). */
double model_glorot(int64_t fan_in, int64_t fan_out);

/* Copies a model without variables to the heap. NULL: no memory, and the text
 * is kept. */
struct model *model_new(const struct model *model);
void model_free(struct model *model); /* NULL is accepted */

/* Builds all pieces: returns the logits for the input and all variables. */
ipu_tensor model_forward(const struct model *model, ipu_graph *graph,
                         const ipu_tensor *variables, ipu_tensor input,
                         const struct model_pass *pass);

/* Return the elements of all variables together, and of the input. */
int64_t model_parameters(const struct model *model);
int64_t model_input_count(const struct model *model);

/* Returns zeros that are aligned to cache lines; to be freed. NULL: no
 * memory. */
void *model_memory(size_t bytes);

/* Returns such memory for the values of all variables, [variables]. NULL: there
 * is none, and the text is kept. */
float **model_values(const struct model *model);
void model_values_free(const struct model *model, float **values);

/* Draws first values: values[i] has room for variable i. */
void model_initialize(const struct model *model, uint64_t seed,
                      float *const *values);

#endif
