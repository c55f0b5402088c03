/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run.h"

#include "output/clock.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <inttypes.h>
#include <stdio.h>

/* Checks that the ranks have the same options: mpirun can start them with
 * different command lines, and they would wait for each other. Stages and
 * schedule may differ; the exchange has compared the networks. */
static int check_options(const struct run *run)
{
    const struct job_options *j = &run->job_options;
    const struct agree_number same[] = {
        {"--count", j->count},         {"--replicas", j->replicas},
        {"--optimizer", j->optimizer}, {"--batch-size", j->batch},
        {"--epochs", run->epochs},     {"--updates", run->updates},
        {"--seed", (int64_t)j->seed},
    };

    return agree_numbers(same, sizeof same / sizeof *same);
}

static int load_data(struct run *run)
{
    struct images train = {0}, test = {0};
    int status = agree(profile_check(run->job_options.profile));

    if (!status)
        status =
            agree(dataset_load(&run->source, run->progress, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree(dataset_init(&run->dataset, &train, &test, hvd_rank(),
                                    hvd_size(), 1, run->job_options.batch,
                                    run->source.seed));
    images_fini(&train);
    images_fini(&test);
    hvd_progress_phase(run->progress, "compiling", 0, 0, NULL);
    if (!status)
        status = agree(job_new(&run->job_options, &run->dataset, &run->job));
    hvd_progress_end(run->progress);
    if (!status)
        status = job_start(run->job);
    return status;
}

/* Evaluates, and prints what came of it. */
static int test_epoch(struct run *run)
{
    double values[2] = {0};
    int64_t right = 0, images = 0;
    int status;

    hvd_progress_rename(run->progress, "evaluating");
    status = agree(job_test(run->job, &right, &images));
    values[0] = (double)right;
    values[1] = (double)images;
    if (!status)
        status = agree_sum(values, 2);
    if (!status)
        hvd_progress_line(run->progress, "test accuracy %.2f %% of %.0f images",
                          100 * values[0] / values[1], values[1]);
    return status;
}

static int train_epoch(struct run *run, int64_t epoch, int64_t updates)
{
    const struct job_options *j = &run->job_options;
    int64_t images =
        updates * j->count * j->replicas * j->batch * (int64_t)hvd_size();
    double loss, start = clock_seconds();
    char name[64];
    int status;

    snprintf(name, sizeof name, "epoch %" PRId64 " of %" PRId64, epoch + 1,
             run->epochs);
    hvd_progress_rename(run->progress, name);
    status = job_train(run->job, updates, run->progress, &loss);
    if (!status)
        status = agree_average(&loss, 1);
    if (!status)
        hvd_progress_line(run->progress,
                          "epoch %" PRId64 ": %" PRId64 " updates, loss %.4f, "
                          "%.0f images/s",
                          epoch + 1, updates, loss,
                          (double)images / (clock_seconds() - start));
    return status ? status : test_epoch(run);
}

static int train_epochs(struct run *run)
{
    int64_t per_update =
        (int64_t)run->job_options.count * run->job_options.replicas;
    int64_t updates = dataset_steps(&run->dataset) / per_update;
    int64_t left = updates * run->epochs;
    int status = 0;

    if (updates == 0) {
        problem_set("--train-images: %" PRId64 " mini-batches of %d images "
                    "make an update, there are %" PRId64,
                    per_update, run->job_options.batch,
                    dataset_steps(&run->dataset));
        return PROBLEM_EVERYWHERE;
    }
    if (run->updates && run->updates < left)
        left = run->updates;
    hvd_progress_phase(run->progress, "training", 0, left, "updates");
    for (int64_t epoch = 0; !status && left > 0; epoch++) {
        int64_t now = updates < left ? updates : left;

        left -= now;
        status = train_epoch(run, epoch, now);
    }
    hvd_progress_end(run->progress);
    return status;
}

static int print_report(struct run *run)
{
    struct partition_stats s;
    uint64_t hash = 0;
    int status = agree(job_stats(run->job, &s));

    if (!status)
        status = agree(job_hash(run->job, &hash));
    if (!status)
        status = agree_same("the weights' hash", hash);
    if (status || hvd_rank() != 0)
        return status;
    hvd_progress_line(
        run->progress,
        "on %d modelled IPUs each: %.3g s, idle %.1f %%, %" PRId64
        " slots, %" PRId64 " updates\n"
        "fullest tile %" PRId64 " of %" PRId64 " bytes, most stashed on an "
        "IPU %" PRId64 " bytes, %" PRId64 " bytes between IPUs\n"
        "allreduces %" PRId64 ", %" PRId64 " of them done before they were "
        "needed, waited %.3g s\n"
        "weights %016" PRIx64,
        s.ipus, s.seconds, 100 * s.idle, s.slots, s.updates, s.tile_bytes,
        s.bytes_per_tile, s.stash_bytes, s.inter_ipu_bytes, s.averages, s.early,
        s.wait, hash);
    return job_profile(run->job);
}

int run_pipeline(struct run *run, hvd_progress *progress)
{
    int status;

    run->progress = progress;
    status = load_data(run);
    if (!status)
        status = check_options(run);
    if (!status)
        status = train_epochs(run);
    if (!status)
        status = print_report(run);
    job_free(run->job);
    dataset_fini(&run->dataset);
    return status;
}
