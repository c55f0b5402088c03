/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests optimisers on the device for several steps against their definitions in
 * double.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "one_device.h"
#include "textbook.h"

enum { COUNT = 37, STEPS = 20 };
static const double RATE = 0.05, BETA1 = 0.8, BETA2 = 0.95, EPSILON = 1e-4,
                    TRUST = 0.05;

static ipu_tensor w, g, rate, step;
static double momentum; /* or beta1, of the step that is made by hand */

static void set_up(void)
{
    d = device_new();
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    g = device_floats(&d, "g", 1, SHAPE(COUNT));
    rate = device_floats(&d, "rate", 0, NULL);
    step = ipu_counter(d.graph, "step");
    momentum = BETA1;
}

enum {
    SGD,
    MOMENTUM,
    NESTEROV,
    RMSPROP,
    CENTERED, /* rmsprop, with momentum */
    ADAGRAD,
    ADADELTA,
    LION,
    ADAM,
    ADAMW,
    LAMB,
    LARS,
    KINDS
};

/* The options of all kinds. */
struct settings {
    ipu_sgd_options sgd;
    ipu_adam_options adam;
    ipu_rms_options rms;
    ipu_lars_options lars;
};

static struct settings settings_of(int kind, double decay)
{
    return (struct settings){.sgd = {.size = sizeof(ipu_sgd_options),
                                     .nesterov = kind == NESTEROV,
                                     .momentum = kind == SGD ? 0 : BETA1,
                                     .weight_decay = decay},
                             .adam = {.size = sizeof(ipu_adam_options),
                                      .beta1 = BETA1,
                                      .beta2 = BETA2,
                                      .epsilon = EPSILON,
                                      .weight_decay = decay},
                             .rms = {.size = sizeof(ipu_rms_options),
                                     .centered = kind == CENTERED,
                                     .rho = kind == ADAGRAD ? 0 : BETA2,
                                     .momentum = kind == CENTERED ? BETA1 : 0,
                                     .epsilon = EPSILON,
                                     .weight_decay = decay},
                             .lars = {.size = sizeof(ipu_lars_options),
                                      .momentum = BETA1,
                                      .trust = TRUST,
                                      .epsilon = EPSILON,
                                      .weight_decay = decay}};
}

static int build(int kind, double decay)
{
    const struct settings s = settings_of(kind, decay);

    switch (kind) {
    case RMSPROP:
    case CENTERED: return ipu_rmsprop(d.graph, w, g, rate, &s.rms);
    case ADAGRAD: return ipu_adagrad(d.graph, w, g, rate, &s.rms);
    case ADADELTA: return ipu_adadelta(d.graph, w, g, rate, &s.rms);
    case LION: return ipu_lion(d.graph, w, g, rate, &s.adam);
    case LARS: return ipu_lars(d.graph, w, g, rate, &s.lars);
    case ADAM: return ipu_adam(d.graph, w, g, rate, step, &s.adam);
    case ADAMW: return ipu_adamw(d.graph, w, g, rate, step, &s.adam);
    case LAMB: return ipu_lamb(d.graph, w, g, rate, step, &s.adam);
    default: return ipu_sgd(d.graph, w, g, rate, &s.sgd);
    }
}

struct state {
    double w[COUNT], m[COUNT], v[COUNT], b[COUNT];
};

static void take_step(struct state *s, int kind, double decay,
                      const float *slopes, int t)
{
    static const hvd_optimizer optimizers[KINDS] = {
        [SGD] = HVD_SGD,           [MOMENTUM] = HVD_MOMENTUM,
        [NESTEROV] = HVD_NESTEROV, [RMSPROP] = HVD_RMSPROP,
        [CENTERED] = HVD_RMSPROP,  [ADAGRAD] = HVD_ADAGRAD,
        [ADADELTA] = HVD_ADADELTA, [LION] = HVD_LION,
        [ADAM] = HVD_ADAM,         [ADAMW] = HVD_ADAMW,
        [LAMB] = HVD_LAMB,         [LARS] = HVD_LARS};
    const hvd_strategy_options o = {.optimizer = optimizers[kind],
                                    .learning_rate = RATE,
                                    .momentum = kind == RMSPROP ? 0 : momentum,
                                    .beta1 = momentum,
                                    .beta2 = BETA2,
                                    .epsilon = EPSILON,
                                    .rho = BETA2,
                                    .weight_decay = decay,
                                    .trust = TRUST,
                                    .centered = kind == CENTERED};
    const struct textbook book = {s->w, s->m, s->v, s->b};
    double slope[COUNT], direction[COUNT];

    for (int i = 0; i < COUNT; i++)
        slope[i] = (double)slopes[i];
    textbook_step(&o, t, false, &book, slope, direction, COUNT);
}

