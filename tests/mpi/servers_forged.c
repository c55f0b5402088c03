/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reaches a parameter server from a worker that is not of this library:
 * numbers of rows and indices that are wrong end its service with a text that
 * names the worker, and it keeps nothing of what came.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hvd_strategy.h"
#include "ranks.h"

enum { ROWS = 11, WIDTH = 16 };

static float value[ROWS][WIDTH];

static hvd_strategy *start(void)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&options, sizeof options);
    options.learning_rate = 1;
    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.mode = HVD_SERVER_ASYNCHRONOUS;
    options.servers = 1;
    memset(value, 0, sizeof value);
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd(hvd_strategy_add_sparse(strategy, "w", value[0], ROWS, WIDTH));
    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

static int32_t pair_with(int server)
{
    int32_t ids[64], ranks[64];
    int n = hvd_process_set_ids(ids, 64);

    for (int i = 0; i < n; i++)
        if (hvd_process_set_ranks(ids[i], ranks, 64) == 2 && ranks[0] == 0 &&
            ranks[1] == server)
            return ids[i];
    ck_abort_msg("there is no set of worker 0 and server %d", server);
    return 0;
}

/* Sends what the library would not send, under a name that it would use. */
static void send_to_server(const char *word, const char *of, void *data,
                           int64_t count, hvd_dtype dtype)
{
    char name[64];
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BROADCAST;
    snprintf(name, sizeof name, "%s %s", word, of);
    request.name = name;
    request.dtype = dtype;
    request.ndim = 1;
    request.shape = &count;
    request.output = data;
    request.process_set = pair_with(ranks_size() - 1);
    ck_hvd(ranks_run(&request));
}

struct forgery {
    int32_t command;    /* 0: a step; 6: to read */
    int64_t n;          /* the number of rows that is announced */
    int64_t indices[2]; /* of these, if they are sent */
    bool sends;
    const char *text; /* what the server says */
};

static const struct forgery forgeries[] = {
    {0, INT64_MAX, {0}, false, "announced 9223372036854775807 rows"},
    {0, ROWS + 1, {0}, false, "announced 12 rows of a part of variable 'w'"},
    {0, -1, {0}, false, "announced -1 rows"},
    {0, 2, {5, ROWS}, true, "none of rows 0 to 10"},
    {0, 2, {-1, 5}, true, "none of rows 0 to 10"},
    {0, 2, {5, 5}, true, "not in order"},
    {6, ROWS + 1, {0}, false, "announced 12 rows"},
    {6, INT64_MIN, {0}, false, "rows of a part of variable 'w'"},
    {6, 2, {7, 3}, true, "not in order"},
    {6, 2, {0, INT64_MAX}, true, "none of rows 0 to 10"},
    {99, 0, {0}, false, "command 99"},
};

/* id: the number of the strategy in this process, which is in the names. */
static void forge(const struct forgery *f, int id)
{
    unsigned char message[2 * (8 + 4 * WIDTH)] = {0};
    struct {
        int32_t code, variable;
        double learning_rate, momentum;
    } command = {f->command, 0, 1, 0};
    char name[64], of[16];
    int64_t n = f->n;

    snprintf(of, sizeof of, "%d", id);
    snprintf(name, sizeof name, "%d: w", id);
    memcpy(message, f->indices, sizeof f->indices);
    send_to_server("command", of, &command, sizeof command, HVD_UINT8);
    if (f->command == 99)
        return;
    send_to_server(f->command ? "ask" : "push", name, &n, 1, HVD_INT64);
    if (!f->sends)
        return;
    if (f->command)
        send_to_server("which", name, message, 2, HVD_INT64);
    else
        send_to_server("rows", name, message, sizeof message, HVD_UINT8);
}

/* Such a server ends its service, and tells what came from whom. It keeps
 * nothing of it. */
TEST(servers_do_not_believe_numbers)
{
    const int n = sizeof forgeries / sizeof *forgeries;

    for (int i = 0; i < n && ranks_size() > 1; i++) {
        hvd_strategy *strategy = start();

        if (hvd_strategy_is_server(strategy)) {
            ck_hvd_fails(hvd_strategy_serve(strategy), HVD_ERR_MISMATCH);
            ck_error_says("rank 0");
            ck_error_says(forgeries[i].text);
            for (int row = 0; row < ROWS; row++)
                ck_assert_float_eq(value[row][0], 0);
        } else if (ranks_rank() == 0) {
            forge(&forgeries[i], i);
        }
        ck_hvd(hvd_barrier()); /* the service is over */
        ck_hvd(hvd_shutdown());
        hvd_strategy_free(strategy);
        ck_hvd(hvd_init());
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_servers_forged")
