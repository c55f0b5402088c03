/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_threads.h - makes a process unable to start threads; all else works.
 *
 *     struct rlimit before = threads_end();
 *     ... pthread_create fails ...
 *     threads_may(&before);
 *
 * This does not work with sanitizers, which map memory without limit
 * (NO_THREADS says whether it works).
 */
#ifndef HVD_TESTS_NO_THREADS_H
#define HVD_TESTS_NO_THREADS_H

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NO_THREADS

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "checks.h"

/* Room for what malloc may want, and none for a stack, which is larger. */
static inline struct rlimit threads_end(void)
{
    const rlim_t room = 64 << 20;
    FILE *file = fopen("/proc/self/statm", "r");
    struct rlimit before, now;
    pthread_attr_t attributes;
    unsigned long pages = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 2 * room), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + room;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &now), 0);
    return before;
}

static inline void threads_may(const struct rlimit *before)
{
    ck_assert_int_eq(setrlimit(RLIMIT_AS, before), 0);
}

#endif
#endif
