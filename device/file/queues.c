/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.c - the queues of programs that come from files.
 *
 * A file keeps the program's description of a queue: its name, the number of
 * replicas, and the form of an element. The source or the receiver of the data
 * belongs to the host. So a loaded program has absent queues, and the host
 * connects its own queues in their places, by name. An absent queue is like any
 * other, except that no engine can use it.
 *
 *     a queue    name, replicas, number of tensors; for each, name and struct
 */
#include "file/queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "file/members.h"
#include "file/shared.h"
#include "target/target.h"

/* ----------------------------------------------------------------- in files */

static void put_queue(struct ipu__writer *w, const char *name, int32_t replicas,
                      int32_t count, const ipu_feed_tensor *tensors)
{
    ipu__put_text(w, name);
    ipu__put_int(w, replicas);
    ipu__put_int(w, count);
    for (int32_t i = 0; i < count; i++) {
        ipu__put_text(w, tensors[i].name);
        ipu__put_struct(w, &ipu__feed_tensor_layout, &tensors[i]);
    }
}

void ipu__put_infeed(struct ipu__writer *w, const ipu_infeed *infeed)
{
    const ipu_feed_tensor *tensors;
    int32_t count = ipu_infeed_tensors(infeed, &tensors);

    put_queue(w, ipu__infeed_name(infeed), ipu__infeed_replicas(infeed), count,
              tensors);
}

void ipu__put_outfeed(struct ipu__writer *w, const ipu_outfeed *outfeed)
{
    const ipu_feed_tensor *tensors;
    int32_t count = ipu__outfeed_tensors(outfeed, &tensors);

    put_queue(w, ipu__outfeed_name(outfeed), ipu__outfeed_replicas(outfeed),
              count, tensors);
}

/* The description of a queue, as it is read. */
struct description {
    char *name; /* owned */
    int32_t replicas, count;
    ipu_feed_tensor tensors[IPU_MAX_FEED_TENSORS];
    char *names[IPU_MAX_FEED_TENSORS]; /* owned */
};

static void description_free(struct description *d)
{
    if (!d)
        return;
    for (int32_t i = 0; i < IPU_MAX_FEED_TENSORS; i++)
        free(d->names[i]);
    free(d->name);
    free(d);
}

static int get_description(struct ipu__reader *r, struct description *d)
{
    int32_t count;

    IPU_TRY(ipu__get_text(r, "a queue's name", false, &d->name));
    IPU_TRY(ipu__get_int(r, &d->replicas));
    IPU_TRY(ipu__get_index(r, "how many tensors a queue has", 1,
                           IPU_MAX_FEED_TENSORS, &count));
    while (d->count < count) {
        ipu_feed_tensor *t = &d->tensors[d->count];
        struct ipu__shape shape = {0};

        IPU_TRY(ipu__get_text(r, "the name of a queue's tensor", false,
                              &d->names[d->count]));
        t->name = d->names[d->count++];
        IPU_TRY(ipu__get_struct(r, &ipu__feed_tensor_layout, t));
        shape.dtype = t->dtype;
        shape.ndim = t->ndim;
        memcpy(shape.extents, t->shape, sizeof shape.extents);
        IPU_TRY(ipu__check_shape(r, "a queue's tensor", &shape));
    }
    return IPU_OK;
}

/* Reads a queue of one kind; the other pointer is NULL. */
static int get_queue(struct ipu__reader *r, ipu_infeed **infeed,
                     ipu_outfeed **outfeed)
{
    struct description *d;
    int status;

    IPU_TRY(ipu__new(&d, sizeof *d));
    status = get_description(r, d);
    if (status == IPU_OK) {
        status = infeed ? ipu__infeed_absent(d->name, d->replicas, d->count,
                                             d->tensors, infeed)
                        : ipu__outfeed_absent(d->name, d->replicas, d->count,
                                              d->tensors, outfeed);
        if (status < 0 && status != IPU_ERR_MEMORY)
            status = ipu__damaged(r, "%s", ipu_last_error());
    }
    description_free(d);
    return status;
}

int ipu__get_infeed(struct ipu__reader *r, ipu_infeed **infeed)
{
    return get_queue(r, infeed, NULL);
}

int ipu__get_outfeed(struct ipu__reader *r, ipu_outfeed **outfeed)
{
    return get_queue(r, NULL, outfeed);
}

bool ipu__queue_shape(const ipu_feed_tensor *tensors, int32_t count, int32_t i,
                      struct ipu__shape *shape)
{
    return i < count &&
           ipu__shape_make(tensors[i].name, tensors[i].dtype, tensors[i].ndim,
                           tensors[i].shape, shape) == IPU_OK;
}

/* -------------------------------------------------------------- in programs */

/* The search in a graph or an executable: for the queue of a number, or of a
 * name and kind. */
