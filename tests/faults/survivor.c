/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivor SEED [DEATHS] - ranks die at random moments of random collectives,
 * and the others go on, until one is left.
 *
 * In each round all ranks run the same random collectives, of 16 bytes to
 * 16 MiB, in memory of hvd_malloc or in ordinary memory, and check every result
 * against its own computation. DEATHS of them (1), any ranks, kill themselves
 * at random moments, within 5 ms of each other. The others recover, and check
 * what hvd_recover says. SURVIVOR_FILE is a file for the times of the deaths.
 *
 * The lowest survivor of each round writes "survived K of N ranks in S ms":
 * from the first death to the first result in the last new world. Exits with 0
 * if all was as it should be, else 1 and a line that says what was not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hvd.h"

enum { MOST_COUNT = 4 << 20, MOST_ROUNDS = 64, MOST_RANKS = 64 };

static int64_t *deaths; /* shared, [MOST_ROUNDS]: the first of each round */
static int first_rank, first_size;    /* in the first world */
static int alive[MOST_RANKS], nalive; /* those that should be, by first rank */
static float *memory[2]; /* of hvd_malloc, and ordinary: [MOST_COUNT] each */

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    printf("rank %d of the first world: wrong: %s (%s)\n", first_rank, what,
           hvd_last_error());
    fflush(stdout);
    _exit(1);
}

/* The same numbers on all ranks (splitmix64). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ------------------------------------------------------------- collectives */

/* What rank gives as element i of step s: small integers, so that sums are
 * exact. */
static float given(int rank, int64_t i, uint64_t s)
{
    return (float)((int64_t)(s % 97) + (rank + 1) * (i % 5 + 1));
}

/* Looks at some of the elements, the first and the last among them. */
static bool is_right(const float *data, int64_t count, uint64_t s, int root)
{
    const int64_t stride = count / 61 + 1;

    for (int64_t k = 0; k < count + stride; k += stride) {
        int64_t i = k < count ? k : count - 1;
        float expected = root < 0 ? 0 : given(root, i, s);

        for (int rank = 0; rank < hvd_size() && root < 0; rank++)
            expected += given(rank, i, s);
        if (data[i] != expected)
            return false;
    }
    return true;
}

/* Runs a collective and checks its result. Returns its status. */
static int run_step(uint64_t *state)
{
    uint64_t s = draw(state), bits = draw(state);
    int64_t count = (int64_t)4 << (bits >> 8) % 21; /* 16 B to 16 MiB */
    float *data = memory[bits >> 1 & 1];
    int root = bits >> 16 & 1 ? (int)(bits >> 32) % hvd_size() : -1, status;

    if (count > MOST_COUNT)
        count = MOST_COUNT;
    if (root < 0 && bits >> 17 & 1 && count < 1 << 16)
        count -= 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = given(hvd_rank(), i, s);
    status = root < 0 ? hvd_allreduce(data, data, count, HVD_FLOAT32, HVD_SUM)
                      : hvd_broadcast(data, count, HVD_FLOAT32, root);
    if (status == HVD_OK && !is_right(data, count, s, root))
        die(root < 0 ? "the result of an allreduce" : "that of a broadcast");
    return status;
}

/* ------------------------------------------------------------------ deaths */

struct fate {
    int round;
    long delay_us;
};

static void *end_oneself(void *argument)
{
    const struct fate *fate = argument;
    int64_t never = 0;

    usleep((useconds_t)fate->delay_us);
    __atomic_compare_exchange_n(&deaths[fate->round], &never, now_ns(), 0,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Draws who dies in this round, and takes them from those that live on. This
 * rank begins to die if it is one of them. */
static void draw_deaths(int round, int ndeaths, uint64_t *state)
{
    static struct fate fate;
    long delay_us = 1000 + (long)(draw(state) % 60000);
    pthread_t thread;

    for (int i = 0; i < ndeaths && nalive > 1; i++) {
        int victim = (int)(draw(state) % (uint64_t)nalive);
        long later_us = i ? (long)(draw(state) % 5000) : 0;

        if (alive[victim] == first_rank) {
            fate = (struct fate){round, delay_us + later_us};
            if (pthread_create(&thread, NULL, end_oneself, &fate) != 0)
                die("no thread");
        }
        memmove(alive + victim, alive + victim + 1,
                (size_t)(nalive - victim - 1) * sizeof *alive);
        nalive--;
    }
}

/* ----------------------------------------------------------------- recovery */

static int own_place(void)
{
    int place = 0;

    while (place < nalive && alive[place] != first_rank)
        place++;
    return place;
}

static void recover(void)
{
    hvd_lost_rank lost[MOST_RANKS];
    hvd_recovery recovery;
    int size = hvd_size(), rank = hvd_rank(), n;

    if (hvd_recover(&recovery, sizeof recovery) < 0)
        die("hvd_recover");
    n = hvd_lost_ranks(lost, MOST_RANKS);
    if (recovery.old_rank != rank || recovery.old_size != size ||
        recovery.nlost != n || hvd_size() != size - n)
        die("what hvd_recover says");
    for (int i = 0; i < n; i++) {
        if (lost[i].reason != HVD_LOST_ENDED ||
            lost[i].rank == recovery.old_rank)
            die("who is lost");
        rank -= lost[i].rank < recovery.old_rank;
    }
    if (hvd_rank() != rank)
        die("the new rank");
}

/* Runs collectives, and recovers, until those that should die are lost. */
static void run_round(int round, uint64_t state)
{
    const int size = hvd_size();
    int status = HVD_OK;

    /* The survivors may differ in what they have done when they recover: they
     * begin with the same numbers again. */
    for (;;) {
        uint64_t numbers = state + (uint64_t)hvd_size();

        do
            status = run_step(&numbers);
        while (status == HVD_OK && hvd_size() > nalive);
        if (status == HVD_OK)
            break;
        if (status != HVD_ERR_LOST)
            die("the status of a collective");
        recover();
    }
    if (hvd_size() != nalive || hvd_rank() != own_place())
        die("the new world");
    if (hvd_rank() == 0) {
        printf("survived %d of %d ranks in %.2f ms\n", size - nalive, size,
               (double)(now_ns() - deaths[round]) * 1e-6);
        fflush(stdout);
    }
}

static void open_file(void)
{
    const char *path = getenv("SURVIVOR_FILE");
    int fd = path ? open(path, O_RDWR) : -1;
    size_t bytes = MOST_ROUNDS * sizeof *deaths;

    deaths = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || deaths == MAP_FAILED)
        die("SURVIVOR_FILE");
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int ndeaths = argc > 2 ? atoi(argv[2]) : 1;

    if (hvd_init() < 0)
        die("hvd_init");
    first_rank = hvd_rank();
    first_size = nalive = hvd_size();
    open_file();
    for (int i = 0; i < first_size; i++)
        alive[i] = i;
    memory[0] = hvd_malloc(MOST_COUNT * sizeof(float));
    memory[1] = malloc(MOST_COUNT * sizeof(float));
    if (!memory[0] || !memory[1])
        die("memory");
    for (int round = 0; nalive > 1; round++) {
        uint64_t state = seed * 1000 + (uint64_t)round;
        int status = hvd_barrier();

        /* A victim that has left the barrier may be dead already. */
        if (status < 0 && status != HVD_ERR_LOST)
            die("a barrier of the living");
        draw_deaths(round, ndeaths, &state);
        run_round(round, state);
    }
    if (hvd_shutdown() < 0)
        die("hvd_shutdown");
    return 0;
}
