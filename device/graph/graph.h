/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - tensors and nodes: what the program wants. The door of this room.
 *
 * A graph is two growing arrays, tensors and nodes, both in an order in which
 * they can be computed: a node comes after the nodes that make its inputs. The
 * room knows ops by their table rows alone (op.h); the rooms ops and training
 * build on it, and the compiler reads it.
 *
 * The first failure of a builder stays in the graph and stops all building;
 * ipu_compile reports it.
 *
 * The body of a loop is a graph of its own, which the loop's node owns. Tensors
 * of the graph around it that it uses are imported (bodies.c).
 *
 * Indices are -1 where there is none. Members that files keep by leaving out
 * zeros (file/members.h) are an index + 1 instead, and 0 where there is none:
 * renews, renewed, region, derived, beside, after, loop and within.
 */
#ifndef IPU_GRAPH_GRAPH_H
#define IPU_GRAPH_GRAPH_H

#include "base/shape.h"

struct ipu__op;

enum { IPU__MAX_INPUTS = 6 };

/* The settings of an op beside its inputs. Which of them an op uses, and what
 * they mean, is up to the op. */
struct ipu__attributes {
    int32_t stride[2]; /* height, width */
    int32_t dilation[2];
    int32_t pad[2];       /* rows added above, columns added to the left */
    int32_t pad_after[2]; /* below, to the right */
    int32_t groups;
    int32_t size;
    bool transpose[2]; /* of inputs 0 and 1 */
    double scale, offset;
    double factors[4];
    uint64_t seed;
    int64_t view[4]; /* shape of x as the op groups its elements */
    int32_t axis;
    int32_t order[IPU_MAX_DIMS]; /* of dimensions */
    /* first element of a part, in each dimension */
    int64_t starts[IPU_MAX_DIMS];
    bool axes[IPU_MAX_DIMS]; /* that are reduced */
    bool keep;               /* reduced axes stay, as extents of 1 */
    /* the output's shape, where inputs do not say it */
    struct ipu__shape shape;
    double proportion; /* share of a tile's memory that a product may take for
                          temporary data; 0: not set */
    ipu_host_fn fn;    /* of the host */
    void *context;     /* borrowed as long as engines run */
};

/* The place in the user's program that asked for something. */
struct ipu__source {
    const char *file; /* borrowed as long as the graph lives; NULL: unknown */
    int32_t line;
};

enum ipu__tensor_kind { IPU__INPUT, IPU__VARIABLE, IPU__CONSTANT, IPU__RESULT };

/* Reasons why replicas may have different values of a variable. */
enum ipu__own {
    IPU__EQUAL = 0, /* they may not */
    IPU__OWN_SUMS,  /* sums of what each has computed since the last update */
    IPU__OWN_PART,  /* each keeps another part of a whole */
    IPU__OWN_STATISTICS, /* statistics of the data that each has seen */
    IPU__OWN_CHOICE,     /* the program has said so */
    IPU__OWN_REASONS
};

/* The tiles on which the program wants a tensor: so many from the first on. The
 * compiler chooses if tiles is 0. */
struct ipu__mapping {
    int32_t first, tiles;
};

struct ipu__tensor {
    char *name; /* owned */
    struct ipu__shape shape;
    enum ipu__tensor_kind kind;
    int32_t node;    /* that makes it; -1: none */
    void *data;      /* owned; of a constant */
    int32_t shard;   /* number of its chip, if there are several */
    bool checkpoint; /* kept when activations are computed again */
    bool imported;   /* from the graph around */
    bool fixed;      /* a variable to the compiler, but not to the program */
    bool fed;        /* an infeed gives this input */
    bool remote;     /* a variable beside the chip, with rows as dimension 0 */
    bool offloaded;  /* the compiler has put this variable beside the chip; set
                        in its draft alone */
    ipu_offload offload; /* the program's request for a variable */
    int32_t own;         /* of a variable: enum ipu__own */
    /* A loop or a store that changes a tensor in place makes another tensor of
     * it. renews is the tensor before + 1; renewed is the newest state + 1; 0:
     * none. */
    int32_t renews, renewed;
    struct ipu__mapping map;
    struct ipu__source source;
};

struct ipu__node {
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* indices of tensors */
    int32_t output;
    /* The node belongs to update region number region - 1; 0: it runs each
     * time. Nodes of different regions must not be merged or fused. */
    int32_t region;
    /* A derivative has here the tensor + 1 of the derivative that it came from;
     * other nodes have 0. */
    int32_t derived;
    /* A derivative, or a node that computes again, has here the tensor + 1 on
     * whose chip it lies, if there are several; other nodes have 0. */
    int32_t beside;
    /* The node waits for tensor after - 1, although it does not read it; 0: it
     * waits for none. Set where something is computed again (again): such a
     * node must not be merged with what it repeats, nor come earlier. */
    int32_t after;
    bool again;
    int32_t loop; /* index + 1 of its loop; 0: it is no loop */
    bool effect;  /* the node runs although nothing may need its output */
};

