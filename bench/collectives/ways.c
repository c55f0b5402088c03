/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways.c - sums the gradients of a model in one of several ways.
 *
 * The tensors are in memory twice: in order in one arena of hvd_malloc, and
 * each by itself in ordinary memory. A way uses one of these sets; gradients.c
 * runs the ways in turn and checks their sums. WAY_POLLED needs a thread, which
 * way_begin and way_end start and stop outside the timed part.
 */
#include "collectives/ways.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

static const size_t fusion_bytes = (size_t)128 << 20; /* Horovod's default */

/* ------------------------------------------------------------------ tensors */

static int make_tensors(struct gradients *g)
{
    float *at = g->arena;

    for (int i = 0; i < g->list.n; i++) {
        size_t bytes = (size_t)g->list.counts[i] * sizeof(float);

        g->in_arena[i] = at;
        at += g->list.counts[i];
        /* This memory is as aligned as that of hvd_malloc. */
        g->apart[i] = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
        if (!g->apart[i])
            return -1;
        snprintf(g->names[i], sizeof g->names[i], "gradient %d", i);
    }
    return 0;
}

int gradients_init(struct gradients *g, struct session *session, int model)
{
    size_t n, bytes;
    int level, well;

    *g = (struct gradients){.session = session};
    well = model_list(model, &g->list) == 0;
    n = (size_t)g->list.n;
    bytes = (size_t)tensor_list_total(&g->list) * sizeof(float);
    MPI_Query_thread(&level);
    g->polls = level == MPI_THREAD_MULTIPLE;
    if (g->polls && poller_init(&g->poller, (int)n, fusion_bytes) < 0)
        well = 0;
    g->arena = hvd_malloc(bytes);
    g->in_arena = calloc(n, sizeof(float *));
    g->apart = calloc(n, sizeof(float *));
    g->names = calloc(n, sizeof *g->names);
    g->handles = calloc(n, sizeof *g->handles);
    g->buffer = malloc(fusion_bytes);
    if (!well || !g->arena || !g->in_arena || !g->apart || !g->names ||
        !g->handles || !g->buffer)
        return -1;
    return make_tensors(g);
}

void gradients_fini(struct gradients *g)
{
    for (int i = 0; g->apart && i < g->list.n; i++)
        free(g->apart[i]);
    poller_fini(&g->poller);
    hvd_free(g->arena);
    free(g->in_arena);
    free(g->apart);
    free(g->names);
    free(g->handles);
    free(g->buffer);
    tensor_list_fini(&g->list);
}

/* --------------------------------------------------------------------- ways */

int ways_of(const struct gradients *g, struct way *ways)
{
    static const size_t buffers[] = {(size_t)1 << 20, (size_t)4 << 20,
                                     (size_t)16 << 20, (size_t)64 << 20,
                                     (size_t)128 << 20};
    size_t total = (size_t)tensor_list_total(&g->list) * sizeof(float);
    int n = 0;

    ways[n++] = (struct way){WAY_HVD, true, 0};
    ways[n++] = (struct way){WAY_HVD, false, 0};
    ways[n++] = (struct way){WAY_EACH, false, 0};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        ways[n++] = (struct way){WAY_PACKED, false, buffers[i]};
        if (buffers[i] >= total)
            break;
    }
    ways[n++] = (struct way){WAY_FLAT, true, 0};
    if (g->polls)
        ways[n++] = (struct way){WAY_POLLED, false, 0};
    return n;
}

void way_name(const struct way *way, char *text, size_t size)
{
    switch (way->kind) {
    case WAY_HVD: snprintf(text, size, "hvd"); break;
    case WAY_EACH: snprintf(text, size, "MPI each"); break;
    case WAY_PACKED:
        snprintf(text, size, "MPI packed %zuM", way->buffer >> 20);
        break;
    case WAY_FLAT: snprintf(text, size, "MPI flat"); break;
    default: snprintf(text, size, "polling 1ms"); break;
    }
}

