/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - the optimisers. gradients.c applies them on every rank, and
 * rounds.c on parameter servers. docs/OPTIMIZERS.md has their formulas.
 *
 * Every rank applies the same updates to the same values, and all must get the
 * same bits. So there is one version of each loop, compiled for the baseline of
 * the architecture: with fused multiply-add where a processor has it, ranks on
 * different processors would drift apart.
 *
 * Scalars and lengths are computed in double, arrays in float32. No state has
 * the learning rate in it, so a change of the rate needs no correction.
 */
#include "strategy/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "kernels/subnormals.h"
#include "strategy/strategy.h"

/* A step of one variable, or of a part of it. */
struct step {
    const hvd_strategy_options *options;
    double rest1, rest2; /* 1 - beta^t, of step t, from 1 */
    double decay;        /* of weights; 0 for variables that are spared */
    bool spared;
    float *value;          /* [count] */
    const float *gradient; /* [count] */
    float *const *states;
    int64_t count;
};

/* Each loop is compiled twice, so that weights that do not decay cost nothing:
 * name_by(step, decays), and name(step), which calls it. */
#define LOOP static inline __attribute__((always_inline)) void
#define WITH_AND_WITHOUT_DECAY(name)                                           \
    static void name(const struct step *s)                                     \
    {                                                                          \
        if (s->decay > 0)                                                      \
            name##_by(s, true);                                                \
        else                                                                   \
            name##_by(s, false);                                               \
    }

/* Returns x + factor w, or x: a gradient and what is coupled to it, or a step
 * and what is taken off beside it. */
static inline float with(float x, float factor, float w, bool decays)
{
    return decays ? x + factor * w : x;
}

/* ---------------------------------------------------------- with a velocity */

LOOP sgd_by(const struct step *s, bool decays)
{
    const float rate = (float)s->options->learning_rate;
    const float decay = (float)s->decay;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value;

    for (int64_t i = 0; i < s->count; i++)
        value[i] -= rate * with(gradient[i], decay, value[i], decays);
}
WITH_AND_WITHOUT_DECAY(sgd)

LOOP momentum_by(const struct step *s, bool decays)
{
    const float rate = (float)s->options->learning_rate;
    const float keep = (float)s->options->momentum;
    const float decay = (float)s->decay;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict velocity = s->states[0];

    for (int64_t i = 0; i < s->count; i++) {
        velocity[i] =
            keep * velocity[i] + with(gradient[i], decay, value[i], decays);
        value[i] -= rate * velocity[i];
    }
}
WITH_AND_WITHOUT_DECAY(momentum)

LOOP nesterov_by(const struct step *s, bool decays)
{
    const float rate = (float)s->options->learning_rate;
    const float keep = (float)s->options->momentum;
    const float decay = (float)s->decay;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict velocity = s->states[0];

    for (int64_t i = 0; i < s->count; i++) {
        const float g = with(gradient[i], decay, value[i], decays);

        velocity[i] = keep * velocity[i] + g;
        value[i] -= rate * (g + keep * velocity[i]);
    }
}
WITH_AND_WITHOUT_DECAY(nesterov)

/* Returns the length of a vector; the order of the sum is always the same. */
static double length_of(const float *x, int64_t count)
{
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            sums[k] += (double)x[i + k] * (double)x[i + k];
    for (; i < count; i++)
        sums[0] += (double)x[i] * (double)x[i];
    for (int k = 0; k < LANES; k++)
        sum += sums[k];
    return sqrt(sum);
}

LOOP lars_by(const struct step *s, bool decays)
{
    const hvd_strategy_options *o = s->options;
    const float rate = (float)o->learning_rate, keep = (float)o->momentum;
    const float decay = (float)s->decay;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict velocity = s->states[0];
    double w = 0, g = 0;
    float ratio = 1;

    if (!s->spared && o->trust > 0) {
        w = length_of(value, s->count);
        g = length_of(gradient, s->count);
    }
    /* A NaN is not 0, and reaches all weights. */
    if (w != 0 && g != 0)
        ratio = (float)(o->trust * w / (g + s->decay * w + o->epsilon));
    for (int64_t i = 0; i < s->count; i++) {
        velocity[i] = keep * velocity[i] +
                      ratio * with(gradient[i], decay, value[i], decays);
        value[i] -= rate * velocity[i];
    }
}
WITH_AND_WITHOUT_DECAY(lars)

