/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests replicas of a pipeline that share the optimiser's state. Bits equal
 * those of replicas that each keep all of it, over 100 updates, in all
 * schedules. Each replica holds its part of the state, which is read and
 * written as a whole. Bytes and collectives follow the formula. Options that do
 * not go together are refused.
 */
#include "suite.h"

#include <stdbool.h>

#include "pipelined.h"

/* Up to 9 replicas share w0, up to 5 share w1, none share b1. */
enum { HIDDEN = 61, W0 = FEATURES * HIDDEN, W1 = HIDDEN * CLASSES, MOST = 8 };

static const char *const names[] = {"w0", "w1", "b1"};
static const int counts[] = {W0, W1, CLASSES};
enum {
    KIND_SGD,
    KIND_MOMENTUM,
    KIND_ADAM,
    KIND_ADAMW,
    KINDS,
    KIND_LAMB,
    CLIPPED
};

static int kind;
static ipu_system pod;
static int status_of_call;

static int build_first(void *context, ipu_graph *g, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    ipu_tensor w =
        ipu_variable(g, "w0", IPU_FLOAT32, 2, SHAPE(FEATURES, HIDDEN));

    (void)context, (void)ninputs;
    out[0] = in[0];
    out[1] = ipu_tanh(g, ipu_matmul(g, in[1], w));
    out[2] = in[2];
    return 3;
}

static int build_second(void *context, ipu_graph *g, int32_t ninputs,
                        const ipu_tensor *in, ipu_tensor *out)
{
    ipu_tensor w =
        ipu_variable(g, "w1", IPU_FLOAT32, 2, SHAPE(HIDDEN, CLASSES));
    ipu_tensor b = ipu_variable(g, "b1", IPU_FLOAT32, 1, SHAPE(CLASSES));

    (void)context, (void)ninputs;
    out[0] =
        loss_of(g, ipu_bias_add(g, ipu_matmul(g, in[1], w), b), in[2], ROWS);
    out[1] = in[0];
    return 2;
}

static int fail_call(void *context, const char *name, void *values,
                     int64_t count)
{
    (void)context, (void)name, (void)values, (void)count;
    return status_of_call;
}

static int update(void *context, ipu_graph *g, int32_t noutputs,
                  const ipu_tensor *outputs, int32_t count, const ipu_tensor *v,
                  const ipu_tensor *gradients)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    const ipu_adam_options decay = {.size = sizeof decay,
                                    .beta1 = 0.9,
                                    .beta2 = 0.99,
                                    .epsilon = 1e-8,
                                    .weight_decay = 0.1};
    ipu_tensor step = ipu_counter(g, "updates"), s[3];

    (void)noutputs;
    MUST(ipu_host_call(g, "look", outputs[1], fail_call, NULL));
    if (context)
        MUST(ipu_host_call(g, "look too", gradients[0], fail_call, NULL));
    for (int32_t i = 0; i < count; i++)
        s[i] = options.accumulator == IPU_FLOAT16
                   ? ipu_cast(g, gradients[i], IPU_FLOAT32)
                   : gradients[i];
    if (kind == CLIPPED)
        ipu_clip_by_global_norm(g, count, s, 1, NULL);
    for (int32_t i = 0; i < count; i++)
        switch (kind) {
        case KIND_MOMENTUM:
            ipu_sgd(g, v[i], s[i], outputs[1], &momentum);
            break;
        case KIND_ADAM: ipu_adam(g, v[i], s[i], outputs[1], step, NULL); break;
        case KIND_ADAMW:
            ipu_adamw(g, v[i], s[i], outputs[1], step, &decay);
            break;
        case KIND_LAMB: ipu_lamb(g, v[i], s[i], outputs[1], step, NULL); break;
        default: ipu_sgd(g, v[i], s[i], outputs[1], NULL); break;
        }
    return 0;
}

static int drop(void *context, int32_t replica, int64_t mini_batch,
                int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)mini_batch, (void)count, (void)outputs;
    return 0;
}

/* A pipeline of 2 stages with its number of replicas, and its training data. */
struct job {
    ipu_pipeline *pipeline;
    ipu_infeed *infeed;
    struct data data;
};

static const ipu_stage two[] = {{"first", build_first, NULL, 3, 0},
                                {"second", build_second, NULL, 3, 0}};

static void describe(int replicas, int shared)
{
    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    ipu_pipeline_options_init(&options, sizeof options);
    options.nstages = 2;
    options.stages = two;
    options.count = 4;
    options.narguments = 1;
    options.arguments = &rate_argument;
    options.optimizer = update;
    options.sink = drop;
    options.system = &pod;
    options.replicas = replicas;
    options.replicated_optimizer_state_sharding = shared;
}