/* Runs the program, whose weights are called name, beside the definition. */
static void follow(const char *name, int kind, double decay, float size,
                   bool cycles)
{
    struct state s = {.w = {0}};
    float values[COUNT], slopes[COUNT], now = (float)RATE, share;

    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &now, 1);
    if (cycles)
        device_connect(&d, "momentum", &share, 1);
    device_fill(values, COUNT, 1);
    for (int i = 0; i < COUNT; i++) {
        values[i] *= size;
        s.w[i] = (double)values[i];
    }
    MUST(ipu_engine_write(d.engine, name, values, sizeof values));
    for (int t = 1; t <= STEPS; t++) {
        if (cycles)
            momentum = 0.7 + 0.25 * cos(t);
        share = (float)momentum;
        device_fill(slopes, COUNT, (uint64_t)t + 100);
        MUST(ipu_engine_run(d.engine));
        take_step(&s, kind, decay, slopes, t);
        MUST(ipu_engine_read(d.engine, name, values, sizeof values));
        for (int i = 0; i < COUNT; i++)
            if (!(fabs((double)values[i] - s.w[i]) <= 1e-5))
                ck_abort_msg("step %d, element %d is %g, not %g", t, i,
                             (double)values[i], s.w[i]);
    }
}

static void check_steps(int kind, double decay, float size)
{
    MUST(build(kind, decay));
    follow("w", kind, decay, size, false);
}

LOOP_TEST(optimisers_follow_their_definitions, 0, 2 * KINDS)
{
    check_steps(_i / 2, _i % 2 ? 0.1 : 0, 1);
}

/* ------------------------------------------------- a momentum of each step */

static bool has_momentum(int kind)
{
    return kind != SGD && kind != RMSPROP && kind != ADAGRAD &&
           kind != ADADELTA;
}

/* Updates a variable [1, COUNT], called "matrix", with a momentum that is an
 * input. */
static int build_cycled(int kind, double decay, ipu_dtype dtype)
{
    static const ipu_optimizer_kind kinds[] = {
        [SGD] = IPU_OPTIMIZER_SGD,           [MOMENTUM] = IPU_OPTIMIZER_SGD,
        [NESTEROV] = IPU_OPTIMIZER_SGD,      [RMSPROP] = IPU_OPTIMIZER_RMSPROP,
        [CENTERED] = IPU_OPTIMIZER_RMSPROP,  [ADAGRAD] = IPU_OPTIMIZER_ADAGRAD,
        [ADADELTA] = IPU_OPTIMIZER_ADADELTA, [LION] = IPU_OPTIMIZER_LION,
        [ADAM] = IPU_OPTIMIZER_ADAM,         [ADAMW] = IPU_OPTIMIZER_ADAMW,
        [LAMB] = IPU_OPTIMIZER_LAMB,         [LARS] = IPU_OPTIMIZER_LARS};
    const struct settings s = settings_of(kind, decay);
    const ipu_tensor input = device_floats(&d, "momentum", 0, NULL);
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = kinds[kind],
                             .rate = rate,
                             .sgd = &s.sgd,
                             .adam = &s.adam,
                             .rms = &s.rms,
                             .lars = &s.lars,
                             .momentum = &input};
    ipu_tensor matrix =
        ipu_variable(d.graph, "matrix", dtype, 2, SHAPE(1, COUNT));
    ipu_tensor slope = ipu_reshape(d.graph, g, 2, SHAPE(1, COUNT));

    if (dtype == IPU_FLOAT16)
        slope = ipu_cast(d.graph, slope, dtype);
    return ipu_optimize_variable(d.graph, &o, matrix, slope, step);
}

