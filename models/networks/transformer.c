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

/* A network, and the context of its pieces. */
struct transformer {
    hvd_model model;
    hvd_build_fn *pieces[HVD_MODEL_MOST_PIECES];
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

/* The losses of all places of a batch: labels [batch, context]. */
static ipu_tensor build_losses(hvd_net *net, ipu_tensor logits, void *context)
{
    const int64_t rows[] = {-1};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_softmax_cross_entropy(
        g, logits, ipu_reshape(g, hvd_net_input(net, "labels"), 1, rows));
}

hvd_model *transformer_new(const struct gpt_shape *shape, int characters)
{
    struct transformer *t = malloc(sizeof *t);

    if (!t) {
        problem_set("no memory for the network");
        return NULL;
    }
    *t = (struct transformer){.shape = *shape, .characters = characters};
    t->pieces[0] = look_up;
    for (int i = 1; i <= shape->layers; i++)
        t->pieces[i] = build_layer;
    t->pieces[shape->layers + 1] = build_head;
    hvd_model_init(&t->model, sizeof t->model);
    t->model.name = "transformer";
    t->model.output = "logits";
    t->model.pieces = t->pieces;
    t->model.npieces = shape->layers + 2;
    t->model.loss = build_losses;
    t->model.context = t;
    return &t->model;
}

void transformer_free(hvd_model *network)
{
    free(network);
}

int transformer_model(const hvd_model *network, int batch_size,
                      struct model **model)
{
    const struct transformer *t = network->context;
    const struct model_tensor inputs[] = {
        {"inputs", IPU_INT32, 2, {batch_size, t->shape.context}},
        {"labels", IPU_INT32, 2, {batch_size, t->shape.context}}};

    return net_model(network, 2, inputs, model);
}
