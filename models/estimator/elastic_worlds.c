/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic_worlds.c - the worlds of an elastic training: ranks are lost, and
 * processes of the cluster join.
 *
 * Whoever joins has called hvd_init, while the others were in hvd_grow. It
 * prepares its training alone (agree.h), and meets the others where all of them
 * make a trainer for the new world. There it compares with rank 0 what must be
 * the same. If it differs, or fails before it has the state, it ends, and the
 * others go on without it, as after a loss: until its first restore every
 * failure is taken for one of a newcomer.
 */
#include "estimator/elastic.h"
#include "output/clock.h"
#include "output/launcher.h"
#include "output/problem.h"

#include <hvd_elastic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often a training that has too few ranks looks for more, and how long. */
enum { LOOK_US = 20000, MOST_SECONDS = 600 };

int elastic_failed(int status)
{
    return status < 0 ? problem_fail(status, "%s", hvd_last_error()) : 0;
}

static void forget(hvd_estimator *e)
{
    struct elastic *x = e->elastic;

    if (x->image) {
        hvd_state_unregister("estimator/tensors");
        hvd_state_unregister("estimator/numbers");
    }
    free(x->image);
    x->image = NULL;
}

/* A function of hvd_on_straggler. All ranks see the same, so all name it. */
static void drop(void *context, const hvd_straggler *s)
{
    const hvd_estimator *e = context;

    if (s->busy >= e->options.exclude_stragglers * s->median &&
        hvd_size() > e->options.elastic)
        hvd_exclude(s->rank);
}

void elastic_end(hvd_estimator *e)
{
    if (!e->elastic)
        return;
    if (e->options.exclude_stragglers > 0)
        hvd_off_straggler(drop, e);
    forget(e);
    free(e->elastic);
    e->elastic = NULL;
}

/* ---------------------------------------------------------------- newcomers */

/* Returns whether the training is a replay (replay.h), in which all know where
 * the others are. */
static bool is_replay(const hvd_estimator *e)
{
    return e->program && e->program->enter;
}

int elastic_compare_places(enum elastic_place mine)
{
    double counts[] = {mine == PLACE_STARTING, mine == PLACE_OVER};
    const int status = agree_sum(counts, 2);

    if (status < 0)
        return status;
    if (counts[1] > 0)
        return PLACE_OVER;
    return counts[0] > 0 ? PLACE_STARTING : PLACE_TRAINING;
}

static int fail_to_begin(hvd_estimator *e)
{
    e->starts_again = true;
    return problem_fail(HVD_ERR_LOST, "a rank was lost before this training "
                                      "began: begin it again");
}

/* Collective over newcomers and those who have let them in: finds out whether
 * all have come to the training, if they have not yet. The others of a
 * substitute, who recover, do so in leave_out_lost. */
static int meet_newcomers(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    int place = PLACE_TRAINING;

    if (x->meets)
        place = elastic_compare_places(PLACE_TRAINING);
    x->meets = false;
    if (place > PLACE_TRAINING)
        return fail_to_begin(e);
    return place == PLACE_TRAINING && e->counts.number == ELASTIC_NEWCOMER
               ? elastic_tell_earlier(e, true)
               : place;
}

int elastic_open(hvd_estimator *e)
{
    const bool is_new = agree_is_apart();
    int status = 0;

    if (e->options.elastic == 0 || e->elastic)
        return 0;
    e->elastic = calloc(1, sizeof *e->elastic);
    if (hvd_size() > ELASTIC_MOST_RANKS)
        status = problem_fail(HVD_ERR_UNSUPPORTED,
                              "elastic: there are %d ranks, and it knows %d at "
                              "most",
                              hvd_size(), ELASTIC_MOST_RANKS);
    else if (!e->elastic)
        status = problem_fail(HVD_ERR_MEMORY, "no memory for commits");
    if (status == 0 && e->options.exclude_stragglers > 0)
        status = elastic_failed(hvd_on_straggler(drop, e));
    status = estimator_agree(status);
    agree_apart(false);
    if (status == 0 && !is_new)
        status = elastic_tell_earlier(e, false);
    if (status < 0 || !e->elastic)
        return status;
    e->trainings++;
    e->counts = (struct elastic_counts){.number = ELASTIC_NEWCOMER};
    if (!is_new)
        e->counts = (struct elastic_counts){.number = hvd_rank(),
                                            .first_size = hvd_size()};
    e->elastic->nalike = agree_list(e->elastic->alike);
    e->elastic->goes_on = e->elastic->changed = is_new;
    e->elastic->meets = is_new && !is_replay(e);
    e->elastic->size = hvd_size();
    for (int rank = 0; rank < e->elastic->size; rank++)
        e->elastic->ranks[rank] = is_new ? ELASTIC_NEWCOMER : rank;
    return 0;
}