float *const *way_tensors(const struct gradients *g, const struct way *way)
{
    return way->arena ? g->in_arena : g->apart;
}

static int run_hvd(struct gradients *g, float *const *tensors)
{
    int status = 0, n = 0;

    for (; n < g->list.n && status >= 0; n++)
        status = hvd_allreduce_async(g->names[n], tensors[n], tensors[n],
                                     g->list.counts[n], HVD_FLOAT32, HVD_SUM,
                                     &g->handles[n]);
    if (status < 0)
        session_note_hvd(g->session);
    for (int i = 0; i < n && status >= 0; i++) {
        status = hvd_wait(g->handles[i]);
        if (status < 0)
            session_note_hvd(g->session);
    }
    return status < 0 ? -1 : 0;
}

static int sum_in_place(float *data, int64_t count)
{
    return MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM,
                         MPI_COMM_WORLD);
}

static int run_each(const struct gradients *g, float *const *tensors)
{
    int code = MPI_SUCCESS;

    for (int i = 0; i < g->list.n && code == MPI_SUCCESS; i++)
        code = sum_in_place(tensors[i], g->list.counts[i]);
    return code;
}

/* Reduces tensors first to last - 1 through the buffer; a single tensor is
 * reduced in place. */
static int run_pack(const struct gradients *g, float *const *tensors, int first,
                    int last)
{
    int64_t at = 0;
    int code;

    if (last - first == 1)
        return sum_in_place(tensors[first], g->list.counts[first]);
    for (int i = first; i < last; i++) {
        memcpy(g->buffer + at, tensors[i],
               (size_t)g->list.counts[i] * sizeof(float));
        at += g->list.counts[i];
    }
    code = sum_in_place(g->buffer, at);
    at = 0;
    for (int i = first; i < last; i++) {
        memcpy(tensors[i], g->buffer + at,
               (size_t)g->list.counts[i] * sizeof(float));
        at += g->list.counts[i];
    }
    return code;
}

static int run_packed(const struct gradients *g, float *const *tensors,
                      size_t bytes)
{
    int64_t room = (int64_t)(bytes / sizeof(float)), count = 0;
    int first = 0, code = MPI_SUCCESS;

    for (int i = 0; i < g->list.n && code == MPI_SUCCESS; i++) {
        if (i > first && count + g->list.counts[i] > room) {
            code = run_pack(g, tensors, first, i);
            first = i;
            count = 0;
        }
        count += g->list.counts[i];
    }
    return code == MPI_SUCCESS ? run_pack(g, tensors, first, g->list.n) : code;
}

static int run_polled(struct gradients *g, float *const *tensors)
{
    int code = MPI_SUCCESS;

    for (int i = 0; i < g->list.n; i++)
        poller_submit(&g->poller, i, tensors[i], g->list.counts[i]);
    for (int i = 0; i < g->list.n && code == MPI_SUCCESS; i++)
        code = poller_wait(&g->poller, i);
    return code;
}

int way_begin(struct gradients *g, const struct way *way)
{
    int well = way->kind != WAY_POLLED || poller_start(&g->poller) == 0;

    return session_settle(g->session, well, "no thread can be started");
}

void way_end(struct gradients *g, const struct way *way)
{
    if (way->kind == WAY_POLLED)
        poller_stop(&g->poller);
}

int way_run(struct gradients *g, const struct way *way)
{
    float *const *tensors = way_tensors(g, way);
    int code;

    switch (way->kind) {
    case WAY_HVD: return run_hvd(g, tensors);
    case WAY_EACH: code = run_each(g, tensors); break;
    case WAY_PACKED: code = run_packed(g, tensors, way->buffer); break;
    case WAY_FLAT:
        code = sum_in_place(g->arena, tensor_list_total(&g->list));
        break;
    default: code = run_polled(g, tensors); break;
    }
    return code == MPI_SUCCESS ? 0 : session_note_mpi(g->session, code);
}
