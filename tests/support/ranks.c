/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The other ranks may take this long to end the same test: a machine with few
 * cores runs eight ranks of a sanitized build. */
enum { MEETING_SECONDS = 30 };

static MPI_Comm meeting = MPI_COMM_NULL;

/* Ranks that were started without MPI (tests/tools/by-hand) count in a file how
 * often they have come; NULL: MPI is there. */
static atomic_int *arrivals;

static int own_rank = -1, world_size; /* fixed after the start */

int ranks_rank(void)
{
    return own_rank;
}

int ranks_size(void)
{
    return world_size;
}

static void give_up(void)
{
    fprintf(stderr,
            "rank %d: the other ranks did not end this test within %d s; "
            "aborting\n",
            ranks_rank(), MEETING_SECONDS);
    fflush(NULL);
    if (arrivals)
        _exit(3);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void meet(void)
{
    static int nmeetings;
    MPI_Request request = MPI_REQUEST_NULL;
    time_t start = time(NULL);
    int done = 0;

    nmeetings++;
    if (arrivals)
        atomic_fetch_add(arrivals, 1);
    else
        MPI_Ibarrier(meeting, &request);
    while (!done) {
        if (arrivals)
            done = atomic_load(arrivals) >= nmeetings * world_size;
        else
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        if (!done && time(NULL) - start > MEETING_SECONDS)
            give_up();
    }
}

static int open_arrivals(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    arrivals =
        mmap(NULL, sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (arrivals == MAP_FAILED) {
        perror(path);
        return -1;
    }
    close(fd);
    own_rank = hvd_rank();
    world_size = hvd_size();
    return 0;
}

static void open_meeting(void)
{
    int is_live, level;

    /* Alone without mpirun libhvd does not touch MPI; the meeting does. */
    MPI_Initialized(&is_live);
    if (!is_live)
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &meeting);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

static int start_library(enum ranks_start start)
{
    const char *path = getenv("RANKS_MEETING");
    int level;

    if (start != HVD_STARTS_MPI)
        MPI_Init_thread(NULL, NULL,
                        start == PROGRAM_STARTS_MPI ? MPI_THREAD_MULTIPLE
                                                    : MPI_THREAD_FUNNELED,
                        &level);
    if (hvd_init() < 0) {
        fprintf(stderr, "hvd_init: %s\n", hvd_last_error());
        return -1;
    }
    if (path)
        return open_arrivals(path);
    open_meeting();
    return 0;
}

int ranks_test_main(enum ranks_start start, const struct suite *suite)
{
    Suite *tests = suite_create(suite->name);
    TCase *tcase = tcase_create(suite->name);
    SRunner *runner;
    int nfailed;

    setvbuf(stdout, NULL, _IOLBF, 0); /* lasts beyond an abort */
    if (start_library(start) < 0)
        return EXIT_FAILURE;
    tcase_add_checked_fixture(tcase, NULL, meet);
    suite_fill(tcase, suite);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(tests, tcase);
    runner = srunner_create(tests);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    nfailed = srunner_ntests_failed(runner);
    srunner_free(runner);
    hvd_shutdown();
    if (meeting != MPI_COMM_NULL)
        MPI_Comm_free(&meeting);
    if (start != HVD_STARTS_MPI)
        MPI_Finalize();
    return nfailed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void *ranks_memory(size_t bytes)
{
    static unsigned calls;
    unsigned turn = calls++ % 4;
    bool shared = turn < 2 || (turn == 3 && ranks_rank() % 2 == 0);
    void *memory = shared ? hvd_malloc(bytes) : malloc(bytes + 1);

    ck_assert(memory != NULL);
    return memory;
}

hvd_request ranks_sum(hvd_dtype dtype, const void *in, void *out,
                      const int64_t *count)
{
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.op = HVD_SUM;
    request.dtype = dtype;
    request.ndim = count ? 1 : 0;
    request.shape = count;
    request.input = in;
    request.output = out;
    return request;
}

int ranks_run(const hvd_request *request)
{
    hvd_handle handle;
    int status = hvd_submit(request, &handle);

    return status < 0 ? status : hvd_wait(handle);
}

int ranks_rooted(hvd_kind kind, int root)
{
    return kind == HVD_BROADCAST || kind == HVD_GATHER || kind == HVD_REDUCE
               ? root
               : 0;
}

void ranks_check_usable(void)
{
    int32_t one = 1, sum = 0;

    ck_hvd(hvd_allreduce(&one, &sum, 1, HVD_INT32, HVD_SUM));
    ck_assert_int_eq(sum, ranks_size());
}

int ranks_thread(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int found = 0;

    ck_assert(tasks != NULL);
    while (!found && (task = readdir(tasks))) {
        char path[300], text[64] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        if (fgets(text, sizeof text, file) &&
            strncmp(text, name, strlen(name)) == 0)
            found = atoi(task->d_name);
        fclose(file);
    }
    closedir(tasks);
    return found;
}

void ranks_restart_with(const char *variable, const char *value)
{
    ck_hvd(hvd_shutdown());
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
    ck_hvd(hvd_init());
}

uint64_t ranks_random(uint64_t *state)
{
    /* Marsaglia, Xorshift RNGs (2003). */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint16_t to_bfloat16(double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Elements are copied with memcpy, because buffers may be misaligned on
 * purpose. */
#define ELEMENTS(X)                                                            \
    X(HVD_UINT8, uint8_t)                                                      \
    X(HVD_INT8, int8_t)                                                        \
    X(HVD_UINT16, uint16_t)                                                    \
    X(HVD_INT16, int16_t)                                                      \
    X(HVD_INT32, int32_t)                                                      \
    X(HVD_INT64, int64_t)                                                      \
    X(HVD_FLOAT16, _Float16)                                                   \
    X(HVD_FLOAT32, float)                                                      \
    X(HVD_FLOAT64, double)                                                     \
    X(HVD_BOOL, uint8_t)

void element_put(hvd_dtype dtype, void *buffer, int64_t i, double value)
{
    char *at = (char *)buffer + i * hvd_dtype_size(dtype);

    switch (dtype) {
#define X(constant, type)                                                      \
    case constant: memcpy(at, &(type){(type)value}, sizeof(type)); break;
        ELEMENTS(X)
#undef X
    default: memcpy(at, &(uint16_t){to_bfloat16(value)}, 2); break;
    }
}

double element_get(hvd_dtype dtype, const void *buffer, int64_t i)
{
    const char *at = (const char *)buffer + i * hvd_dtype_size(dtype);
    uint16_t half;

    switch (dtype) {
#define X(constant, type)                                                      \
    case constant: {                                                           \
        type value;                                                            \
        memcpy(&value, at, sizeof value);                                      \
        return (double)value;                                                  \
    }
        ELEMENTS(X)
#undef X
    default: memcpy(&half, at, 2); return from_bfloat16(half);
    }
}
