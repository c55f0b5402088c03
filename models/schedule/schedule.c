/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - learning rates as functions of the step. Each kind returns a
 * share of the rate; the warm-up is in front of all of them.
 */
#include <hvd.h>
#include <hvd_schedule.h>

#include "output/problem.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

void hvd_schedule_init(hvd_schedule *schedule, size_t size)
{
    const hvd_schedule usual = {.size = (uint32_t)size,
                                .rate = 0.001,
                                .factor = 0.1,
                                .growth = 1,
                                .power = 1,
                                .rise = 0.3,
                                .start_divisor = 25,
                                .end_divisor = 10000,
                                .momentum = 0.95,
                                .momentum_low = 0.85};

    if (!schedule)
        return;
    memset(schedule, 0, size);
    memcpy(schedule, &usual, size < sizeof usual ? size : sizeof usual);
}

const char *hvd_schedule_name(hvd_schedule_kind kind)
{
    static const char *const names[] = {
        "constant", "step", "cosine", "one-cycle", "exponential", "polynomial"};

    return kind >= 0 && kind < HVD_SCHEDULE_KINDS ? names[kind] : NULL;
}

/* ------------------------------------------------------------------- checks */

static int check_number(const char *name, double x, double low, double high)
{
    if (x >= low && x <= high && isfinite(x))
        return 0;
    if (high == HUGE_VAL)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the schedule's %s is %g: it must be a number of "
                            "at least %g",
                            name, x, low);
    return problem_fail(HVD_ERR_ARGUMENT,
                        "the schedule's %s is %g: it must be from %g to %g",
                        name, x, low, high);
}

static int check_count(const char *name, int64_t count, int64_t low)
{
    if (count >= low)
        return 0;
    return problem_fail(HVD_ERR_ARGUMENT,
                        "the schedule's %s is %lld: it must be %lld or more",
                        name, (long long)count, (long long)low);
}

static int check_boundaries(const hvd_schedule *s)
{
    int status = 0;

    if (s->nboundaries < 0 || (s->nboundaries > 0 && !s->boundaries))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the schedule has %d boundaries%s",
                            (int)s->nboundaries,
                            s->boundaries ? "" : ", and the array is NULL");
    for (int32_t i = 1; i < s->nboundaries; i++)
        if (s->boundaries[i] <= s->boundaries[i - 1])
            return problem_fail(
                HVD_ERR_ARGUMENT,
                "the schedule's boundary %d is step %lld, and the one before "
                "it step %lld: they must ascend",
                (int)i, (long long)s->boundaries[i],
                (long long)s->boundaries[i - 1]);
    if (s->nboundaries == 0 && s->every == 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the schedule 'step' has no boundaries: give them, "
                            "or the steps between two in 'every'");
    for (int32_t i = 0; s->values && i <= s->nboundaries && status == 0; i++)
        status = check_number("value", s->values[i], 0, HUGE_VAL);
    return status;
}

/* Checks what only some kinds look at. */
static int check_kind(const hvd_schedule *s)
{
    const bool repeats = s->kind == HVD_SCHEDULE_COSINE && s->every > 0;
    int status = 0;

    if (s->kind == HVD_SCHEDULE_STEP)
        status = check_boundaries(s);
    if (s->kind == HVD_SCHEDULE_EXPONENTIAL)
        status = check_count("every", s->every, 1);
    if ((s->kind == HVD_SCHEDULE_COSINE && !repeats) ||
        s->kind == HVD_SCHEDULE_ONE_CYCLE || s->kind == HVD_SCHEDULE_POLYNOMIAL)
        status = check_count("steps", s->steps, 1);
    if (status == 0 && repeats)
        status = check_number("growth", s->growth, 1, HUGE_VAL);
    if (status == 0 && s->kind == HVD_SCHEDULE_ONE_CYCLE)
        status = check_number("rise", s->rise, 1e-9, 1 - 1e-9);
    if (status == 0 && s->kind == HVD_SCHEDULE_ONE_CYCLE)
        status = check_number("start_divisor", s->start_divisor, 1, HUGE_VAL);
    if (status == 0 && s->kind == HVD_SCHEDULE_ONE_CYCLE)
        status = check_number("end_divisor", s->end_divisor, 1, HUGE_VAL);
    if (status == 0 && s->kind == HVD_SCHEDULE_POLYNOMIAL)
        status = check_number("power", s->power, 0, HUGE_VAL);
    return status;
}

int hvd_schedule_check(const hvd_schedule *s)
{
    int status;

    if (!s || s->size < sizeof *s)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the schedule %s: fill it with hvd_schedule_init",
                            s ? "has another size" : "is NULL");
    if (!hvd_schedule_name(s->kind))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the schedule's kind is %d: there are 0 to %d",
                            (int)s->kind, HVD_SCHEDULE_KINDS - 1);
    status = check_number("rate", s->rate, 0, HUGE_VAL);
    if (status == 0)
        status = check_count("warmup", s->warmup, 0);
    if (status == 0)
        status = check_number("warmup_from", s->warmup_from, 0, 1);
    if (status == 0)
        status = check_count("every", s->every, 0);
    if (status == 0)
        status = check_number("factor", s->factor, 1e-300, HUGE_VAL);
    if (status == 0)
        status = check_number("final", s->final, 0, HUGE_VAL);
    if (status == 0)
        status = check_number("momentum", s->momentum, 0, 1);
    if (status == 0)
        status = check_number("momentum_low", s->momentum_low, 0, 1);
    return status == 0 ? check_kind(s) : status;
}

