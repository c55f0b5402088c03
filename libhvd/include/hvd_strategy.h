/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_strategy.h - data-parallel training on top of hvd.h.
 *
 * A strategy holds the same state as Graphcore's IPUHorovodStrategy with
 * variables_on_host: the variables of a model and the state of the optimiser.
 * Both are in host memory and the same on every rank. A strategy
 *
 *     - broadcasts the first values of the variables from rank 0,
 *     - owns one gradient buffer for each variable; the buffers lie in
 *       hvd_malloc memory, in the order in which variables were added,
 *     - takes each gradient as soon as it is ready (hvd_strategy_ready, from
 *       the thread that produced it), and averages it over the ranks while
 *       the rest of the backward pass still runs,
 *     - applies the optimiser to each variable when its average has arrived,
 *       and reports that (the updated callback), so that the device can fetch
 *       the new value.
 *
 * A strategy knows nothing of devices. A step is:
 *
 *     for each variable, in any order:  write hvd_strategy_gradient(s, v),
 *                                       hvd_strategy_ready(s, v)
 *     hvd_strategy_step(s)              waits, updates every variable
 *
 * If each rank divides its loss by its local batch, and the local batches are
 * equal, then the average of the gradients over the ranks is the gradient of
 * the loss over the whole batch. If the local batches differ, divide by the
 * whole batch and choose the sum of gradients (options.op). Then everything
 * that is said of averages below is true of sums.
 *
 * Parameter servers (options.kind). The last ranks of the world hold variables
 * and optimiser instead, each some; all others are workers, to which all of the
 * above applies, but that the average is over the workers, and that only
 * HVD_SERVER_SYNCHRONOUS without backups leaves the same bits on all of them.
 * All ranks add the variables and start the strategy; then servers call
 * hvd_strategy_serve, and no other function may be called there until it
 * returns. While they serve, collectives of the world wait for them: workers
 * use hvd_strategy_workers. Below, "all ranks" are then all workers, once the
 * strategy is started. docs/STRATEGIES.md compares the modes.
 *
 * Threads: one thread calls everything except hvd_strategy_ready and
 * hvd_strategy_ready_rows. Any thread may call these between two steps, once
 * for each variable and step. Errors are those of hvd.h; hvd_last_error() names
 * the variable.
 */
#ifndef HVD_STRATEGY_H
#define HVD_STRATEGY_H

#include "hvd.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct hvd_strategy hvd_strategy;

typedef int32_t hvd_optimizer;
enum {
    HVD_SGD = 0,          /* w -= lr g */
    HVD_MOMENTUM = 1,     /* m = momentum m + g;  w -= lr m */
    HVD_ADAM = 2,         /* Kingma & Ba 2015, algorithm 1, bias corrected */
    HVD_NO_OPTIMIZER = 3, /* gradients are averaged and left where they are: the
                             program updates the variables itself */
    HVD_NESTEROV = 4,     /* m = momentum m + g;  w -= lr (g + momentum m), as
                             PyTorch's SGD */
    HVD_ADAMW = 5,        /* Adam, and w -= lr decay w (Loshchilov & Hutter
                             2019) */
    HVD_LAMB = 6,         /* u = Adam's step + decay w;  w -= lr |w| / |u| u
                             (You et al. 2020) */
    HVD_LION = 7,         /* w -= lr sign(beta1 m + (1 - beta1) g);
                             m = beta2 m + (1 - beta2) g (Chen et al. 2023) */
    HVD_RMSPROP = 8,      /* v = rho v + (1 - rho) g^2;
                             w -= lr g / (sqrt(v) + epsilon), as PyTorch's */
    HVD_ADAGRAD = 9,      /* v += g^2;  w -= lr g / (sqrt(v) + epsilon), as
                             PyTorch's */
    HVD_ADADELTA = 10,    /* v as RMSprop's; u = g sqrt((d + epsilon) /
                             (v + epsilon));  w -= lr u;
                             d = rho d + (1 - rho) u^2 (Zeiler 2012) */
    HVD_LARS = 11,        /* m = momentum m + r (g + decay w);  w -= lr m, with
                             r = trust |w| / (|g| + decay |w| + epsilon), 1 if
                             |w| or |g| is 0 (You et al. 2017) */
    HVD_NUM_OPTIMIZERS = 12
};

