/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step that gives a variable its new elements. If they have been computed
 * in its place, there is nothing left to do. The same for a variable that lies
 * beside the chip, and its way back. And a copy of a tensor, for values that
 * must outlive what they are of.
 */
#include "ops/copy.h"
#include "ops/op.h"

const struct ipu__op ipu__assign_step = {
    .name = "assign",
    .ninputs = 1,
    .in_place = -1,
    .raw = true,
    .by_element = true,
    .slots = -1,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
};

/* ------------------------------------------ variables beside the chip */

static void stream(const struct ipu__call *call, struct ipu__work *work)
{
    (void)call;
    work->kind = IPU__WORK_STREAMING;
}

const struct ipu__op ipu__remote_load = {
    .name = "remote_load",
    .ninputs = 1,
    .in_place = -1,
    .raw = true,
    .effects = true,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .cost = stream,
};

const struct ipu__op ipu__remote_store = {
    .name = "remote_store",
    .ninputs = 1,
    .in_place = -1,
    .raw = true,
    .effects = true,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .cost = stream,
};

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    (void)graph, (void)node, (void)needed;
    dx[0] = dy;
}

const struct ipu__op ipu__identity = {
    .name = "identity",
    .ninputs = 1,
    .in_place = -1,
    .raw = true,
    .by_element = true,
    .slots = -1,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .gradient = gradient,
};