static void open_job(struct job *job)
{
    float values[W0], rate = 0.05f;

    job->infeed = infeed_of(&job->data, options.replicas);
    options.infeed = job->infeed;
    MUST(ipu_pipeline_new(&options, &job->pipeline));
    MUST(ipu_infeed_start(job->infeed));
    MUST(ipu_pipeline_argument(job->pipeline, "rate", &rate, sizeof rate));
    for (int i = 0; i < 3; i++) {
        device_fill(values, counts[i], (uint64_t)i + 40);
        MUST(ipu_pipeline_write(job->pipeline, names[i], values,
                                (size_t)counts[i] * 4));
    }
}

static void close_job(struct job *job)
{
    ipu_pipeline_free(job->pipeline);
    ipu_infeed_free(job->infeed);
    *job = (struct job){NULL};
}

static struct job whole, shared;

static void set_up(void)
{
    kind = KIND_SGD;
    status_of_call = 0;
}

static void tear_down(void)
{
    close_job(&whole);
    close_job(&shared);
}

static ipu_pipeline_info stats(const struct job *job)
{
    ipu_pipeline_info info = {.size = sizeof info};

    MUST(ipu_pipeline_stats(job->pipeline, &info));
    return info;
}

/* Returns the names of the optimiser's state for a variable, one at a time;
 * NULL at the end. */
static const char *state_of(int number, char *text)
{
    static const char *const momentum[] = {"momentum", NULL, NULL};
    static const char *const moments[] = {"m", "v", NULL};
    const char *what = kind == KIND_SGD        ? NULL
                       : kind == KIND_MOMENTUM ? momentum[number % 3]
                                               : moments[number % 3];

    snprintf(text, 32, "%s/%s", names[number / 3], what ? what : "");
    return what ? text : NULL;
}

static void expect_same(const char *name, int count)
{
    float a[W0], b[W0];

    for (int r = 0; r < options.replicas; r++) {
        MUST(ipu_pipeline_read(whole.pipeline, r, name, a, (size_t)count * 4));
        MUST(ipu_pipeline_read(shared.pipeline, r, name, b, (size_t)count * 4));
        ck_assert_mem_eq(a, b, (size_t)count * 4);
    }
}

static void expect_all_same(void)
{
    char text[32];

    for (int i = 0; i < 3; i++) {
        expect_same(names[i], counts[i]);
        for (int k = 0; k < 2; k++)
            if (state_of(3 * i + k, text))
                expect_same(text, counts[i]);
    }
}

/* ------------------------------------------------------------------- tests */

static const int replicas_of[] = {2, 3, 4, 8};

/* _i is optimiser and replicas, which also choose schedule and accumulators. */
LOOP_TEST(weights_are_the_same_bits, 0, 4 * KINDS)
{
    int replicas = replicas_of[_i / KINDS];

    kind = _i % KINDS;
    describe(replicas, 0);
    options.schedule = _i % 3;
    options.accumulator = _i % 5 == 0 ? IPU_FLOAT16 : IPU_ACCUMULATOR_SAME;
    options.threads = 1 + _i % 2;
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (int i = 0; i < 100; i++) {
        MUST(ipu_pipeline_run(whole.pipeline));
        MUST(ipu_pipeline_run(shared.pipeline));
    }
    expect_all_same();
}

static int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* _i is optimiser and replicas. Stage 0 has w0, stage 1 the others; state is
 * off the chip, or on it. */