int hvd_schedule_scale(hvd_schedule *schedule, int32_t workers, int64_t warmup)
{
    if (!schedule || workers < 1 || warmup < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a schedule%s for %d workers with a warm-up of "
                            "%lld steps: one worker or more, 0 steps or more",
                            schedule ? "" : " that is NULL", (int)workers,
                            (long long)warmup);
    schedule->rate *= workers;
    schedule->warmup = warmup;
    schedule->warmup_from = 1.0 / workers;
    return 0;
}

/* -------------------------------------------------------------------- kinds */

/* Returns the value at a share between a, at 0, and b, at 1. */
static double along_cosine(double a, double b, double share)
{
    return b + (a - b) * 0.5 * (1 + cos(PI * share));
}

/* The share of the way from the end of the warm-up to the last step. */
static double share_of(const hvd_schedule *s, int64_t step)
{
    const int64_t last = s->steps - s->warmup - 1;

    if (last < 1)
        return 0;
    step -= s->warmup;
    return step >= last ? 1 : (double)step / (double)last;
}

static double in_steps(const hvd_schedule *s, int64_t step)
{
    int32_t reached = 0;

    if (s->nboundaries == 0) {
        const int64_t times = (step - s->warmup) / s->every;

        return pow(s->factor, (double)times);
    }
    while (reached < s->nboundaries && step >= s->boundaries[reached])
        reached++;
    return s->values ? s->values[reached] : pow(s->factor, reached);
}

/* Finds the period that the step is in: n have ended, which are the terms of a
 * geometric series. Rounding may be wrong by one of them. */
static double in_cosines(const hvd_schedule *s, int64_t step)
{
    const double t = (double)(step - s->warmup), g = s->growth;
    double period = (double)s->every, n, start, peak;

    if (s->every == 0)
        return along_cosine(1, s->final, share_of(s, step));
    n = floor(g > 1 ? log1p(t * (g - 1) / period) / log(g) : t / period);
    period *= pow(g, n);
    start = g > 1 ? (period - (double)s->every) / (g - 1) : n * period;
    if (t >= start + period) {
        start += period;
        period *= g;
        n++;
    } else if (t < start) {
        period /= g;
        start -= period;
        n--;
    }
    peak = pow(s->factor, n);
    return along_cosine(peak, peak * s->final, (t - start) / period);
}

/* The share of the cycle's rising part (0 to 1), or of its falling part (1 to
 * 2). */
static double place_in_cycle(const hvd_schedule *s, int64_t step)
{
    const double all = (double)(s->steps - s->warmup), top = s->rise * all - 1;
    const double t = (double)(step - s->warmup);

    if (all <= 1 || t >= all - 1)
        return 2;
    if (t <= top)
        return top > 0 ? t / top : 1;
    return 1 + (t - (top > 0 ? top : 0)) / (all - 1 - (top > 0 ? top : 0));
}

static double in_a_cycle(const hvd_schedule *s, int64_t step)
{
    const double place = place_in_cycle(s, step), low = 1 / s->start_divisor;

    return place <= 1 ? along_cosine(low, 1, place)
                      : along_cosine(1, low / s->end_divisor, place - 1);
}

static double share_at(const hvd_schedule *s, int64_t step)
{
    switch (s->kind) {
    case HVD_SCHEDULE_STEP: return in_steps(s, step);
    case HVD_SCHEDULE_EXPONENTIAL:
        return pow(s->factor, (double)(step - s->warmup) / (double)s->every);
    case HVD_SCHEDULE_COSINE: return in_cosines(s, step);
    case HVD_SCHEDULE_ONE_CYCLE: return in_a_cycle(s, step);
    case HVD_SCHEDULE_POLYNOMIAL:
        return s->final + (1 - s->final) * pow(1 - share_of(s, step), s->power);
    default: return 1;
    }
}

double hvd_schedule_rate(const hvd_schedule *s, int64_t step)
{
    double from, to;

    if (step < 0)
        step = 0;
    if (step >= s->warmup)
        return s->rate * share_at(s, step);
    to = s->rate * share_at(s, s->warmup);
    from = to * s->warmup_from;
    return from + (to - from) * (double)(step + 1) / (double)s->warmup;
}

double hvd_schedule_momentum(const hvd_schedule *s, int64_t step)
{
    double place;

    if (s->kind != HVD_SCHEDULE_ONE_CYCLE)
        return s->momentum;
    place = step < s->warmup ? 0 : place_in_cycle(s, step);
    return place <= 1 ? along_cosine(s->momentum, s->momentum_low, place)
                      : along_cosine(s->momentum_low, s->momentum, place - 1);
}

double hvd_schedule_correction(const hvd_schedule *s, int64_t step)
{
    double before = step > 0 ? hvd_schedule_rate(s, step - 1) : 0;

    return before > 0 ? hvd_schedule_rate(s, step) / before : 1;
}
