/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_model.h - a network of one's own, for the trainer (libhvd-train).
 *
 * A network is a function that builds the forward pass on a graph of the device
 * (ipu.h), with layers that make their own variables, and a function that says
 * what the loss of each row is:
 *
 *     static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
 *     {
 *         x = hvd_dense(net, "hidden", x, 128, HVD_RELU);
 *         return hvd_dense(net, "logits", x, 10, HVD_LINEAR);
 *     }
 *
 *     hvd_model model;
 *
 *     hvd_model_init(&model, sizeof model);
 *     model.name = "digits";
 *     model.build = build;
 *
 * The trainer calls the functions for each program that it compiles: training,
 * evaluation and prediction. They must build the same each time but for what
 * hvd_net_mode decides, and are called by one thread at a time.
 *
 * A layer that fails returns a tensor with a negative id, as ops do (ipu.h),
 * and so does every op that gets one; functions need not look. The trainer
 * reports the first failure by hvd_last_error().
 *
 * Shapes are written [batch, ...]: the first dimension of x and of all inputs
 * is the local batch.
 */
#ifndef HVD_MODEL_H
#define HVD_MODEL_H

#include <ipu.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A network under construction; valid within a call of a building function. */
typedef struct hvd_net hvd_net;

/* Builds a part of the forward pass from x, and returns its result. */
typedef ipu_tensor hvd_build_fn(hvd_net *net, ipu_tensor x, void *context);

enum { HVD_MODEL_MOST_PIECES = 128 };

/* A model is what is trained; hvd_model_init sets the defaults. Names and
 * context are borrowed as long as an estimator uses the model. */
typedef struct hvd_model {
    uint32_t size;       /* of the struct, as hvd_model_init got it */
    const char *name;    /* in reports; "model" */
    const char *output;  /* name of the result; "output" */
    hvd_build_fn *build; /* from the first input to the result */
    /* In place of build with marks (hvd_net_next_piece): neighbours of which a
     * pipeline may make stages on devices of their own. Each gets the result of
     * the one before. At most HVD_MODEL_MOST_PIECES. */
    hvd_build_fn *const *pieces;
    int32_t npieces;
    /* Returns the losses of the result, as many for each row of the batch:
     * [batch] or [batch, ...], or flattened. NULL: the result has logits [...,
     * classes], the second input the classes [...], and the loss is their cross
     * entropy. The trainer takes the mean. */
    hvd_build_fn *loss;
    void *context; /* for the functions */
    /* Gives the context back when nobody needs the model any more; NULL: there
     * is nothing to do. */
    void (*free_context)(void *context);
} hvd_model;

/* Sets all members to their defaults; size is sizeof(hvd_model). */
void hvd_model_init(hvd_model *model, size_t size);

/* -------------------------------------------------------------- the network */

/* The mode says what a forward pass is built for. */
typedef int32_t hvd_mode;
enum {
    HVD_MODE_TRAIN = 0,
    HVD_MODE_EVALUATE = 1, /* results and losses, without an update */
    HVD_MODE_PREDICT = 2   /* results alone, for data without labels */
};

hvd_mode hvd_net_mode(const hvd_net *net);

/* Returns the graph, for ops of ipu.h between the layers. */
ipu_graph *hvd_net_graph(hvd_net *net);

/* Returns the number of the piece that is being built: 0, 1, ... */
int32_t hvd_net_piece(const hvd_net *net);

/*
 * Marks that the next piece begins here, in a function that builds the whole
 * network (hvd_model.build): neighbours of which a pipeline may make stages.
 * Returns x as that piece sees it:
 *
 *     x = hvd_dense(net, "first", x, 256, HVD_RELU);
 *     x = hvd_net_next_piece(net, x);
 *     return hvd_dense(net, "logits", x, 10, HVD_LINEAR);
 *
 * What else a later piece needs is computed again there: tensors from before
 * the mark, and the graph that hvd_net_graph has returned, are of another
 * piece. (The estimator finds out if one is used.) The function is called once
 * for each piece that is built.
 */
