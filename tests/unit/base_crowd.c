/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a core is wanted by others is seen by yielding it. */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crowd.h"
#include "suite.h"

enum { YIELDS = 1000 };

/* Confines this process to the core on which it is. */
static void stay(void)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    CPU_SET((size_t)sched_getcpu(), &mask);
    ck_assert_int_eq(sched_setaffinity(0, sizeof mask, &mask), 0);
}

/* Starts a process that does nothing but yield the same core. */
static pid_t start_neighbour(void)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        sched_yield();
}

TEST(nobody_is_there_before_the_first_yield)
{
    struct hvd__crowd crowd = {0};

    ck_assert(!hvd__crowd_is_thick(&crowd));
    hvd__crowd_yield(&crowd);
    ck_assert(!hvd__crowd_is_thick(&crowd)); /* one sign is not enough */
}

TEST(a_neighbour_on_the_core_is_noticed)
{
    struct hvd__crowd crowd = {0};
    int nyields = 0;
    pid_t neighbour;

    stay();
    neighbour = start_neighbour();
    while (!hvd__crowd_is_thick(&crowd) && nyields++ < YIELDS)
        hvd__crowd_yield(&crowd);
    kill(neighbour, SIGKILL);
    waitpid(neighbour, NULL, 0);
    ck_assert_int_lt(nyields, YIELDS);
}

TEST(a_sleeper_looks_again_from_time_to_time)
{
    struct hvd__crowd crowd = {.signs = 100};
    int nsleeps = 0;

    while (hvd__crowd_is_thick(&crowd) && nsleeps++ < YIELDS)
        continue;
    ck_assert_int_gt(nsleeps, 1);
    ck_assert_int_lt(nsleeps, YIELDS);
    hvd__crowd_yield(&crowd);
    ck_assert(hvd__crowd_is_thick(&crowd));
}

TEST_MAIN("base_crowd")