LOOP_TEST(each_step_may_have_its_momentum, 0, 2 * KINDS)
{
    const double decay = _i % 2 ? 0.1 : 0;

    if (!has_momentum(_i / 2))
        return;
    MUST(build_cycled(_i / 2, decay, IPU_FLOAT32));
    follow("matrix", _i / 2, decay, 1, true);
}

LOOP_TEST(a_momentum_needs_an_optimiser_that_has_one, 0, KINDS)
{
    ipu_executable *executable = NULL;

    if (has_momentum(_i))
        return;
    build_cycled(_i, 0, IPU_FLOAT32);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_ARGUMENT,
              "optimizer: it is given a momentum, and has none");
}

/* A program that was compiled before there was the member has none. */
TEST(a_smaller_optimiser_has_no_momentum_of_its_own)
{
    const ipu_optimizer o = {.size = offsetof(ipu_optimizer, momentum),
                             .kind = IPU_OPTIMIZER_ADAM,
                             .rate = rate,
                             .momentum = &g};

    MUST(ipu_optimize_variable(d.graph, &o, w, g, step));
    device_load(&d);
}

LOOP_TEST(momentum_is_a_scalar, 0, 2)
{
    ipu_tensor odd = device_floats(&d, "odd", 1, SHAPE(2));
    const struct settings s = settings_of(MOMENTUM, 0);
    const ipu_optimizer o = {.size = sizeof o,
                             .kind =
                                 _i ? IPU_OPTIMIZER_ADAM : IPU_OPTIMIZER_SGD,
                             .rate = rate,
                             .sgd = &s.sgd,
                             .momentum = &odd};
    ipu_executable *executable = NULL;

    ipu_optimize_variable(d.graph, &o, w, g, step);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_SHAPE,
              "odd is float32 [2], it must be float32 the momentum, a scalar");
}

/* The momentum is float32. */
LOOP_TEST(halves_may_have_a_momentum, 0, KINDS)
{
    struct state s = {.w = {0}};
    float slopes[COUNT], now = (float)RATE, share = 0;
    _Float16 values[COUNT];

    if (!has_momentum(_i))
        return;
    MUST(build_cycled(_i, 0, IPU_FLOAT16));
    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &now, 1);
    device_connect(&d, "momentum", &share, 1);
    for (int i = 0; i < COUNT; i++) {
        slopes[i] = i % 2 ? 16 : -16;
        values[i] = 300;
        s.w[i] = 300;
    }
    MUST(ipu_engine_write(d.engine, "matrix", values, sizeof values));
    for (int t = 1; t <= 2; t++) {
        momentum = t / 4.0;
        share = (float)momentum;
        MUST(ipu_engine_run(d.engine));
        take_step(&s, _i, 0, slopes, t);
    }
    MUST(ipu_engine_read(d.engine, "matrix", values, sizeof values));
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol((double)values[i], s.w[i], 0.5);
}

/* ----------------------------------------------------------- special values */

/* LAMB and LARS of zeros cannot scale by their length. */
LOOP_TEST(weights_may_start_at_0, 0, KINDS)
{
    check_steps(_i, 0, 0);
}

/* The rate is float32. The square of each weight alone is more than float16 can
 * hold. */
LOOP_TEST(weights_may_be_halves, 0, KINDS)
{
    struct state s = {.w = {0}};
    float slopes[COUNT], now = (float)RATE;
    _Float16 values[COUNT];

    w = ipu_variable(d.graph, "h", IPU_FLOAT16, 1, SHAPE(COUNT));
    g = ipu_cast(d.graph, g, IPU_FLOAT16);
    MUST(build(_i, 0));
    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &now, 1);
    for (int i = 0; i < COUNT; i++) {
        slopes[i] = i % 2 ? 16 : -16;
        values[i] = 300;
        s.w[i] = 300;
    }
    MUST(ipu_engine_write(d.engine, "h", values, sizeof values));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "h", values, sizeof values));
    take_step(&s, _i, 0, slopes, 1);
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol((double)values[i], s.w[i], 0.25);
}

