/* SPDX-License-Identifier: Apache-2.0 */
/* digit_networks.c - the CNNs and the MLP in pieces. All end in the same two
 * pieces. */
#include "networks/digit_networks.h"

#include "data/images.h"
#include "net/net.h"

/* Sizes of the layers; WIDE is that of the MLP, the others are those of the
 * CNNs. */
enum { HIDDEN = 64, FILTERS = 32, WIDE = 128 };

const char *const network_names[] = {[NETWORK_CNN] = "cnn",
                                     [NETWORK_CNN_BN] = "cnn-bn",
                                     [NETWORK_MLP] = "mlp",
                                     NULL};

/* Ends the first piece of the CNNs: x is what the ReLU gets. */
static ipu_tensor pool(hvd_net *net, ipu_tensor x)
{
    ipu_graph *g = hvd_net_graph(net);

    return hvd_flatten(net, ipu_max_pool2d(g, ipu_relu(g, x), 2));
}

static ipu_tensor build_conv(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return pool(net, hvd_conv2d(net, "conv1", x, FILTERS, 3, HVD_LINEAR));
}

static ipu_tensor build_normed_conv(hvd_net *net, ipu_tensor x, void *context)
{
    hvd_layer_options options;

    (void)context;
    hvd_layer_options_init(&options, sizeof options);
    options.no_bias = 1;
    x = hvd_conv2d_with(net, "conv1", x, FILTERS, 3, &options);
    return pool(net, hvd_batch_norm(net, "norm1", x));
}

static ipu_tensor build_hidden(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "dense1", x, HIDDEN, HVD_RELU);
}

static ipu_tensor build_wide(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "dense1", x, WIDE, HVD_RELU);
}

static ipu_tensor build_classes(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "dense2", x, CLASSES, HVD_LINEAR);
}

const hvd_model *network_public(enum network network)
{
    static hvd_build_fn *const pieces[][3] = {
        [NETWORK_CNN] = {build_conv, build_hidden, build_classes},
        [NETWORK_CNN_BN] = {build_normed_conv, build_hidden, build_classes},
        [NETWORK_MLP] = {build_wide, build_classes}};
    static hvd_model networks[3];
    hvd_model *of = &networks[network];

    hvd_model_init(of, sizeof *of);
    of->name = network_names[network];
    of->output = "logits";
    of->pieces = pieces[network];
    of->npieces = network == NETWORK_MLP ? 2 : 3;
    return of;
}

int network_model(enum network network, int batch_size, struct model **model)
{
    const bool is_cnn = network != NETWORK_MLP;
    const struct model_tensor inputs[] = {
        {"images",
         IPU_FLOAT32,
         is_cnn ? 4 : 2,
         {batch_size, is_cnn ? IMAGE_SIDE : IMAGE_PIXELS, IMAGE_SIDE, 1}},
        {"labels", IPU_INT32, 1, {batch_size}}};

    return net_model(network_public(network), 2, inputs, model);
}
