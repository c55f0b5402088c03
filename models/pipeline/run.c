/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run.h"

#include "output/clock.h"
#include "output/problem.h"
#include "output/profile.h"
#include "pipeline/log.h"
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
        {"--count", j->count},
        {"--replicas", j->replicas},
        {"--optimizer", j->optimizer},
        {"--batch-size", j->batch},
        {"--epochs", run->epochs},
        {"--updates", run->updates},
        {"--seed", (int64_t)j->seed},
        {"--log-dir", run->log.folder.path != NULL},
        {"--log-every", run->log.every},
    };

    return agree_numbers(same, sizeof same / sizeof *same);
}

/* --------------------------------------------------------------------- data */

/* Loads or draws digits, and opens this rank's share. */
static int open_digits(struct run *run, int set, hvd_iterator **digits)
{
    struct digits_source source = run->source;
    hvd_input_context share;
    hvd_dataset *d;
    int status;

    hvd_input_context_init(&share, sizeof share);
    share.num_input_pipelines = hvd_size();
    share.input_pipeline_id = hvd_rank();
    if (set == DIGITS_TEST)
        source.count = run->test_images;
    d = digits_dataset(&source, set, run->progress);
    if (set == DIGITS_TRAIN)
        d = hvd_dataset_shuffle(d, source.seed, 0);
    d = hvd_dataset_batch(d, run->job_options.batch, set == DIGITS_TRAIN);
    status = hvd_iterator_new(d, &share, digits);
    hvd_dataset_free(d);
    return status;
}

static int next_batch(void *context, void *const *buffers)
{
    struct run *run = context;
    hvd_batch batch;
    int status = hvd_iterator_next_into(run->train, buffers, &batch);

    if (status == HVD_END_OF_DATA)
        status = hvd_iterator_next_into(run->train, buffers, &batch);
    return status;
}

static int64_t next_test(void *context, void *const *buffers)
{
    struct run *run = context;
    hvd_batch batch;
    int status = HVD_END_OF_DATA;

    if (!run->tested)
        status = hvd_iterator_next_into(run->tests, buffers, &batch);
    run->tested = status == HVD_END_OF_DATA;
    return status < 0 ? status : run->tested ? 0 : batch.rows;
}

/* Goes to the begin of the tests. */
static int rewind_tests(struct run *run)
{
    hvd_position position;
    int status = hvd_iterator_position(run->tests, &position);

    run->tested = false;
    position.epoch = position.samples = 0;
    return status < 0 ? status : hvd_iterator_restore(run->tests, &position);
}

static int load_data(struct run *run)
{
    const struct job_data data = {next_batch, next_test, run};
    int status = agree(profile_check(run->job_options.profile));

    if (!status)
        status = agree(open_digits(run, DIGITS_TRAIN, &run->train));
    if (!status)
        status = agree(open_digits(run, DIGITS_TEST, &run->tests));
    if (!status)
        status = agree_same("the number of steps of an epoch",
                            (uint64_t)hvd_iterator_steps(run->train));
    hvd_progress_phase(run->progress, "compiling", 0, 0, NULL);
    if (!status)
        status = agree(job_new(&run->job_options, &data, &run->job));
    hvd_progress_end(run->progress);
    if (!status)
        status = job_start(run->job);
    return status;
}

/* ----------------------------------------------------------------- training */

/* Evaluates, and prints what came of it. */
static int test_epoch(struct run *run)
{
    double values[2] = {0}, start = clock_seconds();
    int64_t right = 0, images = 0;
    int status;

    hvd_progress_rename(run->progress, "evaluating");
    status = rewind_tests(run);
    if (!status)
        status =
            job_test(run->job, hvd_iterator_steps(run->tests), &right, &images);
    status = agree(status);
    values[0] = (double)right;
    values[1] = (double)images;
    if (!status)
        status = agree_sum(values, 2);
    if (status)
        return status;
    hvd_progress_line(run->progress, "test accuracy %.2f %% of %.0f images",
                      100 * values[0] / values[1], values[1]);
    log_test(run, values[0] / values[1], clock_seconds() - start);
    return 0;
}

/* Makes the updates of an epoch, with the points of the log. Sets *loss to the
 * mean on this rank. */
static int train_updates(struct run *run, int64_t updates, double *loss)
{
    int64_t now;

    *loss = 0;
    for (int64_t made = 0; made < updates; made += now) {
        double fresh = 0;
        int status;

        now = updates - made;
        if (run->log.folder.path && now > run->log.every)
            now = run->log.every;
        status = job_train(run->job, now, run->progress, &fresh);
        if (!status)
            status = log_point(run, now, fresh);
        if (status)
            return status;
        *loss += fresh * (double)now / (double)updates;
    }
    return 0;
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
    status = train_updates(run, updates, &loss);
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
    int64_t steps = hvd_iterator_steps(run->train);
    int64_t updates = steps / per_update;
    int64_t left = updates * run->epochs;
    int status = 0;

    if (updates == 0) {
        problem_set("--train-images: %" PRId64 " mini-batches of %d images "
                    "make an update, there are %" PRId64,
                    per_update, run->job_options.batch, steps);
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
        status = agree(log_begin(run));
    if (!status)
        status = train_epochs(run);
    if (!status)
        status = agree(log_end(run));
    if (!status)
        status = print_report(run);
    log_folder_fini(&run->log.folder, progress);
    job_free(run->job);
    hvd_iterator_free(run->train);
    hvd_iterator_free(run->tests);
    return status;
}
