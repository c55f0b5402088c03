/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.c - what a program in C does to sum the gradients of a model. The
 * script bench/pytorch/gradients calls it in turn with the same in Python.
 */
#include "collectives/models.h"

#include "hvd.h"

#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(default)

/* Writes how many elements each gradient has, at most `most` of them, in the
 * order of a backward pass. Returns how many gradients there are; 0 if there is
 * no such model, -1 without memory. */
int bench_gradients_list(const char *model, int64_t *counts, int most);

/* Submits n sums in place, in order, and waits for all. Returns a status. */
int bench_gradients_sum(int n, float *const *tensors, const int64_t *counts,
                        const char *const *names, hvd_handle *handles);

#pragma GCC visibility pop

int bench_gradients_list(const char *model, int64_t *counts, int most)
{
    struct tensor_list list = {0};
    int n = 0;

    for (int i = 0; model_names[i]; i++) {
        if (strcmp(model_names[i], model) != 0)
            continue;
        n = model_list(i, &list) < 0 ? -1 : list.n;
        for (int t = 0; t < n && t < most; t++)
            counts[t] = list.counts[t];
        tensor_list_fini(&list);
    }
    return n;
}

int bench_gradients_sum(int n, float *const *tensors, const int64_t *counts,
                        const char *const *names, hvd_handle *handles)
{
    int status = HVD_OK, submitted = 0;

    for (; submitted < n && status >= 0; submitted++)
        status = hvd_allreduce_async(names[submitted], tensors[submitted],
                                     tensors[submitted], counts[submitted],
                                     HVD_FLOAT32, HVD_SUM, &handles[submitted]);
    for (int i = 0; i < submitted && status >= 0; i++)
        status = hvd_wait(handles[i]);
    if (status < 0)
        fprintf(stderr, "gradients: %s\n", hvd_last_error());
    return status;
}
