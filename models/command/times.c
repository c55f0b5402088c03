/* SPDX-License-Identifier: Apache-2.0 */
#include "command/times.h"

#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <math.h>

int times_average_loss(struct times *times, double *loss, int64_t steps,
                       double rate)
{
    double start = clock_seconds();
    int status = agree_average(loss, 1);

    times->wait += clock_seconds() - start;
    if (status == 0 && !isfinite(*loss)) {
        problem_set("the loss is no longer a number after step %lld: the "
                    "training diverged, try a smaller --lr than %g",
                    (long long)steps, rate);
        return PROBLEM_EVERYWHERE;
    }
    return status;
}

int times_finish(struct times *times, const struct trainer *trainer)
{
    struct trainer_times of_trainer;

    trainer_get_times(trainer, &of_trainer);
    double parts[] = {times->training, of_trainer.compute,
                      times->wait + of_trainer.wait, of_trainer.update,
                      of_trainer.data};
    int status = agree_average(parts, sizeof parts / sizeof *parts);
    if (status < 0)
        return status;
    times->training = parts[0];
    times->compute = parts[1];
    times->wait = parts[2];
    times->update = parts[3];
    times->data = parts[4];
    return 0;
}

double times_share(const struct times *times, double part)
{
    return times->training > 0 ? part / times->training : 0;
}
