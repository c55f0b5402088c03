/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizers.c - the optimisers as programs see them, each for a whole
 * variable. momentum.c, moments.c and rms.c build them. The state that they
 * keep is variables named after the updated one, so that it can be saved with
 * it.
 */
#include "ops/optimizers/optimizers.h"

#include "base/error.h"
#include "ops/optimizers/build.h"

bool ipu__optimizer_counts(ipu_optimizer_kind kind)
{
    return kind >= IPU_OPTIMIZER_ADAM && kind <= IPU_OPTIMIZER_LAMB;
}

bool ipu__optimizer_spares(const ipu_graph *graph, ipu_tensor variable)
{
    int32_t index = ipu__index(graph, variable);

    return index >= 0 && graph->tensors[index].shape.ndim < 2;
}

static const ipu_tensor *momentum_of(const ipu_optimizer *o)
{
    return o->size >= sizeof *o ? o->momentum : NULL;
}

int ipu__optimizer_check_momentum(const ipu_optimizer *o)
{
    bool keeps = o->kind == IPU_OPTIMIZER_SGD ? o->sgd && o->sgd->momentum > 0
                 : o->kind == IPU_OPTIMIZER_RMSPROP
                     ? o->rms && o->rms->momentum > 0
                     : o->kind != IPU_OPTIMIZER_ADAGRAD &&
                           o->kind != IPU_OPTIMIZER_ADADELTA;

    if (keeps || !momentum_of(o))
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "optimizer: it is given a momentum, and has none: adagrad "
                     "and adadelta never have one, sgd and rmsprop if the "
                     "momentum of their options is above 0");
}

int ipu__optimize(ipu_graph *graph, const ipu_optimizer *o,
                  struct ipu__update *part, ipu_tensor gradient,
                  ipu_tensor step)
{
    part->momentum = momentum_of(o);
    switch (o->kind) {
    case IPU_OPTIMIZER_SGD:
        return ipu__sgd(graph, part, gradient, o->rate, o->sgd);
    case IPU_OPTIMIZER_LARS:
        return ipu__lars(graph, part, gradient, o->rate, o->lars);
    case IPU_OPTIMIZER_RMSPROP:
    case IPU_OPTIMIZER_ADAGRAD:
    case IPU_OPTIMIZER_ADADELTA:
        return ipu__rms(graph, o->kind, part, gradient, o->rate, o->rms);
    default:
        return ipu__moments(graph, o->kind, part, gradient, o->rate, step,
                            o->adam);
    }
}

static int update(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                  ipu_tensor step, ipu_optimizer optimizer)
{
    struct ipu__update all = {.variable = variable, .value = variable};

    IPU_TRY(ipu__optimize(graph, &optimizer, &all, gradient, step));
    return ipu_assign(graph, variable, all.result);
}

int ipu_sgd(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
            ipu_tensor rate, const ipu_sgd_options *options)
{
    return update(graph, variable, gradient, rate,
                  (ipu_optimizer){
                      .kind = IPU_OPTIMIZER_SGD, .rate = rate, .sgd = options});
}

#define MOMENTS(of)                                                            \
    (ipu_optimizer)                                                            \
    {                                                                          \
        .kind = of, .rate = rate, .adam = options                              \
    }
#define RMS(of)                                                                \
    (ipu_optimizer)                                                            \
    {                                                                          \
        .kind = of, .rate = rate, .rms = options                               \
    }

int ipu_adam(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    return update(graph, variable, gradient, step, MOMENTS(IPU_OPTIMIZER_ADAM));
}

int ipu_adamw(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    return update(graph, variable, gradient, step,
                  MOMENTS(IPU_OPTIMIZER_ADAMW));
}

int ipu_lamb(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    return update(graph, variable, gradient, step, MOMENTS(IPU_OPTIMIZER_LAMB));
}

int ipu_lion(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, const ipu_adam_options *options)
{
    return update(graph, variable, gradient, rate, MOMENTS(IPU_OPTIMIZER_LION));
}

int ipu_rmsprop(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                ipu_tensor rate, const ipu_rms_options *options)
{
    return update(graph, variable, gradient, rate, RMS(IPU_OPTIMIZER_RMSPROP));
}

int ipu_adagrad(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                ipu_tensor rate, const ipu_rms_options *options)
{
    return update(graph, variable, gradient, rate, RMS(IPU_OPTIMIZER_ADAGRAD));
}

int ipu_adadelta(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                 ipu_tensor rate, const ipu_rms_options *options)
{
    return update(graph, variable, gradient, rate, RMS(IPU_OPTIMIZER_ADADELTA));
}

int ipu_lars(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, const ipu_lars_options *options)
{
    return update(graph, variable, gradient, rate,
                  (ipu_optimizer){.kind = IPU_OPTIMIZER_LARS,
                                  .rate = rate,
                                  .lars = options});
}