/* Returns "sgd", "momentum", "adam", "none", "nesterov", "adamw", "lamb",
 * "lion", "rmsprop", "adagrad", "adadelta", "lars"; NULL if unknown. */
const char *hvd_optimizer_name(hvd_optimizer optimizer);
/* Returns the optimiser of a name; HVD_ERR_ARGUMENT if there is none. */
int hvd_optimizer_from_name(const char *name);

/* Where the variables are; see docs/STRATEGIES.md. */
typedef int32_t hvd_strategy_kind;
enum {
    HVD_STRATEGY_ALL_REDUCE = 0, /* on every rank; gradients are averaged over
                                    all ranks */
    HVD_STRATEGY_PARAMETER_SERVER = 1 /* on the last ranks, the servers: workers
                                         send them gradients and get values */
};

/* When servers take the gradients of the workers. */
typedef int32_t hvd_server_mode;
enum {
    HVD_SERVER_SYNCHRONOUS = 0,  /* a step is an average over the workers */
    HVD_SERVER_ASYNCHRONOUS = 1, /* each on arrival; nobody waits for another */
    HVD_SERVER_BOUNDED = 2       /* each on arrival; a worker waits as long as
                                    it is too far ahead of the slowest */
};

/* How variables, and parts of variables, are shared out to servers. */
typedef int32_t hvd_placement;
enum {
    HVD_PLACE_ROUND_ROBIN = 0, /* by turns, in the order in which variables were
                                  added */
    HVD_PLACE_BY_BYTES = 1     /* each to the server that has the fewest bytes
                                  so far; of several, the first */
};

/* The bits of hvd_strategy_options.flags, beside HVD_AVERAGE_CONTRIBUTORS. */
enum {
    HVD_ROWS_ON_REQUEST = 256 /* of parameter servers: a step brings no rows of
                                 sparse variables back; the program reads those
                                 that it needs (hvd_strategy_read_rows) */
};

