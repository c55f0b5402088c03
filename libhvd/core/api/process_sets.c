/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_sets.c - adds and removes process sets.
 *
 * Both are collectives of the world that are built from gathers of the library.
 * In the first gather every rank gets the changes that all ranks ask for and
 * evaluates them; all come to the same verdict. If all ask for the same, each
 * rank makes its part, and a second gather shows whether all succeeded. No rank
 * uses a set before all ranks have it.
 *
 * All ranks see the same sequence of changes, so ids and the tags of sets need
 * no agreement: they are the next id and the lowest free tags.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "core/api/submit.h"

/* A change that a rank asks for. */
struct change {
    int32_t status; /* negative: the change itself is invalid */
    int32_t remove; /* id of the set to remove; -1: add a set */
    int32_t nranks;
    char message[256];
    int32_t ranks[]; /* ranks of the set to add, ascending */
};

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static size_t change_bytes(int32_t nranks)
{
    return sizeof(struct change) + (size_t)nranks * sizeof(int32_t);
}

static struct change *change_new(int32_t nranks)
{
    struct change *change = calloc(1, change_bytes(nranks));

    if (!change)
        return NULL;
    change->remove = -1;
    change->nranks = nranks;
    return change;
}

static void keep_mistake(struct change *change)
{
    snprintf(change->message, sizeof change->message, "%s", hvd_last_error());
}

/* ------------------------------------------------------- gathering changes */

/* Gathers all ranks' changes, in their order. The caller frees *all with
 * hvd_free. */
static int gather_changes(const struct change *mine, hvd_tensor *all)
{
    int64_t bytes = (int64_t)change_bytes(mine->nranks);
    hvd_request request;

    *all = (hvd_tensor){.size = sizeof *all};
    hvd__fill(&request, HVD_ALLGATHER, mine, NULL, &bytes, HVD_UINT8);
    return hvd__run(&request, HVD__SETS_NAME, all);
}

static const struct change *next_change(const struct change *change)
{
    return (const struct change *)(const void *)((const char *)change +
                                                 change_bytes(change->nranks));
}

static bool same_change(const struct change *a, const struct change *b)
{
    return a->remove == b->remove && a->nranks == b->nranks &&
           memcmp(a->ranks, b->ranks, (size_t)a->nranks * sizeof *a->ranks) ==
               0;
}

static void describe_change(struct hvd__text *out, const struct change *change)
{
    if (change->remove >= 0) {
        hvd__text_add(out, "remove process set %d", (int)change->remove);
        return;
    }
    hvd__text_add(out, "add ranks");
    for (int32_t i = 0; i < change->nranks; i++)
        hvd__text_add(out, "%s%d", i ? "," : " ", (int)change->ranks[i]);
}

static int fail_differing(const struct change *first,
                          const struct change *other, int rank)
{
    char text[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    hvd__text_add(&out, "process sets differ: rank 0: ");
    describe_change(&out, first);
    hvd__text_add(&out, "; rank %d: ", rank);
    describe_change(&out, other);
    hvd__text_add(&out, "; all ranks must make the same changes in the same "
                        "order");
    return hvd__fail_text(HVD_ERR_MISMATCH, text);
}

/* Returns the verdict on all changes, which is the same on every rank. */
static int judge_changes(const struct change *first, int size)
{
    const struct change *change = first;

    for (int rank = 0; rank < size; rank++, change = next_change(change))
        if (change->status < 0)
            return hvd__fail(change->status, "rank %d: %s", rank,
                             change->message);
    change = first;
    for (int rank = 0; rank < size; rank++, change = next_change(change))
        if (!same_change(first, change))
            return fail_differing(first, change, rank);
    return HVD_OK;
}

/* Shares a change, or this rank's status, and returns the verdict. */
static int agree_on_change(const struct change *mine, int size)
{
    hvd_tensor all;
    int status = gather_changes(mine, &all);

    if (status == HVD_OK)
        status = judge_changes(all.data, size);
    hvd_free(all.data);
    return status;
}

/* Does the second gather, which shows whether all ranks succeeded. */
static int all_done(int status, int size)
{
    struct change *change = change_new(0);
    int verdict;

    if (!change)
        return hvd__fail_memory(sizeof *change);
    change->status = status;
    if (status < 0)
        keep_mistake(change);
    verdict = agree_on_change(change, size);
    free(change);
    return verdict;
}

/* --------------------------------------------------------------- adding one */

static int compare_ranks(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Sorts the ranks and returns an error if they are invalid. */
static int check_ranks(struct change *change, int size)
{
    qsort(change->ranks, (size_t)change->nranks, sizeof *change->ranks,
          compare_ranks);
    if (change->nranks < 1)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a process set needs one rank or more; n is less, or "
                         "the list is NULL");
    for (int32_t i = 0; i < change->nranks; i++) {
        if (change->ranks[i] < 0 || change->ranks[i] >= size)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "rank %d of a process set is not one of the %d "
                             "ranks",
                             (int)change->ranks[i], size);
        if (i > 0 && change->ranks[i] == change->ranks[i - 1])
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "rank %d is twice in a process set",
                             (int)change->ranks[i]);
    }
    return HVD_OK;
}

