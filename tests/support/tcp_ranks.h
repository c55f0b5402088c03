/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_ranks.h - ranks of the transport over TCP, which are threads of the test.
 */
#ifndef HVD_TESTS_TCP_RANKS_H
#define HVD_TESTS_TCP_RANKS_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "suite.h"
#include "transport/transport.h"

enum { MOST = 8, SECOND = 1000000000 };

static char addresses[MOST][32];
static int ports[MOST];
static const char *address_of[MOST];
static const char *const name_of[MOST] = {"worker 0", "worker 1", "worker 2",
                                          "worker 3", "worker 4", "worker 5",
                                          "worker 6", "worker 7"};
static const char key[] = "a key of thirty-two bytes or so.";

static inline void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static inline bool is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0), status;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)port);
    status = bind(fd, (struct sockaddr *)&at, sizeof at);
    close(fd);
    return status == 0;
}

static inline bool is_given_out(int rank)
{
    for (int i = 0; i < rank; i++)
        if (ports[i] == ports[rank])
            return true;
    return false;
}

/* Finds ports that nobody uses, below those that the kernel gives to the
 * connections of others. */
static inline void find_ports(void)
{
    unsigned seed = (unsigned)hvd__now_ns();

    for (int i = 0; i < MOST; i++) {
        do
            ports[i] = 10000 + rand_r(&seed) % 22767;
        while (!is_free(ports[i]) || is_given_out(i));
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%d", ports[i]);
        address_of[i] = addresses[i];
    }
}

static inline void set_up(void)
{
    hvd__log_set(HVD__LOG_ERROR, -1);
    find_ports();
}

/* A rank, which is a thread. */
struct rank {
    struct hvd__tcp_options options;
    int delay_ms;
    void (*run)(struct rank *rank); /* NULL: only meets */
    atomic_bool gives_up;           /* as if it was interrupted */
    struct hvd__transport *transport;
    int status;
    char error[HVD__MESSAGE_MAX];
    pthread_t thread;
    unsigned seed;
};

static inline int ask(void *context)
{
    struct rank *rank = context;

    return atomic_load(&rank->gives_up) ? hvd__fail(HVD_ERR_LOST, "interrupted")
                                        : HVD_OK;
}

static inline void finish(struct rank *rank, struct hvd__transfer *transfer)
{
    int done;

    while ((done = rank->transport->test(rank->transport, transfer)) == 0)
        ;
    ck_assert_msg(done == 1, "%s", hvd_last_error());
}

static inline void part(struct rank *rank)
{
    int done;

    while ((done = rank->transport->part(rank->transport)) == 0)
        nap(1);
    ck_assert_msg(done == 1, "%s", hvd_last_error());
}

static inline void *live(void *argument)
{
    struct rank *rank = argument;
    const struct hvd__asked asked = {ask, rank};

    nap(rank->delay_ms);
    rank->status = hvd__tcp_open(&rank->options, &asked, &rank->transport);
    if (rank->status < 0) {
        snprintf(rank->error, sizeof rank->error, "%s", hvd_last_error());
        return NULL;
    }
    if (rank->run)
        rank->run(rank);
    part(rank);
    rank->transport->close(rank->transport);
    return NULL;
}

static struct rank ranks[MOST];

static inline void prepare(int size, void (*run)(struct rank *))
{
    for (int i = 0; i < size; i++)
        ranks[i] = (struct rank){
            .options = {.rank = i,
                        .size = size,
                        .addresses = address_of,
                        .names = name_of,
                        .cluster = 99,
                        .key = key,
                        .key_bytes = sizeof key,
                        .limit_ns = (int64_t)20 * SECOND,
                        .grace_ns = SECOND},
            .run = run,
            .seed = (unsigned)i + 1,
        };
}

static inline void start(int first, int end)
{
    for (int i = first; i < end; i++)
        ck_assert_int_eq(
            pthread_create(&ranks[i].thread, NULL, live, &ranks[i]), 0);
}

static inline void join(int first, int end)
{
    for (int i = first; i < end; i++)
        pthread_join(ranks[i].thread, NULL);
}

/* The error of each rank tells more than that of the first alone. */
static inline void all_are_well(int size)
{
    char errors[MOST * HVD__MESSAGE_MAX] = "";
    struct hvd__text out = hvd__text_at(errors, sizeof errors);

    for (int i = 0; i < size; i++)
        if (ranks[i].status != HVD_OK)
            hvd__text_add(&out, "rank %d: %s\n", i, ranks[i].error);
    ck_assert_msg(!errors[0], "%s", errors);
}

static inline void expect_error(const struct rank *rank, int status,
                                const char *words)
{
    ck_assert_int_eq(rank->status, status);
    ck_assert_msg(strstr(rank->error, words), "'%s' lacks '%s'", rank->error,
                  words);
}

/* Has so many ranks meet, run and part. */
static inline void run_ranks(int size, void (*run)(struct rank *))
{
    prepare(size, run);
    start(0, size);
    join(0, size);
    all_are_well(size);
}

/* Gathers a few numbers from all, several times. */
static inline void exchange(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    int mine[3] = {t->rank, t->rank * t->rank, 7}, all[MOST][3];

    for (int i = 0; i < 50; i++) {
        mine[2] = i;
        ck_assert_int_eq(t->exchange(t, mine, all, sizeof mine), HVD_OK);
        for (int r = 0; r < t->size; r++) {
            ck_assert_int_eq(all[r][0], r);
            ck_assert_int_eq(all[r][1], r * r);
            ck_assert_int_eq(all[r][2], i);
        }
    }
}

#endif