typedef struct hvd_strategy_options {
    uint32_t size; /* sizeof, set by hvd_strategy_options_init */
    int32_t optimizer;
    double learning_rate; /* 0.001; these five are Adam's defaults, others' by
                             hvd_strategy_options_set_optimizer */
    double momentum;      /* 0.9 */
    double beta1;         /* 0.9 */
    double beta2;         /* 0.999 */
    double epsilon;       /* 1e-7 */
    int32_t serial; /* 1: reduce only inside hvd_strategy_step, with no overlap,
                       for comparison; default 0 */
    int32_t compression; /* an hvd_compression of the gradients on their way;
                            none by default */
    /* The step calls it, on the thread that called hvd_strategy_step, when a
     * variable has its new value; may be NULL. The step returns a negative
     * answer, and updates the other variables without calling it again. */
    int (*updated)(void *context, int32_t variable);
    void *context;
    int32_t check_every; /* steps between two calls of hvd_strategy_check; 0:
                            after each with HVD_CONSISTENCY_CHECK, else none.
                            The same on all ranks */
    int32_t op; /* the operation on gradients of several ranks: HVD_AVERAGE, the
                   default; HVD_SUM, if each rank's loss is its share of the
                   loss over all ranks; or HVD_ADASUM */
    int32_t flags;    /* HVD_AVERAGE_CONTRIBUTORS: averages are over the
                         ranks that have not joined; else over all, and the
                         others' gradients count less after a join;
                         HVD_ROWS_ON_REQUEST */
    int32_t reserved; /* 0 */
    /* The rest is the same on all ranks. Without servers, all of it is 0. */
    int32_t kind;      /* an hvd_strategy_kind; 0, HVD_STRATEGY_ALL_REDUCE, by
                          default */
    int32_t servers;   /* how many: the last ranks of the world are servers, at
                          least one is a worker */
    int32_t mode;      /* an hvd_server_mode; synchronous by default */
    int32_t backups;   /* HVD_SERVER_SYNCHRONOUS: how many of the workers a step
                          does not wait for. Their gradients, when they come
                          too late, are dropped. Before workers reduce among
                          themselves, they call hvd_strategy_join: a step of
                          one may otherwise wait for gradients of workers that
                          wait for it in that reduction */
    int32_t staleness; /* HVD_SERVER_BOUNDED: how many steps a worker may be
                          ahead of the slowest */
    int32_t placement; /* an hvd_placement */
    int64_t part_bytes; /* larger variables are split along their first
                           dimension into parts of at most so many bytes, and
                           of one row at least; 0: none is split.
                           HVD_ERR_UNSUPPORTED with LAMB and LARS, which need
                           lengths of whole variables */
    /* Of the optimiser, too. */
    double rho;          /* RMSprop 0.99, Adadelta 0.9 */
    double weight_decay; /* 0; AdamW and LAMB 0.01. SGD, momentum, Nesterov,
                            Adam and LARS add it times w to the gradient; all
                            others take it times lr w off beside the step.
                            Variables of fewer than two dimensions (biases,
                            scales of norms) do not decay, and LARS has r = 1
                            for them */
    double trust;        /* LARS: 0.001; 0: r is 1 */
    int32_t centered;    /* RMSprop, 1: sqrt(v - n^2), n being the mean of g */
    int32_t elastic;     /* 1: all that the strategy has is part of the state of
                            hvd_elastic.h: variables, the optimiser's state,
                            learning rate and momentum, statistics. hvd_commit
                            keeps it, and hvd_restore brings it back in another
                            world, whose ranks then make steps as before;
                            options.updated is called for each variable. Needs
                            hvd_restore behind hvd_recover and hvd_grow
                            (hvd_elastic_run calls it). Not with servers; 0 */
} hvd_strategy_options;

/* Sets the defaults: Adam with the values above, no callback. */
void hvd_strategy_options_init(hvd_strategy_options *options, size_t size);

/*
 * Chooses an optimiser, with its defaults for learning_rate, momentum, beta1,
 * beta2, epsilon, rho, weight_decay, trust and centered, after
 * hvd_strategy_options_init and before values of one's own. (RMSprop has no
 * momentum then; one above 0 is applied to its steps.) docs/OPTIMIZERS.md lists
 * the defaults. HVD_ERR_ARGUMENT: there is no such optimiser.
 */
int hvd_strategy_options_set_optimizer(hvd_strategy_options *options,
                                       hvd_optimizer optimizer);

/*
 * Makes an empty strategy. The options are copied and checked
 * (HVD_ERR_ARGUMENT: learning rate not finite or negative, beta outside [0, 1),
 * ...). Needs hvd_init. Not collective.
 */
int hvd_strategy_new(const hvd_strategy_options *options,
                     hvd_strategy **strategy);

/* Frees a strategy; accepts NULL. The variables stay the caller's. Waits for
 * what is in flight. A worker ends the step under way, if there is one, as
 * hvd_strategy_abandon does, and tells the parameter servers that it has
 * ended. */
void hvd_strategy_free(hvd_strategy *strategy);

/*
 * Adds a float32 variable. name is copied and must be unique, up to 223 bytes
 * and no control characters. value, count elements, is borrowed until
 * hvd_strategy_free and updated in place by hvd_strategy_step. Returns its
 * number (0, 1, ...). Add variables in the order in which their gradients
 * become ready, as far as known: neighbours are reduced together without a
 * copy. Only before hvd_strategy_start.
 */
int hvd_strategy_add(hvd_strategy *strategy, const char *name, float *value,
                     int32_t ndim, const int64_t *shape);

