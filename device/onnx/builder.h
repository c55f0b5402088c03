/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - what a model consists of, and the state while its graph is built.
 */
#ifndef IPU_ONNX_BUILDER_H
#define IPU_ONNX_BUILDER_H

#include "onnx/build.h"

/* The variable that counts runs, for Dropout. */
#define ONNX__RUN "ipu_onnx/run"

/* An extent that the program gives to a dimension. */
struct ipu__onnx_given {
    char *symbol; /* owned; NULL: the first dimension of each input */
    int64_t extent;
};

/* A pattern of names that are not trained. */
struct ipu__onnx_pattern {
    const char *text;
    struct ipu__onnx_pattern *next;
};

struct ipu_onnx {
    struct ipu__onnx_file file;
    struct ipu__onnx_model model;
    int version; /* of the operators */
    /* Inputs that are no initialisers. */
    int32_t ninputs;
    const struct ipu__onnx_value_info **inputs;
    /* The elements that were offered for each of them; type 0: none. */
    struct ipu__onnx_elements *offered;
    bool *bound;
    int32_t ngiven;
    struct ipu__onnx_given *given; /* owned */
    int64_t placeholders; /* inputs of scratch graphs so far (scope.h) */
    bool no_gradients;    /* nobody takes derivatives of it */
    bool *trained;        /* of each initialiser; in the file's memory */
    struct ipu__onnx_pattern *frozen; /* in the file's memory too */
    int32_t dropouts;     /* nodes that draw so far */
    ipu_tensor run;                   /* ONNX__RUN, if there are some */
    int32_t nvariables;
    struct ipu__onnx_value *variables; /* owned, those that were made */
    int32_t nrefusals;
    char **refusals;                 /* owned */
    struct ipu__onnx_builder *built; /* owned; NULL: not built */
};

struct ipu__onnx_builder {
    ipu_onnx *model;
    /* ipu__onnx_build_node, for files that rows call to build nodes again. */
    int (*build_node)(struct ipu__onnx_builder *b,
                      const struct ipu__onnx_node *node);
    ipu_graph *graph;
    struct ipu__onnx_value *values; /* owned; sorted by name */
    size_t nvalues;
    int depth;          /* graphs around it: 0: it is the model's */
    bool as_ops;        /* ops that rows make are not computed (evaluate.c) */
    size_t inner_nodes; /* built so far, of graphs in nodes */
    size_t folded;      /* bytes of elements that nodes have made */
    int status;         /* a failure that ends building */
    char text[IPU__MESSAGE_MAX]; /* what it says: ops that follow fail, too */
};

/* Adds a value, which nothing makes yet, unless the name is empty. There must
 * be room for it. */
void ipu__onnx_add_name(struct ipu__onnx_builder *b, const char *name);

/* Count and add the values that a graph's initialisers and nodes make. */
size_t ipu__onnx_count_names(const struct ipu__onnx_graph *graph);
void ipu__onnx_add_names(struct ipu__onnx_builder *b,
                         const struct ipu__onnx_graph *graph);

/* Sorts the values, which have been named. */
void ipu__onnx_sort(struct ipu__onnx_builder *b);

/* Returns a name that two of the values, which are sorted, have; NULL: there is
 * none. */
const char *ipu__onnx_named_twice(const struct ipu__onnx_builder *b);

/* Sets values to initialisers, which are read when somebody needs them. */
int ipu__onnx_set_initializers(struct ipu__onnx_builder *b,
                               const struct ipu__onnx_tensors *all);

/* Finds a value by its name; NULL: there is none. */
struct ipu__onnx_value *ipu__onnx_value(const struct ipu__onnx_builder *b,
                                        const char *name);

/* Notes this thread's last failure, which ends building. Returns status. */
int ipu__onnx_end(struct ipu__onnx_builder *b, int status);

/* Adds a refusal, which is copied. */
int ipu__onnx_add_refusal(ipu_onnx *model, const char *text);

/* Forgets all refusals but the first count. */
void ipu__onnx_forget_refusals(ipu_onnx *model, int32_t count);

/* Returns whether a name matches a pattern of ipu_onnx_freeze. */
bool ipu__onnx_is_frozen(const ipu_onnx *model, const char *name);

/* Makes the output of an Identity a variable of its own, or constant, if it
 * passes on an initialiser that is trained under this name, or under another
 * one alone. */
void ipu__onnx_pass_on(const ipu_onnx *model, const struct ipu__onnx_node *node,
                       struct ipu__onnx_value *value);

/* Adds a value to the variables of a model. */
int ipu__onnx_add_variable(ipu_onnx *model,
                           const struct ipu__onnx_value *value);
/* Notes that a node assigns the variable of that name in each run. */
void ipu__onnx_assign_variable(ipu_onnx *model, const char *name);
/* Finds a variable by its name; NULL: there is none. */
const struct ipu__onnx_value *ipu__onnx_variable(const ipu_onnx *model,
                                                 const char *name);

/* Sets a value to the input of that number; its shape must be known. */
int ipu__onnx_set_input(struct ipu__onnx_builder *b,
                        struct ipu__onnx_value *value, int32_t number);

/* Builds the operator of a node. */
int ipu__onnx_build_node(struct ipu__onnx_builder *b,
                         const struct ipu__onnx_node *node);

/* Makes the outputs of a node that has been built known, if its inputs are, and
 * both are small. */
void ipu__onnx_evaluate(struct ipu__onnx_call *call);

/* Describes a node, for refusals. */
void ipu__onnx_describe(const struct ipu__onnx_node *node, char *text,
                        size_t bytes);

#endif
