/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_onnx.h - models in ONNX files: which inputs and outputs they have, and
 * the graph that computes them. docs/ONNX.md says which operators are mapped.
 * ipu.h includes it.
 *
 *     ipu_onnx_load(path, &model);
 *     ipu_onnx_set_dim(model, NULL, 16);         (batches of 16)
 *     ipu_onnx_build(model, graph);
 *     ipu_compile(graph, NULL, &executable);     (and so on, as with any graph)
 *
 * The graph has an input and an output of the model's names for each of its
 * own. The device computes with float32, float16, bfloat16 and int32; double is
 * float32 there, and all integers and bool are int32. ipu_onnx_to_device and
 * ipu_onnx_from_device convert. Images and kernels lie in the order of ONNX
 * (NCHW) in memory of the host.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_ONNX_H)
#define IPU_ONNX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements, with the numbers that ONNX gives them. */
enum {
    IPU_ONNX_FLOAT = 1,
    IPU_ONNX_UINT8 = 2,
    IPU_ONNX_INT8 = 3,
    IPU_ONNX_UINT16 = 4,
    IPU_ONNX_INT16 = 5,
    IPU_ONNX_INT32 = 6,
    IPU_ONNX_INT64 = 7,
    IPU_ONNX_STRING = 8,
    IPU_ONNX_BOOL = 9,
    IPU_ONNX_FLOAT16 = 10,
    IPU_ONNX_DOUBLE = 11,
    IPU_ONNX_UINT32 = 12,
    IPU_ONNX_UINT64 = 13,
    IPU_ONNX_COMPLEX64 = 14,
    IPU_ONNX_COMPLEX128 = 15,
    IPU_ONNX_BFLOAT16 = 16
};

/* Versions of the operators of ONNX (opset) of which models are read. */
enum { IPU_ONNX_OPSET_MIN = 1, IPU_ONNX_OPSET_MAX = 17 };

/* Returns "float", "int64", ...; NULL: there is no such type. Static. */
const char *ipu_onnx_type_name(int32_t type);

/* Returns the bytes of an element in memory of the host; 0 if the device has no
 * such elements. */
size_t ipu_onnx_type_bytes(int32_t type);

/* Returns the dtype that elements of a type have on the device; negative if it
 * has none. */
ipu_dtype ipu_onnx_type_dtype(int32_t type);

/*
 * Convert count elements between a type in memory of the host and the dtype
 * that it has on the device (ipu_onnx_type_dtype). A number that the other side
 * cannot hold is refused with IPU_ERR_DATA, naming it.
 */
int ipu_onnx_to_device(int32_t type, int64_t count, const void *from, void *to);
int ipu_onnx_from_device(int32_t type, int64_t count, const void *from,
                         void *to);

/* -------------------------------------------------------------------- model */

typedef struct ipu_onnx ipu_onnx;

/* Reads a model. Elements of initialisers may lie in files below the model's
 * folder, which are read when the graph is built. Returns IPU_ERR_DATA, naming
 * the file, if it is damaged or asks for what this version does not do. */
int ipu_onnx_load(const char *path, ipu_onnx **model);
void ipu_onnx_free(ipu_onnx *model); /* NULL is accepted */

typedef struct ipu_onnx_value {
    uint32_t size;    /* sizeof(ipu_onnx_value), set by the caller */
    int32_t type;     /* IPU_ONNX_*; 0: no tensor */
    const char *name; /* borrowed from the model */
    int32_t ndim;     /* -1: unknown */
    int32_t bound; /* 1: ipu_onnx_build took the elements that were offered as
                      constants; the graph has no such input */
    int64_t extents[IPU_MAX_DIMS]; /* -1: left open */
    const char
        *symbols[IPU_MAX_DIMS]; /* names of open dimensions; NULL: none */
    int32_t assigned; /* of a variable, 1: each run assigns it (the running
                         statistics of a batch normalisation in training), so
                         no optimiser may */
    int32_t reserved;
} ipu_onnx_value;

/* Describe input or output number i of a model, without initialisers. Return 1;
 * 0 beyond the last. After ipu_onnx_build, no extent is open. */
int ipu_onnx_input(const ipu_onnx *model, int32_t i, ipu_onnx_value *value);
int ipu_onnx_output(const ipu_onnx *model, int32_t i, ipu_onnx_value *value);

/* Sets the extent of open dimensions of inputs: of all that have this name, or,
 * with symbol NULL, of all first dimensions (batches) that are not set by name.
 * The name is copied. Returns IPU_ERR_NAME if no input has such a dimension. */
int ipu_onnx_set_dim(ipu_onnx *model, const char *symbol, int64_t extent);

/*
 * Offers the elements of an input, as ONNX has them, before ipu_onnx_build;
 * they are copied. They set the input's open dimensions. Where an operator has
 * to know the elements of an input (the shape of Reshape, for one), the graph
 * is built for these, and the input is bound.
 */
int ipu_onnx_offer(ipu_onnx *model, const char *name, int32_t type,
                   int32_t ndim, const int64_t *extents, const void *data);

/*
 * Adds a model to a graph: its inputs, its initialisers as constants, its nodes
 * and its outputs. A model can be built once. Returns IPU_ERR_SHAPE if nodes
 * are not supported: the error names all of them with the reasons, and
 * ipu_onnx_refusal lists them.
 */
