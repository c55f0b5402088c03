/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_file.h - a training step that has every kind of record, and checksums
 * of its file, for the tests of the device's files.
 */
#ifndef HVD_TESTS_DEVICE_FILE_H
#define HVD_TESTS_DEVICE_FILE_H

#include <stddef.h>

#include "device.h"
#include "file/crc64.h"
#include "folder.h"

/* The checksum stands at the first of these offsets, the contents begin at the
 * second. */
enum { FILE_CHECKSUM = 64, FILE_HEAD = 72 };

/* Makes the head fit the contents: writes their length and checksum. */
static inline void file_sign(struct file_bytes b)
{
    uint64_t length = b.count - FILE_HEAD, crc;

    memcpy(b.data + 24, &length, sizeof length);
    crc = ipu__crc64(0, b.data, FILE_CHECKSUM);
    crc = ipu__crc64(crc, b.data + FILE_HEAD, b.count - FILE_HEAD);
    memcpy(b.data + FILE_CHECKSUM, &crc, sizeof crc);
}

static inline void files_equal(const char *first, const char *second)
{
    struct file_bytes a = file_read(first), b = file_read(second);

    ck_assert_uint_eq(a.count, b.count);
    ck_assert_mem_eq(a.data, b.data, a.count);
    free(a.data);
    free(b.data);
}

/* -------------------------------------------------- something of everything */

/* Builds a training step with input "x" [4,6,6,4], "labels" [4]; outputs
 * "loss", "top"; a host call "gradient" of 4 elements. */
static inline void file_build(ipu_graph *g)
{
    const float given[4] = {0.5f, -0.25f, 2, 1e-20f};
    const ipu_conv_options same = {
        .size = sizeof same, .stride = {1, 1}, .same = 1, .groups = 2};
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 4, SHAPE(4, 6, 6, 4));
    ipu_tensor labels = ipu_input(g, "labels", IPU_INT32, 1, SHAPE(4));
    ipu_tensor kernel =
        ipu_variable(g, "kernel", IPU_FLOAT32, 4, SHAPE(3, 3, 2, 4));
    ipu_tensor scale = ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(4));
    ipu_tensor offset = ipu_constant(g, IPU_FLOAT32, 1, SHAPE(4), given);
    ipu_tensor dense = ipu_variable(g, "dense", IPU_FLOAT16, 2, SHAPE(36, 5));
    ipu_tensor mean = ipu_variable(g, "mean", IPU_FLOAT32, 1, SHAPE(4));
    ipu_tensor variance = ipu_variable(g, "variance", IPU_FLOAT32, 1, SHAPE(4));
    ipu_tensor step = ipu_counter(g, "step"), loss, gradients[3];
    ipu_tensor rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01);
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    const ipu_optimizer sgd = {
        .size = sizeof sgd, .rate = rate, .sgd = &momentum};
    const ipu_update_options update = {.size = sizeof update,
                                       .minimum_remote_bytes = 1};

    ipu_allow_recompute(g, 1);
    x = ipu_conv2d(g, x, kernel, &same);
    x = ipu_batch_norm(g, x, scale, offset, mean, variance, 0.9, 1e-3);
    x = ipu_max_pool2d(g, ipu_relu(g, x), 2);
    ipu_recomputation_checkpoint(g, x);
    x = ipu_dropout(g, ipu_reshape(g, x, 2, SHAPE(4, 36)), 0.25, 77, step);
    x = ipu_matmul(g, x, ipu_cast(g, dense, IPU_FLOAT32));
    x = ipu_concat(g, 2, (const ipu_tensor[]){x, ipu_tanh(g, x)}, 1);
    loss = ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, x, labels), 0.25);
    ipu_gradients(g, loss, 3, (const ipu_tensor[]){kernel, scale, dense},
                  gradients);
    ipu_host_call(g, "gradient", gradients[1], device_no_call, NULL);
    ipu_adam(g, kernel, gradients[0], rate, step, NULL);
    ipu_accumulating_optimizer(g, &sgd, 1, &scale, &gradients[1], 2, &update);
    ipu_output(g, "loss", loss);
    ipu_output(g, "top", ipu_argmax(g, x, -1));
    ipu_output(
        g, "turned",
        ipu_transpose(g, ipu_slice(g, x, SHAPE(1, 2), SHAPE(2, -1)), NULL));
}

/* Returns a chip of few tiles, because an executable has records for each
 * tile. */
static inline ipu_target file_target(void)
{
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    target.tiles = 3;
    snprintf(target.name, sizeof target.name, "small");
    return target;
}

static inline void file_compile(const ipu_graph *graph,
                                ipu_executable **executable)
{
    ipu_target target = file_target();

    MUST(ipu_compile(graph, &target, executable));
}

#endif
