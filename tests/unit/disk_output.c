/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what a path leads to: replaced, written to, or refused. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk/disk.h"
#include "folder.h"
#include "suite.h"

static void expect(const char *path, const char *text)
{
    ck_assert_str_eq(file_text(path), text);
}

static int put(const char *path, const char *text, int flags)
{
    return disk__replace(path, text, strlen(text), flags);
}

static mode_t type_of(const char *path)
{
    struct stat info;

    ck_assert_int_eq(lstat(path, &info), 0);
    return info.st_mode & S_IFMT;
}

/* ------------------------------------------------------------ regular files */

TEST(a_file_is_there_whole_or_not_at_all)
{
    struct disk__output o;

    ck_assert_int_eq(put("f", "old", DISK__SYNC), 0);
    ck_assert_int_eq(disk__output_open(&o, "f", DISK__SYNC), 0);
    ck_assert_int_eq(disk__output_write(&o, "new", 3), 0);
    expect("f", "old");
    disk__output_close(&o);
    expect("f", "old");
    ck_assert_int_eq(directory_entries("."), 1);
    ck_assert_int_eq(put("f", "new", DISK__SYNC), 0);
    expect("f", "new");
    ck_assert_int_eq(directory_entries("."), 1);
    disk__output_close(&o); /* again */
}

/* The file has its name from the first line on, and grows. */
TEST(a_file_that_is_placed_grows)
{
    struct disk__output o;

    ck_assert_int_eq(put("f", "old", 0), 0);
    ck_assert_int_eq(disk__output_open(&o, "f", 0), 0);
    ck_assert_int_eq(disk__output_write(&o, "one ", 4), 0);
    ck_assert_int_eq(disk__output_place(&o), 0);
    expect("f", "one ");
    ck_assert_int_eq(disk__output_write(&o, "two", 3), 0);
    expect("f", "one two");
    disk__output_close(&o);
    expect("f", "one two");
    ck_assert_int_eq(directory_entries("."), 1);
}

TEST(paths_of_every_kind)
{
    char longest[NAME_MAX + 1];

    ck_assert_int_eq(mkdir("sub", 0777), 0);
    ck_assert_int_eq(put("sub/../sub/./f", "text", 0), 0);
    expect("sub/f", "text");
    ck_assert_int_eq(put(in_folder("/sub///g"), "text", 0), 0);
    expect("sub/g", "text");
    memset(longest, 'x', NAME_MAX);
    longest[NAME_MAX] = '\0';
    ck_assert_int_eq(put(longest, "text", DISK__SWEEP), 0);
    expect(longest, "text");
    ck_assert_int_eq(put("none/f", "text", 0), -ENOENT);
    ck_assert_int_eq(put("", "text", 0), -ENOENT);
    ck_assert_int_eq(put("new/", "text", 0), -ENOENT);
    ck_assert_int_eq(put("sub/f/f", "text", 0), -ENOTDIR);
    ck_assert_int_eq(put("sub", "text", DISK__DIRECT), -EISDIR);
    ck_assert_int_eq(put("/proc/none", "text", 0), -ENOENT);
    ck_assert_int_eq(directory_entries("."), 2);
}

TEST(permissions_are_those_of_a_new_file)
{
    struct stat info;
    mode_t old = umask(027);

    ck_assert_int_eq(put("f", "text", 0), 0);
    umask(old);
    ck_assert_int_eq(stat("f", &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0640);
}

/* -------------------------------------------------------------------- links */

TEST(a_link_stays_a_link)
{
    ck_assert_int_eq(mkdir("sub", 0777), 0);
    ck_assert_int_eq(put("sub/target", "old", 0), 0);
    ck_assert_int_eq(symlink("sub/target", "one"), 0);
    ck_assert_int_eq(symlink("one", "two"), 0);
    ck_assert_int_eq(put("two", "new", DISK__SYNC), 0);
    ck_assert_int_eq(type_of("two"), S_IFLNK);
    ck_assert_int_eq(type_of("one"), S_IFLNK);
    expect("sub/target", "new");
    ck_assert_int_eq(directory_entries("."), 3);
    /* A folder may be one, too, for a file that is new. */
    ck_assert_int_eq(symlink("sub", "folder"), 0);
    ck_assert_int_eq(put("folder/more", "more", 0), 0);
    expect("sub/more", "more");
}

TEST(a_link_to_nothing_is_refused)
{
    ck_assert_int_eq(symlink("none", "link"), 0);
    ck_assert_int_eq(put("link", "text", DISK__DIRECT), DISK__LINK_TO_NOTHING);
    ck_assert_int_eq(disk__output_check("link", 0), DISK__LINK_TO_NOTHING);
    ck_assert_int_eq(type_of("link"), S_IFLNK);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    ck_assert_int_eq(put("loop", "text", 0), -ELOOP);
    ck_assert_int_eq(directory_entries("."), 2);
}

/* -------------------------------------------------------- devices and pipes */

TEST(what_is_no_file_is_not_replaced)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (void *)&address, sizeof address), 0);
    close(fd);
    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    for (int flags = 0; flags <= DISK__DIRECT; flags++) {
        ck_assert_int_eq(put("socket", "text", flags), DISK__NOT_REGULAR);
        ck_assert_int_eq(disk__output_check("socket", flags),
                         DISK__NOT_REGULAR);
    }
    ck_assert_int_eq(put("fifo", "text", DISK__SYNC), DISK__NOT_REGULAR);
    ck_assert_int_eq(put("/dev/null", "text", 0), DISK__NOT_REGULAR);
    ck_assert_int_eq(put("/dev/null", "text", DISK__DIRECT), 0);
    ck_assert_int_eq(put("/dev/full", "text", DISK__DIRECT), -ENOSPC);
    ck_assert_int_eq(put("fifo", "text", DISK__DIRECT | DISK__BRIEFLY),
                     DISK__NO_READER);
    ck_assert_int_eq(disk__output_check("fifo", DISK__DIRECT), 0);
    ck_assert_int_eq(type_of("fifo"), S_IFIFO);
    ck_assert_int_eq(type_of("socket"), S_IFSOCK);
    ck_assert_int_eq(type_of("/dev/null"), S_IFCHR);
    ck_assert_int_eq(directory_entries("."), 2);
}

