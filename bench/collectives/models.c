/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.c - lists the gradients of models, from the models' definitions.
 *
 * Each builder walks through its model from input to output, as its authors
 * describe it, and adds the trainable parameters of each layer. Backward passes
 * produce gradients from the last layer to the first, so the list is reversed
 * at the end. The builders add a layer's biases after its weights; in the
 * reversed list they come before them.
 *
 *   resnet50    He et al. 2015, with batch normalisation: 161 tensors,
 *               25,557,032 elements
 *   vgg16       Simonyan & Zisserman 2014, D: 32, 138,357,544
 *   bert-base   Devlin et al. 2018, without a head: 199, 109,482,240
 *   gpt2-small  Radford et al. 2019, output tied to the embedding: 148,
 *               124,439,808
 *   mnist       the network of models/: 6, 347,146
 *   small161    no model: 161 tensors of 64 elements, where nothing but
 *               latency counts
 */
#include "collectives/models.h"

#include <stdlib.h>

/* Adds a tensor. Without memory, n becomes -1 and stays so. */
static void add_tensor(struct tensor_list *list, int64_t count)
{
    if (list->n < 0)
        return;
    if (list->n == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        int64_t *grown =
            realloc(list->counts, (size_t)capacity * sizeof *grown);

        if (!grown) {
            list->n = -1;
            return;
        }
        list->counts = grown;
        list->capacity = capacity;
    }
    list->counts[list->n++] = count;
}

/* Adds two vectors: scale and shift. */
static void add_norm(struct tensor_list *list, int64_t width)
{
    add_tensor(list, width);
    add_tensor(list, width);
}

static void add_dense(struct tensor_list *list, int64_t in, int64_t out)
{
    add_tensor(list, in * out);
    add_tensor(list, out);
}

/* ------------------------------------------------------------ convolutions */

static void add_conv_norm(struct tensor_list *list, int64_t in, int64_t out,
                          int64_t side)
{
    add_tensor(list, in * out * side * side);
    add_norm(list, out);
}

/* Adds a block of 1x1, 3x3 and 1x1; the first block of a stage projects its
 * input. */
static void add_bottleneck(struct tensor_list *list, int64_t in, int64_t width,
                           int projects)
{
    add_conv_norm(list, in, width, 1);
    add_conv_norm(list, width, width, 3);
    add_conv_norm(list, width, 4 * width, 1);
    if (projects)
        add_conv_norm(list, in, 4 * width, 1);
}

static void build_resnet50(struct tensor_list *list)
{
    static const int blocks[] = {3, 4, 6, 3};
    int64_t in = 64;

    add_conv_norm(list, 3, 64, 7);
    for (int stage = 0; stage < 4; stage++) {
        int64_t width = INT64_C(64) << stage;

        for (int b = 0; b < blocks[stage]; b++) {
            add_bottleneck(list, in, width, b == 0);
            in = 4 * width;
        }
    }
    add_dense(list, in, 1000);
}

static void build_vgg16(struct tensor_list *list)
{
    static const int64_t widths[] = {64,  64,  128, 128, 256, 256, 256,
                                     512, 512, 512, 512, 512, 512};
    int64_t in = 3;

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        add_dense(list, 9 * in, widths[i]);
        in = widths[i];
    }
    add_dense(list, in * 7 * 7, 4096);
    add_dense(list, 4096, 4096);
    add_dense(list, 4096, 1000);
}

/* ------------------------------------------------------------ transformers */

enum { WIDTH = 768, LAYERS = 12 };

static void build_bert(struct tensor_list *list)
{
    add_tensor(list, INT64_C(30522) * WIDTH); /* words */
    add_tensor(list, 512 * WIDTH);            /* positions */
    add_tensor(list, 2 * WIDTH);              /* segments */
    add_norm(list, WIDTH);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < 4; i++) /* query, key, value, output */
            add_dense(list, WIDTH, WIDTH);
        add_norm(list, WIDTH);
        add_dense(list, WIDTH, 4 * WIDTH);
        add_dense(list, 4 * WIDTH, WIDTH);
        add_norm(list, WIDTH);
    }
    add_dense(list, WIDTH, WIDTH); /* the pooler */
}

static void build_gpt2(struct tensor_list *list)
{
    add_tensor(list, INT64_C(50257) * WIDTH); /* tokens */
    add_tensor(list, 1024 * WIDTH);           /* positions */
    for (int layer = 0; layer < LAYERS; layer++) {
        add_norm(list, WIDTH);
        add_dense(list, WIDTH, 3 * WIDTH); /* query, key and value */
        add_dense(list, WIDTH, WIDTH);
        add_norm(list, WIDTH);
        add_dense(list, WIDTH, 4 * WIDTH);
        add_dense(list, 4 * WIDTH, WIDTH);
    }
    add_norm(list, WIDTH);
}

/* ------------------------------------------------------------------- small */

static void build_mnist(struct tensor_list *list)
{
    add_dense(list, 9, 32);
    add_dense(list, 13 * 13 * 32, 64);
    add_dense(list, 64, 10);
}

static void build_small(struct tensor_list *list)
{
    for (int i = 0; i < 161; i++)
        add_tensor(list, 64);
}

/* -------------------------------------------------------------------- lists */

const char *const model_names[] = {
    "resnet50", "vgg16", "bert-base", "gpt2-small", "mnist", "small161", NULL};

static void (*const builders[])(struct tensor_list *) = {
    build_resnet50, build_vgg16, build_bert,
    build_gpt2,     build_mnist, build_small};

static void turn_round(struct tensor_list *list)
{
    for (int i = 0, j = list->n - 1; i < j; i++, j--) {
        int64_t count = list->counts[i];

        list->counts[i] = list->counts[j];
        list->counts[j] = count;
    }
}

int model_list(int i, struct tensor_list *list)
{
    *list = (struct tensor_list){0};
    builders[i](list);
    if (list->n < 0) {
        tensor_list_fini(list);
        return -1;
    }
    turn_round(list);
    return 0;
}

void tensor_list_fini(struct tensor_list *list)
{
    free(list->counts);
    *list = (struct tensor_list){0};
}

int64_t tensor_list_total(const struct tensor_list *list)
{
    int64_t total = 0;

    for (int i = 0; i < list->n; i++)
        total += list->counts[i];
    return total;
}
