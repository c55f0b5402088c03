/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/log.h"

#include "files/bytes.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <math.h>

/* The figures of a rank: seconds since the training began, but for LOSS. */
enum { DEVICE, COMMUNICATION, TOTAL, TEST, LOSS, FIGURES };

static void note_failure(struct run *run, int status)
{
    if (status < 0 && !run->log.failed)
        hvd_progress_line(run->progress, "--log-dir %s: %s",
                          run->log.folder.path, problem_text());
    run->log.failed |= status < 0;
}

static void log_scalar(struct run *run, double value, const char *tag)
{
    note_failure(run, hvd_log_scalar(run->log.folder.log, tag,
                                     job_updates(run->job), value));
}

static int log_settings(const struct run *run)
{
    const struct job_options *j = &run->job_options;
    struct bytes text = {0};
    int status;

    bytes_print(&text,
                "| setting | value |\n|---|---|\n"
                "| world_size | %d |\n| model | %s |\n| stages | %d |\n"
                "| schedule | %s |\n| mini-batches of an update | %d |\n"
                "| replicas | %d |\n| recompute | %s |\n| optimizer | %s |\n"
                "| learning_rate | %g |\n| batch_size | %d |\n"
                "| epochs | %lld |\n| seed | %llu |\n",
                hvd_size(), net_names[j->net], j->stages,
                partition_schedules[j->schedule], j->count, j->replicas,
                j->recompute ? "yes" : "no", optimizer_names[j->optimizer],
                j->rate, j->batch, (long long)run->epochs,
                (unsigned long long)j->seed);
    bytes_add(&text, "", 1);
    status = text.failed ? problem_set("no memory for the settings")
                         : hvd_log_text(run->log.folder.log, "configuration", 0,
                                        text.data);
    bytes_fini(&text);
    return status;
}

int log_begin(struct run *run)
{
    int status = hvd_rank() == 0 ? log_folder_open(&run->log.folder) : 0;

    if (status == 0 && run->log.folder.log)
        note_failure(run, log_settings(run));
    run->log.began = clock_seconds();
    return status;
}

/* means: of the figures over all ranks. */
static void log_means(struct run *run, const double *means, int64_t updates)
{
    const struct job_options *j = &run->job_options;
    const double images = (double)(updates * j->count * j->replicas * j->batch);
    const double trained = means[TOTAL] - means[TEST];
    const double rest = trained - means[DEVICE] - means[COMMUNICATION];

    log_scalar(run, means[LOSS], "train/loss");
    log_scalar(run, j->rate, "train/learning_rate");
    log_scalar(run,
               images * hvd_size() / fmax(trained - run->log.trained, 1e-9),
               "speed/images_per_second");
    log_scalar(run, means[DEVICE], "time/device");
    log_scalar(run, means[COMMUNICATION], "time/communication");
    log_scalar(run, means[TEST], "time/evaluation");
    log_scalar(run, fmax(rest, 0), "time/other");
    run->log.trained = trained;
}

int log_point(struct run *run, int64_t updates, double loss)
{
    const struct trainer_times times = job_times(run->job);
    double figures[FIGURES] = {[DEVICE] = times.compute,
                               [COMMUNICATION] = times.wait,
                               [TOTAL] = clock_seconds() - run->log.began,
                               [TEST] = run->log.tests,
                               [LOSS] = loss};
    int status = run->log.folder.path ? agree_average(figures, FIGURES) : 0;

    if (status == 0 && run->log.folder.log) {
        log_folder_hold();
        log_means(run, figures, updates);
        log_folder_release();
    }
    return status;
}

void log_test(struct run *run, double accuracy, double seconds)
{
    run->log.tests += seconds;
    if (!run->log.folder.log)
        return;
    log_folder_hold();
    log_scalar(run, accuracy, "test/accuracy");
    log_folder_release();
}

int log_end(struct run *run)
{
    return log_folder_close(&run->log.folder, run->progress);
}