/* ------------------------------------------------------- with means of both */

/* The bias corrections of Adam's algorithm 1 become two factors: first, of the
 * mean, and root, of the root of the second. */
struct moments {
    float beta1, beta2, keep1, keep2, epsilon, first, root;
};

static struct moments moments_of(const struct step *s, double factor)
{
    const hvd_strategy_options *o = s->options;
    return (struct moments){
        .beta1 = (float)o->beta1,
        .beta2 = (float)o->beta2,
        .keep1 = (float)(1 - o->beta1),
        .keep2 = (float)(1 - o->beta2),
        .epsilon = (float)o->epsilon,
        .first = (float)(factor / s->rest1),
        .root = (float)(1 / sqrt(s->rest2)),
    };
}

/* coupled: decay is added to the gradients; faded: it is taken off beside. */
LOOP adam_by(const struct step *s, bool coupled, bool faded)
{
    const struct moments m = moments_of(s, s->options->learning_rate);
    const float decay = (float)s->decay;
    const float fade = (float)(s->options->learning_rate * s->decay);
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict first = s->states[0];
    float *restrict second = s->states[1];

    for (int64_t i = 0; i < s->count; i++) {
        const float g = with(gradient[i], decay, value[i], coupled);
        float u;

        first[i] = m.beta1 * first[i] + m.keep1 * g;
        second[i] = m.beta2 * second[i] + m.keep2 * g * g;
        u = m.first * first[i] / (sqrtf(second[i]) * m.root + m.epsilon);
        value[i] -= with(u, fade, value[i], faded);
    }
}

static void adam(const struct step *s)
{
    if (s->decay > 0)
        adam_by(s, true, false);
    else
        adam_by(s, false, false);
}

static void adamw(const struct step *s)
{
    if (s->decay > 0)
        adam_by(s, false, true);
    else
        adam_by(s, false, false);
}

static inline float lamb_direction(const struct moments *m, float first,
                                   float second, float decay, float value)
{
    return m->first * first / (sqrtf(second) * m->root + m->epsilon) +
           decay * value;
}

static void lamb(const struct step *s)
{
    const struct moments m = moments_of(s, 1);
    const float decay = (float)s->decay;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict first = s->states[0];
    float *restrict second = s->states[1];
    double sum = 0, w = length_of(value, s->count);
    float rate = (float)s->options->learning_rate;

    for (int64_t i = 0; i < s->count; i++) {
        double u;

        first[i] = m.beta1 * first[i] + m.keep1 * gradient[i];
        second[i] = m.beta2 * second[i] + m.keep2 * gradient[i] * gradient[i];
        u = (double)lamb_direction(&m, first[i], second[i], decay, value[i]);
        sum += u * u;
    }
    if (w != 0 && sum != 0)
        rate = (float)(s->options->learning_rate * w / sqrt(sum));
    for (int64_t i = 0; i < s->count; i++)
        value[i] -=
            rate * lamb_direction(&m, first[i], second[i], decay, value[i]);
}

LOOP lion_by(const struct step *s, bool decays)
{
    const hvd_strategy_options *o = s->options;
    const float rate = (float)o->learning_rate;
    const float faded = (float)(o->learning_rate * s->decay);
    const float beta1 = (float)o->beta1, beta2 = (float)o->beta2;
    const float keep1 = (float)(1 - o->beta1), keep2 = (float)(1 - o->beta2);
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict mean = s->states[0];

    for (int64_t i = 0; i < s->count; i++) {
        const float c = beta1 * mean[i] + keep1 * gradient[i];
        const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : c;

        mean[i] = beta2 * mean[i] + keep2 * gradient[i];
        value[i] -= with(rate * sign, faded, value[i], decays);
    }
}
WITH_AND_WITHOUT_DECAY(lion)

/* ------------------------------------------------- with the mean of squares */

/* The first array of state is the mean of squares; then come the momentum's and
 * the mean's, of those that there are. */