/*
 * Adds a float32 variable [rows, width] of which a step needs only some rows,
 * such as an embedding. Its gradients are rows (hvd_strategy_ready_rows), there
 * is no buffer for the whole, and the optimiser moves only the rows that some
 * rank has given: momenta and means of the others do not decay, nor do weights.
 * Adam's corrections count the steps of the variable. All else is as for
 * hvd_strategy_add. HVD_ERR_UNSUPPORTED: LARS and LAMB need the length of the
 * whole, HVD_NO_OPTIMIZER its gradient, and Adasum too.
 */
int hvd_strategy_add_sparse(hvd_strategy *strategy, const char *name,
                            float *value, int64_t rows, int64_t width);

/*
 * Adds a float32 variable that each rank changes by itself, between any two
 * calls, and whose mean over the ranks is what counts when it is read: the
 * moving averages of a normalisation. (TensorFlow: ON_READ synchronisation, and
 * the mean as aggregation.) It has no gradient, no optimiser changes it, and
 * hvd_strategy_check does not compare it. name is as for hvd_strategy_add, and
 * of all names of the strategy. value and mean, count elements each, are
 * borrowed until hvd_strategy_free. hvd_strategy_start and hvd_strategy_load
 * write both; otherwise value is the program's. Parameter servers add it, too.
 * Returns the number of the statistic (0, 1, ...). Only before
 * hvd_strategy_start.
 */
int hvd_strategy_add_statistic(hvd_strategy *strategy, const char *name,
                               float *value, float *mean, int32_t ndim,
                               const int64_t *shape);

/*
 * Reads the statistics: mean becomes the mean of the values of all ranks that
 * make steps, with the same bits on all of them. Ranks that have joined do not
 * count. Collective, blocking, also in modes in which workers do not wait for
 * each other; in the middle of a step, too. No value changes. To be called
 * before what reads a mean: an evaluation, or hvd_strategy_save.
 */
int hvd_strategy_read_statistics(hvd_strategy *strategy);

/*
 * Starts a strategy, once: broadcasts every variable from rank 0 and makes
 * gradients and optimiser state. Collective, blocking; but a process that has
 * joined a job (hvd_last_recovery) starts an elastic strategy, which the others
 * have, by itself, and gets what they have by its first hvd_restore. Fails on
 * every rank if the ranks have added different variables, naming the first that
 * differs.
 */
int hvd_strategy_start(hvd_strategy *strategy);

/* Returns the gradient buffer of a variable: as many elements, owned by the
 * strategy, valid from start to free. NULL if there is no variable of this
 * number, or it is sparse. */
float *hvd_strategy_gradient(hvd_strategy *strategy, int32_t variable);

/* Says that the gradient of this variable is complete on this rank: from now
 * until the step returns, its buffer belongs to the strategy. Does not
 * block. */
int hvd_strategy_ready(hvd_strategy *strategy, int32_t variable);

/*
 * Hands over this rank's gradient of a sparse variable, n rows of width
 * elements, instead of hvd_strategy_ready. indices, n of them from 0, say which
 * rows these are, in any order; rows of one index are added. Rows that a rank
 * does not give, with n = 0 all of them, are zeros: an average divides by the
 * number of ranks, whether they gave a row or not. Both arrays are copied. Does
 * not block, but takes the time of sorting n indices.
 *
 * Rows travel with their indices and are not compressed. With all-reduce, the
 * rows of all ranks come to each; under parameter servers a worker sends its
 * rows, and gets those that any worker has changed since its last step.
 *
 * Returns HVD_ERR_ARGUMENT if width is not the variable's, or an index none of
 * its rows: then the step fails, here with the same text, and on the other
 * ranks with HVD_ERR_PEER and this text.
 */
int hvd_strategy_ready_rows(hvd_strategy *strategy, int32_t variable,
                            const int64_t *indices, const float *rows,
                            int64_t n, int64_t width);

