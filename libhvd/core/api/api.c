/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - submitting, waiting and polling. Every collective call becomes a
 * request that comes here, from any thread.
 *
 * A blocking call without a name first tries the shortest way (quick.c): the
 * calling thread posts the request into its slot, compares the slots of all
 * ranks, reduces and returns. The request table never sees such a request. To
 * debug this way, set a breakpoint at hvd__quick_run.
 *
 * All other requests go through hvd__submit:
 *
 *     table/recycled.c      reuses an earlier submission that is equal and
 *                           complete; without one,
 *     api/check.c           checks what one rank can judge alone, and
 *     table/table.c         enters the request under its name
 *     agree/ordered_post.c  posts it into a slot that all ranks see
 *     world/progress.c      makes the waiting thread drive the rest
 *     agree/ordered.c       compares the slots of all ranks
 *     agree/ordered_run.c   runs it at once or in place, or passes it on
 *     run/execute.c         runs it in a lane, packed (pack.c), by an algorithm
 *                           of transport/algo
 *     run/complete.c        sets the status, calls the callback, wakes the
 *                           waiter
 *
 * Requests are agreed on by name only if ranks submit in different orders, if
 * HVD_EXPRESS is 0, or among more than 8 ranks that share no memory. Between
 * the table and the lanes, they then pass through agree/hear.c, coordinator.c,
 * batch.c and follow.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "base/text.h"
#include "core/api/check.h"
#include "core/api/quick.h"
#include "core/api/refuse.h"
#include "core/api/submit.h"
#include "core/request/compress.h"
#include "core/request/names.h"
#include "core/request/sampling.h"
#include "core/run/complete.h"

/* ------------------------------------------------------------------- submit */

/* Adds the text by which messages name a request or a group: "allreduce 'x'".
 */
static void add_what(struct hvd__text *out, const char *what, const char *name)
{
    hvd__text_add(out, "%s ", what);
    if (name && name[0])
        hvd__text_add_name(out, name);
    else
        hvd__text_add(out, "without a name");
}

/* Puts the request in front of the last error. */
static int blame_request(const hvd_request *given, const char *name, int status)
{
    const char *kind = hvd_kind_name(given->kind);
    char text[HVD_MAX_NAME + 48];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    add_what(&out, kind ? kind : "request", name);
    return hvd__fail(status, "%s: %s", text, hvd_last_error());
}

/* Informs the other members that this submission was refused, so that they do
 * not wait for it. Takes ownership of the submission; the last error stays. */
static int refuse_submission(struct hvd__world *world,
                             struct hvd__submission *submission, int status)
{
    /* Joins are not matched by their number, so no rank waits for this one. */
    if (submission->requests[0].signature.kind == HVD_JOIN) {
        hvd__submission_free(submission);
        return status;
    }
    hvd__count(&world->engine.metrics.refused, 1);
    submission->state.status = status;
    submission->state.message = strdup(hvd_last_error());
    if (!submission->state.message) {
        hvd__submission_free(submission);
        return hvd__fail_memory(1);
    }
    hvd__table_refuse(&world->engine.table, submission);
    hvd__progress_wake(world);
    return status;
}

void hvd__refuse(int32_t process_set, const char *name, int status)
{
    struct hvd__world *world;
    struct hvd__submission *submission;

    if (hvd__world_get(&world) < 0 || !(submission = hvd__submission_new(1)))
        return;
    submission->set = hvd__table_find_set(&world->engine.table, process_set);
    if (!submission->set) {
        hvd__submission_free(submission);
        return;
    }
    snprintf(submission->name, sizeof submission->name, "%s", name);
    refuse_submission(world, submission, status);
}

bool hvd__checks_consistency(void)
{
    struct hvd__world *world;

    return hvd__world_get(&world) == HVD_OK &&
           world->engine.settings.consistency_check;
}

/* Finds the set of a request, of which this rank must be a member. The caller
 * gives the set back, also on failure; it may be NULL. */
static int find_set(struct hvd__world *world, const hvd_request *given,
                    struct hvd__set **set)
{
    HVD_TRY(hvd__find_set(world, given->process_set, set));
    return hvd__check_member(*set);
}

/* Encodes now, because the sizes of codes are announced. */
static int encode_request(const hvd_request *given,
                          struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;

    if (!hvd__compression_encodes(s->compression))
        return HVD_OK;
    return hvd__compress_encode(s->compression, given->process_set,
                                request->submission->name, request->input,
                                request->count, s->prescale,
                                &request->own_input, &request->rows);
}

