/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - gradients that are some rows of a variable: of an embedding, of
 * which a batch touches few.
 *
 * A rank hands over its rows in any order, and an index as often as it likes.
 * They are sorted and those of one index added before they travel, so that
 * servers and other ranks get each row once. With all-reduce the rows of all
 * ranks are gathered, and every rank adds them up in the order of ranks; push.c
 * sends them to parameter servers instead. A rank without a row counts as zeros
 * there.
 *
 * The optimiser then moves these rows, and no other: momenta and means of
 * squares of other rows do not decay, and weights do not either.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* ------------------------------------------------------------- handing over */

/* verb: what this rank does with the rows. */
static int check_indices(const struct hvd__variable *v, const char *verb,
                         const int64_t *indices, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || indices[i] >= v->shape[0])
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "rank %d %s row %lld of variable '%s', which has "
                             "%lld rows, from 0",
                             hvd_rank(), verb, (long long)indices[i], v->name,
                             (long long)v->shape[0]);
    return HVD_OK;
}

static int check_rows(const struct hvd__variable *v, const int64_t *indices,
                      const float *rows, int64_t n, int64_t width)
{
    if (width != hvd__variable_width(v))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d gives rows of %lld elements for variable "
                         "'%s', whose rows have %lld",
                         hvd_rank(), (long long)width, v->name,
                         (long long)hvd__variable_width(v));
    if (n < 0 || (n > 0 && (!indices || (!rows && width > 0))))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d gives %lld rows of variable '%s'%s",
                         hvd_rank(), (long long)n, v->name,
                         n < 0 ? "" : ", and indices or values are NULL");
    return check_indices(v, "gives", indices, n);
}

/* Makes the rows fail here, in the step, and on all other ranks, for the reason
 * of the last error. */
static int refuse(struct hvd_strategy *s, struct hvd__variable *v, int status)
{
    v->refusal = strdup(hvd_last_error());
    v->status = status;
    hvd__gradient_refuse(s, v);
    return v->refusal ? hvd__fail_text(status, v->refusal) : status;
}

int hvd_strategy_ready_rows(hvd_strategy *strategy, int32_t variable,
                            const int64_t *indices, const float *rows,
                            int64_t n, int64_t width)
{
    struct hvd__variable *v;
    int status;

    HVD_TRY(hvd__variable_check(strategy, variable));
    HVD_TRY(hvd__strategy_check_worker(strategy));
    v = &strategy->variables[variable];
    if (!v->is_sparse)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "variable '%s' is dense: hand over its gradient by "
                         "hvd_strategy_ready, or add it by "
                         "hvd_strategy_add_sparse",
                         v->name);
    if (atomic_exchange(&v->ready, true))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the gradient of '%s' was ready before in this step",
                         v->name);
    status = check_rows(v, indices, rows, n, width);
    if (status >= 0)
        status = hvd__rows_combine(&v->rows, indices, rows, n, width);
    if (status < 0)
        return refuse(strategy, v, status);
    v->bytes = (int64_t)hvd__rows_bytes(v->rows.n, width);
    return strategy->options.serial ? HVD_OK
                                    : hvd__gradient_submit(strategy, v);
}

int hvd_strategy_read_rows(hvd_strategy *strategy, int32_t variable,
                           const int64_t *indices, int64_t n)
{
    const struct hvd__variable *v;

    HVD_TRY(hvd__variable_check(strategy, variable));
    HVD_TRY(hvd__strategy_check_worker(strategy));
    HVD_TRY(hvd__strategy_check_idle(strategy, "rows are read"));
    v = &strategy->variables[variable];
    if (!v->is_sparse)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "variable '%s' is dense: it has no rows to be read",
                         v->name);
    if (n < 0 || (n > 0 && !indices))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d reads %lld rows of variable '%s'%s",
                         hvd_rank(), (long long)n, v->name,
                         n < 0 ? "" : ", and the indices are NULL");
    HVD_TRY(check_indices(v, "reads", indices, n));
    return strategy->servers
               ? hvd__servers_read_rows(strategy, variable, indices, n)
               : HVD_OK;
}

void hvd__sparse_forget(struct hvd__variable *v)
{
    hvd__rows_free(&v->rows);
    free(v->refusal);
    v->refusal = NULL;
}

/* --------------------------------------------------------------- all-reduce */

int hvd__sparse_submit(struct hvd_strategy *s, struct hvd__variable *v)
{
    hvd_handle handles[2];

    v->status = hvd_sparse_allreduce_async(
        v->key, v->rows.indices, v->rows.values, v->rows.n,
        hvd__variable_width(v), HVD_FLOAT32, s->options.op, handles);
    if (v->status < 0)
        return v->status;
    v->handle = handles[0];
    v->values_handle = handles[1];
    return HVD_OK;
}

int hvd__sparse_wait(struct hvd__variable *v)
{
    hvd_tensor indices = {.size = sizeof indices};
    hvd_tensor values = {.size = sizeof values};
    int status = hvd_wait_output(v->handle, &indices);
    int other = hvd_wait_output(v->values_handle, &values);

    v->values_handle = 0;
    status = other < 0 ? other : status;
    hvd__rows_free(&v->rows);
    if (status >= 0)
        status = hvd__rows_combine(&v->rows, indices.data, values.data,
                                   indices.shape[0], hvd__variable_width(v));
    hvd_free(indices.data);
    hvd_free(values.data);
    return status;
}

void hvd__sparse_update(struct hvd_strategy *s, struct hvd__variable *v)
{
    hvd__optimizer_apply_rows(&s->options, v->steps, v->value, &v->rows,
                              hvd__variable_width(v), 0, v->states);
}