/*
 * Gets the newest values of rows of a sparse variable from the parameter
 * servers, before a forward pass needs them. indices, n of them, may be in any
 * order, and the same one several times; they are borrowed until the return.
 * Blocking, between two steps, not collective. With HVD_ROWS_ON_REQUEST all
 * other rows stay what they were when this rank last got them; without it, a
 * step brings all that have changed, and this what others have changed since.
 * With all-reduce there is nothing to get. HVD_ERR_ARGUMENT: an index is no
 * row, the variable is not sparse, or a step is under way.
 */
int hvd_strategy_read_rows(hvd_strategy *strategy, int32_t variable,
                           const int64_t *indices, int64_t n);

/*
 * Waits until every gradient of the step is averaged over the ranks, and
 * applies the optimiser to each variable as its average arrives. Collective,
 * blocking. Afterwards all ranks hold the same bits. Returns HVD_ERR_ARGUMENT,
 * naming it, if a variable was not marked ready. If it fails, variables whose
 * averages have arrived are updated, on all ranks, and the others are not.
 */
int hvd_strategy_step(hvd_strategy *strategy);

/*
 * Gives up the step under way, which the others are making or will make; called
 * instead of hvd_strategy_step. Their step fails with HVD_ERR_PEER; its text
 * names this rank, a variable, and reason (copied; NULL: none is known). If
 * every gradient had been marked ready here, so that nothing was left to be
 * refused, their next step fails. Blocks until no gradient buffer is in use any
 * more, which may take until the others make theirs. Variables change here as
 * they do there, without a call of options.updated; so they stay equal, and the
 * next step may succeed.
 */
int hvd_strategy_abandon(hvd_strategy *strategy, const char *reason);

/*
 * Checks whether every variable has the same bits on all ranks (NaNs too, and
 * zeros of either sign). Collective, blocking. If not, it returns
 * HVD_ERR_INCONSISTENT on all ranks, naming the first variable that differs and
 * which ranks have other bits than most. Call it between two steps, or see
 * check_every. It reads all variables and reduces 16 bytes for each. Ranks that
 * have joined are not compared. HVD_ERR_UNSUPPORTED under parameter servers, in
 * modes that leave workers with different values.
 */
int hvd_strategy_check(hvd_strategy *strategy);

/*
 * Says that this rank has no more data while others may have; called instead of
 * further steps, until all ranks hold the same again. Collective, blocking,
 * between two steps.
 *
 * As hvd_join it returns when every rank has joined, and until then the others'
 * steps, checks of check_every and other reductions go on without this rank.
 * Then every rank gets what the rank that joined last has, which has made every
 * step: variables, the optimiser's state, its counts of updates and steps, and
 * the learning rate and momentum; of all strategies that are started, which
 * are the same on all ranks. Statistics stay what they are. options.updated is
 * not called. *last (may be NULL) becomes that rank. Afterwards all ranks may
 * make steps again.
 *
 * hvd_join alone gives a rank none of this: steps that the others make after it
 * fail with HVD_ERR_JOINED, and change nothing.
 *
 * Returns HVD_ERR_ARGUMENT on this rank, which has then not joined, if the
 * strategy is not started, or a step is under way; HVD_ERR_MISMATCH if the
 * ranks have started different strategies; HVD_ERR_SHUTDOWN if a rank shuts
 * down instead of joining; HVD_ERR_UNSUPPORTED on this rank, which has then not
 * joined, if a variable is sparse, without parameter servers.
 */
int hvd_strategy_join(hvd_strategy *strategy, int *last);