static int check_request(const hvd_request *given, const struct hvd__set *set,
                         struct hvd__request *request)
{
    request->callback = given->callback;
    request->callback_context = given->callback_context;
    return hvd__request_check(given, set, request);
}

/* Makes a checked request a part of its submission. */
static int add_request(const hvd_request *given, struct hvd__request *request)
{
    struct hvd__submission *submission = request->submission;

    HVD_TRY(encode_request(given, request));
    submission->fingerprint = hvd__signature_fingerprint(
        submission->fingerprint, &request->signature);
    if (given->priority > submission->priority)
        submission->priority = given->priority;
    return HVD_OK;
}

/* Returns the approximate number of a request. */
static int64_t number_of(const struct hvd__world *world)
{
    return atomic_load_explicit(&world->engine.table.nentered,
                                memory_order_relaxed);
}

/* Starts the clock of a submission. A timeline needs the exact time. */
static void begin_submission(const struct hvd__world *world,
                             struct hvd__submission *submission)
{
    hvd__sampling_start(submission,
                        hvd__trace_writer_listens(&world->engine.writer),
                        number_of(world));
}

/* bytes is the length of the name, which may be one of the library's own. */
static int submit_to(struct hvd__world *world, struct hvd__set *set,
                     const hvd_request *given, const char *name, size_t bytes,
                     hvd_handle *handle)
{
    struct hvd__submission *submission;
    int status;

    if (given->kind == HVD_JOIN) {
        name = HVD__JOIN_NAME;
        bytes = sizeof HVD__JOIN_NAME - 1;
    }
    submission = hvd__table_reuse(&world->engine.table);
    if (!submission)
        return hvd__fail_memory(sizeof *submission);
    submission->set = set;
    submission->priority = given->priority;
    memcpy(submission->name, name, bytes);
    submission->name[bytes] = '\0';
    status = check_request(given, set, &submission->requests[0]);
    begin_submission(world, submission);
    if (status < 0)
        blame_request(given, name, status);
    else
        status = add_request(given, &submission->requests[0]);
    if (status == HVD_OK) {
        hvd__submission_remember(submission, given, bytes);
        status = hvd__progress_submit(world, submission, handle);
    }
    return status < 0 ? refuse_submission(world, submission, status) : HVD_OK;
}

static int submit_request(struct hvd__world *world, const hvd_request *given,
                          const char *name, size_t bytes, hvd_handle *handle)
{
    struct hvd__set *set;
    int status = find_set(world, given, &set);

    if (status < 0)
        blame_request(given, name, status);
    else
        status = submit_to(world, set, given, name, bytes, handle);
    hvd__set_put(set);
    return status;
}

int hvd__submit(const hvd_request *given, hvd_handle *handle)
{
    const char *name = given->name ? given->name : "";
    int bytes;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (hvd__recycled_may_recall(&world->engine.table.recycled,
                                 number_of(world)) &&
        hvd__progress_resubmit(world, given, name, handle))
        return HVD_OK;
    bytes = hvd__name_check(name);
    if (bytes < 0)
        return bytes;
    return submit_request(world, given, name, (size_t)bytes, handle);
}

int hvd_submit(const hvd_request *given, hvd_handle *handle)
{
    hvd_request ours;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    HVD_TRY(hvd__request_copy(given, &ours));
    hvd__request_distrust(&ours);
    return hvd__submit(&ours, handle);
}

/* Returns true if nobody will ask for more than the status of a request, and it
 * may be matched by its order. */
static bool is_plain(const hvd_request *given)
{
    return !(given->name && given->name[0]) && !given->callback &&
           !given->counts && (given->output || given->kind == HVD_BARRIER);
}

int hvd_run(const hvd_request *given, hvd_handle *handle)
{
    hvd_request ours;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (!handle)
        return hvd__fail(HVD_ERR_ARGUMENT, "hvd_run: the handle is NULL");
    HVD_TRY(hvd__request_copy(given, &ours));
    hvd__request_distrust(&ours);
    if (is_plain(&ours) && !hvd__in_callback() &&
        hvd__quick_run(world, &ours, handle))
        return HVD_OK;
    return hvd__submit(&ours, handle);
}

int hvd__submit_gradient(const hvd_request *given, hvd_handle *handle)
{
    hvd_request ours = *given;

    ours.flags |= HVD__OF_STRATEGY;
    return hvd__submit(&ours, handle);
}

/* ------------------------------------------------------------------- groups */

static int blame_member(const char *group, const char *label, int status)
{
    char text[2 * HVD_MAX_NAME + 64];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    add_what(&out, "group", group);
    return hvd__fail(status, "%s, member '%s': %s", text, label,
                     hvd_last_error());
}

