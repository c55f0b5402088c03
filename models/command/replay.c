/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - a replay has the worlds that the file of events tells of, each
 * from the commit at which the training went on then. What was done between
 * that commit and a loss was rolled back, so that the moment does not matter:
 * the weights are the same, bit by bit. Data that are not those of the training
 * are refused, by their mark.
 *
 * If ranks were only lost, the same ones are lost again. If some joined, or the
 * job was started again and went on from a checkpoint, or a training with fewer
 * ranks than there were at first began anew before its first commit, a launcher
 * of MPI starts at least as many processes as the largest world had ranks, and
 * each world is made of the first of them (hvd_init_ranks). The others wait for
 * the next that has them, and get the state there as those did that joined.
 */
#include "command/replay.h"

#include "output/launcher.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of reading a file of events. */
struct reading {
    struct training_run *run;
    bool lost;      /* this rank has been lost by now */
    bool grows;     /* somebody joined */
    int first_size; /* ranks that began */
    char data[24];  /* the mark of their data; "": there is none */
};

/* Returns whether a world begins with an event: behind a commit, or at the
 * beginning if there was no commit yet. */
static bool begins(const char *event)
{
    return event &&
           (strcmp(event, "restore") == 0 || strcmp(event, "start") == 0 ||
            strcmp(event, "join") == 0 || strcmp(event, "resume") == 0);
}

/* Adds a world, and removes those that came to no commit. */
static int add_world(struct training_run *run, const json_t *event, int size)
{
    const int64_t step = json_integer_value(json_object_get(event, "step"));
    struct training_world *grown;

    while (run->nworlds > 0 && run->worlds[run->nworlds - 1].step >= step)
        run->nworlds--;
    grown = realloc(run->worlds, ((size_t)run->nworlds + 1) * sizeof *grown);
    if (!grown)
        return problem_set("no memory for --elastic-replay");
    run->worlds = grown;
    run->worlds[run->nworlds++] = (struct training_world){step, size};
    return 0;
}

/* Forgets what came before the training began, or began anew since no commit
 * was there to go back to. */
static void note_start(struct reading *r, const json_t *event, int size)
{
    const char *data = json_string_value(json_object_get(event, "data"));

    r->run->nworlds = 0;
    r->run->last_step = -1;
    *r = (struct reading){.run = r->run, .first_size = size};
    if (data)
        snprintf(r->data, sizeof r->data, "%s", data);
}

/* Notes the step in which this rank is lost, if the training went on without
 * it, and the world that begins. */
static int note_event(struct reading *r, const json_t *event)
{
    struct training_run *run = r->run;
    const char *name = json_string_value(json_object_get(event, "event"));
    const int size = (int)json_array_size(json_object_get(event, "ranks"));
    const json_t *ranks = json_object_get(event, "lost");

    if (begins(name) && size == 0)
        return problem_set("--elastic-replay %s: an event '%s' has no ranks: "
                           "give a file of --elastic-log",
                           run->options->elastic_replay, name);
    if (name && strcmp(name, "start") == 0)
        note_start(r, event, size);
    for (size_t i = 0; i < json_array_size(ranks); i++)
        r->lost |=
            json_integer_value(json_array_get(ranks, i)) == run->command->rank;
    if (!begins(name))
        return 0;
    if (r->lost && run->last_step < 0)
        run->last_step = json_integer_value(json_object_get(event, "step")) + 1;
    r->grows |=
        json_object_get(event, "joined") != NULL || strcmp(name, "resume") == 0;
    return add_world(run, event, size);
}

static int read_file(struct reading *r, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1 << 16];
    int number = 0, status = 0;

    if (!file)
        return problem_set("--elastic-replay %s: cannot be read", path);
    while (status == 0 && fgets(line, sizeof line, file)) {
        json_t *event = json_loads(line, 0, NULL);

        number++;
        status = event ? note_event(r, event)
                       : problem_set("--elastic-replay %s: line %d is no JSON: "
                                     "give a file of --elastic-log",
                                     path, number);
        json_decref(event);
    }
    fclose(file);
    if (status == 0 && r->first_size <= 0)
        return problem_set("--elastic-replay %s: no event is a start: give a "
                           "file of --elastic-log",
                           path);
    return status;
}