static bool has_ranks(const struct hvd__set *set, const struct change *change)
{
    if (set->team.size != change->nranks)
        return false;
    for (int i = 0; i < set->team.size; i++)
        if (set->ranks[i] != change->ranks[i])
            return false;
    return true;
}

/* The list of sets is read without its lock, because only this file changes it,
 * one change at a time. */
static int check_new(const struct hvd__world *world,
                     const struct change *change)
{
    for (int i = 0; i < world->engine.table.nsets; i++)
        if (has_ranks(world->engine.table.sets[i], change))
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "process set %d consists of these ranks already",
                             (int)world->engine.table.sets[i]->id);
    if (world->last_id == INT32_MAX)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "this world has had 2^31 process sets, and ids are "
                         "not used again: hvd_shutdown and hvd_init begin "
                         "another");
    return HVD_OK;
}

/* Returns the lowest slot that no set has, or a negative status if memory runs
 * out. */
static int free_tags(const struct hvd__world *world)
{
    bool *taken = calloc((size_t)world->engine.table.nsets + 1, sizeof *taken);
    int slot = 0;

    if (!taken)
        return hvd__fail_memory((size_t)world->engine.table.nsets + 1);
    for (int i = 0; i < world->engine.table.nsets; i++)
        if (world->engine.table.sets[i]->tag_slot < world->engine.table.nsets)
            taken[world->engine.table.sets[i]->tag_slot] = true;
    while (taken[slot])
        slot++;
    free(taken);
    return slot;
}

/* Makes a set without its engine. */
static int make_set(const struct hvd__world *world,
                    const struct hvd__new_set *new_set, struct hvd__set **made)
{
    const size_t n = (size_t)new_set->nranks;
    int *ranks = malloc(n * sizeof *ranks);

    if (!ranks)
        return hvd__fail_memory(n * sizeof *ranks);
    for (size_t i = 0; i < n; i++)
        ranks[i] = new_set->ranks[i];
    *made = hvd__set_new(world->engine.transport, new_set->id, ranks, (int)n,
                         new_set->tag_slot);
    return *made ? HVD_OK : hvd__fail_memory(sizeof **made);
}

static int prepare_set(struct hvd__world *world, struct hvd__set *set)
{
    int most = world->engine.transport->ntags / HVD__SET_TAGS;

    if (set->tag_slot >= most)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "MPI has tags for %d process sets at a time: remove "
                         "some",
                         most);
    if (!hvd__set_has_us(set))
        return HVD_OK;
    return hvd__set_prepare(world, set);
}

int hvd__set_enter(struct hvd__world *world, const struct hvd__new_set *new_set,
                   struct hvd__set **set)
{
    int status = make_set(world, new_set, set);

    if (status == HVD_OK)
        status = prepare_set(world, *set);
    if (status == HVD_OK)
        status = hvd__table_add_set(&world->engine.table, *set);
    if (status < 0 && *set) {
        hvd__set_retire(*set);
        hvd__set_free(*set);
        *set = NULL;
    }
    return status;
}

/* Makes a set that all ranks have agreed on. Collective. Returns its id. */
static int install_set(struct hvd__world *world, const struct change *change,
                       int32_t id)
{
    int size = world->engine.transport->size;
    struct hvd__new_set new_set = {id, change->ranks, change->nranks,
                                   free_tags(world)};
    struct hvd__set *set = NULL;
    int status = new_set.tag_slot;

    /* The set must be in the table before others may send messages about it. */
    if (status >= 0)
        status = hvd__set_enter(world, &new_set, &set);
    status = all_done(status, size);
    if (status < 0 && set) {
        hvd__set_retire(set);
        hvd__table_remove_set(&world->engine.table, set);
    }
    HVD_TRY(status);
    if (hvd__set_has_us(set))
        hvd__world_move_set(world, set);
    return id;
}

static int add_set(struct hvd__world *world, struct change *change)
{
    int size = world->engine.transport->size;
    int status = check_ranks(change, size);

    if (status == HVD_OK)
        status = check_new(world, change);
    change->status = status;
    if (status < 0)
        keep_mistake(change);
    HVD_TRY(agree_on_change(change, size));
    /* The id is used up even on failure, so that all ranks count alike. */
    return install_set(world, change, ++world->last_id);
}

