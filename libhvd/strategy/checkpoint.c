/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - saves a strategy to a file and loads it, so that training
 * continues where it stopped, on any number of ranks.
 *
 *     head        magic, version, byte order, optimiser, number of variables
 *     variable    name, shape, number of updates; its elements; the state of
 *     variable    the optimiser, in as many arrays as that optimiser keeps
 *     ...
 *     statistic   name, shape, -1 updates; its mean when it was last read
 *     ...
 *     checksum    of all bytes before it (blob.c)
 *
 * Variables are found by their names, in whatever order they were added. Only
 * rank 0 reads the file. It reads all heads first, which show whether the file
 * belongs to this model and where each variable lies. Only then does it read
 * the elements, so a file that does not fit changes nothing. tensors.c brings
 * the optimiser's state to the rank that writes, and what rank 0 has read to
 * all ranks.
 *
 * Numbers are in the byte order of the machine that wrote the file; a machine
 * of the other order notices that.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/blob.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* A statistic is one that no optimiser updates. */
enum { VERSION = 1, ORDER = 0x01020304, STATISTIC = -1 };

static const char magic[8] = "hvdstate";

struct head {
    char magic[8];
    uint32_t version;
    uint32_t order;
    int32_t optimizer;
    int32_t nstates;    /* arrays of optimiser state per variable */
    int64_t nvariables; /* statistics among them */
};

/* The head of a variable, before its name and elements. */
struct variable_head {
    int32_t name_bytes;
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
    int64_t updates;
};

static const char rule[] = "checkpoints are written and read";

/* ------------------------------------------------------------------ writing */

/* updates: how many v has had, or STATISTIC. */
static int put_head(struct hvd__blob_writer *w, const struct hvd__variable *v,
                    int64_t updates)
{
    struct variable_head head = {.name_bytes = (int32_t)strlen(v->name),
                                 .ndim = v->ndim,
                                 .updates = updates};

    memcpy(head.shape, v->shape, (size_t)v->ndim * sizeof *head.shape);
    HVD_TRY(hvd__blob_put(w, &head, sizeof head));
    return hvd__blob_put(w, v->name, (size_t)head.name_bytes);
}

static int put_variable(struct hvd__blob_writer *w,
                        const struct hvd__variable *v, int nstates)
{
    size_t bytes = (size_t)v->count * sizeof(float);

    HVD_TRY(put_head(w, v, v->steps));
    HVD_TRY(hvd__blob_put(w, v->value, bytes));
    for (int k = 0; k < nstates; k++)
        HVD_TRY(hvd__blob_put(w, v->states[k], bytes));
    return HVD_OK;
}

static int put_statistic(struct hvd__blob_writer *w,
                         const struct hvd__variable *v)
{
    HVD_TRY(put_head(w, v, STATISTIC));
    return hvd__blob_put(w, v->mean, (size_t)v->count * sizeof(float));
}

static int put_all(struct hvd__blob_writer *w, const hvd_strategy *s)
{
    struct head head = {
        .version = VERSION,
        .order = ORDER,
        .optimizer = s->options.optimizer,
        .nstates = hvd__optimizer_states(&s->options),
        .nvariables = s->nvariables + s->nstatistics,
    };

    memcpy(head.magic, magic, sizeof head.magic);
    HVD_TRY(hvd__blob_put(w, &head, sizeof head));
    for (int32_t i = 0; i < s->nvariables; i++)
        HVD_TRY(put_variable(w, &s->variables[i], head.nstates));
    for (int32_t i = 0; i < s->nstatistics; i++)
        HVD_TRY(put_statistic(w, &s->statistics[i]));
    return hvd__blob_commit(w);
}

static int write_file(hvd_strategy *strategy, const char *path)
{
    struct hvd__blob_writer *w = malloc(sizeof *w);
    int status;

    if (!w)
        return hvd__fail_memory(sizeof *w);
    status = hvd__blob_create(w, path);
    if (status >= 0)
        status = put_all(w, strategy);
    hvd__blob_discard(w);
    free(w);
    return status;
}

/* ------------------------------------------------------- reading, on rank 0 */

/* The place of a variable of the strategy in the file. */
struct place {
    bool found;
    int64_t elements; /* offset of the first element */
    int64_t updates;
};

static int get_head(const struct hvd__blob *b, struct head *head)
{
    HVD_TRY(hvd__blob_get(b, 0, head, sizeof *head));
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return hvd__fail(HVD_ERR_FILE, "%s is no checkpoint of a strategy",
                         b->path);
    if (head->order != ORDER)
        return hvd__fail(HVD_ERR_FILE,
                         "%s was written on a machine of the other byte order",
                         b->path);
    if (head->version != VERSION)
        return hvd__fail(HVD_ERR_FILE,
                         "%s is of version %" PRIu32 ", this libhvd knows "
                         "version %d",
                         b->path, head->version, VERSION);
    if (!hvd__optimizer_may_have(head->optimizer, head->nstates) ||
        head->nvariables < 0)
        return hvd__fail(HVD_ERR_FILE, "%s: its head makes no sense", b->path);
    return HVD_OK;
}

/* Variables and, behind them, statistics have numbers here. */
static int32_t count_numbers(const hvd_strategy *s)
{
    return s->nvariables + s->nstatistics;
}

static struct hvd__variable *variable_of(const hvd_strategy *s, int32_t number)
{
    return number < s->nvariables ? &s->variables[number]
                                  : &s->statistics[number - s->nvariables];
}

static int32_t find_variable(const hvd_strategy *s, const char *name)
{
    int32_t i = 0;

    while (i < count_numbers(s) && strcmp(variable_of(s, i)->name, name) != 0)
        i++;
    return i;
}

