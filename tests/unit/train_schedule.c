/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests learning rates against tables that a program in another language has
 * computed from the formulas.
 */
#include <hvd.h>
#include <hvd_schedule.h>

#include "suite.h"

#include <math.h>
#include <string.h>

struct row {
    int64_t step;
    double rate, momentum; /* 0: not looked at */
};

static hvd_schedule s;

static void set_up(void)
{
    hvd_schedule_init(&s, sizeof s);
}

static void follow(const struct row *rows, int count)
{
    ck_assert_int_eq(hvd_schedule_check(&s), 0);
    for (int i = 0; i < count; i++) {
        double rate = hvd_schedule_rate(&s, rows[i].step);

        ck_assert_msg(fabs(rate - rows[i].rate) <= 1e-14,
                      "step %lld: %.17g, not %.17g", (long long)rows[i].step,
                      rate, rows[i].rate);
        if (rows[i].momentum > 0)
            ck_assert_double_eq_tol(hvd_schedule_momentum(&s, rows[i].step),
                                    rows[i].momentum, 1e-14);
    }
}
#define FOLLOW(...)                                                            \
    follow((const struct row[]){__VA_ARGS__},                                  \
           sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

TEST(the_usual_rate_is_constant)
{
    FOLLOW({0, 0.001, 0.95}, {1, 0.001, 0.95}, {1000000, 0.001, 0.95});
}

TEST(steps_may_be_listed)
{
    const int64_t boundaries[] = {3, 5, 100};
    const double values[] = {1, 0.5, 2, 0};

    s.kind = HVD_SCHEDULE_STEP;
    s.rate = 8;
    s.boundaries = boundaries;
    s.nboundaries = 3;
    s.factor = 0.25;
    FOLLOW({0, 8, 0}, {2, 8, 0}, {3, 2, 0}, {4, 2, 0}, {5, 0.5, 0},
           {99, 0.5, 0}, {100, 0.125, 0});
    s.values = values;
    FOLLOW({2, 8, 0}, {3, 4, 0}, {5, 16, 0}, {100, 0, 0}, {1000, 0, 0});
}

TEST(steps_may_be_regular)
{
    s.kind = HVD_SCHEDULE_STEP;
    s.rate = 1;
    s.every = 10;
    s.factor = 0.5;
    s.warmup = 5;
    FOLLOW({0, 0.2, 0}, {4, 1, 0}, {5, 1, 0}, {14, 1, 0}, {15, 0.5, 0},
           {25, 0.25, 0});
}

TEST(a_rate_may_fall_exponentially)
{
    s.kind = HVD_SCHEDULE_EXPONENTIAL;
    s.rate = 0.5;
    s.factor = 0.9;
    s.every = 4;
    s.warmup = 2;
    FOLLOW({0, 0.25, 0}, {1, 0.5, 0}, {2, 0.5, 0}, {3, 0.487001873212648, 0},
           {6, 0.45, 0}, {10, 0.405, 0}, {102, 0.0358948993845927, 0});
}

TEST(a_rate_may_fall_along_a_cosine)
{
    s.kind = HVD_SCHEDULE_COSINE;
    s.rate = 0.003;
    s.steps = 100;
    s.warmup = 10;
    s.final = 0.1;
    FOLLOW({0, 0.0003, 0}, {4, 0.0015, 0}, {9, 0.003, 0}, {10, 0.003, 0},
           {11, 0.00299915903405367, 0}, {50, 0.00186353953163981, 0},
           {98, 0.000300840965946329, 0}, {99, 0.0003, 0}, {200, 0.0003, 0});
}

TEST(a_cosine_may_begin_again)
{
    s.kind = HVD_SCHEDULE_COSINE;
    s.rate = 0.2;
    s.every = 10;
    s.growth = 2;
    s.factor = 0.5;
    s.final = 0.01;
    FOLLOW({0, 0.2, 0}, {5, 0.101, 0}, {9, 0.0068454048867798, 0}, {10, 0.1, 0},
           {20, 0.0505, 0}, {29, 0.00160942714054069, 0}, {30, 0.05, 0},
           {69, 0.000576295990105083, 0}, {70, 0.025, 0},
           {149, 0.000259540676521054, 0}, {150, 0.0125, 0},
           {151, 0.0124988073004828, 0});
    s.every = 7;
    s.growth = 1;
    s.factor = 0.9;
    s.final = 0;
    FOLLOW({0, 0.2, 0}, {6, 0.0099031132097581, 0}, {7, 0.18, 0},
           {13, 0.00891280188878229, 0}, {14, 0.162, 0}, {70, 0.06973568802, 0},
           {700, 5.31227977751751e-06, 0});
}

/* As PyTorch's OneCycleLR has it for 100 steps. */
TEST(a_cycle_rises_and_falls)
{
    s.kind = HVD_SCHEDULE_ONE_CYCLE;
    s.rate = 0.1;
    s.steps = 100;
    FOLLOW({0, 0.004, 0.95}, {1, 0.00428137805659075, 0.949706897857718},
           {10, 0.0295163948464101, 0.92342042203499}, {29, 0.1, 0.85},
           {30, 0.0999496535284524, 0.850050346672934},
           {50, 0.0793893450575732, 0.870610737385376},
           {98, 5.07464715475788e-05, 0.949949653327066}, {99, 4e-07, 0.95},
           {1000, 4e-07, 0.95});
    for (s.steps = 1; s.steps < 6; s.steps++)
        for (int64_t step = 0; step < 8; step++)
            ck_assert(hvd_schedule_rate(&s, step) > 0 &&
                      hvd_schedule_rate(&s, step) <= 0.1);
}

TEST(a_rate_may_fall_by_a_power)
{
    s.kind = HVD_SCHEDULE_POLYNOMIAL;
    s.rate = 0.4;
    s.steps = 50;
    s.final = 0.05;
    s.power = 2;
    FOLLOW({0, 0.4, 0}, {1, 0.384648063306955, 0}, {25, 0.111162015826739, 0},
           {48, 0.0201582673885881, 0}, {49, 0.02, 0}, {80, 0.02, 0});
}

/* Goyal et al.: from the rate of one worker to that of eight. */
TEST(workers_scale_the_rate)
{
    ck_assert_int_eq(hvd_schedule_scale(&s, 8, 70), 0);
    FOLLOW({0, 0.0011, 0}, {9, 0.002, 0}, {34, 0.0045, 0}, {69, 0.008, 0},
           {70, 0.008, 0}, {999, 0.008, 0});
    ck_assert_int_eq(hvd_schedule_scale(&s, 0, 1), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_schedule_scale(&s, 1, -1), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_schedule_scale(NULL, 1, 1), HVD_ERR_ARGUMENT);
}

/* Velocities that have the rate in them go on as those that have not. */
TEST(momentum_is_corrected_where_the_rate_is_in_the_velocity)
{
    double without = 0, within = 0, w = 1, v = 1;

    s.kind = HVD_SCHEDULE_COSINE;
    s.steps = 40;
    s.warmup = 8;
    ck_assert_double_eq(hvd_schedule_correction(&s, 0), 1);
    for (int64_t step = 0; step < 39; step++) {
        double rate = hvd_schedule_rate(&s, step), g = sin((double)step);

        without = 0.9 * without + g;
        w -= rate * without;
        within = 0.9 * hvd_schedule_correction(&s, step) * within + rate * g;
        v -= within;
        ck_assert_double_eq_tol(w, v, 1e-15);
    }
    ck_assert_double_eq(hvd_schedule_rate(&s, 39), 0);
    ck_assert_double_eq(hvd_schedule_correction(&s, 40), 1);
}

LOOP_TEST(kinds_have_names, 0, HVD_SCHEDULE_KINDS)
{
    s.kind = _i;
    ck_assert_ptr_nonnull(hvd_schedule_name(_i));
    ck_assert_ptr_null(hvd_schedule_name(HVD_SCHEDULE_KINDS));
    ck_assert_ptr_null(hvd_schedule_name(-1));
}

LOOP_TEST(schedules_are_checked, 0, 19)
{
    static const int64_t unsorted[] = {5, 5};
    static const char *const words[] = {
        "kind is 6",
        "rate is -1",
        "rate is nan",
        "warmup is -1",
        "warmup_from is 2",
        "every is -3",
        "factor is 0",
        "final is -1",
        "momentum is 1.5",
        "momentum_low is -1",
        "no boundaries",
        "and the array is NULL",
        "boundary 1 is step 5, and the one before it step 5",
        "every is 0",
        "steps is 0",
        "growth is 0.5",
        "rise is 1",
        "start_divisor is 0",
        "power is -1",
    };

    s.steps = 10;
    s.kind = _i == 10 || _i == 11 || _i == 12 ? HVD_SCHEDULE_STEP
             : _i == 13                       ? HVD_SCHEDULE_EXPONENTIAL
             : _i == 14 || _i == 15           ? HVD_SCHEDULE_COSINE
             : _i == 16 || _i == 17           ? HVD_SCHEDULE_ONE_CYCLE
             : _i == 18                       ? HVD_SCHEDULE_POLYNOMIAL
                                              : HVD_SCHEDULE_CONSTANT;
    switch (_i) {
    case 0: s.kind = HVD_SCHEDULE_KINDS; break;
    case 1: s.rate = -1; break;
    case 2: s.rate = NAN; break;
    case 3: s.warmup = -1; break;
    case 4: s.warmup_from = 2; break;
    case 5: s.every = -3; break;
    case 6: s.factor = 0; break;
    case 7: s.final = -1; break;
    case 8: s.momentum = 1.5; break;
    case 9: s.momentum_low = -1; break;
    case 11: s.nboundaries = 2; break;
    case 12:
        s.nboundaries = 2;
        s.boundaries = unsorted;
        break;
    case 14: s.steps = 0; break;
    case 15:
        s.every = 3;
        s.growth = 0.5;
        break;
    case 16: s.rise = 1; break;
    case 17: s.start_divisor = 0; break;
    case 18: s.power = -1; break;
    default: break;
    }
    ck_assert_int_eq(hvd_schedule_check(&s), HVD_ERR_ARGUMENT);
    ck_assert_msg(strstr(hvd_last_error(), words[_i]), "%s", hvd_last_error());
    ck_assert_int_eq(hvd_schedule_check(NULL), HVD_ERR_ARGUMENT);
    s.size = 4;
    ck_assert_int_eq(hvd_schedule_check(&s), HVD_ERR_ARGUMENT);
}

TEST_MAIN("train_schedule", .set_up = set_up)
