/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss_scaling.c - scales the loss to keep gradients within float16.
 *
 * The rules are those of Graphcore's AutomaticLossScalingOptimizer for
 * TensorFlow 2.6: in each run the loss is multiplied by the scale, the
 * gradients are divided by it, and elements that reach the largest float16 are
 * counted. In every update_frequency-th run the scale is multiplied by decrease
 * if the share of such elements since the last time is above ratio_threshold,
 * and by increase otherwise, unless it would leave [1, maximum); then counting
 * begins anew.
 *
 * Unlike there, gradients of all dtypes are counted, not only those of float16:
 * gradients of weights that are kept in float32 and cast for the forward pass
 * are float32, but have been float16. NaN counts as an overflow; on the chip,
 * float16 saturates and gives no NaN. The division is in float32, even if the
 * gradient is then rounded to float16. The graph also computes whether all
 * gradients were finite, so that a program can skip the update.
 */
#include <stdio.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"

static const double LARGEST = 65504; /* largest number of float16 */

static const ipu_loss_scaling_options usual = {sizeof usual, 8,    1, 2, 0.5,
                                               32768,        1e-5, 0, 0};

static double given(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

static ipu_loss_scaling_options completed(const ipu_loss_scaling_options *o)
{
    ipu_loss_scaling_options c = o ? *o : usual;

    if (c.update_frequency == 0)
        c.update_frequency = usual.update_frequency;
    c.initial = given(c.initial, usual.initial);
    c.increase = given(c.increase, usual.increase);
    c.decrease = given(c.decrease, usual.decrease);
    c.maximum = given(c.maximum, usual.maximum);
    c.ratio_threshold = given(c.ratio_threshold, usual.ratio_threshold);
    return c;
}

/* The comparisons are written so that they also refuse NaN. */
static int check_numbers(const ipu_loss_scaling_options *o)
{
    if (o->update_frequency < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the update frequency is %d, it must be "
                         "more than 0",
                         (int)o->update_frequency);
    if (!(o->decrease > 0 && o->increase > o->decrease))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: it increases by %g and decreases by "
                         "%g: both must be more than 0, and the first be more "
                         "than the second",
                         o->increase, o->decrease);
    if (!(o->maximum > 1 && o->maximum < (double)INT32_MAX * INT32_MAX))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the maximum is %g, it must be more "
                         "than 1",
                         o->maximum);
    if (!(o->ratio_threshold > 0 && o->ratio_threshold < 1))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the ratio is %g, it must be more than "
                         "0 and less than 1",
                         o->ratio_threshold);
    if (!(o->initial > 0 && o->initial * o->increase < o->maximum &&
          o->initial < o->maximum))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the initial scale is %g: it must be "
                         "more than 0 and, also increased, less than the "
                         "maximum, %g",
                         o->initial, o->maximum);
    return IPU_OK;
}

static int check_gradients(const ipu_graph *g, const char *name,
                           const ipu_loss_scaling_options *o,
                           const ipu_loss_scaling *scaling)
{
    if (!g)
        return ipu__fail(IPU_ERR_ARGUMENT, "loss scaling: the graph is NULL");
    IPU_TRY(ipu__graph_status(g));
    if (!name)
        return ipu__fail(IPU_ERR_NAME, "loss scaling: it has no name");
    if (o && o->size < sizeof *o)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the options' size is %u, not %zu: set "
                         "it",
                         (unsigned)o->size, sizeof *o);
    if (scaling && scaling->size < sizeof *scaling)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "loss scaling: the size of the place for tensors is "
                         "%u, not %zu: set it",
                         (unsigned)scaling->size, sizeof *scaling);
    return IPU_OK;
}

static ipu_tensor variable(ipu_graph *g, const char *name, const char *what,
                           ipu_dtype dtype)
{
    char text[256];

    if (snprintf(text, sizeof text, "%s/%s", name, what) >= (int)sizeof text)
        return ipu__invalid(g, ipu__fail(IPU_ERR_NAME,
                                         "loss scaling: the name %.64s... is "
                                         "too long: at most %d bytes",
                                         name, (int)sizeof text - 16));
    return ipu_variable(g, text, dtype, 0, NULL);
}

static ipu_tensor real(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_FLOAT32, 0, NULL, value);
}

