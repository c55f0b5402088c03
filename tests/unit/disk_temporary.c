/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files of writers that were killed are removed; no others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "disk/disk.h"
#include "folder.h"
#include "suite.h"

/* Returns how many names there are but for the target's; name gets one of
 * them. */
static int others(const char *target, char *name)
{
    DIR *d = opendir(".");
    const struct dirent *entry;
    int n = 0;

    ck_assert(d != NULL);
    while ((entry = readdir(d))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, target) == 0)
            continue;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
        n++;
    }
    closedir(d);
    return n;
}

static int save(const char *path)
{
    return disk__replace(path, "text", 4, DISK__SWEEP | DISK__SYNC);
}

/* A child that has begun to write, and waits for its end. */
static pid_t start_writer(const char *path)
{
    int ends[2];
    char ready;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct disk__output o;

        if (disk__output_open(&o, path, 0) == 0 &&
            disk__output_write(&o, "half", 4) == 0 &&
            write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    return child;
}

static void kill_writer(pid_t child)
{
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

TEST(what_the_dead_have_left_goes)
{
    char name[NAME_MAX + 1];

    for (int i = 0; i < 20; i++)
        kill_writer(start_writer("state"));
    ck_assert_int_eq(others("state", name), 20);
    ck_assert_int_eq(save("state"), 0);
    ck_assert_int_eq(others("state", name), 0);
}

TEST(what_the_living_write_stays)
{
    char name[NAME_MAX + 1];
    pid_t dead = start_writer("state"), living = start_writer("state");

    kill_writer(dead);
    ck_assert_int_eq(save("state"), 0);
    ck_assert_int_eq(others("state", name), 1);
    /* The living writer's file can still be renamed; the test does it. */
    ck_assert_int_eq(rename(name, "state"), 0);
    kill_writer(living);
}

/* Several at a time, who all sweep: each finishes. */
TEST(many_at_once)
{
    enum { WRITERS = 8, SAVES = 50 };
    char name[NAME_MAX + 1];
    int status;

    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            for (int k = 0; k < SAVES; k++)
                if (disk__replace("state", "text", 4, DISK__SWEEP) < 0)
                    _exit(1);
            _exit(0);
        }
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(others("state", name), 0);
}

/* Others may make a file for the first time, or remove it, at any moment. */
TEST(a_file_that_comes_and_goes)
{
    enum { LOOKS = 5000 };
    pid_t child = fork();

    if (child == 0)
        for (;;) {
            close(open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
            rename("new", "state");
            unlink("state");
        }
    for (int i = 0; i < LOOKS; i++)
        ck_assert_int_eq(disk__output_check("state", 0), 0);
    kill_writer(child);
}

static void make(const char *name, int hours_old)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    ck_assert_int_ge(fd, 0);
    if (hours_old) {
        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_sec -= 3600 * hours_old;
    }
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

/* Another kernel's locks may not be seen here: age must speak, too. */
TEST(other_hosts_have_an_hour)
{
    static const char young[] = "state.0000000000000000000000aa.tmp",
                      old[] = "state.0000000000000000000000bb.tmp",
                      locked[] = "state.0000000000000000000000cc.tmp";
    int fd;

    make(young, 0);
    make(old, 2);
    make(locked, 2);
    fd = open(locked, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(save("state"), 0);
    ck_assert_int_eq(access(young, F_OK), 0);
    ck_assert_int_eq(access(old, F_OK), -1);
    ck_assert_int_eq(access(locked, F_OK), 0);
    close(fd);
}

TEST(other_files_stay)
{
    static const char *const names[] = {
        "state.tmp",
        "state2.0000000000000000000000aa.tmp",
        "state.0000000000000000000000aa.tm",
        "state.0000000000000000000000aa.tmpx",
        "state.0000000000000000000000a.tmp",
        "state.0000000000000000000000aaa.tmp",
        "state.0000000000000000000000AA.tmp",
        "state-0000000000000000000000aa.tmp",
        "stat.0000000000000000000000aa.tmp",
    };
    const int n = sizeof names / sizeof *names;
    char name[NAME_MAX + 1];

    for (int i = 0; i < n; i++)
        make(names[i], 48);
    ck_assert_int_eq(symlink("state.tmp", "state.0000000000000000000000dd.tmp"),
                     0);
    ck_assert_int_eq(mkfifo("state.0000000000000000000000ee.tmp", 0666), 0);
    ck_assert_int_eq(save("state"), 0);
    ck_assert_int_eq(others("state", name), n + 2);
}

/* The name of a temporary file is cut; it is found again. */
TEST(long_names)
{
    char target[NAME_MAX + 1], name[NAME_MAX + 1];

    memset(target, 'x', NAME_MAX);
    target[NAME_MAX] = '\0';
    kill_writer(start_writer(target));
    ck_assert_int_eq(others(target, name), 1);
    ck_assert_int_eq(save(target), 0);
    ck_assert_int_eq(others(target, name), 0);
}

/* Names cannot be guessed, so nothing can be put in their place. */
TEST(names_are_random)
{
    struct disk__output a, b;

    ck_assert_int_eq(disk__output_open(&a, "state", 0), 0);
    ck_assert_int_eq(disk__output_open(&b, "state", 0), 0);
    ck_assert_str_ne(a.temporary, b.temporary);
    ck_assert_str_ne(strrchr(a.temporary, '.') - 8,
                     strrchr(b.temporary, '.') - 8);
    disk__output_close(&a);
    disk__output_close(&b);
}

TEST_MAIN("disk_temporary", .set_up = folder_enter, .tear_down = folder_remove,
          .seconds = 30)
