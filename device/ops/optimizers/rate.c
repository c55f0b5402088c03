/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.c - learning rates that depend on the step: one op, from a scalar to a
 * scalar, computed in double.
 *
 * The attributes are order[0]: the kind; factors: rate, final; starts: warm-up,
 * steps.
 */
#include <math.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"

static const double PI = 3.14159265358979323846;

static int rate_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32};
    return ipu__expect(call, 0, IPU_INT32, 0, "the step, a scalar");
}

static double rate_at(const struct ipu__attributes *a, double step)
{
    double rate = a->factors[0], final = a->factors[1];
    double warmup = (double)a->starts[0], steps = (double)a->starts[1], t;

    if (step < warmup)
        return rate * (step + 1) / warmup;
    t = step >= steps ? 1 : (step - warmup) / (steps - warmup);
    switch (a->order[0]) {
    case IPU_RATE_LINEAR: return rate + (final - rate) * t;
    case IPU_RATE_COSINE: return final + (rate - final) * (1 + cos(PI * t)) / 2;
    case IPU_RATE_EXPONENTIAL: return rate * pow(final / rate, t);
    case IPU_RATE_INVERSE_SQRT:
        return rate * sqrt((warmup > 0 ? warmup : 1) / (step + 1));
    default: return rate;
    }
}

static int run_rate(const struct ipu__call *call)
{
    *(float *)call->output.data = (float)rate_at(
        call->attributes, (double)*(const int32_t *)call->inputs[0].data);
    return IPU_OK;
}

const struct ipu__op ipu__rate = {
    .name = "rate",
    .ninputs = 1,
    .shape = rate_shape,
    .run = run_rate,
};

static int check_rate(const ipu_rate_options *o)
{
    if (!o)
        return ipu__fail(IPU_ERR_ARGUMENT, "rate: the options are NULL");
    if (o->size < sizeof *o)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rate: the options' size is %u, not %zu: set it",
                         (unsigned)o->size, sizeof *o);
    if (o->kind < IPU_RATE_CONSTANT || o->kind > IPU_RATE_INVERSE_SQRT)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rate: %d is neither CONSTANT, LINEAR, COSINE, "
                         "EXPONENTIAL nor INVERSE_SQRT",
                         (int)o->kind);
    if (!(o->rate >= 0 && o->rate < HUGE_VAL && o->final_rate >= 0 &&
          o->final_rate < HUGE_VAL))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rate: from %g to %g: both must be 0 or more", o->rate,
                         o->final_rate);
    if (o->kind == IPU_RATE_EXPONENTIAL && !(o->rate > 0 && o->final_rate > 0))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rate: from %g to %g by factors: both must be more "
                         "than 0",
                         o->rate, o->final_rate);
    if (o->warmup < 0 || o->steps < 0 ||
        (o->kind >= IPU_RATE_LINEAR && o->kind <= IPU_RATE_EXPONENTIAL &&
         o->steps <= o->warmup))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rate: %lld steps with %lld to warm up: there must be "
                         "more of them",
                         (long long)o->steps, (long long)o->warmup);
    return IPU_OK;
}

ipu_tensor ipu_rate(ipu_graph *graph, ipu_tensor step,
                    const ipu_rate_options *options)
{
    struct ipu__attributes a = {0};
    int status;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "rate: the graph is NULL");
        return (ipu_tensor){-1};
    }
    if (graph->status < 0)
        return (ipu_tensor){-1};
    status = check_rate(options);
    if (status < 0)
        return ipu__invalid(graph, status);
    a.order[0] = options->kind;
    a.factors[0] = options->rate;
    a.factors[1] = options->final_rate;
    a.starts[0] = options->warmup;
    a.starts[1] = options->steps;
    return ipu__add(graph, &ipu__rate, &step, &a);
}
