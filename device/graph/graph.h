/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - tensors and nodes: the program as its author wrote it. The door of
 * this room.
 *
 * A graph is two growing arrays, tensors and nodes, both in an order in which
 * they can be computed: a node comes after the nodes that make its inputs. The
 * room knows ops by their table rows alone (op.h); the rooms ops and training
 * build on it, and the compiler reads it.
 *
 * The first failure of a builder stays in the graph and stops all building;
 * ipu_compile reports it.
 *
 * The body of a loop is a separate graph, which the loop's node owns. Tensors
 * of the outer graph that it uses are imported (bodies.c).
 *
 * An index is IPU__NONE, -1, where there is none.
 */
#ifndef IPU_GRAPH_GRAPH_H
#define IPU_GRAPH_GRAPH_H

#include "base/shape.h"

struct ipu__op;

/* The index of nothing. */
enum { IPU__NONE = -1 };

enum { IPU__MAX_INPUTS = 6 };

/* The settings of an op, apart from its inputs. The op decides which of them it
 * uses and what they mean. */
struct ipu__attributes {
    int32_t stride[2]; /* height, width */
    int32_t dilation[2];
    int32_t pad[2];       /* rows added above, columns added to the left */
    int32_t pad_after[2]; /* below, to the right */
    int32_t groups;
    int32_t size;
    bool transpose[2]; /* inputs 0 and 1 are transposed */
    double scale, offset;
    double factors[4];
    uint64_t seed;
    int64_t view[4]; /* shape of x as the op groups its elements */
    int32_t axis;
    int32_t order[IPU_MAX_DIMS]; /* order of the dimensions */
    /* first element of a part, in each dimension */
    int64_t starts[IPU_MAX_DIMS];
    bool axes[IPU_MAX_DIMS]; /* axes that are reduced */
    bool keep;               /* reduced axes stay, with extent 1 */
    /* the output's shape, if it does not follow from the inputs */
    struct ipu__shape shape;
    double proportion; /* share of a tile's memory that a product may take for
                          temporary data; 0: not set */
    ipu_host_fn fn;    /* function on the host */
    void *context;     /* borrowed as long as engines run */
};

/* The place in the user's program that asked for something, and the module of
 * the model that it belongs to. Texts are borrowed as long as the graph lives;
 * NULL: unknown. */
struct ipu__source {
    const char *file;
    int32_t line;
    const char *module; /* "/encoder/layer.0/attention" */
};

enum ipu__tensor_kind { IPU__INPUT, IPU__VARIABLE, IPU__CONSTANT, IPU__RESULT };

/* Reasons why replicas may have different values of a variable. */
enum ipu__own {
    IPU__EQUAL = 0,      /* they have the same value */
    IPU__OWN_SUMS,       /* each has its own sums since the last update */
    IPU__OWN_PART,       /* each keeps a different part of a whole */
    IPU__OWN_STATISTICS, /* each has statistics of the data that it has seen */
    IPU__OWN_CHOICE,     /* the program has asked for it */
    IPU__OWN_REASONS
};

/* The tiles on which the program wants a tensor: tiles of them, beginning with
 * tile first. If tiles is 0, the compiler chooses. */
struct ipu__mapping {
    int32_t first, tiles;
};

struct ipu__tensor {
    char *name; /* owned */
    struct ipu__shape shape;
    enum ipu__tensor_kind kind;
    int32_t node;    /* node that makes it; -1: none */
    void *data;      /* owned; the data of a constant */
    int32_t shard;   /* number of its chip, if there are several */
    bool checkpoint; /* kept when activations are computed again */
    bool imported;   /* imported from the outer graph */
    bool fixed;      /* the compiler sees a variable, the program does not */
    bool fed;        /* an infeed gives this input */
    bool remote; /* a variable in streaming memory, with rows as dimension 0 */
    /* the compiler has moved this variable to streaming memory; set only in
     * its draft */
    bool offloaded;
    ipu_offload offload; /* the program's request for a variable */
    int32_t own;         /* enum ipu__own of a variable */
    /* A loop or a store that changes a tensor in place makes another tensor of
     * it. renews is the previous tensor, renewed the newest state. */
    int32_t renews, renewed;
    struct ipu__mapping map;
    struct ipu__source source;
};

/* Sets tensor to one of that shape and kind, which no node makes. It takes over
 * name. */
void ipu__tensor_init(struct ipu__tensor *tensor, char *name,
                      const struct ipu__shape *shape,
                      enum ipu__tensor_kind kind);