/* Checks the rules that apply only to members of a group. taken holds the names
 * of the earlier members. */
static int check_as_member(const hvd_request *given,
                           struct hvd__submission *submission, int i,
                           struct hvd__names *taken)
{
    if (given->kind == HVD_JOIN)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "a join is no member of a group");
    if (given->process_set != submission->set->id)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "it is for process set %d, the first member for %d",
                         (int)given->process_set, (int)submission->set->id);
    if (given->name && given->name[0] &&
        !hvd__names_add(taken, submission->requests[i].label))
        return hvd__fail(HVD_ERR_DUPLICATE, "another member has that name");
    return check_request(given, submission->set, &submission->requests[i]);
}

/* A group of requests that are submitted as one. */
struct group {
    const char *name;                   /* borrowed; NULL: unnamed */
    const hvd_request *const *requests; /* [n], borrowed */
    int32_t n;
    bool trusted; /* the library made the requests */
};

static int add_member(const struct group *group,
                      struct hvd__submission *submission, int i,
                      struct hvd__names *taken)
{
    struct hvd__request *request = &submission->requests[i];
    char label[HVD_MAX_NAME + 32];
    hvd_request given;
    int status;

    HVD_TRY(hvd__request_copy(group->requests[i], &given));
    if (!group->trusted)
        hvd__request_distrust(&given);
    if (given.name)
        HVD_TRY(hvd__name_check(given.name));
    if (given.name && given.name[0])
        snprintf(label, sizeof label, "%s", given.name);
    else
        snprintf(label, sizeof label, "%d of %d", i,
                 submission->state.nrequests);
    request->label = strdup(label);
    if (!request->label)
        return hvd__fail_memory(sizeof label);
    status = check_as_member(&given, submission, i, taken);
    if (status < 0)
        return blame_member(group->name, label, status);
    return add_request(&given, request);
}

static int add_members(const struct group *group,
                       struct hvd__submission *submission)
{
    struct hvd__names taken;
    int status = hvd__names_init(&taken, (size_t)submission->state.nrequests);

    for (int i = 0; i < submission->state.nrequests && status == HVD_OK; i++)
        status = add_member(group, submission, i, &taken);
    hvd__names_fini(&taken);
    return status;
}

static int submit_group_to(struct hvd__world *world, struct hvd__set *set,
                           const struct group *group, int32_t priority,
                           hvd_handle *handles)
{
    struct hvd__submission *submission = hvd__submission_new(group->n);
    int status;

    if (!submission)
        return hvd__fail_memory((size_t)group->n *
                                sizeof *submission->requests);
    submission->set = set;
    submission->priority = priority;
    hvd__sampling_start(submission, true, 0);
    if (group->name)
        strcpy(submission->name, group->name);
    status = add_members(group, submission);
    if (status == HVD_OK)
        status = hvd__progress_submit(world, submission, handles);
    return status < 0 ? refuse_submission(world, submission, status) : HVD_OK;
}

static int submit_group(struct hvd__world *world, const struct group *group,
                        hvd_handle *handles)
{
    hvd_request first;
    struct hvd__set *set;
    int status;

    for (int32_t i = 0; i < group->n; i++)
        if (!group->requests[i])
            return hvd__fail(HVD_ERR_ARGUMENT, "member %d of a group is NULL",
                             (int)i);
    HVD_TRY(hvd__request_copy(group->requests[0], &first));
    status = find_set(world, &first, &set);
    if (status < 0)
        hvd__fail(status, "group: %s", hvd_last_error());
    else
        status = submit_group_to(world, set, group, first.priority, handles);
    hvd__set_put(set);
    return status;
}

static int check_group(const struct group *group, hvd_handle *handles)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (group->n < 1 || !group->requests)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a group of %d requests: there must be one",
                         (int)group->n);
    if (group->name)
        HVD_TRY(hvd__name_check(group->name));
    return submit_group(world, group, handles);
}

int hvd_submit_group(const char *name, const hvd_request *const *requests,
                     int32_t n, hvd_handle *handles)
{
    const struct group group = {name, requests, n, false};

    return check_group(&group, handles);
}

int hvd__submit_group(const char *name, const hvd_request *const *requests,
                      int32_t n, hvd_handle *handles)
{
    const struct group group = {name, requests, n, true};

    return check_group(&group, handles);
}

/* ------------------------------------------------------------ wait and poll */

static bool is_done(const void *context)
{
    const struct hvd__request *request = context;

    return atomic_load_explicit(&request->state.done, memory_order_acquire);
}