struct search {
    const ipu_graph *graph;
    const ipu_executable *executable;
    const char *name;
    ipu_queue_kind kind;
    int32_t number;
    ipu_infeed **infeed; /* if found, its place; this one or */
    ipu_outfeed **outfeed;
};

/* Returns true if this is the queue that the search is for. */
static bool is_found(struct search *s, const char *name, ipu_infeed **infeed,
                     ipu_outfeed **outfeed)
{
    bool found = s->name ? (s->kind == IPU_QUEUE_INFEED) == (infeed != NULL) &&
                               strcmp(name, s->name) == 0
                         : s->number-- == 0;

    if (found) {
        s->infeed = infeed;
        s->outfeed = outfeed;
    }
    return found;
}

static bool find_in_graph(struct search *s, const ipu_graph *g)
{
    if (!g)
        return false;
    for (int32_t i = 0; i < g->nfeeds; i++)
        if (is_found(s, ipu__infeed_name(g->feeds[i].infeed),
                     &g->feeds[i].infeed, NULL))
            return true;
    for (int32_t i = 0; i < g->nenqueues; i++)
        if (is_found(s, ipu__outfeed_name(g->enqueues[i].outfeed), NULL,
                     &g->enqueues[i].outfeed))
            return true;
    for (int32_t i = 0; i < g->nloops; i++)
        if (find_in_graph(s, g->loops[i].body.graph) ||
            find_in_graph(s, g->loops[i].condition.graph))
            return true;
    return false;
}

static bool find_in_executable(struct search *s, const ipu_executable *e)
{
    if (!e)
        return false;
    for (int32_t i = 0; i < e->nfeeds; i++) {
        struct ipu__feed_code *f = &e->feeds[i];

        if (f->infeed
                ? is_found(s, ipu__infeed_name(f->infeed), &f->infeed, NULL)
                : is_found(s, ipu__outfeed_name(f->outfeed), NULL, &f->outfeed))
            return true;
    }
    for (int32_t i = 0; i < e->nloops; i++)
        if (find_in_executable(s, e->loops[i].body.program) ||
            find_in_executable(s, e->loops[i].condition.program))
            return true;
    return false;
}

static bool find_queue(struct search *s)
{
    return s->graph ? find_in_graph(s, s->graph)
                    : find_in_executable(s, s->executable);
}

static void describe_queue(const struct search *s, ipu_queue_info *info)
{
    info->kind = s->infeed ? IPU_QUEUE_INFEED : IPU_QUEUE_OUTFEED;
    if (s->infeed) {
        info->name = ipu__infeed_name(*s->infeed);
        info->replicas = ipu__infeed_replicas(*s->infeed);
        info->ntensors = ipu_infeed_tensors(*s->infeed, &info->tensors);
        info->connected = !ipu__infeed_is_absent(*s->infeed);
    } else {
        info->name = ipu__outfeed_name(*s->outfeed);
        info->replicas = ipu__outfeed_replicas(*s->outfeed);
        info->ntensors = ipu__outfeed_tensors(*s->outfeed, &info->tensors);
        info->connected = !ipu__outfeed_is_absent(*s->outfeed);
    }
}

static int ask(struct search *s, ipu_queue_info *info)
{
    if ((!s->graph && !s->executable) || !info)
        return ipu__fail(IPU_ERR_ARGUMENT, "queue: %s is NULL",
                         info ? "the program" : "the place for its info");
    IPU_TRY(ipu__check_size("queue info", info->size, sizeof *info));
    if (s->number < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "there is no queue %d",
                         (int)s->number);
    if (!find_queue(s))
        return 0;
    describe_queue(s, info);
    return 1;
}

int ipu_graph_queue(const ipu_graph *graph, int32_t number,
                    ipu_queue_info *info)
{
    return ask(&(struct search){.graph = graph, .number = number}, info);
}

int ipu_executable_queue(const ipu_executable *executable, int32_t number,
                         ipu_queue_info *info)
{
    return ask(&(struct search){.executable = executable, .number = number},
               info);
}

int ipu__check_queues(const struct ipu__reader *r, const ipu_graph *graph,
                      const ipu_executable *executable)
{
    for (int32_t i = 0;; i++) {
        struct search s = {
            .graph = graph, .executable = executable, .number = i};
        struct search first = s;
        ipu_queue_info info = {0};

        if (!find_queue(&s))
            return IPU_OK;
        describe_queue(&s, &info);
        first.name = info.name;
        first.kind = info.kind;
        find_queue(&first);
        if (first.infeed != s.infeed || first.outfeed != s.outfeed)
            return ipu__damaged(r, "two %ss are called '%.60s'",
                                s.infeed ? "infeed" : "outfeed", info.name);
    }
}

/* --------------------------------------------------------------- connecting */

/* Returns the form of a tensor: "float32 [2, 3]". */
static struct ipu__shape_text print_tensor(const ipu_feed_tensor *t)
{
    struct ipu__shape shape;

