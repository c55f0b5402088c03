/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_schedule.h - learning rates that depend on the step.
 *
 *     hvd_schedule s;
 *
 *     hvd_schedule_init(&s, sizeof s);
 *     s.kind = HVD_SCHEDULE_COSINE;
 *     s.rate = 0.1;
 *     s.steps = 10000;
 *     s.warmup = 500;
 *     hvd_schedule_scale(&s, hvd_size(), s.warmup);
 *     if (hvd_schedule_check(&s) < 0)
 *         ...
 *     for (step = 0; step < s.steps; step++)
 *         train(hvd_schedule_rate(&s, step));
 *
 * A schedule is a struct without memory of its own, and its functions depend
 * on their arguments alone: all ranks get the same, in any order of calls, from
 * any thread, and a training that is resumed at a step goes on as if it had not
 * stopped. Everything is computed in double.
 *
 * Below, t counts steps after the warm-up, and T is the last of these: step
 * `steps` - 1. From then on the rate is what it was there.
 */
#ifndef HVD_SCHEDULE_H
#define HVD_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t hvd_schedule_kind;
enum {
    HVD_SCHEDULE_CONSTANT = 0,
    /* The rate times factor, once for each boundary that is reached, or once
     * every `every` steps after the warm-up; or times values[i], i being how
     * many boundaries are reached. */
    HVD_SCHEDULE_STEP = 1,
    /* From the rate to rate final, along half a cosine (Loshchilov & Hutter
     * 2017). every > 0: of so many steps, after which it begins again, each
     * time at factor times as much, and of growth times as many steps. */
    HVD_SCHEDULE_COSINE = 2,
    /* Smith & Topin 2019, with PyTorch's defaults: from rate / start_divisor up
     * to rate in the share rise of the steps, down to rate / (start_divisor
     * end_divisor), both along half a cosine; momentum, or beta1 of Adam and
     * its kin, goes the other way. */
    HVD_SCHEDULE_ONE_CYCLE = 3,
    HVD_SCHEDULE_EXPONENTIAL = 4, /* rate factor^(t / every) */
    HVD_SCHEDULE_POLYNOMIAL = 5,  /* final + (1 - final) (1 - t / T)^power */
    HVD_SCHEDULE_KINDS = 6
};

typedef struct hvd_schedule {
    uint32_t size; /* of the struct, as hvd_schedule_init got it */
    hvd_schedule_kind kind;
    double rate;   /* 0.001; the highest */
    int64_t steps; /* of the whole training, the warm-up included; STEP,
                      EXPONENTIAL and COSINE with `every` do without */
    /* In step i < warmup the rate is the share warmup_from + (1 - warmup_from)
     * (i + 1) / warmup of what the schedule begins with. */
    int64_t warmup;     /* steps; 0 */
    double warmup_from; /* in [0, 1]; 0 */
    int64_t every;      /* steps; 0 */
    double factor;      /* more than 0; 0.1 */
    int32_t nboundaries;
    int32_t reserved;
    const int64_t *boundaries; /* [nboundaries], steps of the training,
                                  ascending; borrowed */
    const double *values; /* [nboundaries + 1], of the rate; NULL: factor */
    double final;         /* of the rate; 0 */
    double growth;        /* 1 or more; 1 */
    double power;         /* 1 */
    double rise;          /* in (0, 1); 0.3 */
    double start_divisor; /* 1 or more; 25 */
    double end_divisor;   /* 1 or more; 10000 */
    double momentum;      /* 0.95; of every kind but ONE_CYCLE all the time */
    double momentum_low;  /* 0.85; ONE_CYCLE's, at the highest rate */
} hvd_schedule;

/* Sets a constant rate and the values above; size is sizeof(hvd_schedule). */
void hvd_schedule_init(hvd_schedule *schedule, size_t size);

/* Returns 0, or HVD_ERR_ARGUMENT if the other functions cannot compute with the
 * schedule; hvd_last_error() names the member and its value. */
int hvd_schedule_check(const hvd_schedule *schedule);

/* Returns "constant", "step", "cosine", "one-cycle", "exponential" or
 * "polynomial"; NULL: there is none. */
const char *hvd_schedule_name(hvd_schedule_kind kind);

/*
 * Scales the rate for a batch that is shared out to so many workers, each of
 * which has as many rows as one alone (Goyal et al. 2017): rate becomes workers
 * times as much, and rises to it evenly from what it was, in warmup steps. If
 * the schedule has a warm-up already, call it with that number. Returns 0, or
 * HVD_ERR_ARGUMENT for less than one worker or a negative number of steps.
 */
int hvd_schedule_scale(hvd_schedule *schedule, int32_t workers, int64_t warmup);

/* Return the rate and the momentum of a step, from 0, by a schedule that
 * hvd_schedule_check accepts. */
double hvd_schedule_rate(const hvd_schedule *schedule, int64_t step);
double hvd_schedule_momentum(const hvd_schedule *schedule, int64_t step);

/*
 * Returns the factor by which momentum is to be multiplied in a step: the rate
 * of this step by that of the step before it; 1 if that was 0 or there was
 * none. Only optimisers whose velocity has the rate in it need it (m = momentum
 * m + rate g, as Keras's SGD), so that a change of the rate reaches what has
 * been added up before. Those of this library (m = momentum m + g, as
 * PyTorch's) must not use it.
 */
double hvd_schedule_correction(const hvd_schedule *schedule, int64_t step);

#ifdef __cplusplus
}
#endif

#endif
