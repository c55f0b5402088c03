/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - what is wanted: the door of this room.
 *
 * A graph is two growing arrays, tensors and nodes, both in an order in which
 * they can be computed: a node comes after the nodes that make its inputs.
 *
 * The body of a loop is a graph of its own, which the loop's node owns; what it
 * uses of the graph around it is imported (loops.c).
 */
#ifndef IPU_GRAPH_GRAPH_H
#define IPU_GRAPH_GRAPH_H

#include "base/shape.h"

struct ipu__op;

enum { IPU__MAX_INPUTS = 6 };

/* What an op is told beside its inputs; which of these, and their meaning,
 * is the op's business. */
struct ipu__attributes {
    int32_t stride[2]; /* height, width */
    int32_t dilation[2];
    int32_t pad[2];       /* rows above, columns to the left */
    int32_t pad_after[2]; /* below, to the right */
    int32_t groups;
    int32_t size;
    bool transpose[2]; /* of inputs 0 and 1 */
    double scale, offset;
    double factors[4];
    uint64_t seed;
    int64_t view[4]; /* of x, as the op groups its elements */
    int32_t axis;
    int32_t order[IPU_MAX_DIMS];  /* of dimensions */
    int64_t starts[IPU_MAX_DIMS]; /* of a part, in each dimension */
    bool axes[IPU_MAX_DIMS];      /* that are reduced */
    bool keep;                    /* reduced ones, as extents of 1 */
    struct ipu__shape shape;      /* of the output, where inputs do not tell */
    double proportion;            /* of a product: of a tile's memory, for what
                                     it needs in between; 0: not said */
    ipu_host_fn fn;               /* of the host */
    void *context;                /* borrowed as long as engines run */
};

/* Where in the user's program something was asked for. */
struct ipu__source {
    const char *file; /* borrowed as long as the graph lives; NULL: unknown */
    int32_t line;
};

enum ipu__tensor_kind { IPU__INPUT, IPU__VARIABLE, IPU__CONSTANT, IPU__RESULT };

/* Why replicas may have different values of a variable. */
enum ipu__own {
    IPU__EQUAL = 0,      /* they may not */
    IPU__OWN_SUMS,       /* of what each has computed since the last update */
    IPU__OWN_PART,       /* each keeps another part of a whole */
    IPU__OWN_STATISTICS, /* of the data that each has seen */
    IPU__OWN_CHOICE,     /* the program has said so */
    IPU__OWN_REASONS
};

/* Where the program wants a tensor: that many tiles from the first on. tiles
 * 0: where the compiler does. */
struct ipu__mapping {
    int32_t first, tiles;
};

struct ipu__tensor {
    char *name; /* owned */
    struct ipu__shape shape;
    enum ipu__tensor_kind kind;
    int32_t node;    /* that makes it; -1: none */
    void *data;      /* owned; of a constant */
    int32_t shard;   /* the chip it is on, if there are several */
    bool checkpoint; /* kept where activations are computed again */
    bool imported;   /* from the graph around */
    bool fixed;      /* a variable to the compiler, not to the program */
    bool fed;        /* an input that an infeed gives */
    bool remote;     /* a variable beside the chip, rows first */
    bool offloaded;  /* a variable beside the chip, as the compiler has chosen:
                        in its draft alone */
    ipu_offload offload; /* of a variable: what the program asks for */
    int32_t own;         /* of a variable: enum ipu__own */
    /* What is changed in place, by a loop or a store, is another tensor
     * afterwards: the one it was before + 1, and the newest + 1; 0: none. */
    int32_t renews, renewed;
    struct ipu__mapping map;
    struct ipu__source source;
};