LOOP rmsprop_by(const struct step *s, bool decays)
{
    const hvd_strategy_options *o = s->options;
    const float rate = (float)o->learning_rate, epsilon = (float)o->epsilon;
    const float faded = (float)(o->learning_rate * s->decay);
    const float rho = (float)o->rho, rest = (float)(1 - o->rho);
    const float keep = (float)o->momentum;
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict square = s->states[0];
    float *restrict velocity = o->momentum > 0 ? s->states[1] : NULL;
    float *restrict mean = o->centered ? s->states[velocity ? 2 : 1] : NULL;

    for (int64_t i = 0; i < s->count; i++) {
        const float g = gradient[i];
        float v, u;

        v = square[i] = rho * square[i] + rest * g * g;
        if (mean) {
            mean[i] = rho * mean[i] + rest * g;
            v -= mean[i] * mean[i];
        }
        u = g / (sqrtf(v < 0 ? 0 : v) + epsilon);
        if (velocity)
            u = velocity[i] = keep * velocity[i] + u;
        value[i] -= with(rate * u, faded, value[i], decays);
    }
}
WITH_AND_WITHOUT_DECAY(rmsprop)

LOOP adagrad_by(const struct step *s, bool decays)
{
    const hvd_strategy_options *o = s->options;
    const float rate = (float)o->learning_rate, epsilon = (float)o->epsilon;
    const float faded = (float)(o->learning_rate * s->decay);
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict square = s->states[0];

    for (int64_t i = 0; i < s->count; i++) {
        square[i] += gradient[i] * gradient[i];
        value[i] -= with(rate * (gradient[i] / (sqrtf(square[i]) + epsilon)),
                         faded, value[i], decays);
    }
}
WITH_AND_WITHOUT_DECAY(adagrad)

LOOP adadelta_by(const struct step *s, bool decays)
{
    const hvd_strategy_options *o = s->options;
    const float rate = (float)o->learning_rate, epsilon = (float)o->epsilon;
    const float faded = (float)(o->learning_rate * s->decay);
    const float rho = (float)o->rho, rest = (float)(1 - o->rho);
    const float *restrict gradient = s->gradient;
    float *restrict value = s->value, *restrict square = s->states[0];
    float *restrict moved = s->states[1];

    for (int64_t i = 0; i < s->count; i++) {
        const float g = gradient[i];
        float u;

        square[i] = rho * square[i] + rest * g * g;
        u = g * sqrtf((moved[i] + epsilon) / (square[i] + epsilon));
        moved[i] = rho * moved[i] + rest * u * u;
        value[i] -= with(rate * u, faded, value[i], decays);
    }
}
WITH_AND_WITHOUT_DECAY(adadelta)

static void none(const struct step *s)
{
    (void)s;
}

/* ---------------------------------------------------------------- the table */

static const struct row {
    const char *name;
    int nstates; /* arrays of state; RMSprop has one more for each of two */
    void (*make_step)(const struct step *step);
    const char *slots[2]; /* names of these arrays, as the device has them */
    /* The defaults; momentum, betas and epsilon, where 0, are Adam's. */
    double rate, momentum, beta2, epsilon, rho, decay;
} rows[] = {
    [HVD_SGD] = {"sgd", 0, sgd, {0}, 1e-3},
    [HVD_MOMENTUM] = {"momentum", 1, momentum, {"momentum"}, 1e-3},
    [HVD_ADAM] = {"adam", 2, adam, {"m", "v"}, 1e-3},
    [HVD_NO_OPTIMIZER] = {"none", 0, none, {0}, 1e-3},
    [HVD_NESTEROV] = {"nesterov", 1, nesterov, {"momentum"}, 1e-3},
    [HVD_ADAMW] = {"adamw", 2, adamw, {"m", "v"}, 1e-3, .decay = 0.01},
    [HVD_LAMB] = {"lamb", 2, lamb, {"m", "v"}, 1e-3, .decay = 0.01},
    [HVD_LION] = {"lion", 1, lion, {"m"}, 1e-4, .beta2 = 0.99},
    [HVD_RMSPROP] =
        {"rmsprop", 1, rmsprop, {"v"}, 1e-2, .epsilon = 1e-8, .rho = 0.99},
    [HVD_ADAGRAD] = {"adagrad", 1, adagrad, {"v"}, 1e-2, .epsilon = 1e-10},
    [HVD_ADADELTA] =
        {"adadelta", 2, adadelta, {"v", "d"}, 1, .epsilon = 1e-6, .rho = 0.9},
    [HVD_LARS] = {"lars", 1, lars, {"momentum"}, 0.1, .epsilon = 1e-8},
};

