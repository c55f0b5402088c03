/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - shows the batches of an iterator to the devices of a training, and
 * copies those of an evaluation, which need not be as large as its own.
 */
#include "estimator/input.h"

#include "net/make.h"
#include "output/problem.h"

#include <string.h>

/* Gets the next batch. Returns 0, HVD_END_OF_DATA or a failure. */
static int fetch(struct input *in)
{
    int status = hvd_iterator_next(in->iterator, &in->batch);

    in->row = 0;
    if (status == HVD_END_OF_DATA && in->exact)
        status = hvd_iterator_next(in->iterator, &in->batch);
    if (status == HVD_END_OF_DATA && in->exact)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the data has ended, and has nothing when it "
                            "begins again");
    return status;
}

static int failed(int status)
{
    return status < 0 ? problem_fail(status, "the data: %s", hvd_last_error())
                      : 0;
}

static void measure_rows(struct input *in)
{
    for (int32_t i = 0; i < in->batch.ncomponents; i++) {
        const hvd_component *c = &in->batch.components[i];

        in->bytes[i] = (size_t)hvd_dtype_size(c->dtype);
        for (int32_t d = 1; d < c->ndim; d++)
            in->bytes[i] *= (size_t)c->shape[d];
    }
}

/* Checks that the devices can read the components. */
static int check_components(const struct input *in)
{
    if (in->batch.components[0].ndim ==
        hvd_dataset_components(in->data, NULL)[0].ndim)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the data is not batched: give it to "
                            "hvd_dataset_batch or hvd_dataset_batch_global");
    for (int32_t i = 0; i < in->batch.ncomponents; i++) {
        const hvd_component *c = &in->batch.components[i];

        if (c->dtype != HVD_FLOAT32 && c->dtype != HVD_INT32)
            return problem_fail(
                HVD_ERR_ARGUMENT,
                "component '%s' is %s: the devices read float32 and int32: "
                "convert it by hvd_dataset_cast",
                c->name, hvd_dtype_name(c->dtype));
        if (c->ndim > 5)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "component '%s' has %d dimensions with that of "
                                "the batch: there may be 5",
                                c->name, (int)c->ndim);
    }
    return 0;
}

int input_open(struct input *in, hvd_dataset *data, const hvd_input_context *of,
               bool exact)
{
    int status;

    *in = (struct input){.data = data, .of = *of, .exact = exact};
    if (!data)
        return problem_fail(HVD_ERR_ARGUMENT, "there is no data%s%s",
                            hvd_last_error()[0] ? ": " : "", hvd_last_error());
    status = hvd_iterator_new(data, of, &in->iterator);
    if (status == 0)
        status = fetch(in);
    if (status == HVD_END_OF_DATA) {
        in->over = true;
        return 0;
    }
    if (status < 0)
        return failed(status);
    in->waits = true;
    measure_rows(in);
    return check_components(in);
}

/* Finds the component for input i of the network. */
static int match_one(struct input *in, int i, const char *name, bool is_int,
                     int64_t row, bool is_optional)
{
    in->place[i] = -1;
    for (int32_t k = 0; k < in->batch.ncomponents; k++) {
        const hvd_component *c = &in->batch.components[k];

        if (strcmp(c->name, name) != 0)
            continue;
        if ((c->dtype == HVD_INT32) != is_int ||
            in->bytes[k] != (size_t)row * 4)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "component '%s' has %zu bytes of %s in a row: "
                                "the network was made for %lld of %s",
                                name, in->bytes[k], hvd_dtype_name(c->dtype),
                                (long long)row * 4,
                                is_int ? "int32" : "float32");
        in->place[i] = k;
        return 0;
    }
    return is_optional
               ? 0
               : problem_fail(HVD_ERR_ARGUMENT,
                              "the data has no component '%s', which the "
                              "network was made for",
                              name);
}

int input_match(struct input *in, const struct model *m, bool predicts)
{
    bool is_int, is_needed;
    const char *name;
    int64_t row;
    int status = 0;

    in->capacity = net_capacity(m);
    in->losses = net_losses(m) / in->capacity;
    if (in->batch.ncomponents == 0) /* this rank has no data at all */
        return 0;
    if (in->exact && in->batch.capacity != in->capacity)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the data has batches of %lld rows: the network "
                            "was made for %lld",
                            (long long)in->batch.capacity,
                            (long long)in->capacity);
    for (in->ninputs = 0; status == 0 && net_input(m, in->ninputs, &name,
                                                   &is_int, &row, &is_needed);
         in->ninputs++)
        status = match_one(in, in->ninputs, name, is_int, row,
                           predicts && !is_needed);
    return status;
}

void input_close(struct input *in)
{
    hvd_iterator_free(in->iterator);
    hvd_dataset_free(in->data);
    *in = (struct input){0};
}

int input_fill(void *context, int64_t number, void **inputs)
{
    struct input *in = context;
    const int32_t replica = (int32_t)(number % in->of.replicas);
    int status = 0;

    if (replica == 0 && !in->waits)
        status = fetch(in);
    in->waits = false;
    if (status < 0)
        return failed(status);
    if (in->batch.replica_rows[replica] < in->batch.capacity)
        return problem_fail(
            HVD_ERR_ARGUMENT,
            "a batch has %lld rows in place of %lld: a training needs full "
            "ones on all replicas: batch the data with drop_remainder, and "
            "with "
            "a global size that they divide",
            (long long)in->batch.replica_rows[replica],
            (long long)in->batch.capacity);
    for (int i = 0; i < in->ninputs; i++) {
        int k = in->place[i];

        inputs[i] = (char *)in->batch.data[k] +
                    in->bytes[k] * (size_t)in->batch.capacity * (size_t)replica;
    }
    return 0;
}

/* Copies rows of the present batch behind those that there are. Returns how
 * many. */
static int64_t copy_rows(struct input *in, void *const *inputs, int64_t there,
                         int64_t room)
{
    int64_t count = in->batch.rows - in->row;

    if (count > room)
        count = room;
    for (int i = 0; i < in->ninputs; i++) {
        int k = in->place[i];

        if (k >= 0 && inputs[i])
            memcpy((char *)inputs[i] + in->bytes[k] * (size_t)there,
                   (const char *)in->batch.data[k] +
                       in->bytes[k] * (size_t)in->row,
                   in->bytes[k] * (size_t)count);
    }
    in->row += count;
    return count;
}

/* Gets a batch with rows that are left, unless there is none. */
static int refill(struct input *in)
{
    int status = 0;

    while (status == 0 && !in->over &&
           (in->waits || in->row == in->batch.rows)) {
        in->over = in->most > 0 && in->made == in->most;
        if (in->over)
            break;
        if (!in->waits)
            status = fetch(in);
        in->waits = false;
        in->made++;
        in->over = status == HVD_END_OF_DATA;
    }
    return failed(status);
}

int64_t input_fill_test(void *context, int64_t step, void *const *inputs)
{
    struct input *in = context;
    int64_t rows = 0;

    (void)step;
    while (rows < in->capacity) {
        int status = refill(in);

        if (status < 0)
            return status;
        if (in->over)
            break;
        rows += copy_rows(in, inputs, rows, in->capacity - rows);
    }
    for (int i = 0; i < in->ninputs && rows > 0; i++) {
        int k = in->place[i];

        if (k >= 0 && inputs[i])
            memset((char *)inputs[i] + in->bytes[k] * (size_t)rows, 0,
                   in->bytes[k] * (size_t)(in->capacity - rows));
    }
    return rows * in->losses;
}
