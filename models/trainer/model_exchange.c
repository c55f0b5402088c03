/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/model_backend.h"

int model_exchange_new(const struct model_backend *of,
                       struct exchange **exchange)
{
    const struct trainer_options *o = of->options;
    const struct exchange_settings settings = trainer_exchange(o);
    int status = exchange_new(&settings, exchange);

    for (int i = 0; i < of->model->nvariables && status == 0; i++) {
        const struct model_variable *v = &of->model->variables[i];
        const struct exchange_functions *f = (*exchange)->functions;
        const int statistic = i - of->model->trained;

        status =
            statistic < 0
                ? f->add(*exchange, v->name, of->values[i], v->ndim, v->shape)
                : f->add_statistic(*exchange, v->name, of->own[statistic],
                                   of->values[i], v->ndim, v->shape);
    }
    return status;
}
