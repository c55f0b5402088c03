/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_test.c - runs the test folders of ONNX, as its own runner does.
 *
 * A folder has model.onnx and folders test_data_set_0, ..., each with files
 * input_0.pb, output_0.pb and so on, in the order of the model's inputs and
 * outputs. The model is built for each set, because elements of inputs may be
 * needed for that.
 */
#include "run/run_test.h"

#include "run/run_model.h"
#include "run/run_tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum outcome { PASSED, REFUSED, FAILED };

struct test {
    const char *folder;
    const struct run_tolerance *tolerance;
    char why[1024]; /* one line, if it does not pass */
};

/* Notes the library's text. */
static enum outcome end(struct test *t, enum outcome outcome)
{
    snprintf(t->why, sizeof t->why, "%.1000s", ipu_last_error());
    return outcome;
}

/* ---------------------------------------------------------------- comparing */

static double element(const ipu_onnx_tensor *t, int64_t i)
{
    switch (t->type) {
    case IPU_ONNX_FLOAT: return (double)((const float *)t->data)[i];
    case IPU_ONNX_DOUBLE: return ((const double *)t->data)[i];
    case IPU_ONNX_INT64: return (double)((const int64_t *)t->data)[i];
    case IPU_ONNX_UINT64: return (double)((const uint64_t *)t->data)[i];
    case IPU_ONNX_INT32: return ((const int32_t *)t->data)[i];
    case IPU_ONNX_UINT32: return ((const uint32_t *)t->data)[i];
    case IPU_ONNX_INT16: return ((const int16_t *)t->data)[i];
    case IPU_ONNX_INT8: return ((const int8_t *)t->data)[i];
    case IPU_ONNX_BOOL:
    case IPU_ONNX_UINT8: return ((const uint8_t *)t->data)[i];
    default: return ((const uint16_t *)t->data)[i];
    }
}

/* Returns the value of a float16. */
static double half_of(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(1024 + fraction, exponent - 25);

    return bits & 0x8000 ? -size : size;
}

static double value_of(const ipu_onnx_tensor *t, int64_t i)
{
    double number = element(t, i);

    return t->type == IPU_ONNX_FLOAT16 ? half_of((uint16_t)number) : number;
}

static bool is_float(int32_t type)
{
    return type == IPU_ONNX_FLOAT || type == IPU_ONNX_DOUBLE ||
           type == IPU_ONNX_FLOAT16 || type == IPU_ONNX_BFLOAT16;
}

static bool is_near(double a, double b, const struct run_tolerance *tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= tolerance->absolute + tolerance->relative * fabs(b);
}

static enum outcome compare(struct test *t, int32_t number,
                            const ipu_onnx_tensor *got,
                            const ipu_onnx_tensor *wanted)
{
    /* ONNX keeps the bits of bfloat16 in files of uint16. */
    bool bits =
        wanted->type == IPU_ONNX_UINT16 && got->type == IPU_ONNX_BFLOAT16;
    static const struct run_tolerance exact = {0, 0};
    const struct run_tolerance *tolerance =
        is_float(got->type) ? t->tolerance : &exact;
    int64_t count = run_count(got->ndim, got->extents);

    if ((got->type != wanted->type && !bits) || got->ndim != wanted->ndim ||
        memcmp(got->extents, wanted->extents,
               (size_t)got->ndim * sizeof *got->extents) != 0) {
        snprintf(t->why, sizeof t->why, "output %d is %s, and should be %s",
                 (int)number,
                 run_shape(got->type, got->ndim, got->extents).text,
                 run_shape(wanted->type, wanted->ndim, wanted->extents).text);
        return FAILED;
    }
    for (int64_t i = 0; i < count; i++)
        if (!is_near(value_of(got, i), value_of(wanted, i), tolerance)) {
            snprintf(t->why, sizeof t->why,
                     "output %d: element %" PRId64 " is %.9g, and should be "
                     "%.9g",
                     (int)number, i, value_of(got, i), value_of(wanted, i));
            return FAILED;
        }
    return PASSED;
}

/* ------------------------------------------------------------------ running */

static void path_of(const struct test *t, int set, const char *kind,
                    int32_t number, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/test_data_set_%d/%s_%d.pb", t->folder, set, kind,
             (int)number);
}

