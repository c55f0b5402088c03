/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - compares the tensors of two files by their names. */
#include "inspect/inspect.h"

#include "files/elements.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Compares elements. Two NaN are equal. Returns whether there is a
 * difference that counts, and prints it. */
static bool compare_elements(const struct safetensors_tensor *a,
                             const struct safetensors_tensor *b,
                             double tolerance)
{
    double most = 0, relative = 0;
    int64_t differing = 0;

    if (!element_is_known(a->dtype) || !element_is_known(b->dtype)) {
        if (a->dtype == b->dtype &&
            (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0))
            return false;
        printf("%s: the bytes differ\n", a->name);
        return true;
    }
    for (int64_t i = 0; i < a->count; i++) {
        const double x = element_get(a->dtype, a->data, i);
        const double y = element_get(b->dtype, b->data, i);
        const double apart = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);

        if (apart == 0)
            continue;
        differing++;
        /* A difference that is no number is the largest. */
        most = isnan(apart) || apart > most ? apart : most;
        relative = fmax(relative, apart / fmax(fabs(x), fabs(y)));
        if (isnan(most))
            most = relative = INFINITY;
    }
    if (!(most > tolerance))
        return false;
    printf("%s: %" PRId64 " of %" PRId64 " elements differ, by at most %.6g, "
           "relative %.6g\n",
           a->name, differing, a->count, most, relative);
    return true;
}

static bool compare_tensors(const struct safetensors_tensor *a,
                            const struct safetensors_tensor *b,
                            double tolerance)
{
    char left[80], right[80];
    const bool same_shape =
        a->ndim == b->ndim &&
        (a->ndim == 0 ||
         memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
    bool differ = a->dtype != b->dtype || !same_shape;

    if (differ) {
        inspect_shape(a, left, sizeof left);
        inspect_shape(b, right, sizeof right);
        printf("%s: %s %s and %s %s\n", a->name, safetensors_name(a->dtype),
               left, safetensors_name(b->dtype), right);
    }
    if (same_shape)
        differ |= compare_elements(a, b, tolerance);
    return differ;
}

int inspect_diff(const struct inspect_request *request)
{
    const double tolerance = request->tolerance;
    struct source a, b = {.count = 0};
    int status = source_open(&a, request->paths[0]);
    bool differ = false;

    if (status == 0)
        status = source_open(&b, request->paths[1]);
    for (int i = 0; status == 0 && i < a.count; i++) {
        const struct safetensors_tensor *other =
            source_find(&b, a.tensors[i].name);

        if (other)
            differ |= compare_tensors(&a.tensors[i], other, tolerance);
        else
            differ = printf("%s: only in %s\n", a.tensors[i].name, a.path) > 0;
    }
    for (int i = 0; status == 0 && i < b.count; i++)
        if (!source_find(&a, b.tensors[i].name))
            differ = printf("%s: only in %s\n", b.tensors[i].name, b.path) > 0;
    if (status == 0 && !differ)
        printf("%d tensors are equal%s\n", a.count,
               tolerance > 0 ? " within the tolerance" : "");
    source_close(&a);
    source_close(&b);
    return status < 0 ? status : differ;
}
