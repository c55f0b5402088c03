/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_run.c - what a client knows of a training: which options are sent,
 * which files the network is in, and where results go. It starts neither libhvd
 * nor a device.
 */
#include "command/remote_run.h"

#include "command/interrupt.h"
#include "command/training_run.h"
#include "output/outfile.h"
#include "output/problem.h"
#include "output/terminal.h"
#include "remote/client.h"
#include "trainer/strategy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client's run, and the result that is coming in. */
struct remote_run {
    struct training_run *run; /* borrowed */
    struct options options;   /* with the batch of a rank */
    struct outfile out;
    bool is_open;
};

/* ------------------------------------------------------------------ options */

/* Options that this process acts on itself. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"remote", "strategy",     "text",
                                      "losses", "save-weights", "load-weights",
                                      "summary"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0)
            return true;
    return false;
}

/* Sorts the options that were given: some are sent. */
static int sort_options(const struct options *o,
                        struct remote_description *description)
{
    if (o->strategy >= 0 && o->strategy != STRATEGY_MULTI_WORKER)
        return problem_set("--remote: the servers train by --strategy "
                           "multi-worker, not by %s",
                           strategy_names[o->strategy]);
    for (int i = 0; i < o->ngiven; i++) {
        const struct option_given *given = &o->given[i];

        if (is_own(given->name))
            continue;
        if (!remote_option_is_sent(given->name) ||
            description->noptions == REMOTE_MOST_OPTIONS)
            return problem_set("--%s does not go together with --remote",
                               given->name);
        description->options[description->noptions++] =
            (struct remote_option){given->name, given->value};
    }
    return 0;
}

static const char *result_path(const struct options *o,
                               enum remote_result result)
{
    const char *const paths[REMOTE_RESULTS] = {
        [REMOTE_RESULT_SUMMARY] = o->summary,
        [REMOTE_RESULT_WEIGHTS] = o->weights,
        [REMOTE_RESULT_LOSSES] = o->losses};

    return paths[result];
}

static const char *const result_options[REMOTE_RESULTS] = {
    [REMOTE_RESULT_SUMMARY] = "--summary",
    [REMOTE_RESULT_WEIGHTS] = "--save-weights",
    [REMOTE_RESULT_LOSSES] = "--losses"};

static int describe(const struct options *o,
                    struct remote_description *description)
{
    bool live = terminal_present(STDOUT_FILENO);
    int status = 0;

    description->program = options_name(o->program);
    for (int i = 0; i < REMOTE_RESULTS && status == 0; i++) {
        const char *path = result_path(o, (enum remote_result)i);

        description->results[i] = path != NULL;
        status = outfile_check(result_options[i], path);
    }
    description->columns = live ? terminal_width(STDOUT_FILENO) : 0;
    description->colour = live && terminal_has_colour();
    return status;
}

/* ---------------------------------------------------------------- the files */

/* The text to learn goes with the network. */
static int add_text(const char *text, const char *folder)
{
    char path[PATH_MAX], real[PATH_MAX];

    if (!text)
        return 0;
    if (snprintf(path, sizeof path, "%s/%s", folder,
                 remote_file_names[REMOTE_FILE_TEXT]) >= (int)sizeof path)
        return problem_set("%s: the path is too long", folder);
    if (!realpath(text, real) || symlink(real, path) != 0)
        return problem_set("--text %s: %s", text, strerror(errno));
    return 0;
}

static int prepare_files(void *context, int rank, int size, const char *folder)
{
    struct remote_run *r = context;
    struct trainer_options options = options_trainer(&r->options);
    struct model *model = NULL;

    options.rank = rank;
    r->run->functions->make_model(r->run, &model);
    if (trainer_export(model, &options, size, folder) < 0)
        return PROBLEM;
    return add_text(r->options.text, folder);
}

static int take_result(void *context, enum remote_result result,
                       const void *data, size_t bytes)
{
    struct remote_run *r = context;

    if (!r->is_open) {
        if (outfile_open(&r->out, result_options[result],
                         result_path(&r->options, result)) < 0)
            return PROBLEM;
        r->is_open = true;
    }
    if (bytes > 0) {
        fwrite(data, 1, bytes, r->out.file);
        return 0;
    }
    r->is_open = false;
    return outfile_commit(&r->out);
}

/* ------------------------------------------------------------------ the run */

static int train(struct remote_run *r, struct remote_client *client,
                 struct remote_description *description)
{
    const struct remote_job job = {description, prepare_files, take_result, r};
    struct training_run *run = r->run;
    int status = options_set_batch(&r->options, client_size(client));

    run->command->size = client_size(client);
    run->options = &r->options;
    if (status == 0 && run->functions->look)
        status = run->functions->look(run);
    if (status == 0)
        status = client_train(client, &job);
    if (r->is_open)
        outfile_discard(&r->out);
    return status;
}

int remote_main(struct training_run *run)
{
    struct remote_run r = {.run = run, .options = *run->options};
    struct remote_description description = {.program = NULL};
    struct remote_client *client = NULL;
    const char *program = options_name(run->options->program);
    int status;

    interrupt_install();
    if (sort_options(run->options, &description) < 0) {
        problem_print(stderr, program);
        return LINE_EXIT_USAGE;
    }
    status = describe(run->options, &description);
    if (status == 0)
        status = client_new(run->options->remote, &client);
    if (status == 0)
        status = train(&r, client, &description);
    if (status < 0)
        problem_print(stderr, program);
    client_free(client);
    if (run->functions->fini)
        run->functions->fini(run);
    return status < 0;
}