int ipu_onnx_build(ipu_onnx *model, ipu_graph *graph);

/*
 * Says that the program takes no derivatives of the model, before
 * ipu_onnx_build: of an If whose condition depends on data, only the branch
 * that it chooses then runs. Otherwise both are computed, because loops with a
 * condition have no derivatives. A model that has a Gradient is built as
 * without this call.
 */
int ipu_onnx_no_gradients(ipu_onnx *model);

/* Returns refusal number i of ipu_onnx_build, "node 'n' (Conv): reason"; NULL
 * beyond the last. Borrowed from the model. */
const char *ipu_onnx_refusal(const ipu_onnx *model, int32_t i);

/* ---------------------------------------------------------------- training */

/*
 * Has ipu_onnx_build make a variable of an initialiser, instead of a constant:
 * of the one of that name, or with NULL of all that have floats. Call it before
 * ipu_onnx_build, as often as needed. The variable belongs to the graph, and
 * has the name and the shape of the initialiser and the dtype of its type
 * (ipu_onnx_type_dtype). Elements that a node has to know when it is built,
 * such as the bounds of Clip, stay constants.
 *
 *     ipu_onnx_train(model, NULL);
 *     ipu_onnx_build(model, graph);
 *     ipu_graph_find(graph, "logits", &logits);     (an output of the model)
 *     loss = ...;
 *     for (i = 0; ipu_onnx_variable(model, i, &value) > 0; i++)
 *         if (!value.assigned)
 *             ipu_graph_find(graph, value.name, &weights[n++]);
 *     ipu_gradients(graph, loss, n, weights, gradients);
 *     ipu_sgd(...);                                 (and so on, for each)
 *     ipu_compile, ipu_engine_new
 *     ipu_onnx_write_variables(model, engine);
 *     ipu_engine_run, ipu_engine_read
 *
 * Returns IPU_ERR_NAME if there is no such initialiser, IPU_ERR_ARGUMENT if it
 * has no floats, or IPU_ERR_STATE after ipu_onnx_build.
 */
int ipu_onnx_train(ipu_onnx *model, const char *name);

/*
 * Leaves initialisers constant that ipu_onnx_train would make variables: those
 * whose names match a pattern of the shell (fnmatch: "*bn*", "layer1.*"). An
 * ONNX file does not tell a parameter from what a framework keeps as a buffer,
 * such as the statistics of a frozen normalisation. Call it before
 * ipu_onnx_build, as often as needed. Returns how many names match;
 * IPU_ERR_NAME if none of an initialiser that could be trained does.
 */
int ipu_onnx_freeze(ipu_onnx *model, const char *pattern);

/*
 * Describes variable number i of those that ipu_onnx_build has made. Returns 1;
 * 0 beyond the last. An Identity of an initialiser that is trained is a
 * variable of its own, with the name of the Identity's output: exporters merge
 * parameters that are equal at first.
 */
int ipu_onnx_variable(const ipu_onnx *model, int32_t i, ipu_onnx_value *value);

/* Writes the elements that the file has to all of these variables, which are
 * zero in a new engine. */
int ipu_onnx_write_variables(ipu_onnx *model, ipu_engine *engine);

/* Numbers the next run of a program that ipu_onnx_build has made; later runs
 * count on from there. What Dropout drops is a function of this number, which
 * is 0 in a new engine: processes that train on different rows begin with
 * numbers far apart, so that none drops what another does. Without a Dropout
 * that drops there is no effect. Returns IPU_ERR_ARGUMENT if a pointer is NULL
 * or run is negative, and what ipu_engine_write returns. */
int ipu_onnx_set_run(ipu_onnx *model, ipu_engine *engine, int32_t run);

/*
 * Writes the model to a file of ONNX: what was read, but with the elements that
 * the variables have in the engine, or with engine NULL those of the file.
 * Elements of initialisers in other files are written inside. The file is
 * replaced as a whole. Returns IPU_ERR_DATA if it cannot be written, or would
 * have more than 2 GiB.
 */
int ipu_onnx_save(ipu_onnx *model, ipu_engine *engine, const char *path);

/* ------------------------------------------------------------------ tensors */

/* A tensor from a file. */
typedef struct ipu_onnx_tensor {
    uint32_t size; /* sizeof(ipu_onnx_tensor), set by the caller */
    int32_t type;
    int32_t ndim;
    int32_t reserved;
    int64_t extents[IPU_MAX_DIMS];
    void *data; /* owned by the caller, who calls free */
} ipu_onnx_tensor;

/* Reads a file with one tensor (TensorProto), as ONNX's test data have them. */
int ipu_onnx_read_tensor(const char *path, ipu_onnx_tensor *tensor);

/* ---------------------------------------------------------------- operators */

typedef struct ipu_onnx_operator {
    uint32_t size;      /* sizeof(ipu_onnx_operator), set by the caller */
    int32_t first;      /* the first opset in which it is mapped; 0: in none */
    const char *name;   /* static, as below */
    const char *limits; /* what of it is refused, or why all of it is; NULL:
                           nothing */
} ipu_onnx_operator;

/* Describes operator number i, in the order of their names. Returns 1; 0 beyond
 * the last. */
int ipu_onnx_operator_at(int32_t i, ipu_onnx_operator *op);

#ifdef __cplusplus
}
#endif

#endif