static const struct row *row_of(hvd_optimizer optimizer)
{
    return optimizer >= 0 && optimizer < HVD_NUM_OPTIMIZERS ? &rows[optimizer]
                                                            : NULL;
}

const char *hvd_optimizer_name(hvd_optimizer optimizer)
{
    return row_of(optimizer) ? row_of(optimizer)->name : NULL;
}

int hvd_optimizer_from_name(const char *name)
{
    char names[160] = "";

    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of an optimizer is NULL");
    for (int i = 0; i < HVD_NUM_OPTIMIZERS; i++) {
        if (strcmp(name, rows[i].name) == 0)
            return i;
        if (i)
            strcat(names, ", ");
        strcat(names, rows[i].name);
    }
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "there is no optimizer '%s': there are %s", name, names);
}

int hvd_strategy_options_set_optimizer(hvd_strategy_options *options,
                                       hvd_optimizer optimizer)
{
    const struct row *row = row_of(optimizer);
    hvd_strategy_options all = {0};
    size_t size;

    if (!options)
        return hvd__fail(HVD_ERR_ARGUMENT, "the options are NULL");
    if (!row)
        return hvd__fail(HVD_ERR_ARGUMENT, "optimizer %d is none (0 to %d)",
                         (int)optimizer, HVD_NUM_OPTIMIZERS - 1);
    size = options->size < sizeof all ? options->size : sizeof all;
    memcpy(&all, options, size);
    all.optimizer = optimizer;
    all.learning_rate = row->rate;
    all.momentum = optimizer == HVD_RMSPROP ? 0 : 0.9;
    all.beta1 = 0.9;
    all.beta2 = row->beta2 > 0 ? row->beta2 : 0.999;
    all.epsilon = row->epsilon > 0 ? row->epsilon : 1e-7;
    all.rho = row->rho > 0 ? row->rho : 0.99;
    all.weight_decay = row->decay;
    all.trust = 0.001;
    all.centered = 0;
    memcpy(options, &all, size);
    return HVD_OK;
}

int hvd__optimizer_states(const hvd_strategy_options *options)
{
    const struct row *row = row_of(options->optimizer);

    if (!row)
        return 0;
    return row->nstates +
           (options->optimizer == HVD_RMSPROP && options->momentum > 0) +
           (options->optimizer == HVD_RMSPROP && options->centered);
}

const char *hvd__optimizer_slot(const hvd_strategy_options *options, int k)
{
    const struct row *row = row_of(options->optimizer);

    if (row && k < row->nstates)
        return row->slots[k];
    /* RMSprop's others: the momentum's comes first. */
    return row && k == row->nstates && options->momentum > 0 ? "momentum" : "m";
}

bool hvd__optimizer_may_have(hvd_optimizer optimizer, int nstates)
{
    const struct row *row = row_of(optimizer);

    return row && nstates >= row->nstates &&
           nstates <= row->nstates + (optimizer == HVD_RMSPROP ? 2 : 0);
}

bool hvd__optimizer_spares(int32_t ndim)
{
    return ndim < 2;
}

bool hvd__optimizer_needs_length(hvd_optimizer optimizer)
{
    return optimizer == HVD_LARS || optimizer == HVD_LAMB;
}

/* ------------------------------------------------------------------- checks */

int hvd__optimizer_check_rate(double rate)
{
    if (!(rate >= 0) || !isfinite(rate))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "learning rate %g: give a finite number, 0 or more",
                         rate);
    return HVD_OK;
}

static int check_share(const char *name, double value)
{
    if (!(value >= 0) || value >= 1)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s %g: give a number of at least 0, less than 1",
                         name, value);
    return HVD_OK;
}

static int check_number(const char *name, double value)
{
    if (!(value >= 0) || !isfinite(value))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s %g: give a finite number, 0 or more", name, value);
    return HVD_OK;
}