ipu_tensor hvd_net_next_piece(hvd_net *net, ipu_tensor x);

/* Returns an input by the name that it has in the data set, such as "labels".
 * In a pipeline, pieces behind the first do not have the first input. */
ipu_tensor hvd_net_input(hvd_net *net, const char *name);

/* Gives evaluation and prediction another result, [batch, ...], under a name
 * that is copied. Without effect in training. */
void hvd_net_output(hvd_net *net, const char *name, ipu_tensor tensor);

/* Says that the ops since the last layer take so many products for the batch.
 * Layers say it themselves; a pipeline partitions its pieces by it. */
void hvd_net_work(hvd_net *net, int64_t products);

/* ---------------------------------------------------------------- variables */

/* The first values of a variable. in and out are the inputs and outputs of one
 * unit: for a shape [..., in, out] these two, each times the other dimensions
 * (the field of a convolution). The names and variances are those of Keras; a
 * normal distribution is approximated by a sum of four even ones. */
typedef int32_t hvd_init_kind;
enum {
    HVD_INIT_ZEROS = 0,
    HVD_INIT_ONES = 1,
    HVD_INIT_CONSTANT = 2,         /* value */
    HVD_INIT_UNIFORM = 3,          /* even in ±value */
    HVD_INIT_NORMAL = 4,           /* around 0, with the deviation value */
    HVD_INIT_TRUNCATED_NORMAL = 5, /* the same, drawn again beyond 2 of them */
    HVD_INIT_GLOROT_UNIFORM = 6,   /* even in ±sqrt(6 / (in + out)) */
    HVD_INIT_GLOROT_NORMAL = 7,    /* truncated, variance 2 / (in + out) */
    HVD_INIT_HE_UNIFORM = 8,       /* even in ±sqrt(6 / in) */
    HVD_INIT_HE_NORMAL = 9,        /* truncated, variance 2 / in */
    HVD_INIT_LECUN_UNIFORM = 10,   /* even in ±sqrt(3 / in) */
    HVD_INIT_LECUN_NORMAL = 11,    /* truncated, variance 1 / in */
    HVD_INIT_ORTHOGONAL = 12,      /* all dimensions but the last are rows;
                                      columns (or rows, if there are fewer) are
                                      orthogonal, of length value */
    HVD_INIT_FORGET_GATE = 13      /* ones in the second quarter, else zeros */
};

typedef struct hvd_initializer {
    hvd_init_kind kind;
    double value; /* where the kind has one */
} hvd_initializer;

/*
 * Returns a trained variable, float32, made when it is asked for first: the
 * same name again is the same variable, if the shape is the same, and else a
 * failure. The name, of at most 47 bytes, is copied; it is that in checkpoints.
 */
ipu_tensor hvd_net_variable(hvd_net *net, const char *name,
                            hvd_initializer initializer, int32_t ndim,
                            const int64_t *shape);

/* Does the same with a variable that is not trained: the graph changes it by
 * ipu_assign, and it is averaged over all replicas when it is read, such as the
 * moving averages of a normalisation. */
ipu_tensor hvd_net_statistic(hvd_net *net, const char *name,
                             hvd_initializer initializer, int32_t ndim,
                             const int64_t *shape);

/* --------------------------------------------------------------------- layers
 *
 * A layer called "conv1" has variables "conv1/kernel", "conv1/bias" and so on.
 * Kernels start Glorot-uniform, biases and offsets at 0, scales at 1.
 */

typedef int32_t hvd_activation;
enum {
    HVD_LINEAR = 0,
    HVD_RELU = 1,
    HVD_GELU = 2,
    HVD_SILU = 3,
    HVD_TANH = 4,
    HVD_SIGMOID = 5,
    HVD_SOFTMAX = 6,  /* over the last dimension */
    HVD_GELU_TANH = 7 /* GELU's usual approximation */
};

