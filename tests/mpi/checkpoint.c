/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that goes on from a checkpoint gives the bits of training that never
 * stopped, on as many ranks or on others. All ranks refuse a file that is no
 * checkpoint, and nothing changes.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "hvd_mpi.h"
#include "hvd_strategy.h"
#include "ranks.h"

enum { NVARIABLES = 4, LARGEST = 30000 };

static const int64_t shapes[NVARIABLES][2] = {
    {100, 300}, {1, 65}, {0, 3}, {1, 1}};
static const char *const names[NVARIABLES] = {"dense/kernel", "b", "nothing",
                                              "\xc3\xa4 \"quoted\""};

static float values[NVARIABLES][LARGEST], kept[NVARIABLES][LARGEST];
static char directory[256], file[300];

static int64_t count_of(int v)
{
    return shapes[v][0] * shapes[v][1];
}

/* Rank 0 reads and writes; what others know of the file does not matter. */
static void set_up(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(directory, sizeof directory, "%s/hvd-checkpoint.XXXXXX",
             tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(file, sizeof file, "%s/state", directory);
}

static void tear_down(void)
{
    unlink(file);
    ck_assert_msg(rmdir(directory) == 0, "something is left in %s", directory);
}

static const char *path(void)
{
    return ranks_rank() == 0 ? file : NULL;
}

/* backwards: variables are added in the other order. */
static hvd_strategy *make(hvd_optimizer optimizer, int backwards)
{
    hvd_strategy_options options;
    hvd_strategy *strategy = NULL;

    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = optimizer;
    options.learning_rate = 0.01;
    ck_hvd(hvd_strategy_new(&options, &strategy));
    for (int i = 0; i < NVARIABLES; i++) {
        int v = backwards ? NVARIABLES - 1 - i : i;

        for (int64_t k = 0; k < count_of(v); k++)
            values[v][k] = (float)((k * 7 + v) % 19) / 16;
        ck_hvd(hvd_strategy_add(strategy, names[v], values[v], 2, shapes[v]));
    }
    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

/* The gradients are the same on all ranks, so the bits do not depend on the
 * number of ranks. */
static void train(hvd_strategy *strategy, int backwards, int from, int to)
{
    for (int step = from; step < to; step++) {
        for (int i = 0; i < NVARIABLES; i++) {
            int v = backwards ? NVARIABLES - 1 - i : i;
            float *g = hvd_strategy_gradient(strategy, i);

            for (int64_t k = 0; k < count_of(v); k++)
                g[k] = (float)((k * 5 + v * 3 + step * 7) % 23) / 8 - 1.25f;
            ck_hvd(hvd_strategy_ready(strategy, i));
        }
        ck_hvd(hvd_strategy_step(strategy));
    }
}

static void keep(void)
{
    memcpy(kept, values, sizeof kept);
}

static void spoil(void)
{
    memset(values, ranks_rank() + 1, sizeof values);
}

static void expect_kept(void)
{
    for (int v = 0; v < NVARIABLES; v++)
        ck_assert_mem_eq(values[v], kept[v],
                         (size_t)count_of(v) * sizeof(float));
}

/* Trains for 9 steps and saves a file on rank 0 after the 5th. */
static void train_and_save(hvd_optimizer optimizer)
{
    hvd_strategy *strategy = make(optimizer, 0);

    train(strategy, 0, 0, 5);
    if (ranks_rank() == 0)
        ck_hvd(hvd_strategy_save(strategy, file));
    train(strategy, 0, 5, 9);
    keep();
    hvd_strategy_free(strategy);
}

/* -------------------------------------------------------------- it goes on */

TEST(training_goes_on_with_the_same_bits)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        for (int backwards = 0; backwards < 2; backwards++) {
            hvd_strategy *strategy;

            train_and_save(o);
            strategy = make(o, backwards);
            train(strategy, backwards, 2, 4); /* of no consequence */
            ck_assert_int_eq(hvd_strategy_load(strategy, path()), 1);
            ck_hvd(hvd_strategy_check(strategy));
            train(strategy, backwards, 5, 9);
            expect_kept();
            hvd_strategy_free(strategy);
        }
}

TEST(on_other_ranks_too)
{
    int mine = ranks_rank() % 2;
    hvd_strategy *strategy;
    MPI_Comm half;

    train_and_save(HVD_ADAM);
    ck_hvd(hvd_shutdown());
    MPI_Bcast(file, sizeof file, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, mine, ranks_rank(), &half);
    ck_hvd(hvd_init_mpi(half));
    MPI_Comm_free(&half);
    strategy = make(HVD_ADAM, 0);
    ck_assert_int_eq(hvd_strategy_load(strategy, file), 1);
    train(strategy, 0, 5, 9);
    expect_kept();
    hvd_strategy_free(strategy);
    ck_hvd(hvd_shutdown());
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(file, sizeof file, "%s/state", directory);
    ck_hvd(hvd_init());
}

/* A strategy with another optimiser takes only the variables from a checkpoint,
 * and Adam begins anew with them. */
TEST(another_optimizer_begins_anew)
{
    hvd_strategy *strategy = make(HVD_MOMENTUM, 0);
    static float saved[NVARIABLES][LARGEST];

    train(strategy, 0, 0, 3);
    if (ranks_rank() == 0)
        ck_hvd(hvd_strategy_save(strategy, file));
    memcpy(saved, values, sizeof saved);
    hvd_strategy_free(strategy);

    strategy = make(HVD_ADAM, 0);
    memcpy(values, saved, sizeof values);
    train(strategy, 0, 3, 6);
    keep();
    hvd_strategy_free(strategy);

    strategy = make(HVD_ADAM, 0);
    train(strategy, 0, 0, 4);
    ck_assert_int_eq(hvd_strategy_load(strategy, path()), 0);
    train(strategy, 0, 3, 6);
    expect_kept();
    hvd_strategy_free(strategy);
}

TEST(a_checkpoint_replaces_another)
{
    hvd_strategy *strategy;
    struct stat before, after;
    mode_t mask = umask(0);

    umask(mask);
    train_and_save(HVD_SGD);
    if (ranks_rank() == 0) {
        ck_assert_int_eq(stat(file, &before), 0);
        ck_assert_uint_eq(before.st_mode & 0777, 0666 & ~mask);
    }
    strategy = make(HVD_SGD, 0);
    train(strategy, 0, 0, 1);
    if (ranks_rank() == 0) {
        ck_hvd(hvd_strategy_save(strategy, file));
        ck_assert_int_eq(stat(file, &after), 0);
        ck_assert_uint_ne(before.st_ino, after.st_ino);
        ck_assert_int_eq(before.st_size, after.st_size);
    }
    keep();
    spoil();
    ck_assert_int_eq(hvd_strategy_load(strategy, path()), 1);
    expect_kept();
    hvd_strategy_free(strategy);
}

/* ------------------------------------------------------------ what is wrong */

/* Loading fails on all ranks with a text, and nothing is changed. */
static void expect_refused(hvd_strategy *strategy, const char *from, int status,
                           const char *words)
{
    keep();
    ck_hvd_fails(hvd_strategy_load(strategy, from), status);
    ck_error_says(words);
    ck_error_says("rank 0: ");
    expect_kept();
}

/* Changes a byte of rank 0's file, or cuts the file off there. redo: the
 * checksum is made right again. */
static void damage(long at, int cut, int redo)
{
    static unsigned char all[1 << 20];
    FILE *f;
    size_t n;
    uint64_t mark = 0;

    if (ranks_rank() != 0)
        return;
    f = fopen(file, "rb");
    ck_assert_ptr_nonnull(f);
    n = fread(all, 1, sizeof all, f);
    fclose(f);
    if (cut)
        n = (size_t)at;
    else
        all[at < 0 ? (long)n + at : at] ^= 1;
    if (redo) {
        for (size_t i = 0; i < n - 8; i += 65536)
            mark = hvd__fingerprint(mark, all + i,
                                    n - 8 - i < 65536 ? n - 8 - i : 65536);
        memcpy(all + n - 8, &mark, 8);
    }
    f = fopen(file, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(all, 1, n, f), n);
    fclose(f);
}

TEST(damaged_files_are_refused)
{
    static const struct {
        long at;
        int cut, redo;
        const char *words;
    } cases[] = {
        {0, 0, 0, "checksum is wrong"},
        {7777, 0, 0, "checksum is wrong"},
        {-1, 0, 0, "checksum is wrong"},
        {100, 1, 0, "checksum is wrong"},
        {7, 1, 0, "too short to be a checkpoint"},
        {0, 1, 0, "too short"},
        {0, 0, 1, "no checkpoint of a strategy"},
        {8, 0, 1, "is of version 0, this libhvd knows version 1"},
        {12, 0, 1, "other byte order"},
        {16, 0, 1, "its head makes no sense"},
        {20, 0, 1, "its head makes no sense"},
        {24, 0, 1, "ends too early"}, /* one variable more */
        {31, 0, 1, "ends too early"},
        {32 + 2, 0, 1, "a name of 65548 bytes"},
        {32 + 4, 0, 1, "'dense/kernel' in another shape"},
        {32 + 8, 0, 1, "'dense/kernel' in another shape"},
        {32 + 144, 0, 1, "a variable 'eense/kernel', and the strategy"},
        {200, 1, 1, "ends too early"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hvd_strategy *strategy;

        train_and_save(HVD_ADAM);
        damage(cases[i].at, cases[i].cut, cases[i].redo);
        strategy = make(HVD_ADAM, 0);
        expect_refused(strategy, path(), HVD_ERR_FILE, cases[i].words);
        train(strategy, 0, 0, 1); /* it works as before */
        hvd_strategy_free(strategy);
    }
}

TEST(other_models_are_refused)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;
    float more = 0;

    train_and_save(HVD_SGD);
    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    ck_hvd(hvd_strategy_new(&options, &strategy));
    for (int v = 0; v < NVARIABLES; v++)
        ck_hvd(hvd_strategy_add(strategy, names[v], values[v], 2, shapes[v]));
    ck_hvd(hvd_strategy_add(strategy, "more", &more, 0, NULL));
    ck_hvd(hvd_strategy_start(strategy));
    expect_refused(strategy, path(), HVD_ERR_FILE,
                   "has no variable 'more', which the strategy has");
    hvd_strategy_free(strategy);

    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd(hvd_strategy_add(strategy, names[0], values[0], 2, shapes[0]));
    ck_hvd(hvd_strategy_start(strategy));
    expect_refused(strategy, path(), HVD_ERR_FILE,
                   "has a variable 'b', and the strategy has none");
    hvd_strategy_free(strategy);
}

TEST(files_that_cannot_be_read)
{
    hvd_strategy *strategy = make(HVD_SGD, 0);
    int mine = ranks_rank() == 0;

    expect_refused(strategy, path(), HVD_ERR_FILE, "No such file");
    expect_refused(strategy, mine ? directory : NULL, HVD_ERR_FILE,
                   "no regular file");
    expect_refused(strategy, NULL, HVD_ERR_ARGUMENT, "no file name");
    expect_refused(strategy, mine ? "" : "x", HVD_ERR_ARGUMENT, "no file name");
    hvd_strategy_free(strategy);
}

TEST(files_that_cannot_be_written)
{
    hvd_strategy *strategy = make(HVD_SGD, 0);
    char beside[320];

    snprintf(beside, sizeof beside, "%s/none/state", directory);
    ck_hvd_fails(hvd_strategy_save(strategy, beside), HVD_ERR_FILE);
    ck_error_says("No such file");
    ck_hvd_fails(hvd_strategy_save(strategy, directory), HVD_ERR_FILE);
    ck_error_says("Is a directory");
    ck_hvd_fails(hvd_strategy_save(strategy, "/dev/full"), HVD_ERR_FILE);
    ck_hvd_fails(hvd_strategy_save(strategy, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_save(NULL, file), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_load(NULL, file), HVD_ERR_ARGUMENT);
    hvd_strategy_free(strategy);
}

/* A path may lead to anything: nothing but a file is replaced, and nothing
 * makes the save wait. */
TEST(paths_that_lead_elsewhere)
{
    hvd_strategy *strategy = make(HVD_SGD, 0);
    char link[320], fifo[320];
    struct stat info;

    snprintf(link, sizeof link, "%s/link", directory);
    snprintf(fifo, sizeof fifo, "%s/fifo", directory);
    ck_assert_int_eq(symlink("state", link), 0);
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    ck_hvd_fails(hvd_strategy_save(strategy, link), HVD_ERR_FILE);
    ck_error_says("a symbolic link to nothing");
    ck_hvd_fails(hvd_strategy_save(strategy, fifo), HVD_ERR_FILE);
    ck_error_says("no regular file");
    expect_refused(strategy, ranks_rank() == 0 ? fifo : NULL, HVD_ERR_FILE,
                   "no regular file");
    ck_hvd(hvd_strategy_save(strategy, file));
    ck_hvd(hvd_strategy_save(strategy, link));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(fifo, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
    unlink(link);
    unlink(fifo);
    hvd_strategy_free(strategy);
}

/* Saves that were killed leave files, which the next save removes. */
TEST(killed_saves_leave_nothing_for_long)
{
    hvd_strategy *strategy = make(HVD_SGD, 0);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char left[400];
    int fd;

    snprintf(left, sizeof left, "%s.%024x.tmp", file, 7);
    fd = open(left, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
    ck_hvd(hvd_strategy_save(strategy, file));
    ck_assert_int_lt(access(left, F_OK), 0);
    hvd_strategy_free(strategy);
}

/* While one rank is in the middle of a step, it cannot save, and no rank can
 * load. That rank can finish its step. */
TEST(not_in_the_middle_of_a_step)
{
    hvd_strategy *strategy = make(HVD_SGD, 0);
    int last = ranks_size() - 1;
    char who[64];

    if (ranks_rank() == last) {
        memset(hvd_strategy_gradient(strategy, 1), 0, 65 * sizeof(float));
        ck_hvd(hvd_strategy_ready(strategy, 1));
        ck_hvd_fails(hvd_strategy_save(strategy, file), HVD_ERR_ARGUMENT);
        ck_error_says("the gradient of 'b' is under way");
    }
    ck_hvd_fails(hvd_strategy_load(strategy, path()), HVD_ERR_ARGUMENT);
    snprintf(who, sizeof who, "rank %d: the gradient of 'b'", last);
    ck_error_says(who);
    for (int v = 0; v < NVARIABLES; v++) {
        memset(hvd_strategy_gradient(strategy, v), 0,
               (size_t)count_of(v) * sizeof(float));
        if (v != 1 || ranks_rank() != last)
            ck_hvd(hvd_strategy_ready(strategy, v));
    }
    ck_hvd(hvd_strategy_step(strategy));
    hvd_strategy_free(strategy);
}

TEST(not_before_the_start)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd_fails(hvd_strategy_save(strategy, file), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start");
    ck_hvd_fails(hvd_strategy_load(strategy, file), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_strategy_start(strategy));
    if (ranks_rank() == 0)
        ck_hvd(hvd_strategy_save(strategy, file)); /* of no variables */
    ck_assert_int_eq(hvd_strategy_load(strategy, path()), 1);
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI, "mpi_checkpoint", .set_up = set_up,
                .tear_down = tear_down)