LOOP_TEST(without_options_they_are_the_usual, 0, 2)
{
    float values[COUNT], slopes[COUNT], one = 1;

    MUST(_i ? ipu_adam(d.graph, w, g, rate, step, NULL)
            : ipu_sgd(d.graph, w, g, rate, NULL));
    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &one, 1);
    for (int i = 0; i < COUNT; i++)
        slopes[i] = 0.25f;
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "w", values, sizeof values));
    /* The first step of Adam has the size of the rate. */
    ck_assert_double_eq_tol((double)values[COUNT - 1], _i ? -1 : -0.25, 1e-6);
}

LOOP_TEST(what_they_keep_has_names, 0, 2)
{
    float values[COUNT];

    MUST(build(_i ? ADAM : MOMENTUM, 0));
    device_load(&d);
    if (_i) {
        MUST(ipu_engine_read(d.engine, "w/m", values, sizeof values));
        MUST(ipu_engine_read(d.engine, "w/v", values, sizeof values));
    } else {
        MUST(ipu_engine_read(d.engine, "w/momentum", values, sizeof values));
    }
}

/* A NaN in the gradient spoils its own element. */
LOOP_TEST(nan_reaches_its_weight, 0, LAMB)
{
    float values[COUNT], slopes[COUNT] = {0}, now = 0.1f;

    MUST(build(_i, 0));
    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &now, 1);
    slopes[3] = NAN;
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "w", values, sizeof values));
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(isnan(values[i]) != 0, i == 3);
}

/* A whole model's biases do not decay, and have no ratio of lengths. */
LOOP_TEST(models_spare_their_biases, 0, 2)
{
    const ipu_lars_options lars = {.size = sizeof lars,
                                   .trust = TRUST,
                                   .epsilon = EPSILON,
                                   .weight_decay = 0.5};
    const ipu_rms_options rms = {
        .size = sizeof rms, .epsilon = EPSILON, .weight_decay = 0.5};
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = _i ? IPU_OPTIMIZER_ADAGRAD
                                        : IPU_OPTIMIZER_LARS,
                             .rate = rate,
                             .rms = &rms,
                             .lars = &lars};
    ipu_tensor v[] = {
        w, ipu_variable(d.graph, "m", IPU_FLOAT32, 2, SHAPE(1, COUNT))};
    ipu_tensor slopes[] = {g, ipu_reshape(d.graph, g, 2, SHAPE(1, COUNT))};
    float ones[COUNT], now = 1, bias[COUNT], matrix[COUNT];
    double decayed = _i ? -0.5 : 1 - 1.5 * TRUST / (1 + 0.5);

    MUST(ipu_optimize(d.graph, &o, 2, v, slopes));
    device_load(&d);
    device_connect(&d, "g", ones, COUNT);
    device_connect(&d, "rate", &now, 1);
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    MUST(ipu_engine_write(d.engine, "w", ones, sizeof ones));
    MUST(ipu_engine_write(d.engine, "m", ones, sizeof ones));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "w", bias, sizeof bias));
    MUST(ipu_engine_read(d.engine, "m", matrix, sizeof matrix));
    ck_assert_double_eq_tol((double)bias[COUNT - 1], 0, 2e-4);
    ck_assert_double_eq_tol((double)matrix[COUNT - 1], decayed, 2e-4);
}