/* A tensor of the graph around a body, as the body sees it. */
struct ipu__import {
    int32_t outer, inner;
    bool written;
};

/* A graph that is run for each iteration, and its carried values. */
struct ipu__block_graph {
    ipu_graph *graph; /* owned; NULL: there is none */
    int32_t *carried; /* owned, [ncarried]: variables of it */
};

/* A loop. */
struct ipu__loop {
    struct ipu__block_graph body;
    struct ipu__block_graph condition; /* of ipu_while; has one output */
    int64_t count; /* iterations; with a condition the limit, and 0 for none */
    int32_t ncarried;
    int32_t *initial, *outputs; /* owned, [ncarried]: tensors */
    int32_t *written;           /* owned: variables as they were before */
    int32_t *renewed;           /* owned: ... and as they are afterwards */
    int32_t nwritten;
};

/* Tensors that a queue gives, numbers first to first + count - 1. */
struct ipu__feed {
    ipu_infeed *infeed; /* shared */
    int32_t first, count;
};

/* Tensors that a queue gets. */
struct ipu__enqueue {
    ipu_outfeed *outfeed; /* shared */
    int32_t *tensors;     /* owned */
    int32_t count;
};

/* Nodes that run in every count-th run only, or if something holds
 * (regions.c). */
struct ipu__region {
    int32_t count;
    int32_t counter; /* tensor: mini-batches since the last update; -1: none */
    int32_t due;     /* tensor: an int32 that is not 0 when it runs; -1: it
                        always does */
    /* this one runs only when region within - 1 does; 0: none */
    int32_t within;
    bool conditional;
    ipu_offload offload;
    int64_t minimum_bytes; /* of what is offloaded */
};

/* A tensor that leaves the device. */
struct ipu__sink {
    char *name; /* owned */
    int32_t tensor;
    ipu_host_fn fn; /* NULL: an output, at the end of the run */
    void *context;  /* borrowed as long as engines run */
};

/* The value that a variable takes at the end of a run. */
struct ipu__assign {
    int32_t variable, value; /* tensors */
};

/* The rounding of float16. */
struct ipu__rounding {
    bool on; /* stochastically */
    uint64_t seed;
    ipu_tensor step;
};

struct ipu_graph {
    int32_t tag;                 /* tag in the ids of its tensors */
    struct ipu__tensor *tensors; /* owned */
    int32_t ntensors, tensor_capacity;
    struct ipu__node *nodes; /* owned */
    int32_t nnodes, node_capacity;
    struct ipu__sink *sinks; /* owned */
    int32_t nsinks, sink_capacity;
    struct ipu__assign *assigns; /* owned */
    int32_t nassigns, assign_capacity;
    struct ipu__region *regions; /* owned */
    int32_t nregions, region_capacity;
    ipu_graph *parent; /* the graph around this body, borrowed; NULL: none */
    ipu_graph *open;   /* the body being built, borrowed; NULL: none */
    struct ipu__loop *loops; /* owned */
    int32_t nloops, loop_capacity;
    struct ipu__import *imports; /* owned */
    int32_t nimports, import_capacity;
    struct ipu__feed *feeds; /* owned */
    int32_t nfeeds, feed_capacity;
    struct ipu__enqueue *enqueues; /* owned */
    int32_t nenqueues, enqueue_capacity;
    int32_t region;    /* region being built + 1; 0: none */
    int32_t derived;   /* derivative being built, as in nodes; 0: none */
    int32_t beside;    /* as in nodes */
    int32_t shard;     /* chip being built on + 1; 0: where inputs are */
    double proportion; /* available memory proportion of products being built;
                          0: not set */
    bool recompute;    /* derivatives read activations computed again */
    bool unrolls;      /* loops of a known length become their iterations */
    struct ipu__source source; /* of what is being built */
    struct ipu__rounding rounding;
    int status;    /* status of the first failure, which stops all building */
    char *message; /* owned; its text */
    char **files;  /* owned, and each name, too: files of sources that were
                      loaded */
    int32_t nfiles;
};

/* The function of a host call that was loaded, until ipu_engine_connect_call
 * gives it one: it fails. */
int ipu__no_call(void *context, const char *name, void *data, int64_t count);

/* Sets output to the shape that the node makes of its inputs, or returns why it
 * cannot. */
int ipu__node_shape(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__shape *output);