LOOP_TEST(bytes_and_collectives_follow_the_formula, 0, 4 * KINDS)
{
    static const int tensors[] = {0, 1, 2, 2};
    const int64_t n = replicas_of[_i / KINDS], s0 = up(W0, n), s1 = up(W1, n);
    const bool second = W1 * 4 >= 128 * n; /* is w1 shared? */
    int64_t ring = 2 * (n - 1), sent;
    ipu_pipeline_info a, b;

    kind = _i % KINDS;
    describe((int)n, 0);
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (int i = 0; i < 5; i++) {
        MUST(ipu_pipeline_run(whole.pipeline));
        MUST(ipu_pipeline_run(shared.pipeline));
    }
    a = stats(&whole);
    b = stats(&shared);
    ck_assert_int_eq(a.exchanges, 5 * 3);
    ck_assert_int_eq(b.exchanges, 5 * (2 + (second ? 2 : 1) + 1));
    /* Each half of the ring carries a share for every other replica. */
    ck_assert_int_eq(a.replica_bytes,
                     5 * ring * (up(W0 * 4, n) + up((W1 + CLASSES) * 4, n)));
    sent = s0 * 4 +
           (second ? s1 * 4 + up(CLASSES * 4, n) : up((W1 + CLASSES) * 4, n));
    ck_assert_int_eq(b.replica_bytes, 5 * ring * sent);
    for (int i = 0; i < 2; i++) {
        ipu_pipeline_ipu_info x = {.size = sizeof x}, y = x;
        int64_t less = i == 0 ? W0 - s0 : second ? W1 - s1 : 0;

        MUST(ipu_pipeline_ipu(whole.pipeline, i, &x));
        MUST(ipu_pipeline_ipu(shared.pipeline, i, &y));
        ck_assert_int_eq(x.variable_bytes + x.streaming_bytes -
                             (y.variable_bytes + y.streaming_bytes),
                         4 * tensors[kind] * less);
    }
}

/* Weights, two moments of each and the counter, which both IPUs have, are
 * listed once each; accumulators, which begin at zero, are not. */
LOOP_TEST(what_is_kept_is_listed, 1, 3)
{
    static const char *const kinds[] = {"%s", "%s/m", "%s/v"};
    ipu_variable_info info = {.size = sizeof info};
    int64_t elements = 0;
    int found = 0, n = 0;
    char text[64];

    kind = KIND_ADAM;
    describe(_i, 0);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (; ipu_pipeline_state(shared.pipeline, n, &info) == IPU_OK; n++) {
        ck_assert_int_eq(info.own, 0);
        for (int i = 0; i < 9; i++) {
            snprintf(text, sizeof text, kinds[i % 3], names[i / 3]);
            if (strcmp(info.name, text) == 0)
                found |= 1 << i;
        }
        if (strcmp(info.name, "updates") == 0) {
            ck_assert_int_eq(info.dtype, IPU_INT32);
            ck_assert_int_eq(info.ndim, 0);
        } else {
            elements +=
                info.ndim == 2 ? info.shape[0] * info.shape[1] : info.shape[0];
        }
    }
    ck_assert_int_eq(n, 10);
    ck_assert_int_eq(found, (1 << 9) - 1);
    ck_assert_int_eq(elements, 3 * (counts[0] + counts[1] + counts[2]));
    MUST_FAIL(ipu_pipeline_state(shared.pipeline, n, &info), IPU_ERR_NAME,
              "the pipeline has no variable of number 10");
    MUST_FAIL(ipu_pipeline_state(shared.pipeline, -1, &info), IPU_ERR_NAME,
              "no variable of number -1");
    MUST_FAIL(ipu_pipeline_state(NULL, 0, &info), IPU_ERR_ARGUMENT, "is NULL");
    MUST_FAIL(ipu_pipeline_state(shared.pipeline, 0, NULL), IPU_ERR_ARGUMENT,
              "is NULL");
    close_job(&shared);
}

/* Variables that were saved with shared state can be loaded without it, and the
 * other way round; the last replica's share ends before the others'. */
