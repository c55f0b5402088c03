/* SPDX-License-Identifier: Apache-2.0 */
/* transformer.c - the pieces are the tables, each layer, and the head. */
#include "networks/transformer.h"

#include "net/net.h"
#include "output/problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The factor by which the second half of a layer is wider inside. */
enum { WIDER = 4 };

/* The usual deviation of first weights. */
static const double usual = 0.02;

/* The context of all pieces. */
struct transformer {
    struct gpt_shape shape;
    int characters;
};

/* Returns the table of characters. */
static ipu_tensor table_of(hvd_net *net, const struct transformer *t)
{
    const int64_t table[] = {t->characters, t->shape.width};

    return hvd_net_variable(
        net, "characters", (hvd_initializer){HVD_INIT_NORMAL, usual}, 2, table);
}

/* Adds the tables of characters and of places. */
static ipu_tensor look_up(hvd_net *net, ipu_tensor characters, void *context)
{
    const struct transformer *t = context;
    const struct gpt_shape *s = &t->shape;
    const int64_t table[] = {s->context, s->width}, rows[] = {-1, s->width};
    ipu_graph *g = hvd_net_graph(net);
    ipu_tensor x = ipu_embedding(g, table_of(net, t), characters);

    x = ipu_add(g, x,
                hvd_net_variable(net, "places",
                                 (hvd_initializer){HVD_INIT_NORMAL, usual}, 2,
                                 table));
    return hvd_dropout(net, ipu_reshape(g, x, 2, rows), s->dropout);
}

/* Builds a dense layer with the deviation of its first weights. */
static ipu_tensor build_dense(hvd_net *net, const char *layer, const char *what,
                              ipu_tensor x, int64_t units, double deviation,
                              hvd_activation activation)
{
    hvd_layer_options options;
    char name[40];

    hvd_layer_options_init(&options, sizeof options);
    options.kernel = (hvd_initializer){HVD_INIT_NORMAL, deviation};
    options.activation = activation;
    snprintf(name, sizeof name, "%s/%s", layer, what);
    return hvd_dense_with(net, name, x, units, &options);
}

static ipu_tensor build_norm(hvd_net *net, const char *layer, const char *what,
                             ipu_tensor x)
{
    char name[40];

    snprintf(name, sizeof name, "%s/%s", layer, what);
    return hvd_layer_norm(net, name, x);
}

static ipu_tensor build_attention(hvd_net *net, const char *layer, ipu_tensor x,
                                  const struct gpt_shape *s)
{
    const int64_t pieces[] = {-1, s->context, 3 * (int64_t)s->width};
    const int64_t rows[] = {-1, s->width};
    int64_t shape[IPU_MAX_DIMS];
    ipu_graph *g = hvd_net_graph(net);

    if (net_shape(net, x, shape) > 0)
        hvd_net_work(net, 2 * shape[0] * s->context * s->width);
    x = build_norm(net, layer, "norm1", x);
    x = build_dense(net, layer, "qkv", x, 3 * (int64_t)s->width, usual,
                    HVD_LINEAR);
    x = ipu_attention(g, ipu_reshape(g, x, 3, pieces), s->heads, 1);
    return build_dense(net, layer, "mix", ipu_reshape(g, x, 2, rows), s->width,
                       usual / sqrt(2.0 * s->layers), HVD_LINEAR);
}

static ipu_tensor build_layer(hvd_net *net, ipu_tensor x, void *context)
{
    const struct gpt_shape *s = &((const struct transformer *)context)->shape;
    ipu_graph *g = hvd_net_graph(net);
    ipu_tensor inside;
    char layer[24];

    snprintf(layer, sizeof layer, "layer%d", (int)hvd_net_piece(net) - 1);
    inside = build_attention(net, layer, x, s);
    x = ipu_add(g, x, hvd_dropout(net, inside, s->dropout));
    inside = build_norm(net, layer, "norm2", x);
    inside = build_dense(net, layer, "in", inside, WIDER * (int64_t)s->width,
                         usual, HVD_GELU_TANH);
    inside = build_dense(net, layer, "out", inside, s->width,
                         usual / sqrt(2.0 * s->layers), HVD_LINEAR);
    return ipu_add(g, x, hvd_dropout(net, inside, s->dropout));
}

/* Builds the final norm and the logits. */
static ipu_tensor build_head(hvd_net *net, ipu_tensor x, void *context)
{
    const struct transformer *t = context;
    const struct gpt_shape *s = &t->shape;
    hvd_layer_options options;
    int64_t shape[IPU_MAX_DIMS];

    x = hvd_layer_norm(net, "norm", x);
    if (s->tied) {
        if (net_shape(net, x, shape) > 0)
            hvd_net_work(net, shape[0] * s->width * t->characters);
        return ipu_batch_matmul(hvd_net_graph(net), x, table_of(net, t), 0, 1);
    }
    hvd_layer_options_init(&options, sizeof options);
    options.no_bias = 1;
    options.kernel = (hvd_initializer){HVD_INIT_NORMAL, usual};
    return hvd_dense_with(net, "head", x, t->characters, &options);
}

int transformer_model(const struct gpt_shape *shape, int batch_size,
                      int characters, struct model **model)
{
    const int64_t rows = (int64_t)batch_size * shape->context;
    const struct model_tensor inputs[] = {
        {"characters read", IPU_INT32, 2, {batch_size, shape->context}},
        {"characters that follow", IPU_INT32, 1, {rows}}};
    hvd_build_fn *pieces[HVD_MODEL_MOST_PIECES] = {look_up};
    struct transformer *t = malloc(sizeof *t);
    hvd_model of;

    if (!t)
        return problem_set("no memory for the network");
    *t = (struct transformer){*shape, characters};
    for (int i = 1; i <= shape->layers; i++)
        pieces[i] = build_layer;
    pieces[shape->layers + 1] = build_head;
    hvd_model_init(&of, sizeof of);
    of.name = "transformer";
    of.output = "logits";
    of.pieces = pieces;
    of.npieces = shape->layers + 2;
    of.context = t;
    of.free_context = free;
    return net_model(&of, 2, inputs, model);
}