TEST(a_fifo_is_written_to_without_waiting)
{
    static const char much[1 << 20];
    char got[100] = "";
    int reader;

    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(put("fifo", "text", DISK__DIRECT), 0);
    ck_assert_int_eq(read(reader, got, sizeof got), 4);
    ck_assert_str_eq(got, "text");
    ck_assert_int_eq(
        disk__replace("fifo", much, sizeof much, DISK__DIRECT | DISK__BRIEFLY),
        DISK__UNREAD);
    close(reader);
}

/* If the FIFO's reader has gone, the writer gets an errno, and no signal. */
TEST(a_fifo_that_breaks)
{
    struct disk__output o;
    int reader;

    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(disk__output_open(&o, "fifo", DISK__DIRECT), 0);
    close(reader);
    ck_assert_int_eq(disk__output_write(&o, "text", 4), -EPIPE);
    ck_assert_int_eq(disk__output_commit(&o), -EPIPE);
}

/* A reader that comes late, and reads slowly, gets everything. */
TEST(a_fifo_is_waited_for)
{
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES), got[4096];
    size_t all = 0;
    ssize_t n;
    pid_t child;
    int fd, status;

    memset(text, 'x', BYTES);
    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    child = fork();
    if (child == 0)
        _exit(-disk__replace("fifo", text, BYTES, DISK__DIRECT));
    usleep(100000);
    fd = open("fifo", O_RDONLY | O_CLOEXEC);
    while ((n = read(fd, got, sizeof got)) > 0)
        all += (size_t)n;
    ck_assert_uint_eq(all, BYTES);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(fd);
    free(text);
}

/* Standard output goes to a file, and the path leads there, too. */
TEST(what_is_printed_stays)
{
    int fd = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    ck_assert_int_ge(dup2(fd, STDOUT_FILENO), 0);
    ck_assert_int_eq(write(STDOUT_FILENO, "printed ", 8), 8);
    ck_assert_int_eq(put("/dev/stdout", "text ", 0), DISK__PRINTED_TO);
    ck_assert_int_eq(put("/dev/stdout", "text ", DISK__DIRECT), 0);
    ck_assert_int_eq(write(STDOUT_FILENO, "more ", 5), 5);
    ck_assert_int_eq(put("log", "again", DISK__DIRECT), 0);
    expect("log", "printed text more again");
    ck_assert_int_eq(directory_entries("."), 1);
}

/* ----------------------------------------------------------------- failures */

/* A limit on the size of files: an errno, and not the end of the process. */
TEST(no_room)
{
    struct rlimit limit = {1000, 1000};
    static const char much[3000];
    struct disk__output o;
    pid_t child;
    int status;

    ck_assert_int_eq(put("f", "old", 0), 0);
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(-disk__replace("f", much, sizeof much, DISK__SYNC));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), EFBIG);
    expect("f", "old");
    ck_assert_int_eq(directory_entries("."), 1);

    /* A failed output leaves no part of a file. */
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_FSIZE, &limit);
        status = disk__output_open(&o, "log", 0);
        status |= disk__output_write(&o, "line", 4);
        status |= disk__output_place(&o);
        _exit(status != 0 || disk__output_write(&o, much, 999) != -EFBIG ||
              disk__output_write(&o, "x", 1) != -EFBIG);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    expect("log", "line");
}

TEST(a_stream_that_fails)
{
    struct disk__output o;
    FILE *file;

    ck_assert_int_eq(disk__output_open(&o, "/dev/full", DISK__DIRECT), 0);
    file = disk__output_stream(&o);
    ck_assert(file != NULL);
    fputs("text", file);
    ck_assert_int_ne(fclose(file), 0);
    ck_assert_int_eq(disk__output_commit(&o), -ENOSPC);
    ck_assert_str_eq(disk__text(-ENOSPC), strerror(ENOSPC));
}

/* -------------------------------------------------------------------- input */

TEST(only_files_are_read)
{
    static const char *const others[] = {"fifo", ".", "/dev/null", "/dev/zero"};
    FILE *file;
    char text[10];
    int status;

    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert(disk__read_stream(others[i], &status) == NULL);
        ck_assert_int_eq(status, DISK__NOT_REGULAR);
    }
    ck_assert_int_eq(disk__open_regular("none", O_RDONLY), -ENOENT);
    ck_assert_int_eq(put("f", "text", 0), 0);
    ck_assert_int_eq(symlink("f", "link"), 0);
    file = disk__read_stream("link", &status);
    ck_assert(file != NULL);
    ck_assert_str_eq(fgets(text, sizeof text, file), "text");
    fclose(file);
}

TEST_MAIN("disk_output", .set_up = folder_enter, .tear_down = folder_remove,
          .seconds = 20)