/* -------------------------------------------------- what must be the same */

enum { OWN_NUMBERS = 10, MOST_NUMBERS = OWN_NUMBERS + AGREE_MOST };

static int64_t hash_of(int64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t h = (uint64_t)hash;

    for (size_t i = 0; i < count; i++)
        /* The analyzer does not know the bytes of doubles.
         * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return (int64_t)h;
}

static int64_t hash_options(const hvd_estimator_options *o)
{
    const double numbers[] = {o->weight_decay, o->ema_decay, o->clip_norm,
                              o->loss_scale, o->skip_nonfinite};

    return hash_of(hash_of(1, o->optimizer, strlen(o->optimizer)), numbers,
                   sizeof numbers);
}

/* Lists what must be the same. Returns how many numbers there are. */
static int list_numbers(const hvd_estimator *e, const struct input *in,
                        struct agree_number *list)
{
    const hvd_estimator_options *o = &e->options;
    const struct elastic *x = e->elastic;
    hvd_position at = {.size = sizeof at};
    int n = x->nalike;

    hvd_iterator_position(in->iterator, &at);
    memcpy(list, x->alike, (size_t)n * sizeof *list);
    list[n++] =
        (struct agree_number){"calls of hvd_estimator_train", e->trainings};
    list[n++] = (struct agree_number){"rows of a batch", in->batch.capacity};
    list[n++] = (struct agree_number){"replicas", o->replicas};
    list[n++] = (struct agree_number){"accumulate", o->accumulate};
    list[n++] = (struct agree_number){"elastic_steps", o->elastic_steps};
    list[n++] = (struct agree_number){"seed", (int64_t)o->seed};
    list[n++] = (struct agree_number){"the optimizer", hash_options(o)};
    list[n++] = (struct agree_number){"elements of the data",
                                      hvd_dataset_count(in->data)};
    list[n++] = (struct agree_number){"seed of the data", (int64_t)at.seed};
    return n;
}

static int find_difference(const struct agree_number *mine,
                           const int64_t *theirs, int n)
{
    for (int i = 0; i < n; i++)
        if (mine[i].value != theirs[i])
            return problem_fail(HVD_ERR_MISMATCH,
                                "this process cannot join the training: %s: "
                                "%lld here, and %lld there",
                                mine[i].what, (long long)mine[i].value,
                                (long long)theirs[i]);
    return 0;
}

/* Adopts what all others have counted. */
static void merge_counts(struct elastic_counts *counts,
                         const struct elastic_counts *other)
{
    if (other->number >= counts->numbered)
        counts->numbered = other->number + 1;
    if (other->numbered > counts->numbered)
        counts->numbered = other->numbered;
    if (other->first_size > counts->first_size)
        counts->first_size = other->first_size;
    if (other->most > counts->most)
        counts->most = other->most;
    if (other->used_again > counts->used_again)
        counts->used_again = other->used_again;
    if (other->restarts > counts->restarts)
        counts->restarts = other->restarts;
    if (other->restarted > counts->restarted)
        counts->restarted = other->restarted;
}

/* Collective: gathers what each rank has counted, and adopts it. *all is the
 * caller's, [hvd_size()]. */
static int gather_counts(hvd_estimator *e, struct elastic_counts **all)
{
    enum { FIELDS = sizeof **all / sizeof(int64_t) };
    int status;

    *all = calloc((size_t)hvd_size(), sizeof **all);
    status = estimator_agree(
        *all ? 0 : problem_fail(HVD_ERR_MEMORY, "no memory for commits"));
    if (status == 0)
        status =
            elastic_failed(hvd_allgather(&e->counts, *all, FIELDS, HVD_INT64));
    for (int i = 0; i < hvd_size() && status == 0; i++)
        merge_counts(&e->counts, &(*all)[i]);
    return status;
}

/* Collective: has those who join know the numbers of the others, and which of
 * them an event has told. If these are lost as soon as the newcomers have the
 * state, the newcomers go on alone, with the next numbers, and tell of them. */
static int share_numbers(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    struct elastic_counts *all;
    int status = gather_counts(e, &all), known = 0;

    for (int32_t i = 0; i < x->size && status == 0; i++)
        x->ranks[i] = (int32_t)all[i].number;
    free(all);
    while (known < x->size && x->ranks[known] == ELASTIC_NEWCOMER)
        known++;
    return status < 0 || known == x->size
               ? status
               : elastic_failed(
                     hvd_broadcast(&x->told, sizeof x->told, HVD_UINT8, known));
}

int elastic_wait_for(int least)
{
    const double begun = clock_seconds();
    double counts[2] = {0, 0}; /* who waits, and whether rank 0 waits no more */
    int status = 0;

    while (status == 0 && counts[1] == 0 && hvd_size() + counts[0] < least) {
        usleep(LOOK_US);
        counts[0] = hvd_joiners();
        counts[1] = hvd_rank() == 0 && (launcher_present() ||
                                        clock_seconds() - begun > MOST_SECONDS);
        status = agree_sum(counts, 2);
    }
    return status < 0 ? status : counts[1] == 0;
}

/* Collective, newcomers included: waits for more ranks if they are still too
 * few, since some that waited have gone. Returns 1 if the next world is to have
 * more, or 0. */
static int wait_again(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    int status;

    if (hvd_size() >= e->options.elastic || x->ends || is_replay(e))
        return 0;
    status = elastic_wait_for(e->options.elastic);
    x->ends = status == 0;
    return status;
}

int elastic_compare(hvd_estimator *e, const struct input *in)
{
    struct agree_number mine[MOST_NUMBERS];
    int64_t theirs[MOST_NUMBERS];
    int n, status;

    if (!e->elastic || !e->elastic->goes_on)
        return 0;
    status = meet_newcomers(e);
    if (status == 0)
        status = wait_again(e);
    if (status != 0)
        return status;
    status = estimator_agree(in ? 0 : PROBLEM);
    if (status < 0 || !in)
        return status;
    n = list_numbers(e, in, mine);
    for (int i = 0; i < n; i++)
        theirs[i] = mine[i].value;
    status = elastic_failed(hvd_broadcast(theirs, n, HVD_INT64, 0));
    if (status == 0)
        status = estimator_agree(find_difference(mine, theirs, n));
    return status < 0 ? status : share_numbers(e);
}

int elastic_meet(hvd_estimator *e, json_t **joined)
{
    struct elastic *x = e->elastic;
    struct elastic_counts *all;
    int status = gather_counts(e, &all);

    *joined = json_array();
    x->size = hvd_size();
    for (int32_t i = 0; i < x->size && status == 0; i++) {
        if (all[i].number == ELASTIC_NEWCOMER) {
            all[i].number = e->counts.numbered++;
            elastic_note_number(x, (int32_t)all[i].number);
            json_array_append_new(*joined, json_integer(all[i].number));
        }
        x->ranks[i] = (int32_t)all[i].number;
    }
    if (x->size > e->counts.most)
        e->counts.most = x->size;
    if (status == 0)
        e->counts.number = x->ranks[hvd_rank()];
    free(all);
    return status;
}

/* ------------------------------------------------------------------ growing */

int elastic_look(hvd_estimator *e)
{
    double waiting = hvd_joiners();
    int status = 0;

    if (e->stops || e->step >= e->last)
        return 0;
    if (e->program && e->program->leaves)
        waiting = e->program->leaves(e->program->context, e);
    else
        status = agree_sum(&waiting, 1);
    if (status < 0 || waiting <= 0)
        return status;
    status = elastic_failed(hvd_commit_wait());
    return status < 0 ? status : 1;
}

/* Has the training go on in a world of other ranks, whose trainer is still to
 * be made. size: ranks of it that this rank knows. */
static void enter_world(hvd_estimator *e, int32_t size)
{
    struct elastic *x = e->elastic;

    averages_fini(e);
    trainer_free(e->trainer);
    e->trainer = NULL;
    x->size = hvd_size();
    for (int32_t i = size; i < x->size; i++)
        x->ranks[i] = ELASTIC_NEWCOMER;
    x->goes_on = x->changed = true;
    e->workers = hvd_size();
    if (e->program && e->program->changed)
        e->program->changed(e->program->context, e);
}

/* Goes to the next world of another training. */
static int repeat_change(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    const int status = e->program->enter(e->program->context);

    if (status < 0)
        return status;
    /* A process that was not in every world is a new one. */
    if (status == 0) {
        forget(e);
        e->counts.number = ELASTIC_NEWCOMER;
    }
    enter_world(e, status == 0            ? 0
                   : x->size < hvd_size() ? x->size
                                          : hvd_size());
    return 1;
}

/* If a rank is lost while others come in, hvd_grow may end in a world of those
 * that are left. Some of them may have come to it by hvd_recover: so this
 * counts as a loss for all, and elastic_recover goes on with it. */
int elastic_change(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    hvd_recovery how = {.nlost = 0};
    int status;

    x->reached = e->step;
    if (is_replay(e))
        return repeat_change(e);
    status = hvd_grow(&how, sizeof how);
    if (status < 0)
        return elastic_failed(status);
    x->is_left = status == 1 && how.nlost > 0;
    if (x->is_left)
        return problem_fail(HVD_ERR_LOST,
                            "a rank was lost while others joined");
    x->meets = status == 1;
    enter_world(e, x->size);
    return 1;
}

/* ------------------------------------------------------------------- losses */

static bool is_loss(void)
{
    const int status = hvd_check();

    return status == HVD_ERR_LOST || status == HVD_ERR_STALLED;
}

/* Returns whether a rank is here that has not got the state yet, and this is
 * another one. */
static bool awaits_newcomers(const hvd_estimator *e)
{
    const struct elastic *x = e->elastic;
    bool found = false;

    for (int32_t i = 0; i < x->size && x->goes_on; i++)
        found |= x->ranks[i] == ELASTIC_NEWCOMER;
    return found && e->counts.number != ELASTIC_NEWCOMER;
}

/* Lists which ranks are left, by their numbers, and counts those of the others
 * that no event has told. Returns how many are left. */
static int32_t list_left(struct elastic *x)
{
    hvd_lost_rank lost[ELASTIC_MOST_RANKS];
    const int nlost = hvd_lost_ranks(lost, ELASTIC_MOST_RANKS);
    int32_t kept = 0;

    for (int32_t rank = 0, at = 0; rank < x->size; rank++) {
        const int32_t number = x->ranks[rank];

        if (at == nlost || lost[at].rank != rank)
            x->ranks[kept++] = number;
        else if (++at, !elastic_has(x->told.ranks, x->told.count, number))
            x->told.newcomers++;
    }
    return kept;
}

/* Collective: makes a world without the ranks that are lost, if hvd_grow has
 * not made it, and returns what elastic_compare_places does. If the training is
 * over, there is a trainer still, and nothing is written: another rank has
 * written the end. */
static int leave_out_lost(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    int32_t left;
    json_t *json;
    int place;

    do {
        if (!x->is_left && hvd_recover(NULL, 0) < 0)
            return problem_fail(HVD_ERR_LOST, "%s", hvd_last_error());
        x->is_left = false;
        left = list_left(x);
        json = elastic_describe_lost(e, left);
        place = elastic_compare_places(PLACE_TRAINING);
        if (place == PLACE_OVER) {
            json_decref(json);
            return place;
        }
        x->lost = true;
        /* Until hvd_recover returned, requests that failed could use the
         * trainer's memory. */
        enter_world(e, left);
        if (elastic_write(e, json) < 0)
            return HVD_ERR_FILE;
    } while (place < 0 && is_loss());
    return place;
}

/* Collective: waits until there are enough ranks again, and lets them in.
 * Returns 1, or 0 if they do not come. */
static int wait_for_more(hvd_estimator *e)
{
    const int status = elastic_wait_for(e->options.elastic);

    return status > 0 ? elastic_change(e) : status;
}

int elastic_say_short(const char *option, int least, const char *more)
{
    return problem_fail(HVD_ERR_LOST,
                        "%d %s left, and %s asks for %d at least: start "
                        "the training again with more%s",
                        hvd_size(), hvd_size() == 1 ? "rank is" : "ranks are",
                        option, least, more);
}

int elastic_fail_short(hvd_estimator *e, const char *more)
{
    e->has_too_few = true;
    return elastic_say_short(e->program ? "--elastic" : "elastic",
                             e->options.elastic, more);
}

int elastic_stop(hvd_estimator *e)
{
    e->has_too_few = true;
    return elastic_write(e, elastic_describe_stop(e)) < 0
               ? HVD_ERR_FILE
               : elastic_fail_short(e, "");
}

int elastic_recover(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    int place, status = 1;

    if (!x || e->starts_again ||
        (!x->is_left && !is_loss() && !awaits_newcomers(e)))
        return WAY_NONE;
    x->reached = e->step;
    do {
        place = leave_out_lost(e);
        if (place < 0 || place == PLACE_OVER)
            return place < 0 ? place : WAY_OVER;
        if (place == PLACE_STARTING)
            return fail_to_begin(e);
        status = 1;
        while (status > 0 && !x->meets && hvd_size() < e->options.elastic)
            status = wait_for_more(e);
    } while (status < 0 && (x->is_left || is_loss()));
    if (status < 0)
        return status;
    x->ends = status == 0;
    return x->ends && !e->options.model_dir ? elastic_stop(e) : WAY_AGAIN;
}
