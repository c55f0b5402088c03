/* SPDX-License-Identifier: Apache-2.0 */
#include "model/normalisation.h"

/* The share that a statistic keeps in a step, and what is added to variances.
 */
static const double momentum = 0.9, epsilon = 1e-5;

ipu_tensor normalisation_build(ipu_graph *graph, const struct model_pass *pass,
                               const struct normalisation *n, ipu_tensor x)
{
    if (!pass->training)
        return ipu_batch_norm_inference(graph, x, n->scale, n->offset, n->mean,
                                        n->variance, epsilon);
    if (pass->synchronised && pass->network)
        return ipu_collective_batch_norm(graph, pass->network, n->name, x,
                                         n->scale, n->offset, n->mean,
                                         n->variance, momentum, epsilon);
    if (pass->synchronised)
        return ipu_synchronised_batch_norm(graph, x, n->scale, n->offset,
                                           n->mean, n->variance, momentum,
                                           epsilon, 0);
    return ipu_batch_norm(graph, x, n->scale, n->offset, n->mean, n->variance,
                          momentum, epsilon);
}
