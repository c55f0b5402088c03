/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer.c - a stage of a transformer: as many layers as one IPU of a
 * pipeline holds, in float16.
 *
 *     x = norm(x + dropout(attention(x)))     BERT (Devlin et al., 2018):
 *     x = norm(x + dropout(mlp(x)))           normalised behind
 *     x = x + dropout(attention(norm(x)))     GPT-2 (Radford et al., 2019):
 *     x = x + dropout(mlp(norm(x)))           before, and causal
 *
 * The activations from the previous stage are an input, those for the next
 * stage an output; so are the derivatives, in the other direction. Activations
 * are kept from layer to layer; the others are computed again. Embeddings and
 * the last layer belong to other stages.
 */
#include "ipu/net.h"

static ipu_tensor dense(struct net *net, ipu_tensor x, int64_t in, int64_t out)
{
    ipu_tensor w = net_weight(net, 2, (const int64_t[]){in, out});

    x = ipu_matmul(net->graph, x, w);
    return ipu_bias_add(net->graph, x, net_weight(net, 1, &out));
}

static ipu_tensor normed(struct net *net, ipu_tensor x, int64_t width)
{
    ipu_tensor scale = net_weight(net, 1, &width);

    return ipu_layer_norm(net->graph, x, scale, net_weight(net, 1, &width),
                          1e-5);
}

static ipu_tensor dropped(struct net *net, ipu_tensor x)
{
    return net->training ? ipu_dropout(net->graph, x, 0.1,
                                       (uint64_t)++net->drawn, net->step)
                         : x;
}

static ipu_tensor layer(struct net *net, const struct net_size *size,
                        ipu_tensor x)
{
    ipu_graph *g = net->graph;
    int64_t c = size->width;
    ipu_tensor y = size->causal ? normed(net, x, c) : x;

    y = ipu_attention(g, dense(net, y, c, 3 * c), size->heads, size->causal);
    x = ipu_add(g, x, dropped(net, dense(net, y, c, c)));
    if (!size->causal)
        x = normed(net, x, c);
    y = size->causal ? normed(net, x, c) : x;
    y = ipu_gelu_tanh(g, dense(net, y, c, 4 * c));
    x = ipu_add(g, x, dropped(net, dense(net, y, 4 * c, c)));
    if (!size->causal)
        x = normed(net, x, c);
    return ipu_recomputation_checkpoint(g, x);
}

int net_transformer(struct net *net, const struct net_size *size,
                    int32_t mini_batches)
{
    const int64_t shape[] = {size->batch, size->tokens, size->width};
    ipu_graph *g = net->graph;
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT16, 3, shape), y = x;

    net->step = ipu_counter(g, "step");
    ipu_allow_recompute(g, net->training);
    for (int32_t i = 0; i < size->layers; i++)
        y = layer(net, size, y);
    return net_send_on(net, &x, y, 3, shape, mini_batches, IPU_OPTIMIZER_ADAMW);
}
