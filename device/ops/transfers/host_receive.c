/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor that the host gives in the course of a run, in place of x. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static int run(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;
    int status = a->fn(a->context, call->output.name, call->output.data,
                       ipu__shape_count(&call->output.shape));

    if (status >= 0)
        return IPU_OK;
    *call->callback_status = status;
    return ipu__fail(IPU_ERR_CALLBACK, "host receive '%s' returned %d",
                     call->output.name, status);
}

/* checks: it may fail, so it comes before variables are written. */
const struct ipu__op ipu__host_receive = {
    .name = "host_receive",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .raw = true,
    .checks = true,
    .effects = true,
    .shape = ipu__same_shape,
    .run = run,
};

ipu_tensor ipu_host_receive(ipu_graph *graph, const char *name, ipu_tensor x,
                            ipu_host_fn fn, void *context)
{
    const struct ipu__attributes attributes = {.fn = fn, .context = context};
    ipu_tensor y;
    char *copy;

    if (!name || !name[0] || !fn)
        return ipu__invalid(
            graph, ipu__fail(IPU_ERR_ARGUMENT, "host receive '%s': the %s",
                             name ? name : "",
                             fn ? "name is empty" : "function is NULL"));
    y = ipu__add(graph, &ipu__host_receive, &x, &attributes);
    if (y.id < 0)
        return y;
    copy = strdup(name);
    if (!copy)
        return ipu__invalid(graph, ipu__fail_memory(strlen(name) + 1));
    free(graph->tensors[ipu__index(graph, y)].name);
    graph->tensors[ipu__index(graph, y)].name = copy;
    return y;
}
