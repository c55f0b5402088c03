/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a network as the training programs see it: variables, one input,
 * a class to be found for each row, and a function that builds the forward
 * pass, piece by piece. What is the same for all networks is made of it: the
 * loss, its gradients, the optimiser (program.h), stages on several IPUs
 * (stages.h), and the ranks' averages (trainer.h).
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <ipu.h>
#include <stdbool.h>

/* How a variable starts. */
enum model_start {
    MODEL_ZEROS,
    MODEL_ONES,
    MODEL_EVEN,  /* evenly in ±spread */
    MODEL_NORMAL /* around 0, deviation spread */
};

struct model_variable {
    char name[48];   /* "conv1/kernel" */
    char stream[60]; /* its gradient's: "gradient/conv1/kernel" */
    int32_t ndim;
    int64_t shape[4];
    int64_t count; /* elements */
    enum model_start start;
    double spread;
};

/* What a forward pass is built for. */
struct model_pass {
    bool training;
    ipu_tensor step; /* counts batches; only in training */
    uint64_t seed;   /* of what is random in training */
};

struct model {
    const char *name;
    /* In the order in which the backward pass completes their gradients. */
    struct model_variable *variables; /* owned */
    int nvariables, capacity;
    const char *input_name; /* "images" */
    const char *label_name; /* "labels" */
    ipu_dtype input_dtype;
    int32_t input_ndim;
    int64_t input_shape[4];
    int64_t rows, classes; /* labels: [rows] int32 */
    /* The network is made of pieces, each of what the one before has made: from
     * the input to the logits [rows, classes]. A pipeline may put neighbours
     * into stages. variables: those that the piece needs, where the model has
     * them. Failures stay in the graph. */
    int pieces;
    ipu_tensor (*piece)(const struct model *model, ipu_graph *graph, int piece,
                        const ipu_tensor *variables, ipu_tensor x,
                        const struct model_pass *pass);
    bool (*needs)(const struct model *model, int piece, int variable);
    /* Products of a row's forward pass, about: what stages are cut by. */
    int64_t (*work)(const struct model *model, int piece);
    bool draws;          /* something is random in training */
    const void *context; /* borrowed; the functions' own */
};

/* Add a variable; returns its number, or PROBLEM. name is copied. */
int model_add(struct model *model, const char *name, enum model_start start,
              double spread, int32_t ndim, const int64_t *shape);

/* Evenly in ±sqrt(6 / (inputs + outputs)): Glorot and Bengio (2010). */
double model_glorot(int64_t fan_in, int64_t fan_out);

/* A copy, on the heap, of a model without variables; NULL: no memory, and the
 * text is kept. */
struct model *model_new(const struct model *model);
void model_free(struct model *model); /* NULL is accepted */

/* All pieces: from the input, and all variables, the logits. */
ipu_tensor model_forward(const struct model *model, ipu_graph *graph,
                         const ipu_tensor *variables, ipu_tensor input,
                         const struct model_pass *pass);

/* Elements of all variables together, and of the input. */
int64_t model_parameters(const struct model *model);
int64_t model_input_count(const struct model *model);

/* Zeros, aligned as vectors and cache lines are; to be freed. NULL: no memory.
 */
void *model_memory(size_t bytes);

/* Such memory for the values of all variables, [variables]. NULL: there is
 * none, and the text is kept. */
float **model_values(const struct model *model);
void model_values_free(const struct model *model, float **values);

/* Draw first values: values[i] has room for variable i. */
void model_initialize(const struct model *model, uint64_t seed,
                      float *const *values);

#endif