struct ipu__node {
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* indices of tensors */
    int32_t output;
    /* The update region of the node; -1: it runs each time. Nodes of different
     * regions must not be merged or fused. */
    int32_t region;
    /* In a derivative, this is the tensor of the derivative that it came from;
     * other nodes have none. */
    int32_t derived;
    /* In a derivative, or in a node that computes something again, this is the
     * tensor whose chip the node shares, if there are several chips; other
     * nodes have none. */
    int32_t beside;
    /* The node waits for this tensor, although it does not read it. It is set
     * where something is computed again: such a node must not be merged with
     * the node it repeats, nor run earlier. */
    int32_t after;
    bool again;
    int32_t loop; /* index of its loop, if it is one */
    bool effect;  /* the node runs although nothing may need its output */
};

/* Sets node to one of that op, without anything else. */
void ipu__node_init(struct ipu__node *node, const struct ipu__op *op);

/* A tensor of the outer graph, as the body sees it. */
struct ipu__import {
    int32_t outer, inner;
    bool written;
};

/* A graph that is run for each iteration, and its carried values. */
struct ipu__block_graph {
    ipu_graph *graph; /* owned; NULL: there is none */
    int32_t *carried; /* owned, [ncarried]: variables of graph */
};

/* A loop. */
struct ipu__loop {
    struct ipu__block_graph body;
    /* condition of ipu_while, with one output */
    struct ipu__block_graph condition;
    /* iterations; with a condition, the limit, or 0 for no limit */
    int64_t count;
    int32_t ncarried;
    int32_t *initial, *outputs; /* owned, [ncarried]: tensors */
    int32_t *written;           /* owned: variables before the loop */
    int32_t *renewed;           /* owned: the same variables after the loop */
    int32_t nwritten;
};

/* Tensors that an infeed gives. They are numbers first to first + count - 1. */
struct ipu__feed {
    ipu_infeed *infeed; /* shared */
    int32_t first, count;
};

/* Tensors that are put into an outfeed. */
struct ipu__enqueue {
    ipu_outfeed *outfeed; /* shared */
    int32_t *tensors;     /* owned */
    int32_t count;
};

/* Nodes that run only in every count-th run, or only if a condition holds
 * (regions.c). */
struct ipu__region {
    int32_t count;
    int32_t counter; /* tensor: mini-batches since the last update; -1: none */
    /* tensor: an int32, and the region runs if it is not 0; -1: the region
     * always runs */
    int32_t due;
    /* the region runs only when this one does; -1: no such limit */
    int32_t within;
    bool conditional;
    ipu_offload offload;
    int64_t minimum_bytes; /* smallest size of an offloaded variable */
};

/* Sets region to one of that count, with neither counter nor condition. */
void ipu__region_init(struct ipu__region *region, int32_t count);

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

/* The rounding of values to float16. */
struct ipu__rounding {
    bool on; /* stochastic rounding is on */
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
    ipu_graph *parent; /* the outer graph of this body, borrowed; NULL: none */
    ipu_graph *open;   /* the body being built, borrowed; NULL: none */
    struct ipu__loop *loops; /* owned */
    int32_t nloops, loop_capacity;
    struct ipu__import *imports; /* owned */
    int32_t nimports, import_capacity;
    struct ipu__feed *feeds; /* owned */
    int32_t nfeeds, feed_capacity;
    struct ipu__enqueue *enqueues; /* owned */
    int32_t nenqueues, enqueue_capacity;
    int32_t region;  /* region that is being built */
    int32_t derived; /* derivative that is being built, as in nodes */
    int32_t beside;  /* as beside in a node */
    int32_t shard;   /* chip for the nodes that are being built; -1: the chip of
                        the inputs */
    /* available memory proportion for products that are being built; 0: not
     * set */
    double proportion;
    bool recompute; /* derivatives read activations computed again */
    bool unrolls;   /* loops of a known length become their iterations */
    struct ipu__source source; /* source of the nodes that are being built */
    struct ipu__rounding rounding;
    int status;    /* status of the first failure, which stops all building */
    char *message; /* owned; the text of that failure */
    /* owned, with each text: names of modules, and of the source files of a
     * loaded graph; those of a body are its outermost graph's */
    char **texts;
    int32_t ntexts;
};

/* Makes an empty graph without a tag. */
int ipu__graph_alloc(ipu_graph **graph);

/* The function of a loaded host call until ipu_engine_connect_call sets another
 * one: it fails. */
int ipu__no_call(void *context, const char *name, void *data, int64_t count);

/* Sets output to the shape that the node makes of its inputs. Fails with the
 * reason if it cannot. */
int ipu__node_shape(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__shape *output);

/* Adds a tensor and returns its index. Takes ownership of name, also on
 * failure. */
int ipu__tensor_add(ipu_graph *graph, char *name,
                    const struct ipu__shape *shape, enum ipu__tensor_kind kind);

/* Returns the index of the tensor's newest state, and imports a tensor of the
 * outer graph into a body. Fails if the tensor belongs to another graph or is
 * invalid. */