int hvd__optimizer_check(const hvd_strategy_options *options)
{
    if (!hvd_optimizer_name(options->optimizer))
        return hvd__fail(HVD_ERR_ARGUMENT, "optimizer %d is none (0 to %d)",
                         (int)options->optimizer, HVD_NUM_OPTIMIZERS - 1);
    HVD_TRY(hvd__optimizer_check_rate(options->learning_rate));
    HVD_TRY(check_share("momentum", options->momentum));
    HVD_TRY(check_share("beta1", options->beta1));
    HVD_TRY(check_share("beta2", options->beta2));
    HVD_TRY(check_number("epsilon", options->epsilon));
    HVD_TRY(check_share("rho", options->rho));
    HVD_TRY(check_number("weight_decay", options->weight_decay));
    HVD_TRY(check_number("trust", options->trust));
    if (options->centered != 0 && options->centered != 1)
        return hvd__fail(HVD_ERR_ARGUMENT, "centered %d: give 0 or 1",
                         (int)options->centered);
    return HVD_OK;
}

/* ----------------------------------------------------------------- momentum */

double *hvd__optimizer_momentum(hvd_strategy_options *o)
{
    switch (o->optimizer) {
    case HVD_ADAM:
    case HVD_ADAMW:
    case HVD_LAMB:
    case HVD_LION: return &o->beta1;
    case HVD_RMSPROP: return o->momentum > 0 ? &o->momentum : NULL;
    case HVD_MOMENTUM:
    case HVD_NESTEROV:
    case HVD_LARS: return &o->momentum;
    default: return NULL;
    }
}

int hvd__optimizer_set_momentum(hvd_strategy_options *options, double momentum)
{
    double *own = hvd__optimizer_momentum(options);

    if (!own)
        return hvd__fail(HVD_ERR_ARGUMENT, "optimizer %s has no momentum%s",
                         hvd_optimizer_name(options->optimizer),
                         options->optimizer == HVD_RMSPROP
                             ? ": give one above 0 in the strategy's options"
                             : "");
    HVD_TRY(
        check_share(own == &options->beta1 ? "beta1" : "momentum", momentum));
    if (options->optimizer == HVD_RMSPROP && momentum == 0)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "momentum 0: rmsprop was made with one above 0, and "
                         "keeps it above 0");
    *own = momentum;
    return HVD_OK;
}

/* ---------------------------------------------------------------- an update */

static void make_step(const hvd_strategy_options *options, const struct step *s)
{
    unsigned mode = hvd__subnormals_flush();

    rows[options->optimizer].make_step(s);
    hvd__subnormals_restore(mode);
}

static struct step step_of(const hvd_strategy_options *options, int64_t number,
                           bool spared)
{
    const double t = (double)number;

    return (struct step){.options = options,
                         .rest1 = 1 - pow(options->beta1, t),
                         .rest2 = 1 - pow(options->beta2, t),
                         .decay = spared ? 0 : options->weight_decay,
                         .spared = spared};
}

void hvd__optimizer_apply(const hvd_strategy_options *options, int64_t step,
                          bool spared, float *value, const float *gradient,
                          float *const *states, int64_t count)
{
    struct step s = step_of(options, step, spared);

    s.value = value;
    s.gradient = gradient;
    s.states = states;
    s.count = count;
    make_step(options, &s);
}

bool hvd__optimizer_takes_rows(hvd_optimizer optimizer)
{
    return !hvd__optimizer_needs_length(optimizer) &&
           optimizer != HVD_NO_OPTIMIZER;
}

void hvd__optimizer_apply_rows(const hvd_strategy_options *options,
                               int64_t step, float *value,
                               const struct hvd__rows *given, int64_t width,
                               int64_t first, float *const *states)
{
    int nstates = hvd__optimizer_states(options);
    struct step s = step_of(options, step, false);
    float *of_row[HVD__MOST_STATES];

    s.states = of_row;
    s.count = width;
    for (int64_t i = 0; i < given->n; i++) {
        int64_t at = (given->indices[i] - first) * width;

        s.value = value + at;
        s.gradient = given->values + i * width;
        for (int k = 0; k < nstates; k++)
            of_row[k] = states[k] + at;
        make_step(options, &s);
    }
}