/*
 * Writes a checkpoint: all variables, the optimiser's state, how many updates
 * it has made, and the means that hvd_strategy_read_statistics has left. Not
 * collective: all ranks hold the same, so one of them
 * does it, between two steps. Blocks until the disk has it; until then the file
 * of that name, if there is one, stays what it was. A symbolic link to a file
 * is followed. Temporary files that killed saves to this path have left are
 * removed. The learning rate and momentum are not in it. Under parameter
 * servers any worker may do it; the newest values and state come from the
 * servers, and the values are then in its variables.
 *
 * Returns HVD_ERR_FILE, with the reason, also if the path leads to something
 * that is no regular file, or is a link to nothing; HVD_ERR_ARGUMENT in the
 * middle of a step.
 */
int hvd_strategy_save(hvd_strategy *strategy, const char *path);

/*
 * Loads a checkpoint: rank 0 reads it, and all ranks get it, however many wrote
 * it. Collective, blocking, between two steps, after hvd_strategy_start. path
 * is that of rank 0; the others' may be NULL. Variables are found by their
 * names.
 *
 * Returns 1; or 0 if the checkpoint is of another optimiser, whose state means
 * nothing to this one: then the optimiser begins anew. Returns HVD_ERR_FILE, on
 * all ranks, with nothing changed, if the file cannot be read, is damaged, is
 * no checkpoint or of another model, whose first difference is named. (If the
 * disk fails in the middle of it, the variables of rank 0 may have changed.)
 */
int hvd_strategy_load(hvd_strategy *strategy, const char *path);

/*
 * A tensor of the optimiser's state: what an optimiser keeps of a variable from
 * step to step. Beside the variables themselves, it is all that a training
 * needs of its strategy to go on. With them, a program can keep checkpoints in
 * a form of its own; hvd_strategy_save and hvd_strategy_load have one.
 *
 * Each variable has a tensor for each array that the optimiser keeps for it,
 * float32 and of its shape, and the number of its updates, int64 and a scalar.
 * Their names are the variable's with "/updates", or with what the optimiser
 * calls the array: "/m" (a mean of gradients), "/v" (of their squares, or their
 * sum), "/d" (of squares of steps) or "/momentum", as those of a device's
 * optimiser (ipu_optimizers.h). docs/OPTIMIZERS.md lists them.
 */
typedef struct hvd_strategy_tensor {
    uint32_t size;    /* sizeof, set by the caller */
    int32_t variable; /* number of the variable */
    int32_t dtype;    /* HVD_FLOAT32 or HVD_INT64 */
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
    int64_t count; /* elements */
    char name[HVD_MAX_NAME + 1];
} hvd_strategy_tensor;

/* Returns how many tensors the state of a started strategy has; 0 with
 * HVD_NO_OPTIMIZER. The same on all ranks, servers too. */
int hvd_strategy_state_count(const hvd_strategy *strategy);

/* Describes one of them, by its number from 0, in the order of the variables.
 * HVD_ERR_ARGUMENT: there is no such tensor, or info->size is too small. */
int hvd_strategy_state_info(const hvd_strategy *strategy, int32_t number,
                            hvd_strategy_tensor *info);

/*
 * Copies the state to data, one place for each tensor, which the caller has;
 * NULL: that one is not wanted. Not collective, blocking, between two steps.
 * With all-reduce all ranks hold the same. Under parameter servers any worker
 * may call it: the state comes from the servers, and the newest values come
 * with it and are then in this worker's variables. In modes in which workers do
 * not wait for each other, or a part of a variable has missed a step, parts may
 * have made different numbers of updates: the largest is the variable's.
 * Servers count no updates of a variable without elements.
 *
 * Returns HVD_ERR_ARGUMENT in the middle of a step.
 */
int hvd_strategy_read_state(hvd_strategy *strategy, void *const *data);

/*
 * Has all ranks go on from what rank 0 has and gives: its variables, the values
 * of its statistics, and the optimiser's state, which is copied from data, one
 * tensor for each place. data NULL on rank 0: the optimiser begins anew. What
 * other ranks have and give does not matter. Under parameter servers the
 * servers get all of it, and all workers the values. Statistics get rank 0's
 * value as value and as mean. The learning rate stays what it is. Collective,
 * blocking, between two steps, after hvd_strategy_start.
 *
 * Returns HVD_ERR_ARGUMENT on all ranks, with nothing changed, in the middle of
 * a step, or if a tensor of rank 0 is NULL, or a number of updates negative; it
 * is named.
 */