int32_t ipu__index(const ipu_graph *graph, ipu_tensor tensor);
/* Returns the tensor with an index. */
ipu_tensor ipu__handle(const ipu_graph *graph, int32_t index);

/*
 * Adds a node and returns the index of the tensor that it makes, or a failure.
 * inputs has as many tensors as the op takes; if attributes is NULL, all are
 * zero. Builders of ops call ipu__add (ops/op.h), which also rounds.
 */
int32_t ipu__add_node(ipu_graph *graph, const struct ipu__op *op,
                      const ipu_tensor *inputs,
                      const struct ipu__attributes *attributes);

/*
 * Puts each unit of a graph on a chip of its own. Units are the nodes before
 * the first gradient, each with the ops by element that are one step with it.
 * Derivatives, and the nodes that use them, go where their tensors are.
 */
int ipu__shard_units(ipu_graph *graph, int32_t *nunits);

/* Makes a copy of the graph with the same handles. It must be freed before the
 * original. */
int ipu__graph_copy(const ipu_graph *graph, ipu_graph **copy);

/* Tells all tensors the number of the node that makes them, after nodes have
 * changed places. */
void ipu__number_nodes(ipu_graph *graph);

/*
 * Takes out the marked nodes ([nodes]), the loops that no node has then, and
 * the marked tensors ([tensors]), which nothing that stays may use. to[t] is
 * set to the new number of tensor t, IPU__NONE if it is gone. Handles of the
 * graph's tensors become invalid, as do the numbers that the graph around a
 * body has of them: those of carried values.
 */
void ipu__graph_drop(ipu_graph *graph, const bool *nodes, const bool *tensors,
                     int32_t *to);

/* Gives the node the region that is being built or that of its inputs. Returns
 * IPU_ERR_STATE if these are two regions and neither is within the other. */
int ipu__region_join(const ipu_graph *graph, struct ipu__node *node);

/* Finds the tensors that must exist before the node can be computed: its
 * inputs, the tensor it waits for, and the condition of its region. Returns how
 * many there are. */
enum { IPU__MAX_NEEDS = IPU__MAX_INPUTS + 2 };
int ipu__node_needs(const ipu_graph *graph, const struct ipu__node *node,
                    int32_t *needs);

/* Returns whether the region outer runs whenever region does. -1 is each run,
 * which all regions are within. */
bool ipu__region_is_within(const ipu_graph *graph, int32_t region,
                           int32_t outer);

/* Returns the region in which a tensor is computed; -1: in each run. */
int32_t ipu__tensor_region(const ipu_graph *graph, int32_t tensor);

/* Checks that a name is still free. All names by which connect and write find
 * things are in one space, bodies included. what describes the use of the name.
 */
int ipu__check_name(const ipu_graph *graph, const char *what, const char *name);

/* Returns the body's tensor for a tensor of the outer graph. */
int32_t ipu__import(ipu_graph *body, ipu_tensor tensor);

/* Returns the new state of the tensor after the node has changed it in place.
 */
int32_t ipu__renew(ipu_graph *graph, int32_t tensor, int32_t node);
/* Does the same, with the existing variable state as the new state. */
void ipu__renew_as(ipu_graph *graph, int32_t state, int32_t tensor,
                   int32_t node);

/* Notes that replicas may have different values of a variable, also of one that
 * a body imports. Does nothing for other tensors. */
void ipu__variable_own(ipu_graph *graph, ipu_tensor variable,
                       enum ipu__own why);

/* Follows a tensor of a body to the variable of the outermost graph that it is,
 * and returns that; returns the tensor itself if it is no such variable. Sets
 * graph to the graph of the result. */
int32_t ipu__outermost(ipu_graph **graph, int32_t tensor);

/* Returns the tensor whose states these are: the one with a name and memory. */
int32_t ipu__origin(const ipu_graph *graph, int32_t tensor);

/* Returns tensor number i that a loop's node needs; -1 if there are no more, or
 * the node is not a loop. */
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

/* Returns IPU_ERR_STATE while the body of one of the graph's loops is being
 * built. */
int ipu__check_closed(const ipu_graph *graph, const char *what);

/* Keeps the last error, with the place in the user's program, as the graph's
 * first failure unless it has one. Returns it as a status, or as an invalid
 * tensor. */
int ipu__graph_fail(ipu_graph *graph, int status);
ipu_tensor ipu__invalid(ipu_graph *graph, int status);

/* Returns the status of the graph's first failure and makes its text the last
 * error; 0 if there is none. */
int ipu__graph_status(const ipu_graph *graph);

/* Makes room for one more element. The array may move. */
int ipu__reserve(void **array, int32_t count, int32_t *capacity, size_t size);

#endif