static int no_waiting_here(void)
{
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "a callback must not wait: submit and return");
}

/* Describes the result. The caller takes over output memory that the library
 * allocated. */
static void hand_over(struct hvd__request *request, hvd_tensor *output)
{
    const struct hvd__signature *s = &request->signature;

    output->dtype = s->dtype;
    output->ndim = s->ndim;
    memcpy(output->shape, s->shape, sizeof output->shape);
    if (hvd__kind_has(s->kind, HVD__HAS_ROWS))
        output->shape[0] = request->out_rows;
    output->data = request->output;
    request->own_output = NULL;
}

int hvd__wait(struct hvd__world *world, hvd_handle handle, hvd_tensor *output)
{
    struct hvd__request *request;
    int status;

    if (hvd__in_callback())
        return no_waiting_here();
    status = hvd__table_claim(&world->engine.table, handle, output != NULL,
                              &request);
    if (status < 0)
        return status;
    if (!request)
        return HVD_OK;
    if (status == 0) {
        int64_t since = hvd__now_ns();

        hvd__progress_until(world, is_done, request, 0);
        hvd__count(&world->engine.metrics.blocked_ns, hvd__now_ns() - since);
        hvd__table_release(&world->engine.table, request);
    }
    status = request->state.status;
    if (status < 0)
        hvd__fail_text(status, hvd__request_text(request));
    else if (output)
        hand_over(request, output);
    hvd__table_recycle(&world->engine.table, request);
    return status;
}

int hvd__drive(bool (*done)(const void *context), const void *context)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    hvd__progress_until(world, done, context, 0);
    return HVD_OK;
}

int hvd_wait(hvd_handle handle)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    return hvd__wait(world, handle, NULL);
}

int hvd_wait_output(hvd_handle handle, hvd_tensor *output)
{
    int status;
    struct hvd__world *world;
    uint32_t size = output ? output->size : 0;
    hvd_tensor whole = {0};

    HVD_TRY(hvd__world_get(&world));
    if (!output || size < sizeof whole)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "output is %s: set its size to sizeof(hvd_tensor)",
                         output ? "of an unknown version" : "NULL");
    status = hvd__wait(world, handle, &whole);
    memset(output, 0, size);
    memcpy(output, &whole, sizeof whole);
    output->size = size;
    return status;
}

int hvd_poll(hvd_handle handle)
{
    int status;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    status = hvd__table_poll(&world->engine.table, handle);
    if (status != 0 || hvd__in_callback())
        return status;
    hvd__progress_once(world);
    return hvd__table_poll(&world->engine.table, handle);
}

struct awaited {
    struct hvd__table *table;
    hvd_handle handle;
};

/* Returns true if a request is done, or gone: another thread has waited for it.
 * It is looked up each time, for that thread may have freed it. */
static bool is_over(const void *context)
{
    const struct awaited *awaited = context;

    return hvd__table_poll(awaited->table, awaited->handle) != 0;
}

int hvd_wait_for(hvd_handle handle, int64_t limit_ns)
{
    struct awaited awaited = {.handle = handle};
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (hvd__in_callback())
        return no_waiting_here();
    if (limit_ns <= 0)
        return hvd_poll(handle);
    awaited.table = &world->engine.table;
    if (!is_over(&awaited)) {
        int64_t since = hvd__now_ns();

        hvd__progress_until(world, is_over, &awaited, limit_ns);
        hvd__count(&world->engine.metrics.blocked_ns, hvd__now_ns() - since);
    }
    return hvd__table_poll(awaited.table, handle);
}

int hvd__run(const hvd_request *given, const char *name, hvd_tensor *output)
{
    hvd_handle handle = 0;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (hvd__in_callback())
        return no_waiting_here();
    if (!name && !output && hvd__quick_run(world, given, &handle))
        return handle == 0 ? HVD_OK : hvd__wait(world, handle, NULL);
    HVD_TRY(submit_request(world, given, name ? name : "",
                           name ? strlen(name) : 0, &handle));
    return hvd__wait(world, handle, output);
}

/* -------------------------------------------------------------- event loops */

int hvd_completion_fd(void)
{
    int fd, none = -1;
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    fd = atomic_load(&world->engine.completion_fd);
    if (fd >= 0)
        return fd;
    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return hvd__fail(HVD_ERR_MEMORY, "eventfd: %s", strerror(errno));
    if (atomic_compare_exchange_strong(&world->engine.completion_fd, &none, fd))
        return fd;
    close(fd); /* another thread was faster */
    return none;
}
