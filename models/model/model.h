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
    MODEL_EVEN,       /* evenly distributed in ±spread */
    MODEL_NORMAL,     /* normally distributed around 0, deviation spread */
    MODEL_TRUNCATED,  /* the same, drawn again beyond two deviations */
    MODEL_CONSTANT,   /* spread */
    MODEL_ORTHOGONAL, /* all dimensions but the last are rows: columns, or rows
                         if there are fewer, are orthogonal and of length
                         spread */
    MODEL_FORGET      /* ones in the second quarter, zeros elsewhere */
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

/* A tensor that goes in with a batch, or comes out of an evaluation. */
struct model_tensor {
    char name[48]; /* "images" */
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[5];
};

enum { MODEL_MOST_INPUTS = 8, MODEL_MOST_OUTPUTS = 8 };

/* The purpose of a forward pass. */
struct model_pass {
    bool training;
    const ipu_tensor *inputs; /* [inputs]; the first one for the first piece */
    ipu_tensor *outputs;      /* [outputs], for those behind the first; not in
                                 training */
    bool predicts;   /* there are no losses, and of the inputs only those
                        that are needed */
    ipu_tensor step; /* number of the batch; only in training */
    uint64_t seed;   /* seed of what is random in training */
    /* Normalise by the batches of all together: of all replicas of this
     * process, or of all devices of this network, which is then not NULL. */
    bool synchronised;
    const ipu_network *network;
};

struct model {
    const char *name;
    /* The trained ones come first, in the order in which the backward pass
     * completes their gradients. Those behind them are statistics: each device
     * has and changes its own, and whoever reads them gets the mean over all
     * devices of all ranks. */
    struct model_variable *variables; /* owned */
    int nvariables, capacity;
    int trained; /* how many of the variables are trained */
    /* A batch: what the first piece gets, what the losses compare its result
     * with, and what else there is. */
    struct model_tensor inputs[MODEL_MOST_INPUTS];
    int ninputs;
    int64_t rows; /* losses of a batch */
    /* The network consists of pieces, from the first input to the result, which
     * is the first output; x is the result of the piece before. A pipeline may
     * put neighbours into one stage. variables has those that the piece needs,
     * at the places that they have in the model. Failures stay in the graph. */
    int pieces;
    ipu_tensor (*piece)(const struct model *model, ipu_graph *graph, int piece,
                        const ipu_tensor *variables, ipu_tensor x,
                        const struct model_pass *pass);
    /* Returns the losses [rows] of the result y. NULL: y are logits [rows,
     * classes], and the second input has the classes [rows], int32. */
    ipu_tensor (*losses)(const struct model *model, ipu_graph *graph,
                         ipu_tensor y, const struct model_pass *pass);
    /* What an evaluation gives beside the losses. */
    struct model_tensor outputs[MODEL_MOST_OUTPUTS];
    int noutputs;
    bool (*needs)(const struct model *model, int piece, int variable);
    /* Returns about how many products a row's forward pass takes, by which the
     * pieces are partitioned into stages. */
    int64_t (*work)(const struct model *model, int piece);
    uint64_t needed;     /* bit i: a prediction needs input i, as it always does
                            the first one */
    bool draws;          /* true: something is random in training */
    const char *graphs;  /* folder with the network's graphs, borrowed; NULL:
                            the pieces build them (program.h) */
    const void *context; /* borrowed; for the functions */
    void *own;           /* owned; for the functions, too */
    void (*free_own)(void *own);
};

/* Adds a variable, and returns its number or PROBLEM. name is copied. Trained
 * ones are added before statistics. */
int model_add(struct model *model, const char *name, enum model_start start,
              double spread, int32_t ndim, const int64_t *shape);
int model_add_statistic(struct model *model, const char *name,
                        enum model_start start, double spread, int32_t ndim,
                        const int64_t *shape);

/* Returns how many of the variables are statistics. */
int model_statistics(const struct model *model);

/* Copies a model without variables to the heap. NULL: no memory, and the text
 * is kept. */
struct model *model_new(const struct model *model);
void model_free(struct model *model); /* NULL is accepted */

/* Returns the losses of a result of all pieces. */
ipu_tensor model_losses(const struct model *model, ipu_graph *graph,
                        ipu_tensor y, const struct model_pass *pass);

/* Builds all pieces: returns the result for the inputs and all variables. */
ipu_tensor model_forward(const struct model *model, ipu_graph *graph,
                         const ipu_tensor *variables,
                         const struct model_pass *pass);

/* Returns true if a prediction needs input i. */
static inline bool model_predicts_from(const struct model *model, int i)
{
    return i == 0 || (model->needed >> i & 1) != 0;
}

/* Returns the elements of all trained variables together. */
int64_t model_parameters(const struct model *model);

/* Returns the elements of a tensor. */
int64_t model_tensor_count(const struct model_tensor *tensor);

/* Returns zeros that are aligned to cache lines; to be freed. NULL: no
 * memory. */
void *model_memory(size_t bytes);

/* Returns such memory for the values of all variables, [variables]. NULL: there
 * is none, and the text is kept. */
float **model_values(const struct model *model);
void model_values_free(const struct model *model, float **values);

/* Draws the first values of the variable of a number. */
void model_draw(const struct model_variable *variable, uint64_t seed,
                int number, float *values);

/* Draws first values: values[i] has room for variable i. */
void model_initialize(const struct model *model, uint64_t seed,
                      float *const *values);

#endif