int hvd__set_make_again(struct hvd__world *world, int32_t id,
                        const int32_t *ranks, int32_t n)
{
    struct change *change = change_new(n);
    int status;

    if (!change)
        return hvd__fail_memory(change_bytes(n));
    memcpy(change->ranks, ranks, (size_t)n * sizeof *ranks);
    pthread_mutex_lock(&changing);
    status = install_set(world, change, id);
    pthread_mutex_unlock(&changing);
    free(change);
    return status < 0 ? status : HVD_OK;
}

int hvd_add_process_set(const int32_t *ranks, int32_t n)
{
    int status;
    struct hvd__world *world;
    struct change *change;

    HVD_TRY(hvd__world_get(&world));
    if (n > 0 && !ranks)
        n = 0;
    change = change_new(n < 0 ? 0 : n);
    if (!change)
        return hvd__fail_memory(change_bytes(n));
    if (n > 0)
        memcpy(change->ranks, ranks, (size_t)n * sizeof *ranks);
    pthread_mutex_lock(&changing);
    status = add_set(world, change);
    pthread_mutex_unlock(&changing);
    free(change);
    return status;
}

/* ------------------------------------------------------------- removing one */

static bool is_closed(const void *context)
{
    const struct hvd__set *set = context;

    return atomic_load(&set->closed);
}

struct ending {
    const struct hvd__world *world;
    const struct hvd__set *set;
};

static bool has_ended(const void *context)
{
    const struct ending *ending = context;

    return is_closed(ending->set) || atomic_load(&ending->world->broken);
}

static int no_set(const struct hvd__world *world, int32_t id)
{
    if (id > 0 && id <= world->old_id)
        return hvd__fail(HVD_ERR_PROCESS_SET,
                         "process set %d was of an earlier world, and "
                         "hvd_restore has not made it again: all of its ranks "
                         "are lost, or it was in no commit; add another one, "
                         "of the ranks that are left",
                         (int)id);
    return hvd__fail(HVD_ERR_PROCESS_SET, "there is no process set %d",
                     (int)id);
}

/* set is the set with this id, or NULL if there is none. */
static int check_removal(const struct hvd__world *world, int32_t id,
                         const struct hvd__set *set)
{
    if (id == 0)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "process set 0, all ranks, cannot be removed");
    return set ? HVD_OK : no_set(world, id);
}

static int close_set(struct hvd__world *world, struct hvd__set *set)
{
    struct ending ending = {world, set};

    if (hvd__set_has_us(set)) {
        hvd__table_close(&world->engine.table, set, HVD_ERR_PROCESS_SET,
                         "the process set has been removed");
        atomic_store(&set->leaving, true);
        hvd__progress_until(world, has_ended, &ending, 0);
        if (!is_closed(set))
            return hvd__fail_text(world->break_status, world->break_message);
        hvd__set_retire(set);
    }
    hvd__table_remove_set(&world->engine.table, set);
    return HVD_OK;
}

/* set is the set with this id, or NULL if there is none. */
static int remove_set(struct hvd__world *world, int32_t id,
                      struct hvd__set *set)
{
    struct change *change = change_new(0);
    int status;

    if (!change)
        return hvd__fail_memory(sizeof *change);
    change->remove = id < 0 ? INT32_MAX : id;
    change->status = check_removal(world, id, set);
    if (change->status < 0)
        keep_mistake(change);
    status = agree_on_change(change, world->engine.transport->size);
    free(change);
    HVD_TRY(status);
    status = close_set(world, set);
    return all_done(status, world->engine.transport->size);
}

int hvd_remove_process_set(int32_t process_set)
{
    int status;
    struct hvd__world *world;
    struct hvd__set *set;

    HVD_TRY(hvd__world_get(&world));
    pthread_mutex_lock(&changing);
    set = hvd__table_find_set(&world->engine.table, process_set);
    status = remove_set(world, process_set, set);
    hvd__set_put(set);
    pthread_mutex_unlock(&changing);
    return status;
}

/* ---------------------------------------------------------------- questions */

int hvd__find_set(struct hvd__world *world, int32_t id, struct hvd__set **set)
{
    *set = hvd__table_find_set(&world->engine.table, id);
    return *set ? HVD_OK : no_set(world, id);
}

int hvd__check_member(const struct hvd__set *set)
{
    char text[160];

    if (hvd__set_has_us(set))
        return HVD_OK;
    return hvd__fail(HVD_ERR_PROCESS_SET, "rank %d is not a member of %s",
                     set->team.transport->rank,
                     hvd__set_print(set, text, sizeof text));
}

/* Finds a process set of the world, as hvd__find_set. */
static int look_up_set(int32_t id, struct hvd__set **set)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    return hvd__find_set(world, id, set);
}

