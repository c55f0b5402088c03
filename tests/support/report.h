/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - a small network for training, and the JSON of a profile, for the
 * tests of profiles.
 */
#ifndef HVD_TESTS_REPORT_H
#define HVD_TESTS_REPORT_H

#include <jansson.h>
#include <sys/stat.h>

#include "device.h"
#include "folder.h"

/*
 * x: [batch, 40] -> 30, relu -> 20 -> 7 classes, the gradients of all weights
 * leave by host calls. Streams: x, labels, loss, g0, g1, g2.
 */
static inline void report_network(struct device *d, int64_t batch,
                                  ipu_host_fn fn)
{
    static const int64_t units[] = {40, 30, 20, 7};
    ipu_tensor x = device_floats(d, "x", 2, SHAPE(batch, 40));
    ipu_tensor labels =
        ipu_input(d->graph, "labels", IPU_INT32, 1, SHAPE(batch));
    ipu_tensor weights[3], gradients[3];
    ipu_tensor loss;

    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        weights[i] = ipu_variable(d->graph, name, IPU_FLOAT32, 2,
                                  SHAPE(units[i], units[i + 1]));
        x = ipu_matmul(d->graph, x, weights[i]);
        if (i < 2)
            x = ipu_relu(d->graph, x);
    }
    loss = ipu_mean(d->graph, ipu_softmax_cross_entropy(d->graph, x, labels), 0,
                    NULL, 0);
    loss = ipu_reduce_sum(d->graph, loss, 1.0 / (double)batch);
    MUST(ipu_output(d->graph, "loss", loss));
    MUST(ipu_gradients(d->graph, loss, 3, weights, gradients));
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "g%d", i);
        MUST(ipu_host_call(d->graph, name, gradients[i], fn, NULL));
    }
}

/* Connects x and labels to zeros that live as long as the test. */
static inline void report_connect(struct device *d, int64_t batch)
{
    static float x[256 * 40];
    static int32_t labels[256];

    ck_assert_int_le(batch, 256);
    device_connect(d, "x", x, batch * 40);
    device_connect(d, "labels", labels, batch);
}

/* Makes a profile of d's executable and engine, as the only program. */
static inline ipu_profile *report_profile(const struct device *d,
                                          const char *name)
{
    ipu_profile *profile = NULL;

    MUST(ipu_profile_new(name, &profile));
    MUST(ipu_profile_add(profile, "training", 0, d->executable, d->engine));
    return profile;
}

/* If it were inline, GCC 12 would report the text as a dangling pointer. */
__attribute__((noinline, unused)) static char *report_text(
    const ipu_profile *profile, ipu_profile_format format)
{
    char *text = NULL;

    MUST(ipu_profile_print(profile, format, &text));
    ck_assert_ptr_nonnull(text);
    return text;
}

/* The caller releases it by json_decref. */
static inline json_t *report_json(const ipu_profile *profile)
{
    char *text = report_text(profile, IPU_PROFILE_JSON);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    ck_assert_msg(json != NULL, "line %d: %s", error.line, error.text);
    free(text);
    return json;
}

static inline json_t *report_program(json_t *json, size_t i)
{
    return json_array_get(json_object_get(json, "programs"), i);
}

static inline int64_t report_number(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);

    ck_assert_msg(json_is_number(value), "'%s' is no number", name);
    return (int64_t)json_number_value(value);
}

/* Makes the device, runs its network once, and returns the profile, "net". */
static inline ipu_profile *report_run(struct device *d)
{
    *d = device_new();
    report_network(d, 8, device_no_call);
    device_load(d);
    report_connect(d, 8);
    MUST(ipu_engine_profile(d->engine, 1));
    MUST(ipu_engine_run(d->engine));
    return report_profile(d, "net");
}

/* Fails if a line is longer than 80 characters, or ends with a space. */
static inline void report_is_narrow(const char *text)
{
    int width = 0;

    for (const char *c = text; *c; c++) {
        if (*c == '\n') {
            ck_assert_msg(width <= 80, "%d columns before: %.60s", width, c);
            ck_assert_msg(c == text || c[-1] != ' ', "a space before: %.60s",
                          c);
            width = 0;
        } else {
            width += ((unsigned char)*c & 0xc0) != 0x80;
        }
    }
    ck_assert_int_eq(width, 0);
}

#endif