ipu_tensor hvd_activate(hvd_net *net, ipu_tensor x, hvd_activation activation);

/* These options say how a dense or convolutional layer differs from the
 * default. */
typedef struct hvd_layer_options {
    uint32_t size; /* sizeof(hvd_layer_options) */
    hvd_activation activation;
    int32_t no_bias; /* 1: only the product */
    hvd_initializer kernel, bias;
    const ipu_conv_options
        *window; /* of a convolution; NULL: stride 1, VALID */
} hvd_layer_options;

/* Sets all members to their defaults; size is sizeof(hvd_layer_options). */
void hvd_layer_options_init(hvd_layer_options *options, size_t size);

/* x [..., in] -> [..., units] */
ipu_tensor hvd_dense(hvd_net *net, const char *name, ipu_tensor x,
                     int64_t units, hvd_activation activation);
ipu_tensor hvd_dense_with(hvd_net *net, const char *name, ipu_tensor x,
                          int64_t units, const hvd_layer_options *options);

/* x [batch, h, w, channels] -> [batch, ho, wo, filters]; kernels are extent x
 * extent. */
ipu_tensor hvd_conv2d(hvd_net *net, const char *name, ipu_tensor x,
                      int64_t filters, int64_t extent,
                      hvd_activation activation);
ipu_tensor hvd_conv2d_with(hvd_net *net, const char *name, ipu_tensor x,
                           int64_t filters, int64_t extent,
                           const hvd_layer_options *options);

/* x [batch, ...] -> [batch, all the rest] */
ipu_tensor hvd_flatten(hvd_net *net, ipu_tensor x);

/* Normalises over all but the channels: in training by this replica's batch, or
 * by those of all replicas if the estimator synchronises; else by moving
 * averages, of which a step keeps 0.9. epsilon is 1e-5. */
ipu_tensor hvd_batch_norm(hvd_net *net, const char *name, ipu_tensor x);

/* Normalises over the last dimension; epsilon is 1e-5. */
ipu_tensor hvd_layer_norm(hvd_net *net, const char *name, ipu_tensor x);

/* x [batch, ..., channels]: normalises groups of channels; epsilon is 1e-5. */
ipu_tensor hvd_group_norm(hvd_net *net, const char *name, ipu_tensor x,
                          int32_t groups);

/* indices [...], int32 -> [..., width]; the table starts evenly in ±0.05. */
ipu_tensor hvd_embedding(hvd_net *net, const char *name, ipu_tensor indices,
                         int64_t vocabulary, int64_t width);

/* Self-attention of several heads, with the dense layers before and behind it:
 * x [batch, t, width] -> the same shape; width is a multiple of heads. causal
 * 1: a place sees itself and those before it. */
ipu_tensor hvd_attention(hvd_net *net, const char *name, ipu_tensor x,
                         int32_t heads, int32_t causal);

/* Which states of a recurrent layer are its result. */
typedef int32_t hvd_states;
enum {
    HVD_LAST_STATE = 0, /* [batch, units] */
    HVD_ALL_STATES = 1  /* [batch, time, units] */
};

/* The order in which a recurrent layer reads the steps of its input. */
typedef int32_t hvd_direction;
enum {
    HVD_FORWARD = 0,
    /* From the last step to the first, whose state is then the last one. States
     * stay in the places of their steps (Keras's go_backwards reverses them).
     */
    HVD_BACKWARD = 1,
    /* Both, by layers of their own, whose states lie side by side, the forward
     * one's first: 2 units (Keras's Bidirectional, PyTorch's bidirectional). */
    HVD_BIDIRECTIONAL = 2
};