    if (ipu__shape_make(t->name, t->dtype, t->ndim, t->shape, &shape) < 0)
        return (struct ipu__shape_text){"a tensor"};
    return ipu__shape_print(&shape);
}

static int check_tensors(const ipu_queue_info *wanted, ipu_infeed *infeed)
{
    const ipu_feed_tensor *tensors;
    int32_t count = ipu_infeed_tensors(infeed, &tensors);

    if (count != wanted->ntensors)
        return ipu__fail(IPU_ERR_SHAPE,
                         "connect: infeed '%s' has %d tensors, the program "
                         "takes %d",
                         wanted->name, (int)count, (int)wanted->ntensors);
    for (int32_t i = 0; i < count; i++) {
        const ipu_feed_tensor *a = &tensors[i], *b = &wanted->tensors[i];

        if (strcmp(a->name, b->name) == 0 && a->dtype == b->dtype &&
            a->ndim == b->ndim &&
            memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0)
            continue;
        return ipu__fail(IPU_ERR_SHAPE,
                         "connect: tensor %d of infeed '%s' is '%s', %s; the "
                         "program takes '%s', %s",
                         (int)i, wanted->name, a->name, print_tensor(a).text,
                         b->name, print_tensor(b).text);
    }
    return IPU_OK;
}

/* Fails because there is no such queue; the error lists the queues that
 * exist. */
static int no_queue(const struct search *s, const char *kind)
{
    char names[256] = "";
    size_t used = 0;
    ipu_queue_info info = {0};

    for (int32_t i = 0; used < sizeof names; i++) {
        struct search next = {
            .graph = s->graph, .executable = s->executable, .number = i};

        if (!find_queue(&next))
            break;
        describe_queue(&next, &info);
        if (info.kind == s->kind)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s'",
                                 used ? ", " : ": it has ", info.name);
    }
    return ipu__fail(IPU_ERR_NAME, "connect: the program has no %s '%s'%s",
                     kind, s->name, names);
}

static int check_connect(struct search *s, int32_t replicas,
                         ipu_queue_info *info)
{
    const char *kind = s->kind == IPU_QUEUE_INFEED ? "infeed" : "outfeed";

    if (!find_queue(s))
        return no_queue(s, kind);
    describe_queue(s, info);
    if (info->connected)
        return ipu__fail(IPU_ERR_STATE,
                         "connect: the program has its %s '%s' already", kind,
                         s->name);
    if (info->replicas != replicas)
        return ipu__fail(IPU_ERR_STATE,
                         "connect: %s '%s' has replication factor %d, the "
                         "program %d",
                         kind, s->name, (int)replicas, (int)info->replicas);
    return IPU_OK;
}

static int connect_infeed(struct search *s, ipu_infeed *infeed)
{
    ipu_queue_info info = {0};
    int status;

    if ((!s->graph && !s->executable) || !infeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "connect: %s is NULL",
                         infeed ? "the program" : "the infeed");
    s->kind = IPU_QUEUE_INFEED;
    s->name = ipu__infeed_name(infeed);
    status = check_connect(s, ipu__infeed_replicas(infeed), &info);
    if (status < 0 || !s->infeed)
        return status;
    IPU_TRY(check_tensors(&info, infeed));
    ipu__infeed_retain(infeed);
    ipu__infeed_release(*s->infeed);
    *s->infeed = infeed;
    return IPU_OK;
}

static int connect_outfeed(struct search *s, ipu_outfeed *outfeed)
{
    ipu_queue_info info = {0};
    int status;

    if ((!s->graph && !s->executable) || !outfeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "connect: %s is NULL",
                         outfeed ? "the program" : "the outfeed");
    s->kind = IPU_QUEUE_OUTFEED;
    s->name = ipu__outfeed_name(outfeed);
    status = check_connect(s, ipu__outfeed_replicas(outfeed), &info);
    if (status < 0 || !s->outfeed)
        return status;
    IPU_TRY(ipu__outfeed_describe(outfeed, info.ntensors, info.tensors));
    ipu__outfeed_retain(outfeed);
    ipu__outfeed_release(*s->outfeed);
    *s->outfeed = outfeed;
    return IPU_OK;
}

int ipu_graph_connect_infeed(ipu_graph *graph, ipu_infeed *infeed)
{
    return connect_infeed(&(struct search){.graph = graph}, infeed);
}

int ipu_graph_connect_outfeed(ipu_graph *graph, ipu_outfeed *outfeed)
{
    return connect_outfeed(&(struct search){.graph = graph}, outfeed);
}

int ipu_executable_connect_infeed(ipu_executable *executable,
                                  ipu_infeed *infeed)
{
    return connect_infeed(&(struct search){.executable = executable}, infeed);
}

int ipu_executable_connect_outfeed(ipu_executable *executable,
                                   ipu_outfeed *outfeed)
{
    return connect_outfeed(&(struct search){.executable = executable}, outfeed);
}
