/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_hvd.c - sums by libhvd, whose ranks meet by TF_CONFIG.
 */
#include "cluster/backend.h"

#include "hvd.h"

#include <stdio.h>
#include <stdlib.h>

struct state {
    float *values; /* owned */
    int64_t count;
};

static int note(char *error, size_t room)
{
    snprintf(error, room, "%s", hvd_last_error());
    return -1;
}

static void *open_hvd(const struct backend *backend,
                      const struct backend_place *place, char *error,
                      size_t room)
{
    struct state *state = calloc(1, sizeof *state);

    for (int i = 0; i < 2; i++)
        if (backend->settings[i][0])
            setenv(backend->settings[i][0], backend->settings[i][1], 1);
    if (!state || setenv("TF_CONFIG", place->tf_config, 1) != 0) {
        snprintf(error, room, "out of memory");
        free(state);
        return NULL;
    }
    if (hvd_init() < 0) {
        note(error, room);
        free(state);
        return NULL;
    }
    return state;
}

static float *memory_of_hvd(void *context, size_t bytes)
{
    struct state *state = context;

    state->values = hvd_malloc(bytes);
    return state->values;
}

static int prepare_hvd(void *context, size_t count, char *error, size_t room)
{
    struct state *state = context;

    (void)error;
    (void)room;
    state->count = (int64_t)count;
    return 0;
}

static int run_hvd(void *context, char *error, size_t room)
{
    struct state *state = context;
    int status = hvd_allreduce(state->values, state->values, state->count,
                               HVD_FLOAT32, HVD_SUM);

    return status < 0 ? note(error, room) : 0;
}

static void close_hvd(void *context)
{
    struct state *state = context;

    hvd_free(state->values);
    hvd_shutdown();
    free(state);
}

#define HVD_FUNCTIONS                                                          \
    .open = open_hvd, .memory = memory_of_hvd, .prepare = prepare_hvd,         \
    .run = run_hvd, .close = close_hvd

const struct backend hvd_backends[HVD_BACKENDS] = {
    [BACKEND_HVD] = {.name = "hvd_us",
                     .text = "hvd_us: libhvd in shared memory, from hvd_malloc",
                     HVD_FUNCTIONS},
    [BACKEND_HVD_TCP] = {.name = "hvd_tcp_us",
                         .text =
                             "hvd_tcp_us: libhvd over TCP, as between hosts "
                             "(HVD_SHM_SIZE=0)",
                         .settings = {{"HVD_SHM_SIZE", "0"},
                                      {"HVD_TRANSPORT", "tcp"}},
                         HVD_FUNCTIONS},
};