/* These options say how a recurrent layer differs from the default. */
typedef struct hvd_recurrent_options {
    uint32_t size; /* sizeof(hvd_recurrent_options) */
    hvd_states states;
    int32_t layers; /* as many, one on top of the other: 1 */
    int32_t no_bias;
    int32_t reset_first;    /* GRU: 1: reset the state before its product */
    int32_t no_forget_bias; /* LSTM: 1: the forget gate starts with bias 0 */
    double dropout;         /* rate between layers: 0 */
    hvd_initializer kernel, recurrent; /* Glorot-uniform; orthogonal */
    hvd_initializer bias; /* zeros; of an LSTM 1 for the forget gate */
    hvd_direction direction;
    int32_t reserved;
    /* [batch], int32: how many steps of each row are its sequence, if rows are
     * filled up to the same time. Behind them a row keeps its state: its last
     * state is that of its own last step, and the places behind it repeat it.
     * Backward, its state is 0 until its own last step comes. (This is Keras's
     * mask of such rows.) A row of 0 steps has the state 0. NULL: all steps.
     * Borrowed during the call. */
    const ipu_tensor *lengths;
} hvd_recurrent_options;

/* Sets all members to their defaults; size is sizeof(hvd_recurrent_options). */
void hvd_recurrent_options_init(hvd_recurrent_options *options, size_t size);

/*
 * Recurrent layers: x [batch, time, in] -> the last state, or all. States begin
 * at 0. They are loops of the device: the program is the same for any time, and
 * training keeps the gates of each step on the tiles (docs/STREAMS.md).
 * Variables are laid out as in Keras, "kernel" [in, gates units],
 * "recurrent_kernel" [units, gates units] and "bias" [gates units]; several
 * layers are called "name/0", "name/1" and so on, and of two directions
 * "name/forward" and "name/backward".
 *
 *     lstm   gates in the order of Keras: input, forget, cell, output.
 * PyTorch's weight_ih and weight_hh, in the same order, are the transposed
 *            kernels, and its two biases are added up.
 *     gru    gates in the order of Keras: update, reset, candidate. The state's
 *            product is made first and then reset, as in PyTorch and with
 *            Keras's reset_after=True, whose second bias is "recurrent_bias".
 *            PyTorch has reset before update. With reset_first the state is
 *            reset before the product (Cho et al., 2014; reset_after=False),
 * and there is one bias.
 */
ipu_tensor hvd_lstm(hvd_net *net, const char *name, ipu_tensor x, int64_t units,
                    hvd_states states);
ipu_tensor hvd_lstm_with(hvd_net *net, const char *name, ipu_tensor x,
                         int64_t units, const hvd_recurrent_options *options);
ipu_tensor hvd_gru(hvd_net *net, const char *name, ipu_tensor x, int64_t units,
                   hvd_states states);
ipu_tensor hvd_gru_with(hvd_net *net, const char *name, ipu_tensor x,
                        int64_t units, const hvd_recurrent_options *options);

/* The same in both directions: x [batch, time, in] -> [batch, 2 units] or
 * [batch, time, 2 units]. */
ipu_tensor hvd_bidirectional_lstm(hvd_net *net, const char *name, ipu_tensor x,
                                  int64_t units, hvd_states states);
ipu_tensor hvd_bidirectional_gru(hvd_net *net, const char *name, ipu_tensor x,
                                 int64_t units, hvd_states states);

/* In training replaces elements by 0 with the probability rate, and divides the
 * others by 1 - rate: other ones in each step, replica and call. */
ipu_tensor hvd_dropout(hvd_net *net, ipu_tensor x, double rate);

