/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - updates by gradients that are not finite. The devices skip them:
 * they look at the averages, which have the same bits on all ranks, so that all
 * decide alike, without a message. Only then the ranks ask each other whose
 * gradient it was, by one reduction.
 *
 * A scale of the loss keeps small gradients from becoming zero in float16. It
 * is doubled after so many updates, and halved by one that is skipped.
 */
#include "estimator/estimator.h"
#include "net/make.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <stdint.h>

static const char *variable_name(const hvd_estimator *e, int64_t number)
{
    const int64_t *shape;
    int64_t count;
    int32_t ndim;

    return net_variable(trainer_model(e->trainer), (int)number, &ndim, &shape,
                        &count);
}

/* Collective: finds the first rank, and says what it found. */
static int explain(hvd_estimator *e, const struct trainer_nonfinite *found)
{
    const int64_t replicas = e->options.replicas, most = 1 << 20;
    int64_t first = INT64_MAX;
    struct skip *s = &e->skip;

    if (found->here >= 0)
        first = (hvd_rank() * replicas + found->replica) * most + found->here;
    if (hvd_allreduce(&first, &first, 1, HVD_INT64, HVD_MIN) < 0)
        return agree_hvd_problem(HVD_ERR_PEER);
    s->rank = first == INT64_MAX ? -1 : (int)(first / most / replicas);
    s->variable =
        variable_name(e, first == INT64_MAX ? found->average : first % most);
    if (s->rank < 0)
        snprintf(s->text, sizeof s->text,
                 "step %lld: the gradient of %s is finite on each rank, and "
                 "their mean is not",
                 (long long)e->step, s->variable);
    else
        snprintf(s->text, sizeof s->text,
                 "step %lld: the gradient of %s on rank %d is not finite",
                 (long long)e->step, s->variable, s->rank);
    if (s->rank >= 0 && replicas > 1)
        snprintf(s->text, sizeof s->text,
                 "step %lld: the gradient of %s on replica %d of rank %d is "
                 "not finite",
                 (long long)e->step, s->variable,
                 (int)(first / most % replicas), s->rank);
    return 0;
}

static int skip(hvd_estimator *e, const struct trainer_nonfinite *found)
{
    double *n = e->numbers;
    int status = explain(e, found);

    if (status < 0)
        return status;
    e->skip.count++;
    n[NUMBER_SKIPPED]++;
    n[NUMBER_GOOD] = 0;
    n[NUMBER_SCALE] *= 0.5;
    trainer_revert_statistics(e->trainer);
    if (e->options.log_dir)
        status = estimator_agree(e->log ? hvd_log_text(e->log, "train/skipped",
                                                       e->step, e->skip.text)
                                        : 0);
    if (status < 0 || n[NUMBER_SKIPPED] <= (double)e->options.skip_nonfinite)
        return status;
    return problem_fail(HVD_ERR_UNSUPPORTED,
                        "train: %d updates one after the other were skipped "
                        "(skip_nonfinite is %d), the last one in %s: try a "
                        "smaller learning rate, or clip_norm",
                        (int)n[NUMBER_SKIPPED], (int)e->options.skip_nonfinite,
                        e->skip.text);
}

int guard_begin(hvd_estimator *e)
{
    double *n = e->numbers;

    e->skip.rank = -1;
    e->skip.variable = NULL;
    e->skip.text[0] = '\0';
    if (e->options.loss_scale > 0 && n[NUMBER_SCALE] == 0)
        n[NUMBER_SCALE] = e->options.loss_scale;
    if (e->options.loss_scale > 0)
        trainer_set_scale(e->trainer, n[NUMBER_SCALE]);
    return e->options.skip_nonfinite > 0 && e->step % e->options.accumulate == 0
               ? trainer_keep_statistics(e->trainer)
               : 0;
}

int guard_end(hvd_estimator *e)
{
    const struct trainer_nonfinite found = trainer_nonfinite(e->trainer);
    double *n = e->numbers;

    if (e->options.skip_nonfinite == 0)
        return 0;
    if (found.average >= 0)
        return skip(e, &found);
    n[NUMBER_SKIPPED] = 0;
    if (e->options.loss_scale > 0 &&
        ++n[NUMBER_GOOD] >= (double)e->options.loss_scale_steps) {
        n[NUMBER_SCALE] *= 2;
        n[NUMBER_GOOD] = 0;
    }
    return 0;
}