int hvd_process_set_rank(int32_t process_set)
{
    struct hvd__set *set;
    int status;

    HVD_TRY(look_up_set(process_set, &set));
    status = hvd__check_member(set);
    if (status == HVD_OK)
        status = set->team.rank;
    hvd__set_put(set);
    return status;
}

int hvd_process_set_size(int32_t process_set)
{
    return hvd_process_set_ranks(process_set, NULL, 0);
}

int hvd_process_set_included(int32_t process_set)
{
    struct hvd__set *set;
    bool included;

    HVD_TRY(look_up_set(process_set, &set));
    included = hvd__set_has_us(set);
    hvd__set_put(set);
    return included;
}

int hvd_process_set_ids(int32_t *ids, int32_t n)
{
    struct hvd__world *world;
    int count;

    HVD_TRY(hvd__world_get(&world));
    if (n < 0 || (n > 0 && !ids))
        return hvd__fail(HVD_ERR_ARGUMENT, "no room for ids: n is %d%s", (int)n,
                         ids ? "" : ", ids is NULL");
    hvd__mutex_lock(&world->engine.table.lock);
    count = world->engine.table.nsets;
    for (int i = 0; i < count && i < n; i++)
        ids[i] = world->engine.table.sets[i]->id;
    hvd__mutex_unlock(&world->engine.table.lock);
    return count;
}

int hvd_number_of_process_sets(void)
{
    return hvd_process_set_ids(NULL, 0);
}

int hvd_process_set_ranks(int32_t process_set, int32_t *ranks, int32_t n)
{
    struct hvd__set *set;
    int status;

    HVD_TRY(look_up_set(process_set, &set));
    if (n < 0 || (n > 0 && !ranks))
        status = hvd__fail(HVD_ERR_ARGUMENT, "no room for ranks: n is %d%s",
                           (int)n, ranks ? "" : ", ranks is NULL");
    else
        status = set->team.size;
    for (int i = 0; i < status && i < n; i++)
        ranks[i] = set->ranks[i];
    hvd__set_put(set);
    return status;
}

/* ----------------------------------------------------------- from the start */

void hvd_options_init(hvd_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
}

/* All ranks must contribute the same number. */
static int check_number(int32_t n)
{
    int32_t least = n, most = n, *numbers;
    const int64_t one = 1;
    hvd_tensor all = {.size = sizeof all};
    hvd_request request;

    hvd__fill(&request, HVD_ALLGATHER, &n, NULL, &one, HVD_INT32);
    HVD_TRY(hvd__run(&request, HVD__SETS_NAME, &all));
    numbers = all.data;
    for (int64_t i = 0; i < all.shape[0]; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    hvd_free(all.data);
    if (least == most)
        return HVD_OK;
    return hvd__fail(HVD_ERR_MISMATCH,
                     "process sets differ: rank %d starts with %d of them, "
                     "others with %d to %d",
                     hvd_rank(), (int)n, (int)least, (int)most);
}

static int add_first_sets(const hvd_options *options)
{
    const int32_t *ranks = options->process_set_ranks;
    hvd_recovery how;

    /* The others of a running job do not come here: who joins gets its sets by
     * hvd_restore, from them. */
    HVD_TRY(hvd_last_recovery(&how, sizeof how));
    if (how.generation > 0)
        return HVD_OK;
    HVD_TRY(check_number(options->nprocess_sets));
    for (int32_t i = 0; i < options->nprocess_sets; i++) {
        int32_t n = options->process_set_sizes[i];

        HVD_TRY(hvd_add_process_set(ranks, n));
        ranks += n > 0 ? n : 0;
    }
    return HVD_OK;
}

int hvd_init_with(const hvd_options *options)
{
    int status;

    if (!options || options->size < sizeof *options)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the options are %s: fill them with hvd_options_init "
                         "first",
                         options ? "of no size" : "NULL");
    if (options->nprocess_sets < 0 ||
        (options->nprocess_sets > 0 &&
         (!options->process_set_sizes || !options->process_set_ranks)))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the options have %d process sets, but no array of "
                         "their sizes and ranks",
                         (int)options->nprocess_sets);
    if (hvd_is_initialized())
        return options->nprocess_sets > 0
                   ? hvd__fail(HVD_ERR_ARGUMENT,
                               "the library is initialised already: add "
                               "process sets with hvd_add_process_set")
                   : HVD_OK;
    HVD_TRY(hvd_init());
    status = add_first_sets(options);
    if (status < 0) {
        char text[HVD__MESSAGE_MAX];

        snprintf(text, sizeof text, "%s", hvd_last_error());
        hvd_shutdown();
        return hvd__fail_text(status, text);
    }
    return HVD_OK;
}