/* -------------------------------------------------- a loop of one's own
 *
 * A program that makes its steps itself builds a network on graphs of its own,
 * compiles and runs them by ipu.h, and averages gradients by a strategy
 * (hvd_strategy.h) or on the devices:
 *
 *     hvd_net_new(1, &net);
 *     hvd_net_begin(net, graph, HVD_MODE_TRAIN);
 *     y = hvd_dense(net, "y", x, 1, HVD_LINEAR);
 *     hvd_net_gradients(net, loss of y);
 *     n = hvd_net_end(net, &variables);
 *     ...
 *     hvd_net_connect(net, strategy, engine);
 *
 * Such a network has no inputs and no outputs: the program has their tensors.
 * docs/TRAINER.md shows a whole program. Failures are 0 or more, or a negative
 * HVD_ERR_* with the text of hvd_last_error().
 */

/* Makes a network that belongs to the program. seed is that of first values and
 * dropout. */
int hvd_net_new(uint64_t seed, hvd_net **net);
void hvd_net_free(hvd_net *net); /* NULL is accepted */

/* Begins to build on a graph, the whole network or a part of it. Evaluation and
 * prediction may ask for the variables only that a training has asked for. */
int hvd_net_begin(hvd_net *net, ipu_graph *graph, hvd_mode mode);

/* A variable of such a network. */
typedef struct hvd_variable {
    const char *name; /* of the variable of the graph, too */
    int32_t trained;  /* 0: a statistic */
    int32_t ndim;
    const int64_t *shape; /* [ndim] */
    int64_t count;        /* elements */
    ipu_tensor tensor;    /* id < 0: the graph that was built last has none */
    /* [count], of the network; NULL before hvd_net_connect. A statistic's value
     * is that of this rank, and its mean that of all ranks, which
     * hvd_strategy_read_statistics leaves there; else mean is NULL. */
    float *value, *mean;
} hvd_variable;

/* Ends what hvd_net_begin began. Returns the number of variables of all graphs,
 * in the order in which they were asked for first, and sets *variables, valid
 * until the next begin; or the first failure of a layer. */
int32_t hvd_net_end(hvd_net *net, const hvd_variable **variables);

/* Draws the first values of variable i, [count]: the same for the same seed. */
int hvd_net_draw(const hvd_net *net, int32_t i, float *values);

/* Between begin and end of a graph for training: builds the gradients of a
 * loss, a float32 scalar, by all trained variables of the graph. Each leaves
 * the device as soon as it is computed, by a host call "gradient/NAME". */
int hvd_net_gradients(hvd_net *net, ipu_tensor loss);

/*
 * Collective: adds the variables of the network with their first values to a
 * strategy (hvd_strategy.h), starts it, and connects an engine whose program
 * has hvd_net_gradients: the engine works on the variables where the strategy
 * updates them, and gives it each gradient. Then
 *
 *     ipu_engine_run(engine);
 *     hvd_strategy_step(strategy);
 *
 * are a step: nothing is copied, and gradients are averaged while the backward
 * pass still runs. A parameter server has no engine, NULL, and calls
 * hvd_strategy_serve next.
 *
 * strategy NULL, not collective: connects an engine of evaluation or
 * prediction, which works on the same variables, and on the means of
 * statistics.
 *
 * Strategy and engines are freed before the network.
 */
struct hvd_strategy;
int hvd_net_connect(hvd_net *net, struct hvd_strategy *strategy,
                    ipu_engine *engine);

/*
 * Makes a queue (ipu_streams.h) that feeds a program with the batches of a data
 * set (hvd_dataset.h), under the names of its components: float32, int32 or a
 * 16-bit float. options has the queue's name and how it reads (NULL: the
 * defaults, as "data", without end); its tensors and its source are set here.
 * context is a place among workers, as an iterator has it (NULL: one), of one
 * replica: replicas of the queue take batches in turn. Takes data over, also on
 * failure. HVD_ERR_ARGUMENT: the device cannot read a component, or there is
 * not one batch.
 */
struct hvd_dataset;
struct hvd_input_context;
int hvd_infeed_new(struct hvd_dataset *data,
                   const struct hvd_input_context *context,
                   const ipu_infeed_options *options, ipu_infeed **infeed);

#ifdef __cplusplus
}
#endif

#endif