/* Checks that there are the processes for all worlds. */
static int check_processes(const struct training_run *run)
{
    const char *path = run->options->elastic_replay;
    int most = 0;

    for (int i = 0; i < run->nworlds; i++)
        if (run->worlds[i].size > most)
            most = run->worlds[i].size;
    if (run->command->size >= most && (most == 1 || launcher_present()))
        return 0;
    return problem_set("--elastic-replay %s: start the replay by mpirun -np "
                       "%d, as many ranks as that training had at most",
                       path, most);
}

/* Checks that the data are those of the training that is repeated. */
static int check_data(const struct reading *r)
{
    char mark[sizeof r->data];

    snprintf(mark, sizeof mark, "%016" PRIx64, r->run->plan.data_mark);
    if (!*r->data || strcmp(r->data, mark) == 0)
        return 0;
    return problem_set("--elastic-replay %s: that training had other data "
                       "(mark %s, here %s): give it the same",
                       r->run->options->elastic_replay, r->data, mark);
}

/* Plans the epochs of so many ranks. */
static void plan_epochs(struct training_run *run, int size)
{
    struct training_plan *plan = &run->plan;
    const struct options *o = run->options;

    if (o->epochs == 0 || size <= 0)
        return;
    plan->part = plan->examples / (training_rows(run) / hvd_size() * size);
    plan->steps = o->epochs * plan->part;
    if (o->steps > 0 && o->steps < plan->steps)
        plan->steps = o->steps;
}

/* Has the run be one of the ranks that there are now. A schedule that was given
 * is that of those who began. */
static void adopt_world(struct training_run *run, int first_size)
{
    struct command *command = run->command;

    command->rank = hvd_rank();
    command->size = hvd_size();
    run->outcome.world_size = command->size;
    options_set_rate(command->options, command->size);
    plan_epochs(run, first_size);
    run->schedule_steps = run->plan.steps;
    plan_epochs(run, command->size);
}

int replay_begin(struct training_run *run)
{
    const char *path = run->options->elastic_replay;
    struct reading reading = {.run = run};
    int status = 0;

    run->last_step = run->world = -1;
    run->process = run->command->rank;
    if (path)
        status = read_file(&reading, path);
    if (status == 0 && path)
        status = check_processes(run);
    if (status == 0 && path)
        status = check_data(&reading);
    /* The same ranks are lost again, or all worlds are made. */
    if (!reading.grows && reading.first_size == run->command->size)
        run->nworlds = 0;
    status = agree(status);
    if (status < 0 || run->nworlds == 0)
        return status;
    run->last_step = -1;
    status = replay_enter(run);
    if (status < 0)
        return status;
    agree_apart(status == 0);
    adopt_world(run, reading.first_size);
    return 0;
}

void replay_before_step(const struct training_run *run)
{
    if (run->last_step >= 0 && run->outcome.steps >= run->last_step)
        raise(SIGKILL);
}

bool replay_leaves(void *context, const hvd_estimator *estimator)
{
    const struct training_run *run = context;

    return run->world + 1 < run->nworlds &&
           run->worlds[run->world + 1].step == estimator->step;
}

int replay_enter(void *context)
{
    struct training_run *run = context;
    const int next = run->world + 1;
    int32_t *ranks;
    int status;

    hvd_shutdown();
    do
        run->world++;
    while (run->world < run->nworlds &&
           run->worlds[run->world].size <= run->process);
    if (run->world == run->nworlds)
        exit(0); /* no world has this process any more */
    ranks = malloc((size_t)run->worlds[run->world].size * sizeof *ranks);
    if (!ranks)
        return problem_set("no memory for --elastic-replay");
    for (int i = 0; i < run->worlds[run->world].size; i++)
        ranks[i] = i;
    status = hvd_init_ranks(ranks, run->worlds[run->world].size);
    free(ranks);
    return status < 0 ? agree_hvd_problem(status) : run->world == next;
}

int replay_check(const struct training_run *run)
{
    if (run->nworlds == 0 || run->world == run->nworlds - 1)
        return 0;
    problem_set("--elastic-replay %s: ranks came or went after step %lld, and "
                "this training does not commit there: give it the options of "
                "the other one",
                run->options->elastic_replay,
                (long long)run->worlds[run->world + 1].step);
    return PROBLEM_EVERYWHERE;
}

void replay_fini(struct training_run *run)
{
    free(run->worlds);
    run->worlds = NULL;
    run->nworlds = 0;
}