static ipu_tensor integer(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

/* Counts the elements of all gradients that overflow, and all elements. */
static ipu_tensor count_overflows(ipu_graph *g, int32_t count,
                                  const ipu_tensor *gradients, double *elements)
{
    const struct ipu__attributes attributes = {.scale = LARGEST};
    ipu_tensor sum = real(g, 0);

    *elements = 0;
    for (int32_t i = 0; i < count && g->status >= 0; i++) {
        const struct ipu__shape *shape =
            &g->tensors[ipu__index(g, gradients[i])].shape;

        *elements += (double)ipu__shape_count(shape);
        sum = ipu_add(g, sum,
                      ipu__add(g, &ipu__overflows, &gradients[i], &attributes));
    }
    return sum;
}

/* Returns the new scale after that share has overflowed. */
static ipu_tensor changed_scale(ipu_graph *g, const ipu_loss_scaling_options *o,
                                ipu_tensor scale, ipu_tensor share)
{
    ipu_tensor above = ipu_greater(g, share, real(g, o->ratio_threshold));
    ipu_tensor next = ipu_select(g, above, ipu_scale(g, scale, o->decrease, 0),
                                 ipu_scale(g, scale, o->increase, 0));
    ipu_tensor allowed = ipu_multiply(g, ipu_less(g, next, real(g, o->maximum)),
                                      ipu_greater_equal(g, next, real(g, 1)));

    return ipu_select(g, allowed, next, scale);
}

/* Updates the counts and the scale with the overflows of this run. kept is the
 * variable that scale reads. */
static int update_scale(ipu_graph *g, const char *name,
                        const ipu_loss_scaling_options *o, ipu_tensor kept,
                        ipu_tensor scale, ipu_tensor overflows, double elements)
{
    ipu_tensor sum = variable(g, name, "overflows", IPU_FLOAT32);
    ipu_tensor runs = variable(g, name, "runs", IPU_INT32);
    ipu_tensor due = ipu_equal(g, runs, integer(g, o->update_frequency - 1));
    ipu_tensor all = o->latest_only ? overflows : ipu_add(g, sum, overflows);

    if (!o->latest_only)
        elements *= o->update_frequency;
    if (elements > 0)
        scale = ipu_select(
            g, due,
            changed_scale(g, o, scale, ipu_scale(g, all, 1 / elements, 0)),
            scale);
    ipu__variable_own(g, kept, IPU__OWN_STATISTICS);
    ipu__variable_own(g, sum, IPU__OWN_STATISTICS);
    ipu_assign(g, kept, scale);
    ipu_assign(g, sum, ipu_select(g, due, real(g, 0), all));
    return ipu_assign(
        g, runs,
        ipu_select(g, due, integer(g, 0), ipu_add(g, runs, integer(g, 1))));
}

static ipu_tensor divided(ipu_graph *g, ipu_tensor gradient, ipu_tensor inverse,
                          bool widen)
{
    int32_t index = ipu__index(g, gradient);
    ipu_dtype dtype;

    if (index < 0)
        return gradient;
    dtype = g->tensors[index].shape.dtype;
    if (dtype == IPU_FLOAT32)
        return ipu_multiply(g, gradient, inverse);
    gradient = ipu_multiply(g, ipu_cast(g, gradient, IPU_FLOAT32), inverse);
    return widen ? gradient : ipu_cast(g, gradient, dtype);
}

static int scaled(ipu_graph *g, const char *name, ipu_tensor loss,
                  int32_t count, const ipu_tensor *wrt,
                  const ipu_loss_scaling_options *o, ipu_tensor *gradients,
                  ipu_loss_scaling *scaling)
{
    ipu_tensor kept = variable(g, name, "scale", IPU_FLOAT32), inverse;
    double elements;

    scaling->scale = ipu_select(g, ipu_equal(g, kept, real(g, 0)),
                                real(g, o->initial), kept);
    IPU_TRY(ipu_gradients(g, ipu_multiply(g, loss, scaling->scale), count, wrt,
                          gradients));
    scaling->overflows = count_overflows(g, count, gradients, &elements);
    scaling->finite = ipu_equal(g, scaling->overflows, real(g, 0));
    inverse = ipu_divide(g, real(g, 1), scaling->scale);
    for (int32_t i = 0; i < count; i++)
        gradients[i] = divided(g, gradients[i], inverse, o->widen != 0);
    IPU_TRY(g->status);
    return update_scale(g, name, o, kept, scaling->scale, scaling->overflows,
                        elements);
}

int ipu_scaled_gradients(ipu_graph *graph, const char *name, ipu_tensor loss,
                         int32_t count, const ipu_tensor *wrt,
                         const ipu_loss_scaling_options *options,
                         ipu_tensor *gradients, ipu_loss_scaling *scaling)
{
    ipu_loss_scaling made = {.size = sizeof made};
    int status = check_gradients(graph, name, options, scaling);
    ipu_loss_scaling_options o;

    if (status >= 0) {
        o = completed(options);
        status = check_numbers(&o);
    }
    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    IPU_TRY(scaled(graph, name, loss, count, wrt, &o, gradients, &made));
    if (scaling) {
        made.size = scaling->size;
        *scaling = made;
    }
    return ipu__graph_status(graph);
}