static enum outcome read_file(struct test *t, int set, const char *kind,
                              int32_t number, ipu_onnx_tensor *tensor)
{
    char path[4096];
    int status;

    path_of(t, set, kind, number, path, sizeof path);
    *tensor = (ipu_onnx_tensor){.size = sizeof *tensor};
    status = ipu_onnx_read_tensor(path, tensor);
    if (status >= 0)
        return PASSED;
    return end(t, status == IPU_ERR_SHAPE ? REFUSED : FAILED);
}

static enum outcome offer_inputs(struct test *t, struct run_model *run, int set)
{
    ipu_onnx_value value = {.size = sizeof value};
    enum outcome outcome = PASSED;
    int status;

    for (int32_t i = 0; i < run->ninputs && outcome == PASSED; i++) {
        ipu_onnx_tensor tensor;

        ipu_onnx_input(run->model, i, &value);
        if (value.type == 0) {
            snprintf(t->why, sizeof t->why, "input '%.100s' is no tensor",
                     value.name);
            return REFUSED;
        }
        outcome = read_file(t, set, "input", i, &tensor);
        if (outcome != PASSED)
            return outcome;
        if (value.type == IPU_ONNX_BFLOAT16 && tensor.type == IPU_ONNX_UINT16)
            tensor.type = IPU_ONNX_BFLOAT16;
        status = run_offer(run, i, &tensor);
        if (status < 0)
            outcome = end(t, status == IPU_ERR_SHAPE ? REFUSED : FAILED);
    }
    return outcome;
}

static enum outcome check_outputs(struct test *t, struct run_model *run,
                                  int set)
{
    enum outcome outcome = PASSED;

    for (int32_t i = 0; i < run->noutputs && outcome == PASSED; i++) {
        ipu_onnx_tensor wanted;

        outcome = read_file(t, set, "output", i, &wanted);
        if (outcome != PASSED)
            return outcome;
        outcome = compare(t, i, &run->outputs[i], &wanted);
        free(wanted.data);
    }
    return outcome;
}

static enum outcome run_set(struct test *t, struct run_model *run, int set)
{
    enum outcome outcome = offer_inputs(t, run, set);
    int status;

    if (outcome != PASSED)
        return outcome;
    status = run_build(run, NULL, 1);
    if (status < 0)
        return end(t, status == IPU_ERR_SHAPE ? REFUSED : FAILED);
    return run_once(run) < 0 ? end(t, FAILED) : check_outputs(t, run, set);
}

static enum outcome open_and_run(struct test *t, const char *path, int set)
{
    struct run_model run;
    enum outcome outcome;

    outcome = run_open(&run, path) < 0 ? end(t, FAILED) : run_set(t, &run, set);
    run_close(&run);
    return outcome;
}

static enum outcome run_folder(struct test *t)
{
    char model[4096], first[4096];
    enum outcome outcome = PASSED;
    int set = 0;

    snprintf(model, sizeof model, "%s/model.onnx", t->folder);
    for (; outcome == PASSED; set++) {
        path_of(t, set, "output", 0, first, sizeof first);
        if (access(first, F_OK) != 0)
            break;
        outcome = open_and_run(t, model, set);
    }
    if (set > 0)
        return outcome;
    snprintf(t->why, sizeof t->why, "it has no test_data_set_0/output_0.pb");
    return FAILED;
}

int run_tests(const char *const *folders, int count,
              const struct run_tolerance *tolerance)
{
    static const char *const words[] = {"pass", "refused", "FAIL"};
    int sums[3] = {0, 0, 0};

    for (int i = 0; i < count; i++) {
        struct test t = {.folder = folders[i], .tolerance = tolerance};
        enum outcome outcome = run_folder(&t);

        sums[outcome]++;
        printf("%s %s%s%s\n", words[outcome], folders[i],
               outcome == PASSED ? "" : ": ", outcome == PASSED ? "" : t.why);
    }
    printf("%d passed, %d refused, %d failed\n", sums[PASSED], sums[REFUSED],
           sums[FAILED]);
    return sums[FAILED] > 0 || sums[PASSED] == 0;
}
