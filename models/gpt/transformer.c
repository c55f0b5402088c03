/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer.c - variables are numbered as the backward pass completes their
 * gradients: the head, the layers from the last to the first, the tables.
 * variables_of finds those of a layer by that order.
 */
#include "gpt/transformer.h"

#include "model/model.h"
#include "output/problem.h"

#include <math.h>
#include <stdio.h>

/* The variables of a layer, in backward order. */
enum {
    OUT_BIAS,
    OUT,
    IN_BIAS,
    IN,
    NORM2_OFFSET,
    NORM2_SCALE,
    MIX_BIAS,
    MIX,
    QKV_BIAS,
    QKV,
    NORM1_OFFSET,
    NORM1_SCALE,
    OF_LAYER
};

/* The factor by which the second half of a layer is wider inside. */
enum { WIDER = 4 };

#define EPSILON 1e-5

/* The variables of the head, of the final norm and of the tables, in a network
 * of n layers. */
static int head_count(const struct gpt_shape *s)
{
    return s->tied ? 0 : 1;
}

static int layer_first(const struct gpt_shape *s, int layer)
{
    return head_count(s) + 2 + (s->layers - 1 - layer) * OF_LAYER;
}

static int places_index(const struct gpt_shape *s)
{
    return head_count(s) + 2 + s->layers * OF_LAYER;
}

/* ------------------------------------------------------------ forward pass */

struct forward {
    const struct gpt_shape *shape;
    ipu_graph *graph;
    const ipu_tensor *variables;
    const struct model_pass *pass;
    int64_t batch;
};

/* Adds dropout number number of the network, from 1: each draws other
 * elements. */
static ipu_tensor build_dropout(const struct forward *f, uint64_t number,
                                ipu_tensor x)
{
    if (!f->pass->training || f->shape->dropout == 0)
        return x;
    return ipu_dropout(f->graph, x, f->shape->dropout,
                       f->pass->seed * 1009 + number, f->pass->step);
}

static ipu_tensor build_dense(const struct forward *f, ipu_tensor x,
                              const ipu_tensor *v, int kernel, int bias)
{
    return ipu_bias_add(f->graph, ipu_matmul(f->graph, x, v[kernel]), v[bias]);
}

static ipu_tensor build_attention(const struct forward *f, ipu_tensor x,
                                  const ipu_tensor *v)
{
    const struct gpt_shape *s = f->shape;
    const int64_t pieces[] = {f->batch, s->context, 3 * (int64_t)s->width};
    const int64_t rows[] = {f->batch * s->context, s->width};

    x = ipu_layer_norm(f->graph, x, v[NORM1_SCALE], v[NORM1_OFFSET], EPSILON);
    x = ipu_reshape(f->graph, build_dense(f, x, v, QKV, QKV_BIAS), 3, pieces);
    x = ipu_reshape(f->graph, ipu_attention(f->graph, x, s->heads, 1), 2, rows);
    return build_dense(f, x, v, MIX, MIX_BIAS);
}

static ipu_tensor build_feed_forward(const struct forward *f, ipu_tensor x,
                                     const ipu_tensor *v)
{
    x = ipu_layer_norm(f->graph, x, v[NORM2_SCALE], v[NORM2_OFFSET], EPSILON);
    x = ipu_gelu_tanh(f->graph, build_dense(f, x, v, IN, IN_BIAS));
    return build_dense(f, x, v, OUT, OUT_BIAS);
}

/* Builds both tables. characters: [b, t] */
static ipu_tensor look_up(const struct forward *f, ipu_tensor characters)
{
    const struct gpt_shape *s = f->shape;
    const int64_t rows[] = {f->batch * s->context, s->width};
    int places = places_index(s);
    ipu_tensor x =
        ipu_embedding(f->graph, f->variables[places + 1], characters);

    x = ipu_add(f->graph, x, f->variables[places]);
    return build_dropout(f, 1, ipu_reshape(f->graph, x, 2, rows));
}

static ipu_tensor build_layer(const struct forward *f, int number, ipu_tensor x)
{
    const ipu_tensor *v = f->variables + layer_first(f->shape, number);
    uint64_t drops = 2 * (uint64_t)number + 2;

    x = ipu_add(f->graph, x, build_dropout(f, drops, build_attention(f, x, v)));
    return ipu_add(f->graph, x,
                   build_dropout(f, drops + 1, build_feed_forward(f, x, v)));
}

/* Builds the final norm and the logits. */
static ipu_tensor build_head(const struct forward *f, ipu_tensor x)
{
    const struct gpt_shape *s = f->shape;
    const ipu_tensor *norm = f->variables + head_count(s);

    x = ipu_layer_norm(f->graph, x, norm[1], norm[0], EPSILON);
    return s->tied ? ipu_batch_matmul(f->graph, x,
                                      f->variables[places_index(s) + 1], 0, 1)
                   : ipu_matmul(f->graph, x, f->variables[0]);
}

/* The pieces are the tables, each layer, and the head. */
static ipu_tensor build_piece(const struct model *model, ipu_graph *graph,
                              int piece, const ipu_tensor *variables,
                              ipu_tensor x, const struct model_pass *pass)
{
    const struct gpt_shape *s = model->context;
    const struct forward f = {.shape = s,
                              .graph = graph,
                              .variables = variables,
                              .pass = pass,
                              .batch = model->input_shape[0]};

    if (piece == 0)
        return look_up(&f, x);
    return piece > s->layers ? build_head(&f, x)
                             : build_layer(&f, piece - 1, x);
}