int hvd_strategy_write_state(hvd_strategy *strategy, const void *const *data);

/* Changes the learning rate from the next step on; the rule of hvd_strategy_new
 * holds. With parameter servers a step has begun when its first gradient is
 * ready. */
int hvd_strategy_set_learning_rate(hvd_strategy *strategy, double rate);

/*
 * Changes the momentum in the same way: that of HVD_MOMENTUM, HVD_NESTEROV,
 * HVD_LARS, and HVD_RMSPROP if its options have one; or beta1 of HVD_ADAM,
 * HVD_ADAMW, HVD_LAMB and HVD_LION. Adam's corrections of step t are those of
 * the new beta1 to the power of t, as PyTorch's. HVD_ERR_ARGUMENT: the
 * optimiser has no momentum, or it is not in [0, 1), or 0 for HVD_RMSPROP.
 */
int hvd_strategy_set_momentum(hvd_strategy *strategy, double momentum);

/*
 * Serves as a parameter server, on each of the ranks that are one, which call
 * this instead of making steps. Blocks until every worker has freed its
 * strategy, and sleeps while there is nothing to do. Returns HVD_OK, or the
 * first failure that this server cannot go on after, such as HVD_ERR_LOST.
 * HVD_ERR_ARGUMENT: the strategy is not started, or this rank is a worker.
 */
int hvd_strategy_serve(hvd_strategy *strategy);

/* Returns 1 if this rank is a parameter server, else 0. */
int hvd_strategy_is_server(const hvd_strategy *strategy);

/*
 * Returns the process set of the ranks that make steps, since start: the
 * workers, for the program's own collectives while the servers serve; 0, all
 * ranks, without servers.
 */
int hvd_strategy_workers(const hvd_strategy *strategy);

/* Counters since start, on this rank. */
typedef struct hvd_strategy_stats {
    uint32_t size;         /* sizeof, set by the caller */
    int32_t variables;     /* how many there are */
    int64_t steps;         /* steps completed */
    int64_t gradients;     /* gradients reduced */
    int64_t bytes;         /* bytes of gradients reduced; of rows, this rank's
                              after adding, with their indices */
    double wait_seconds;   /* blocked in step, waiting for averages */
    double update_seconds; /* spent in the optimiser */
    int64_t early;         /* gradients whose average had already arrived when
                              the step asked for it: overlap that worked */
    /* On a server; on a worker, 0. Of a variable in parts, each part counts. */
    int64_t dropped; /* gradients that came too late, HVD_SERVER_SYNCHRONOUS */
    int64_t updates; /* made by the optimiser */
    int64_t ahead;   /* the most steps that a worker was ahead of the slowest
                        when it went on; 0 with HVD_SERVER_SYNCHRONOUS */
} hvd_strategy_stats;

int hvd_strategy_get_stats(const hvd_strategy *strategy,
                           hvd_strategy_stats *stats);

/*
 * Returns which of n items belong to a rank: items first + i * stride, i <
 * count, of an order that all ranks share. As with tf.data's
 * Dataset.shard(size, rank), the shards are disjoint, their union is
 * everything, and sizes differ by at most one (first ranks take the remainder).
 * HVD_ERR_ARGUMENT for rank or size out of range. Needs no hvd_init.
 */
int hvd_shard(int64_t n, int rank, int size, int64_t *first, int64_t *stride,
              int64_t *count);

/*
 * Writes the order of n items in an epoch: a permutation that depends on n,
 * seed and epoch alone, so that all ranks shuffle alike without messages.
 * indices, n elements, is the caller's.
 */
int hvd_shuffle(int64_t n, uint64_t seed, int64_t epoch, int64_t *indices);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