static bool is_same_shape(const struct hvd__variable *v,
                          const struct variable_head *head)
{
    return v->ndim == head->ndim &&
           memcmp(v->shape, head->shape, (size_t)v->ndim * sizeof *v->shape) ==
               0;
}

/* Reads the head of the variable at an offset, and advances the offset to the
 * next. */
static int locate(const struct hvd__blob *b, const hvd_strategy *s, int nstates,
                  int64_t *offset, struct place *places)
{
    struct variable_head head;
    char name[HVD_MAX_NAME + 1] = "";
    int32_t number;

    HVD_TRY(hvd__blob_get(b, *offset, &head, sizeof head));
    *offset += (int64_t)sizeof head;
    if (head.name_bytes < 1 || head.name_bytes > HVD_MAX_NAME)
        return hvd__fail(HVD_ERR_FILE, "%s: a name of %d bytes", b->path,
                         (int)head.name_bytes);
    HVD_TRY(hvd__blob_get(b, *offset, name, (size_t)head.name_bytes));
    *offset += head.name_bytes;
    number = find_variable(s, name);
    if (number == count_numbers(s))
        return hvd__fail(HVD_ERR_FILE,
                         "%s has a variable '%s', and the strategy has none",
                         b->path, name);
    if ((head.updates == STATISTIC) != (number >= s->nvariables))
        return hvd__fail(
            HVD_ERR_FILE, "'%s' is a statistic in %s, but not in the other",
            name, head.updates == STATISTIC ? b->path : "the strategy");
    if (places[number].found)
        return hvd__fail(HVD_ERR_FILE, "%s has variable '%s' twice", b->path,
                         name);
    if (!is_same_shape(variable_of(s, number), &head))
        return hvd__fail(HVD_ERR_FILE, "%s has variable '%s' in another shape",
                         b->path, name);
    places[number] = (struct place){true, *offset, head.updates};
    /* The sum does not overflow, because as many bytes are already in memory.
     */
    *offset += (number < s->nvariables ? 1 + nstates : 1) *
               variable_of(s, number)->count * (int64_t)sizeof(float);
    return HVD_OK;
}

static int locate_all(const struct hvd__blob *b, const hvd_strategy *s,
                      const struct head *head, struct place *places)
{
    int64_t offset = (int64_t)sizeof *head;

    for (int64_t i = 0; i < head->nvariables; i++)
        HVD_TRY(locate(b, s, head->nstates, &offset, places));
    for (int32_t i = 0; i < count_numbers(s); i++)
        if (!places[i].found)
            return hvd__fail(HVD_ERR_FILE,
                             "%s has no variable '%s', which the strategy has",
                             b->path, variable_of(s, i)->name);
    if (offset != b->bytes)
        return hvd__fail(HVD_ERR_FILE, "%s: its length is not what it says",
                         b->path);
    return HVD_OK;
}

static int get_variable(const struct hvd__blob *b, struct hvd__variable *v,
                        const struct place *place, int nstates)
{
    size_t bytes = (size_t)v->count * sizeof(float);

    HVD_TRY(hvd__blob_get(b, place->elements, v->value, bytes));
    for (int k = 0; k < nstates; k++)
        HVD_TRY(hvd__blob_get(b, place->elements + (1 + k) * (int64_t)bytes,
                              v->states[k], bytes));
    v->steps = place->updates;
    return HVD_OK;
}

static int get_statistic(const struct hvd__blob *b,
                         const struct hvd__variable *v,
                         const struct place *place)
{
    return hvd__blob_get(b, place->elements, v->value,
                         (size_t)v->count * sizeof(float));
}

/* Returns 1 with the optimiser's state, 0 without. places: [count_numbers]. */
static int read_all(const struct hvd__blob *b, hvd_strategy *s,
                    struct place *places)
{
    struct head head;
    bool same;

    HVD_TRY(get_head(b, &head));
    HVD_TRY(locate_all(b, s, &head, places));
    same = head.optimizer == s->options.optimizer &&
           head.nstates == hvd__optimizer_states(&s->options);
    for (int32_t i = 0; i < s->nvariables; i++)
        HVD_TRY(get_variable(b, &s->variables[i], &places[i],
                             same ? head.nstates : 0));
    for (int32_t i = s->nvariables; i < count_numbers(s); i++)
        HVD_TRY(get_statistic(b, variable_of(s, i), &places[i]));
    return same;
}

/* A source (strategy.h): context is the path. */
static int read_file(hvd_strategy *s, const void *context)
{
    const char *path = context;
    struct hvd__blob blob;
    struct place *places;
    int status;

    if (!path || !path[0])
        return hvd__fail(HVD_ERR_ARGUMENT, "the checkpoint has no file name");
    HVD_TRY(hvd__blob_open(&blob, path));
    places = calloc((size_t)count_numbers(s) + 1, sizeof *places);
    status = places
                 ? read_all(&blob, s, places)
                 : hvd__fail_memory((size_t)count_numbers(s) * sizeof *places);
    free(places);
    hvd__blob_close(&blob);
    return status;
}

/* -------------------------------------------------------------------- both */

int hvd_strategy_save(hvd_strategy *strategy, const char *path)
{
    int status;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    if (!path || !path[0])
        return hvd__fail(HVD_ERR_ARGUMENT, "the checkpoint has no file name");
    HVD_TRY(hvd__strategy_check_idle(strategy, rule));
    status = hvd__state_borrow(strategy);
    if (status >= 0)
        status = write_file(strategy, path);
    hvd__state_return(strategy);
    return status;
}

int hvd_strategy_load(hvd_strategy *strategy, const char *path)
{
    return hvd__state_replace(strategy, rule, read_file, path);
}