/* A new tensor's index. name is taken, also on failure. */
int ipu__tensor_add(ipu_graph *graph, char *name,
                    const struct ipu__shape *shape, enum ipu__tensor_kind kind);

/* The tensor's index, of its newest state; one of the graph around a body is
 * imported. A failure if it is of another graph, or none. */
int32_t ipu__index(const ipu_graph *graph, ipu_tensor tensor);
/* The tensor of an index. */
ipu_tensor ipu__handle(const ipu_graph *graph, int32_t index);

/*
 * Adds a node and returns the index of the tensor that it makes, or a failure.
 * inputs has as many tensors as the op takes; attributes NULL: zeros. Builders
 * of ops call ipu__add (ops/op.h), which also rounds.
 */
int32_t ipu__add_node(ipu_graph *graph, const struct ipu__op *op,
                      const ipu_tensor *inputs,
                      const struct ipu__attributes *attributes);

/*
 * Share out a graph over count chips as if it had been shared out before its
 * gradients were asked for: what came before the first of them by weight;
 * derivatives, and what is made of them, where they then would be.
 */
int ipu__shard_again(ipu_graph *graph, int32_t count);

/* Another graph, with the same handles, that is freed by itself, before the
 * first. */
int ipu__graph_copy(const ipu_graph *graph, ipu_graph **copy);

/* Give the node the region of what is being built and of its inputs;
 * IPU_ERR_STATE if these are two of which none is within the other. */
int ipu__region_join(const ipu_graph *graph, struct ipu__node *node);

/* The tensors that must be there before the node can be computed: its inputs,
 * what it comes after, what says whether its region runs. Returns how many. */
enum { IPU__MAX_NEEDS = IPU__MAX_INPUTS + 2 };
int ipu__node_needs(const ipu_graph *graph, const struct ipu__node *node,
                    int32_t *needs);

/* The region + 1 in which a tensor is computed; 0: in each run. */
int32_t ipu__tensor_region(const ipu_graph *graph, int32_t tensor);

/* Names that connect and write find things by are one space, bodies included.
 * what says what the name is for. */
int ipu__check_name(const ipu_graph *graph, const char *what, const char *name);

/* The body's tensor of one of the graph around it. */
int32_t ipu__import(ipu_graph *body, ipu_tensor tensor);

/* The tensor after it has been changed in place by the node. */
int32_t ipu__renew(ipu_graph *graph, int32_t tensor, int32_t node);
/* Does the same with state, a variable that is there already. */
void ipu__renew_as(ipu_graph *graph, int32_t state, int32_t tensor,
                   int32_t node);

/* Replicas may have different values of a variable, also of one that a body
 * sees. Of anything else it says nothing. */
void ipu__variable_own(ipu_graph *graph, ipu_tensor variable,
                       enum ipu__own why);

/* The variable of the outermost graph that a tensor of a body is, or the tensor
 * itself if it is none; graph becomes the graph that has it. */
int32_t ipu__outermost(ipu_graph **graph, int32_t tensor);

/* The tensor of which all these are states: what has a name and memory. */
int32_t ipu__origin(const ipu_graph *graph, int32_t tensor);

/* Tensor number i that a loop's node needs; -1: there are no more, or it is
 * not a loop's. */
int32_t ipu__loop_need(const ipu_graph *graph, const struct ipu__node *node,
                       int32_t i);

/* Returns whether the node changes the tensor in place. */
bool ipu__node_writes(const ipu_graph *graph, const struct ipu__node *node,
                      int32_t tensor);

/* Returns whether the node reads the tensor. */
bool ipu__node_reads(const ipu_graph *graph, const struct ipu__node *node,
                     int32_t tensor);

/* Frees the loop's members. */
void ipu__loop_fini(struct ipu__loop *loop);
/* Marks the imports of a body that its assignments, loops and stores write.
 * Once they are known, ipu__has_effects returns whether the body does more than
 * make carried values. */
void ipu__find_written(ipu_graph *body);
bool ipu__has_effects(const ipu_graph *body);

void ipu__loops_free(ipu_graph *graph);

/* IPU_ERR_STATE while the body of one of the graph's loops is being built. */
int ipu__check_closed(const ipu_graph *graph, const char *what);

/* Keep the last error as the graph's, unless it has one, with the place in the
 * user's program; returns it as a status, or as an invalid tensor. */
int ipu__graph_fail(ipu_graph *graph, int status);
ipu_tensor ipu__invalid(ipu_graph *graph, int status);

/* The status of the graph's first failure, its text the last error again; 0 if
 * it has none. */
int ipu__graph_status(const ipu_graph *graph);

/* Make room for one more element: the array may move. */
int ipu__reserve(void **array, int32_t count, int32_t *capacity, size_t size);

#endif
