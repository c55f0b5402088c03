/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests optimisers on the device for several steps against their definitions in
 * double.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>

#include "one_device.h"

enum { COUNT = 37, STEPS = 20 };
static const double RATE = 0.05, BETA1 = 0.8, BETA2 = 0.95, EPSILON = 1e-4,
                    TRUST = 0.05;

static ipu_tensor w, g, rate, step;

static void set_up(void)
{
    d = device_new();
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    g = device_floats(&d, "g", 1, SHAPE(COUNT));
    rate = device_floats(&d, "rate", 0, NULL);
    step = ipu_counter(d.graph, "step");
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

/* _i is the kind, and whether weights decay. */
static int build(int kind, double decay)
{
    const ipu_sgd_options sgd = {.size = sizeof sgd,
                                 .nesterov = kind == NESTEROV,
                                 .momentum = kind == SGD ? 0 : BETA1,
                                 .weight_decay = decay};
    const ipu_adam_options adam = {.size = sizeof adam,
                                   .beta1 = BETA1,
                                   .beta2 = BETA2,
                                   .epsilon = EPSILON,
                                   .weight_decay = decay};

    const ipu_rms_options rms = {.size = sizeof rms,
                                 .centered = kind == CENTERED,
                                 .rho = kind == ADAGRAD ? 0 : BETA2,
                                 .momentum = kind == CENTERED ? BETA1 : 0,
                                 .epsilon = EPSILON,
                                 .weight_decay = decay};
    const ipu_lars_options lars = {.size = sizeof lars,
                                   .momentum = BETA1,
                                   .trust = TRUST,
                                   .epsilon = EPSILON,
                                   .weight_decay = decay};

    switch (kind) {
    case RMSPROP:
    case CENTERED: return ipu_rmsprop(d.graph, w, g, rate, &rms);
    case ADAGRAD: return ipu_adagrad(d.graph, w, g, rate, &rms);
    case ADADELTA: return ipu_adadelta(d.graph, w, g, rate, &rms);
    case LION: return ipu_lion(d.graph, w, g, rate, &adam);
    case LARS: return ipu_lars(d.graph, w, g, rate, &lars);
    case ADAM: return ipu_adam(d.graph, w, g, rate, step, &adam);
    case ADAMW: return ipu_adamw(d.graph, w, g, rate, step, &adam);
    case LAMB: return ipu_lamb(d.graph, w, g, rate, step, &adam);
    default: return ipu_sgd(d.graph, w, g, rate, &sgd);
    }
}

struct state {
    double w[COUNT], m[COUNT], v[COUNT], b[COUNT];
};

/* |a| */
static double length(const double *a)
{
    double sum = 0;

    for (int i = 0; i < COUNT; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

static void take_sgd_step(struct state *s, int kind, double decay,
                          const float *slopes)
{
    for (int i = 0; i < COUNT; i++) {
        double slope = (double)slopes[i] + decay * s->w[i], u = slope;

        if (kind != SGD) {
            s->m[i] = BETA1 * s->m[i] + slope;
            u = kind == NESTEROV ? slope + BETA1 * s->m[i] : s->m[i];
        }
        s->w[i] -= RATE * u;
    }
}

static void take_adam_step(struct state *s, int kind, double decay,
                           const float *slopes, int t)
{
    double u[COUNT], trust = 1;

    for (int i = 0; i < COUNT; i++) {
        double slope = (double)slopes[i] + (kind == ADAM ? decay * s->w[i] : 0);

        s->m[i] = BETA1 * s->m[i] + (1 - BETA1) * slope;
        s->v[i] = BETA2 * s->v[i] + (1 - BETA2) * slope * slope;
        u[i] = s->m[i] / (1 - pow(BETA1, t)) /
                   (sqrt(s->v[i] / (1 - pow(BETA2, t))) + EPSILON) +
               (kind == ADAM ? 0 : decay * s->w[i]);
    }
    if (kind == LAMB && length(s->w) > 0 && length(u) > 0)
        trust = length(s->w) / length(u);
    for (int i = 0; i < COUNT; i++)
        s->w[i] -= RATE * trust * u[i];
}

/* v, and the squares of what was taken off (Adadelta) or the mean (RMSprop). */
static void take_rms_step(struct state *s, int kind, double decay,
                          const float *slopes)
{
    for (int i = 0; i < COUNT; i++) {
        double slope = (double)slopes[i], *m = &s->m[i], *v = &s->v[i], u;

        *v = kind == ADAGRAD ? *v + slope * slope
                             : BETA2 * *v + (1 - BETA2) * slope * slope;
        u = slope / (sqrt(*v) + EPSILON);
        if (kind == CENTERED) {
            *m = BETA2 * *m + (1 - BETA2) * slope;
            u = slope / (sqrt(*v - *m * *m) + EPSILON);
            u = s->b[i] = BETA1 * s->b[i] + u;
        } else if (kind == ADADELTA) {
            u = slope * sqrt(*m + EPSILON) / sqrt(*v + EPSILON);
            *m = BETA2 * *m + (1 - BETA2) * u * u;
        }
        s->w[i] = s->w[i] * (1 - RATE * decay) - RATE * u;
    }
}

static void take_lion_step(struct state *s, double decay, const float *slopes)
{
    for (int i = 0; i < COUNT; i++) {
        double slope = (double)slopes[i];
        double u = BETA1 * s->m[i] + (1 - BETA1) * slope;

        s->w[i] -= RATE * ((u > 0) - (u < 0) + decay * s->w[i]);
        s->m[i] = BETA2 * s->m[i] + (1 - BETA2) * slope;
    }
}

static void take_lars_step(struct state *s, double decay, const float *slopes)
{
    double slope[COUNT], ratio = 1;

    for (int i = 0; i < COUNT; i++)
        slope[i] = (double)slopes[i];
    if (length(s->w) > 0 && length(slope) > 0)
        ratio = TRUST * length(s->w) /
                (length(slope) + decay * length(s->w) + EPSILON);
    for (int i = 0; i < COUNT; i++) {
        s->m[i] = BETA1 * s->m[i] + ratio * (slope[i] + decay * s->w[i]);
        s->w[i] -= RATE * s->m[i];
    }
}

static void take_step(struct state *s, int kind, double decay,
                      const float *slopes, int t)
{
    switch (kind) {
    case SGD:
    case MOMENTUM:
    case NESTEROV: take_sgd_step(s, kind, decay, slopes); break;
    case LION: take_lion_step(s, decay, slopes); break;
    case LARS: take_lars_step(s, decay, slopes); break;
    case ADAM:
    case ADAMW:
    case LAMB: take_adam_step(s, kind, decay, slopes, t); break;
    default: take_rms_step(s, kind, decay, slopes); break;
    }
}

static void check_steps(int kind, double decay, float size)
{
    struct state s = {.w = {0}};
    float values[COUNT], slopes[COUNT], now = (float)RATE;

    MUST(build(kind, decay));
    device_load(&d);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&d, "rate", &now, 1);
    device_fill(values, COUNT, 1);
    for (int i = 0; i < COUNT; i++) {
        values[i] *= size;
        s.w[i] = (double)values[i];
    }
    MUST(ipu_engine_write(d.engine, "w", values, sizeof values));
    for (int t = 1; t <= STEPS; t++) {
        device_fill(slopes, COUNT, (uint64_t)t + 100);
        MUST(ipu_engine_run(d.engine));
        take_step(&s, kind, decay, slopes, t);
        MUST(ipu_engine_read(d.engine, "w", values, sizeof values));
        for (int i = 0; i < COUNT; i++)
            if (!(fabs((double)values[i] - s.w[i]) <= 1e-5))
                ck_abort_msg("step %d, element %d is %g, not %g", t, i,
                             (double)values[i], s.w[i]);
    }
}

LOOP_TEST(optimisers_follow_their_definitions, 0, 2 * KINDS)
{
    check_steps(_i / 2, _i % 2 ? 0.1 : 0, 1);
}

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