LOOP_TEST(state_is_read_and_written_as_a_whole, 2, 5)
{
    float values[W0];
    int64_t shape[IPU_MAX_DIMS];
    int32_t updates;
    char text[32];

    kind = KIND_ADAM;
    describe(_i, 0);
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (int i = 0; i < 7; i++)
        MUST(ipu_pipeline_run(shared.pipeline));
    ck_assert_int_eq(
        ipu_pipeline_variable_info(shared.pipeline, "w0/m", NULL, shape), 2);
    ck_assert_int_eq(shape[0] * shape[1], W0);
    for (int i = 0; i < 3; i++)
        for (int k = -1; k < 2; k++) {
            const char *name = k < 0 ? names[i] : state_of(3 * i + k, text);
            size_t bytes = (size_t)counts[i] * 4;

            MUST(ipu_pipeline_read(shared.pipeline, 0, name, values, bytes));
            MUST(ipu_pipeline_write(whole.pipeline, name, values, bytes));
            memset(values, 0, bytes);
            MUST(ipu_pipeline_write(shared.pipeline, name, values, bytes));
            MUST(
                ipu_pipeline_read(whole.pipeline, _i - 1, name, values, bytes));
            MUST(ipu_pipeline_write(shared.pipeline, name, values, bytes));
        }
    MUST(ipu_pipeline_read(shared.pipeline, 0, "updates", &updates, 4));
    ck_assert_int_eq(updates, 7);
    MUST(ipu_pipeline_write(whole.pipeline, "updates", &updates, 4));
    expect_all_same();
    close_job(&shared); /* both read on from the first element */
    open_job(&shared);
    for (int i = 0; i < 3; i++)
        for (int k = -1; k < 2; k++) {
            const char *name = k < 0 ? names[i] : state_of(3 * i + k, text);
            size_t bytes = (size_t)counts[i] * 4;

            MUST(ipu_pipeline_read(whole.pipeline, 0, name, values, bytes));
            MUST(ipu_pipeline_write(shared.pipeline, name, values, bytes));
        }
    MUST(ipu_pipeline_write(shared.pipeline, "updates", &updates, 4));
    for (int i = 0; i < 9; i++) {
        MUST(ipu_pipeline_run(whole.pipeline));
        MUST(ipu_pipeline_run(shared.pipeline));
    }
    expect_all_same();
    MUST_FAIL(ipu_pipeline_read(shared.pipeline, 0, "w0/m", values, 8),
              IPU_ERR_SHAPE, "takes 1220 bytes, not 8");
    MUST_FAIL(ipu_pipeline_place(shared.pipeline, "w0/m", values, W0 * 4),
              IPU_ERR_STATE, "replicas share 'w0/m'");
}

/* An update that fails leaves everything as it was. */
TEST(a_failed_update_changes_nothing)
{
    kind = KIND_ADAM;
    describe(4, 0);
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (int i = 0; i < 6; i++) {
        status_of_call = i == 3 ? -5 : 0;
        ck_assert_int_eq(ipu_pipeline_run(whole.pipeline),
                         i == 3 ? IPU_ERR_CALLBACK : 0);
        ck_assert_int_eq(ipu_pipeline_run(shared.pipeline),
                         i == 3 ? IPU_ERR_CALLBACK : 0);
        expect_all_same();
    }
}

/* A weight in the host's memory is whole there. */
TEST(weights_may_be_placed)
{
    static float w[W0], got[W0];

    kind = KIND_MOMENTUM;
    describe(3, 0);
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    MUST(ipu_pipeline_place(shared.pipeline, "w0", w, sizeof w));
    for (int i = 0; i < 5; i++) {
        MUST(ipu_pipeline_run(whole.pipeline));
        MUST(ipu_pipeline_run(shared.pipeline));
    }
    expect_all_same();
    MUST(ipu_pipeline_read(whole.pipeline, 0, "w0", got, sizeof got));
    ck_assert_mem_eq(got, w, sizeof w);
}

/* One replica has nothing to share with. */
TEST(one_replica_keeps_all)
{
    kind = KIND_ADAM;
    describe(1, 0);
    open_job(&whole);
    options.replicated_optimizer_state_sharding = 1;
    open_job(&shared);
    for (int i = 0; i < 3; i++) {
        MUST(ipu_pipeline_run(whole.pipeline));
        MUST(ipu_pipeline_run(shared.pipeline));
    }
    expect_all_same();
    ck_assert_int_eq(stats(&shared).replica_bytes, 0);
    ck_assert_int_eq(stats(&shared).exchanges, stats(&whole).exchanges);
}

LOOP_TEST(what_does_not_go_together_is_refused, 0, 6)
{
    static const char *const words[] = {
        "each with its part of 'w0', and reduce_sum looks at more of it",
        "looks at more of it than one element at a time",
        "must be offloaded: offload_state IPU_OFFLOAD_ON, or AUTO",
        "replicated_optimizer_state_sharding needs an optimizer",
        "replicated_optimizer_state_sharding is 2: 0 or 1",
        "each with its part of 'w0', and the host looks at more of it"};
    int one = 1;

    describe(2, 1);
    kind = _i == 0 ? KIND_LAMB : _i == 1 ? CLIPPED : KIND_ADAM;
    options.offload_state = _i == 2 ? IPU_OFFLOAD_OFF : IPU_OFFLOAD_AUTO;
    options.optimizer = _i == 3 ? NULL : update;
    if (_i == 4)
        options.replicated_optimizer_state_sharding = 2;
    if (_i == 5)
        options.optimizer_context = &one;
    options.infeed = shared.infeed = infeed_of(&shared.data, 2);
    MUST_FAIL(ipu_pipeline_new(&options, &shared.pipeline), IPU_ERR_ARGUMENT,
              words[_i]);
}

TEST_MAIN("device_pipeline_sharing", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