static bool piece_needs(const struct model *model, int piece, int variable)
{
    const struct gpt_shape *s = model->context;
    int places = places_index(s), first = 0, count = head_count(s) + 2;

    if (piece > s->layers && s->tied && variable == places + 1)
        return true;
    if (piece == 0) {
        first = places;
        count = 2;
    } else if (piece <= s->layers) {
        first = layer_first(s, piece - 1);
        count = OF_LAYER;
    }
    return variable >= first && variable < first + count;
}

/* Returns the products of a row in a layer: those of its dense layers, of the
 * scores, and of the sums over the characters before. */
static int64_t piece_work(const struct model *model, int piece)
{
    const struct gpt_shape *s = model->context;
    int64_t c = s->width;

    if (piece == 0)
        return c;
    return piece > s->layers ? c * model->classes
                             : (4 + 2 * WIDER) * c * c + 2 * s->context * c;
}

/* --------------------------------------------------------------- variables */

/* Adds a variable of a layer with the name "layer3/" and what. layer -1: of no
 * layer. */
static int add_variable_of(struct model *model, int layer, const char *what,
                           enum model_start start, double spread, int64_t rows,
                           int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    char name[48];

    if (layer < 0)
        snprintf(name, sizeof name, "%s", what);
    else
        snprintf(name, sizeof name, "layer%d/%s", layer, what);
    return rows == 0 ? model_add(model, name, start, spread, 1, shape + 1)
                     : model_add(model, name, start, spread, 2, shape);
}

static int add_layer(struct model *model, int layer, const struct gpt_shape *s)
{
    const int64_t c = s->width;
    const double usual = 0.02, before = 0.02 / sqrt(2.0 * s->layers);
    const struct {
        const char *name;
        enum model_start start;
        double spread;
        int64_t rows, columns;
    } parts[OF_LAYER] = {
        [OUT_BIAS] = {"out/bias", MODEL_ZEROS, 0, 0, c},
        [OUT] = {"out/kernel", MODEL_NORMAL, before, WIDER * c, c},
        [IN_BIAS] = {"in/bias", MODEL_ZEROS, 0, 0, WIDER * c},
        [IN] = {"in/kernel", MODEL_NORMAL, usual, c, WIDER * c},
        [NORM2_OFFSET] = {"norm2/offset", MODEL_ZEROS, 0, 0, c},
        [NORM2_SCALE] = {"norm2/scale", MODEL_ONES, 0, 0, c},
        [MIX_BIAS] = {"mix/bias", MODEL_ZEROS, 0, 0, c},
        [MIX] = {"mix/kernel", MODEL_NORMAL, before, c, c},
        [QKV_BIAS] = {"qkv/bias", MODEL_ZEROS, 0, 0, 3 * c},
        [QKV] = {"qkv/kernel", MODEL_NORMAL, usual, c, 3 * c},
        [NORM1_OFFSET] = {"norm1/offset", MODEL_ZEROS, 0, 0, c},
        [NORM1_SCALE] = {"norm1/scale", MODEL_ONES, 0, 0, c},
    };

    for (int i = 0; i < OF_LAYER; i++)
        if (add_variable_of(model, layer, parts[i].name, parts[i].start,
                            parts[i].spread, parts[i].rows,
                            parts[i].columns) < 0)
            return PROBLEM;
    return 0;
}

static int add_variables(struct model *model, const struct gpt_shape *s)
{
    const int64_t c = s->width;

    if (!s->tied && add_variable_of(model, -1, "head/kernel", MODEL_NORMAL,
                                    0.02, c, model->classes) < 0)
        return PROBLEM;
    if (add_variable_of(model, -1, "norm/offset", MODEL_ZEROS, 0, 0, c) < 0 ||
        add_variable_of(model, -1, "norm/scale", MODEL_ONES, 0, 0, c) < 0)
        return PROBLEM;
    for (int layer = s->layers - 1; layer >= 0; layer--)
        if (add_layer(model, layer, s) < 0)
            return PROBLEM;
    if (add_variable_of(model, -1, "places", MODEL_NORMAL, 0.02, s->context,
                        c) < 0)
        return PROBLEM;
    return add_variable_of(model, -1, "characters", MODEL_NORMAL, 0.02,
                           model->classes, c);
}

int transformer_model(const struct gpt_shape *shape, int batch_size,
                      int characters, struct model **model)
{
    const struct model plain = {
        .name = "transformer",
        .input_name = "characters read",
        .label_name = "characters that follow",
        .input_dtype = IPU_INT32,
        .input_ndim = 2,
        .input_shape = {batch_size, shape->context},
        .rows = (int64_t)batch_size * shape->context,
        .classes = characters,
        .pieces = shape->layers + 2,
        .piece = build_piece,
        .needs = piece_needs,
        .work = piece_work,
        .draws = shape->dropout > 0,
        .context = shape,
    };
    struct model *fresh = model_new(&plain);

    if (!fresh || add_variables(fresh, shape) < 0) {
        model_free(fresh);
        return PROBLEM;
    }
    *model = fresh;
    return 0;
}