LOOP_TEST(optimisers_refuse, 0, 20)
{
    ipu_sgd_options sgd = {.size = sizeof sgd, .momentum = 0.9};
    ipu_adam_options adam = {
        .size = sizeof adam, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    ipu_rms_options rms = {.size = sizeof rms, .epsilon = 1e-8};
    ipu_lars_options lars = {.size = sizeof lars, .epsilon = 1e-8};
    ipu_tensor odd = device_floats(&d, "odd", 1, SHAPE(3));
    ipu_tensor scalar = ipu_variable(d.graph, "v", IPU_INT32, 1, SHAPE(COUNT));
    const char *words = "";
    int status = IPU_ERR_ARGUMENT;
    ipu_executable *executable = NULL;

    switch (_i) {
    case 0:
        ipu_sgd(d.graph, g, g, rate, NULL);
        words = "sgd: g is not a variable";
        break;
    case 1:
        ipu_sgd(d.graph, w, odd, rate, NULL);
        words = "descend: w is float32 [37] and odd is float32 [3]: they must "
                "be the same";
        status = IPU_ERR_SHAPE;
        break;
    case 2:
        sgd.momentum = 1;
        ipu_sgd(d.graph, w, g, rate, &sgd);
        words = "sgd: momentum is 1, it must be 0 or more and less than 1";
        break;
    case 3:
        sgd.size = 3;
        ipu_sgd(d.graph, w, g, rate, &sgd);
        words = "sgd: the options' size is 3";
        break;
    case 4:
        sgd.weight_decay = -1;
        ipu_sgd(d.graph, w, g, rate, &sgd);
        words = "sgd: the weight decay is -1";
        break;
    case 5:
        sgd.momentum = 0;
        sgd.nesterov = 1;
        ipu_sgd(d.graph, w, g, rate, &sgd);
        words = "sgd: Nesterov's way takes a momentum above 0";
        break;
    case 6:
        ipu_sgd(d.graph, w, g, odd, NULL);
        words = "descend: odd is float32 [3], it must be float32 the learning "
                "rate, a scalar";
        status = IPU_ERR_SHAPE;
        break;
    case 7:
        ipu_adam(d.graph, w, g, rate, rate, NULL);
        words = "adam_update: rate is float32 [], it must be int32 the step";
        status = IPU_ERR_SHAPE;
        break;
    case 8:
        adam.beta2 = 1;
        ipu_adamw(d.graph, w, g, rate, step, &adam);
        words = "adamw: beta2 is 1, it must be 0 or more and less than 1";
        break;
    case 9:
        adam.epsilon = 0;
        ipu_lamb(d.graph, w, g, rate, step, &adam);
        words = "lamb: epsilon is 0, it must be more than 0";
        break;
    case 10:
        adam.weight_decay = -2;
        ipu_adamw(d.graph, w, g, rate, step, &adam);
        words = "adamw: the weight decay is -2";
        break;
    case 11:
        adam.size = 0;
        ipu_adam(d.graph, w, g, rate, step, &adam);
        words = "adam: the options' size is 0";
        break;
    case 12:
        ipu_sgd(d.graph, scalar, scalar, rate, NULL);
        words = "descend: v is int32 [37], it must be float32";
        status = IPU_ERR_SHAPE;
        break;
    case 13:
        MUST(ipu_sgd(d.graph, w, g, rate, NULL));
        ipu_sgd(d.graph, w, g, rate, NULL);
        words = "assign: w already becomes descend";
        status = IPU_ERR_STATE;
        break;
    case 14:
        rms.rho = 1;
        ipu_rmsprop(d.graph, w, g, rate, &rms);
        words = "rmsprop: rho is 1, it must be 0 or more and less than 1";
        break;
    case 15:
        rms.epsilon = 0;
        ipu_adagrad(d.graph, w, g, rate, &rms);
        words = "adagrad: epsilon is 0, it must be more than 0";
        break;
    case 16:
        rms.weight_decay = -1;
        ipu_adadelta(d.graph, w, g, rate, &rms);
        words = "adadelta: the weight decay is -1, it must be 0 or more";
        break;
    case 17:
        lars.trust = -1;
        ipu_lars(d.graph, w, g, rate, &lars);
        words = "lars: trust is -1, it must be more than 0";
        break;
    case 18:
        adam.beta1 = -0.5;
        ipu_lion(d.graph, w, g, rate, &adam);
        words = "lion: beta1 is -0.5";
        break;
    default:
        ck_assert_int_lt(ipu_lars(NULL, w, g, rate, NULL), 0);
        ck_assert_int_lt(ipu_adam(NULL, w, g, rate, step, NULL), 0);
        ipu_lamb(d.graph, (ipu_tensor){-1}, g, rate, step, NULL);
        words = "lamb: the variable: the tensor is invalid";
    }
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), status, words);
}

TEST_MAIN("device_optimizers", .set_up = set_up, .tear_down = one_device_free)
