/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a timeline on a disk that becomes full. At whatever byte that happens,
 * the file is valid JSON with the events that were written before, and the run
 * is told once, though several ranks write to it.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "suite.h"
#include "trace/timeline.h"

enum { RANKS = 2, FLUSHES = 1 };

static char folder[64], path[128], ballast[128];
static int heard; /* the reading end of stderr */

static void begin(void)
{
    int ends[2];

    snprintf(folder, sizeof folder, "/tmp/hvd-full.XXXXXX");
    ck_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    snprintf(ballast, sizeof ballast, "%s/ballast", folder);
    hvd__log_set(HVD__LOG_WARNING, 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    heard = ends[0];
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    close(ends[1]);
}

static void end(void)
{
    unlink(path);
    unlink(ballast);
    umount2(folder, MNT_DETACH);
    ck_assert_int_eq(rmdir(folder), 0); /* no temporary file is left */
}

/* Returns how many lines were logged since the last call, and checks that all
 * are about the end. */
static int lines_heard(void)
{
    char text[4096], *rest = text, *line;
    ssize_t n = read(heard, text, sizeof text - 1);
    int lines = 0;

    text[n > 0 ? n : 0] = '\0';
    while ((line = strsep(&rest, "\n")) && *line) {
        ck_assert_msg(strstr(line, "it ends here") != NULL, "%s", line);
        ck_assert(strstr(line, path) != NULL);
        lines++;
    }
    return lines;
}

/* Returns the number of events of requests; -1: the file is not valid. */
static int requests_in_file(void)
{
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *event;
    size_t i;
    int n = root ? 0 : -1;

    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));

        n += name && strcmp(name, "BARRIER") == 0;
    }
    json_decref(root);
    return n;
}

static int count_requests(void)
{
    int n = requests_in_file();

    ck_assert_int_ge(n, 0);
    return n;
}

/* Lets all ranks write in turn. Returns the number of requests in the file at
 * the end; -1 if it was not valid at some time, or a flush has written half. It
 * makes no assertions, which write to a file, too. */
static int write_all(void)
{
    struct hvd__timeline *ranks[RANKS];
    struct hvd__span span = {.kind = HVD_BARRIER,
                             .times = {.submitted_ns = 1000, .done_ns = 3000}};
    int before = 0, now = 0;

    for (int i = 0; i < RANKS; i++)
        if (hvd__timeline_open(path, i, "host", 0, &ranks[i]) < 0)
            return -1;
    for (int flush = 0; flush < FLUSHES; flush++)
        for (int i = 0; i < RANKS; i++) {
            snprintf(span.name, sizeof span.name, "tensor %d of %d", flush, i);
            hvd__timeline_record(ranks[i], &span);
            hvd__timeline_flush(ranks[i]);
            now = requests_in_file();
            if (now != before && now != before + 1)
                return -1;
            before = now;
        }
    for (int i = 0; i < RANKS; i++)
        hvd__timeline_close(ranks[i]);
    return requests_in_file() == now ? now : -1;
}

/* Does the same in a process whose files have at most `bytes` bytes. */
static int write_all_within(off_t bytes)
{
    const struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_FSIZE, &limit);
        status = write_all();
        _exit(status < 0 ? 99 : status);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "%d bytes: ended by signal %d", (int)bytes,
                  WTERMSIG(status));
    ck_assert_int_ne(WEXITSTATUS(status), 99);
    return WEXITSTATUS(status);
}

static off_t size_of_file(void)
{
    struct stat info;

    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_size;
}

/* A limit on the size of files stands for a disk of any number of bytes. The
 * signal that it sends must not end the process. */
TEST(every_byte_may_be_the_last)
{
    off_t least, most;
    int n, most_written = 0;

    ck_assert_int_eq(hvd__timeline_create(path, RANKS), HVD_OK);
    least = size_of_file();
    ck_assert_int_eq(write_all(), RANKS * FLUSHES);
    ck_assert_int_eq(lines_heard(), 0);
    most = size_of_file();
    for (off_t bytes = least; bytes < most; bytes++) {
        ck_assert_int_eq(hvd__timeline_create(path, RANKS), HVD_OK);
        n = write_all_within(bytes);
        ck_assert_int_lt(n, RANKS * FLUSHES);
        ck_assert_int_ge(n, most_written);
        ck_assert_int_le(size_of_file(), bytes);
        ck_assert_int_eq(lines_heard(), 1);
        most_written = n;
    }
    ck_assert_int_eq(most_written, RANKS * FLUSHES - 1);
}

