/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - Loop. Its body is called as often as input 0 says, and as long as
 * input 1 and then its own condition hold. The inputs that follow are carried
 * from one iteration to the next; what the body makes beside them are the rows
 * of the other outputs.
 */
#include "onnx/operators/loops.h"

enum { TRIPS, CONDITION, CARRIED };

/* Checks that input i is one integer or bool, if it is there. Sets *number to
 * it if it is known, else *tensor. */
static int read_scalar(struct ipu__onnx_call *call, int i, const char *what,
                       int64_t *number, ipu_tensor *tensor)
{
    struct ipu__onnx_value *value = onnx__in(call, i);

    if (!value)
        return IPU_OK;
    if (!onnx__is_whole(value->type) || onnx__size(value) != 1)
        return onnx__refuse(call, "its %s is not one %s", what,
                            i == TRIPS ? "integer" : "bool");
    if (onnx__fold(call, value))
        *number = value->wholes[0];
    else if (call->builder->status >= 0)
        *tensor = ipu_reshape(call->graph, onnx__tensor(call, value), 0, NULL);
    return call->builder->status;
}

static int read_limits(struct onnx__loop *loop)
{
    struct ipu__onnx_call *call = loop->call;
    int64_t trips = INT64_MAX, holds = 1;

    IPU_TRY(
        read_scalar(call, TRIPS, "number of iterations", &trips, &loop->limit));
    IPU_TRY(read_scalar(call, CONDITION, "condition", &holds, &loop->begins));
    loop->trips = trips < 0 || !holds ? 0 : trips > INT32_MAX ? -1 : trips;
    return IPU_OK;
}

static int build_loop(struct ipu__onnx_call *call)
{
    struct onnx__loop loop = {.call = call,
                              .body = onnx__attribute_graph(call, "body"),
                              .numbered = true};

    if (!loop.body)
        return onnx__refuse(call, "its body is missing");
    loop.ncarried = call->ninputs > CARRIED ? call->ninputs - CARRIED : 0;
    loop.nmade = (int)loop.body->outputs.count - 1 - loop.ncarried;
    if (loop.nmade < 0 || call->noutputs > loop.ncarried + loop.nmade)
        return onnx__refuse(call, "its body has %zu outputs",
                            loop.body->outputs.count);
    IPU_TRY(onnx__loop_new(&loop));
    IPU_TRY(read_limits(&loop));
    for (int i = 0; i < loop.ncarried; i++) {
        if (!call->inputs[CARRIED + i])
            return onnx__refuse(call, "its input %d is missing", CARRIED + i);
        loop.carried[i] = onnx__loop_value(call, call->inputs[CARRIED + i]);
    }
    IPU_TRY(onnx__loop_run(&loop));
    for (int i = 0; i < loop.ncarried; i++)
        IPU_TRY(onnx__loop_give(call, i, &loop.carried[i]));
    for (int i = 0; i < loop.nmade; i++)
        IPU_TRY(onnx__loop_give(call, loop.ncarried + i, &loop.made[i].value));
    return IPU_OK;
}

const struct ipu__onnx_operator onnx__loop_rows[] = {
    {"Loop", 1, "body", 0, IPU__ONNX_ANY_NUMBER, build_loop, NULL,
     "a number of iterations that depends on data is refused if there are scan "
     "outputs, and it has no derivatives; so are carried values that change "
     "their shape in more iterations than can be built one after the other"},
    {.name = NULL},
};
