/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_program.h - a graph that is compiled for a target that the test may
 * change, for the tests of programs on a chip.
 */
#ifndef HVD_TESTS_TARGET_PROGRAM_H
#define HVD_TESTS_TARGET_PROGRAM_H

#include "one_device.h"

static ipu_target target;
static uint32_t without; /* passes */

static inline void set_up(void)
{
    without = 0;
    d = device_new();
    ipu_target_init(&target, sizeof target);
}

static inline void tear_down(void)
{
    device_free(&d);
}

static inline ipu_memory_info compiled(void)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .without = without};

    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    return device_memory(&d);
}

/* Builds y = relu(x w), x: [64, 128], w: [128, 32]. */
static inline void small_layer(void)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(64, 128));
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(128, 32));

    MUST(
        ipu_output(d.graph, "y", ipu_relu(d.graph, ipu_matmul(d.graph, x, w))));
}

#endif