static void write_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Leaves the mounts of the machine for private ones. A process that is not root
 * becomes root of a user namespace for that. */
static void leave_mounts(void)
{
    char user[64], group[64];

    snprintf(user, sizeof user, "0 %d 1", (int)geteuid());
    snprintf(group, sizeof group, "0 %d 1", (int)getegid());
    if (geteuid() == 0) {
        ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
        return;
    }
    ck_assert_int_eq(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", user);
    write_file("/proc/self/gid_map", group);
}

/* Mounts a private file system of this number of pages. */
static void mount_pages(int pages)
{
    char options[64];

    leave_mounts();
    ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    snprintf(options, sizeof options, "size=%ld",
             (long)pages * sysconf(_SC_PAGESIZE));
    ck_assert_int_eq(mount("hvd", folder, "tmpfs", 0, options), 0);
}

/* Fills the disk except for this number of pages. */
static void fill_all_but(int pages, int all)
{
    static const char page[65536];
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open(ballast, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < all - pages; i++)
        ck_assert_int_eq(write(fd, page, bytes), (ssize_t)bytes);
    close(fd);
}

/* Requests have long names, so that a flush takes more than a page. */
static void write_pages(struct hvd__timeline *timeline, int requests)
{
    struct hvd__span span = {.kind = HVD_BARRIER,
                             .times = {.submitted_ns = 1000, .done_ns = 3000}};

    for (int i = 0; i < requests; i++) {
        snprintf(span.name, sizeof span.name, "%090d", i);
        hvd__timeline_record(timeline, &span);
    }
    hvd__timeline_flush(timeline);
}

TEST(a_disk_that_is_full)
{
    enum { ALL = 40, REQUESTS = 40 };

    mount_pages(ALL);
    for (int pages = 1; pages < 20; pages++) {
        struct hvd__timeline *one, *other;
        int written;

        fill_all_but(pages, ALL);
        ck_assert_int_eq(hvd__timeline_create(path, 2), HVD_OK);
        ck_assert_int_eq(hvd__timeline_open(path, 0, "host", 0, &one), HVD_OK);
        ck_assert_int_eq(hvd__timeline_open(path, 1, "host", 0, &other),
                         HVD_OK);
        do {
            write_pages(one, REQUESTS);
            written = count_requests();
            write_pages(other, 1);
        } while (lines_heard() == 0);
        ck_assert_int_eq(count_requests(), written);
        /* Room that comes back does not make the file go on. */
        ck_assert_int_eq(truncate(ballast, 0), 0);
        write_pages(one, 1);
        hvd__timeline_close(one);
        hvd__timeline_close(other);
        ck_assert_int_eq(lines_heard(), 0);
        ck_assert_int_eq(count_requests(), written);
        ck_assert_int_eq(unlink(path), 0);
    }
}

/* If there is no room for a new file, the old one stays, and the caller gets an
 * error. */
TEST(a_disk_that_is_full_from_the_start)
{
    enum { ALL = 8 };

    mount_pages(ALL);
    ck_assert_int_eq(hvd__timeline_create(path, 2), HVD_OK);
    fill_all_but(1, ALL);
    ck_assert_int_eq(hvd__timeline_create(path, 2), HVD_ERR_FILE);
    ck_assert(strstr(hvd_last_error(), "No space left") != NULL);
    ck_assert_int_eq(count_requests(), 0);
}

/* If the path leads to another file by then, that file is left alone. */
TEST(somebody_else_changes_it)
{
    struct hvd__timeline *t;
    FILE *file;
    char text[100];

    ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
    ck_assert_int_eq(hvd__timeline_open(path, 0, "host", 0, &t), HVD_OK);
    file = fopen(path, "w");
    ck_assert(file != NULL);
    fputs("precious", file);
    fclose(file);
    write_pages(t, 1);
    hvd__timeline_close(t);
    ck_assert_int_eq(lines_heard(), 1);
    file = fopen(path, "r");
    ck_assert(file != NULL);
    ck_assert(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    ck_assert_str_eq(text, "precious");
}

TEST_MAIN("trace_full", .set_up = begin, .tear_down = end, .seconds = 120)