struct ipu__node {
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* indices of tensors */
    int32_t output;
    /* Of the update region number region - 1; 0: it runs each time. Nodes of
     * different regions must not be merged or fused. */
    int32_t region;
    /* Of a derivative: the tensor + 1 of the derivative that it came from.
     * 0: it is none. */
    int32_t derived;
    /* Of a derivative, or what is computed again: the tensor + 1 on whose chip
     * it is, if there are several. 0: it is none. */
    int32_t beside;
    /* Not before the tensor after - 1 is there, although it does not read it;
     * 0: none. Set where something is computed again (again), which must not
     * be merged with what it repeats, nor come earlier. */
    int32_t after;
    bool again;
    int32_t loop; /* index + 1 of a loop's; 0: it is none */
    bool effect;  /* it runs although nothing may need its output */
};

/* A tensor of the graph around a body, as the body sees it. */
struct ipu__import {
    int32_t outer, inner;
    bool written;
};

/* What carried values are in a graph that is run for each iteration. */
struct ipu__block_graph {
    ipu_graph *graph; /* owned; NULL: there is none */
    int32_t *carried; /* owned, [ncarried]: variables of it */
};

/* A loop. */
struct ipu__loop {
    struct ipu__block_graph body;
    struct ipu__block_graph condition; /* of ipu_while; has one output */
    int64_t count; /* with a condition: at most; 0: without limit */
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

/* What runs in every count-th run only, or if something holds (regions.c). */
struct ipu__region {
    int32_t count;
    int32_t counter; /* tensor: mini-batches since the last update; -1: none */
    int32_t due;     /* tensor: an int32 that is not 0 when it runs; -1: it
                        always does */
    int32_t within;  /* the region + 1 that runs whenever this one does */
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

/* What a variable becomes at the end of a run. */
struct ipu__assign {
    int32_t variable, value; /* tensors */
};

/* How float16 is rounded. */
struct ipu__rounding {
    bool on; /* stochastically */
    uint64_t seed;
    ipu_tensor step;
};

struct ipu_graph {
    int32_t tag;                 /* of the ids of its tensors */
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
    ipu_graph *parent; /* around this body, borrowed; NULL: none */
    ipu_graph *open;   /* the body that is being built, borrowed; NULL: none */
    struct ipu__loop *loops; /* owned */
    int32_t nloops, loop_capacity;
    struct ipu__import *imports; /* owned */
    int32_t nimports, import_capacity;
    struct ipu__feed *feeds; /* owned */
    int32_t nfeeds, feed_capacity;
    struct ipu__enqueue *enqueues; /* owned */
    int32_t nenqueues, enqueue_capacity;
    int32_t region;    /* that is being built, + 1; 0: none */
    int32_t derived;   /* as in nodes: what is being differentiated; 0: none */
    int32_t beside;    /* as in nodes */
    int32_t shard;     /* that is being built on, + 1; 0: where inputs are */
    double proportion; /* of products that are being built; 0: not said */
    bool recompute;    /* derivatives read activations computed again */
    bool unrolls;      /* a loop of a known length becomes its iterations */
    struct ipu__source source; /* of what is being built */
    struct ipu__rounding rounding;
    int status;    /* of the first failure, which stops all building */
    char *message; /* owned; its text */
    char **files;  /* owned, each too: those of sources that were loaded */
    int32_t nfiles;
};

/* The function of a host call that was loaded, until ipu_engine_connect_call
 * gives it one: it fails. */
int ipu__no_call(void *context, const char *name, void *data, int64_t count);

/* What the node makes of its inputs; or why it cannot. */
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
/* ... which is there already, a variable: state. */
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

/* Whether the node changes the tensor in place. */
bool ipu__node_writes(const ipu_graph *graph, const struct ipu__node *node,
                      int32_t tensor);

/* Whether it reads it. */
bool ipu__node_reads(const ipu_graph *graph, const struct ipu__node *node,
                     int32_t tensor);

/* What the loop owns. */
void ipu__loop_fini(struct ipu__loop *loop);
/* Which imports of a body its assignments, loops and stores write; and whether
 * it does more than to make carried values, once that is known. */
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
