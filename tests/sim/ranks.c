/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - simulated ranks: a world and a fiber for each, and what libhvd asks
 * of the process that it runs in.
 *
 * The linker sends calls of some functions here (-Wl,--wrap): the world of this
 * process is that of the rank whose code runs; the clock is virtual; a yield of
 * the core lets another rank run; locks are not needed, for nothing runs at the
 * same time. hvd__execute is noted and then goes on: all members of a process
 * set must run the same batches.
 *
 * Fibers switch by the compiler's setjmp: a switch makes no system call.
 */
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/agree/agreement.h"
#include "core/run/execute.h"
#include "sim.h"
#include "transport/shm/shm.h"
#include "wraps.h"

struct sim sim;
uint16_t sim_slots = HVD__LOG_SLOTS;

void sim_fail(const char *format, ...)
{
    va_list arguments;

    if (sim.failed)
        return;
    sim.failed = true;
    va_start(arguments, format);
    vsnprintf(sim.why, sizeof sim.why, format, arguments);
    va_end(arguments);
    sim_say("FAILED: %s", sim.why);
}

void sim_say(const char *format, ...)
{
    va_list arguments;

    if (!sim.verbose)
        return;
    printf("%12.3f us ", (double)sim.now_ns / 1000);
    if (sim.self)
        printf("rank %d: ", sim.self->rank);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* ------------------------------------------------------------------- fibers */

enum { STACK_BYTES = 256 << 10 };
/* Stacks begin at different offsets in their pages. Otherwise the ranks' frames
 * would push each other out of the same sets of the caches. */
enum { STACK_SHIFTS = 60, STACK_SHIFT_BYTES = 1088 };

struct sim_fiber {
    struct sim_fiber *next; /* in the list of those not in use */
    void *stack;            /* owned */
    size_t stack_bytes;
    ucontext_t start;
    bool has_started;
    void *there[5];
};

static struct sim_fiber *idle_fibers;
static size_t nfibers;
static void *back[5];
static struct sim_fiber *running; /* NULL: the scheduler */

static struct sim_fiber *take_fiber(void)
{
    struct sim_fiber *fiber = idle_fibers;

    if (fiber) {
        idle_fibers = fiber->next;
        fiber->has_started = false;
        return fiber;
    }
    fiber = calloc(1, sizeof *fiber);
    if (!fiber)
        abort();
    fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED)
        abort();
    fiber->stack_bytes =
        STACK_BYTES - nfibers++ % STACK_SHIFTS * STACK_SHIFT_BYTES;
    return fiber;
}

static void return_fiber(struct sim_fiber *fiber)
{
    if (!fiber)
        return;
    fiber->next = idle_fibers;
    idle_fibers = fiber;
}

/* A jump must not be made by the function that made the mark. No caller may
 * know which registers these functions leave alone. AddressSanitizer takes a
 * jump for the end of all frames of a stack, but they live on. */
__attribute__((noipa, no_sanitize_address)) static void jump(void **mark)
{
    __builtin_longjmp(mark, 1);
}

__attribute__((noipa)) static void leave_fiber(struct sim_fiber *fiber)
{
    if (__builtin_setjmp(fiber->there) == 0)
        jump(back);
}

static void run_fiber(void)
{
    struct sim_rank *rank = sim.self;

    sim.program(rank);
    rank->state = SIM_OVER;
    rank->moved = true;
    sim_say("its program has ended");
    leave_fiber(rank->fiber);
    abort();
}

static void step_world(struct sim_rank *rank)
{
    if (hvd__progress_take(rank->world)) {
        rank->moved |= hvd__world_step(rank->world);
        hvd__progress_give(rank->world);
    }
}

/* A background thread: each time it is entered, it goes on with a step. */
static void run_background(void)
{
    struct sim_rank *rank = sim.self;

    while (true) {
        step_world(rank);
        leave_fiber(rank->background);
    }
}

static void start_fiber(struct sim_fiber *fiber, void (*function)(void))
{
    /* A program that was left in the middle has not cleared its marks. */
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, STACK_BYTES);
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = fiber->stack_bytes;
    fiber->start.uc_link = NULL;
    makecontext(&fiber->start, function, 0);
    fiber->has_started = true;
    setcontext(&fiber->start);
}

__attribute__((noipa)) static void enter_fiber(struct sim_fiber *fiber,
                                               void (*function)(void))
{
    if (__builtin_setjmp(back) != 0)
        return;
    if (fiber->has_started)
        jump(fiber->there);
    start_fiber(fiber, function);
}

void sim_yield(void)
{
    if (running)
        leave_fiber(running);
}

void sim_between(void)
{
    if (!running || sim.interleaves == 0 ||
        !sim_once_in(&sim.between, sim.interleaves))
        return;
    sim_yield();
}

/* Runs a fiber of a rank; without one, a step of its world. */
static bool run(struct sim_rank *rank, struct sim_fiber *fiber,
                void (*function)(void))
{
    bool moved;

    sim.self = rank;
    running = fiber;
    if (fiber)
        enter_fiber(fiber, function);
    else
        step_world(rank);
    running = NULL;
    sim.self = NULL;
    moved = rank->moved;
    rank->moved = false;
    return moved;
}

bool sim_run_program(struct sim_rank *rank)
{
    return run(rank, rank->fiber, run_fiber);
}

bool sim_run_background(struct sim_rank *rank)
{
    return run(rank, rank->background, run_background);
}

void sim_mark(void)
{
    struct sim_rank *rank = sim.self;

    rank->state = SIM_AT_MARK;
    sim.marked_ns = sim.now_ns;
    rank->moved = true;
    while (rank->state == SIM_AT_MARK)
        leave_fiber(rank->fiber);
}

/* ---------------------------------------------- what the linker sends here */

SIM_WRAPS(hvd__world_get);
SIM_WRAPS(hvd_is_initialized);
SIM_WRAPS(hvd_rank);
SIM_WRAPS(hvd_size);
SIM_WRAPS(clock_gettime);
SIM_WRAPS(sched_yield);
SIM_WRAPS(pthread_mutex_lock);
SIM_WRAPS(pthread_mutex_unlock);
SIM_WRAPS(hvd__execute);
int __real_hvd__execute(struct hvd__set *set, struct hvd__request *requests,
                        const int *part, size_t direct_max);
SIM_WRAPS(hvd__execute_skip);
void __real_hvd__execute_skip(struct hvd__set *set);

int __wrap_hvd__world_get(struct hvd__world **world)
{
    *world = sim.self ? sim.self->world : NULL;
    return *world ? HVD_OK
                  : hvd__fail(HVD_ERR_NOT_INITIALIZED, "no rank is running");
}

/* What a clock shows when a run begins. */
#define STARTED_NS INT64_C(1000000000)

int __wrap_hvd_is_initialized(void)
{
    return sim.self != NULL;
}

int __wrap_hvd_rank(void)
{
    return sim.self->rank;
}

int __wrap_hvd_size(void)
{
    return sim.nranks;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int64_t now = sim.now_ns + STARTED_NS;

    (void)clock;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

int __wrap_sched_yield(void)
{
    if (sim.self)
        sim.self->nyields++;
    sim_yield();
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int __wrap_hvd__execute(struct hvd__set *set, struct hvd__request *requests,
                        const int *part, size_t direct_max)
{
    if (sim.self && set->id < 8) {
        uint64_t *hash = &sim.self->batches[set->id];

        for (const struct hvd__request *r = requests; r; r = r->state.next)
            *hash = sim_mix(*hash + r->submission->key) + 1;
        *hash = sim_mix(*hash + direct_max);
        sim.self->nbatches[set->id]++;
        sim_note(*hash);
    }
    return __real_hvd__execute(set, requests, part, direct_max);
}

void __wrap_hvd__execute_skip(struct hvd__set *set)
{
    if (sim.self && set->id < 8) {
        sim.self->skipped[set->id] = true;
        sim.self->nbatches[set->id]++;
    }
    __real_hvd__execute_skip(set);
}

/* ------------------------------------------------------------------- worlds */

static void make_set(struct hvd__world *world, struct hvd__transport *t)
{
    int *ranks = malloc((size_t)t->size * sizeof *ranks);
    struct hvd__set *set;

    for (int i = 0; ranks && i < t->size; i++)
        ranks[i] = i;
    set = ranks ? hvd__set_new(t, 0, ranks, t->size, 0) : NULL;
    if (!set || hvd__set_prepare(world, set) < 0 || hvd__agree_tune(set) < 0 ||
        hvd__table_add_set(&world->engine.table, set) < 0)
        abort();
    hvd__world_move_set(world, set);
}

/* Makes the world of a rank, as hvd_init does when all ranks have met. */
static void make_world(struct sim_rank *rank)
{
    struct hvd__world *world = calloc(1, sizeof *world);
    struct hvd__transport *t = sim_network_transport(sim.network, rank->rank);
    int *first = calloc((size_t)sim.nhosts, sizeof *first);

    if (!world || !first)
        abort();
    atomic_init(&world->engine.completion_fd, -1);
    world->engine.costs = sim.costs;
    hvd__trace_writer_init(&world->engine.writer);
    hvd__table_init(&world->engine.table);
    world->engine.table.metrics = &world->engine.metrics;
    hvd__progress_init(&world->progress);
    world->engine.settings = sim.settings;
    world->engine.transport = t;
    t->sent_bytes = &world->engine.metrics.sent_bytes;
    world->host_of = calloc((size_t)sim.nranks, sizeof *world->host_of);
    if (!world->host_of)
        abort();
    for (int i = sim.nranks - 1; i >= 0; i--)
        first[sim.host_of[i]] = i;
    for (int i = 0; i < sim.nranks; i++)
        world->host_of[i] = first[sim.host_of[i]];
    free(first);
    world->heap = rank->heap;
    rank->world = world;
    if (sim.has_threads)
        hvd__progress_start(world);
    sim.self = rank;
    make_set(world, t);
    sim.self = NULL;
}

void sim_begin(uint64_t seed, int nranks, const int *host_of,
               const bool *shares, const struct sim_costs *costs)
{
    size_t n = (size_t)nranks;

    hvd__log_set((enum hvd__log_level) - 1, -1);
    sim.seed = seed;
    sim.now_ns = 0;
    sim.hash = seed;
    sim.failed = false;
    sim.nranks = nranks;
    sim.host_of = malloc(n * sizeof *sim.host_of);
    sim.ranks = calloc(n, sizeof *sim.ranks);
    if (!sim.host_of || !sim.ranks)
        abort();
    memcpy(sim.host_of, host_of, n * sizeof *host_of);
    sim.nhosts = 0;
    for (int i = 0; i < nranks; i++)
        if (host_of[i] >= sim.nhosts)
            sim.nhosts = host_of[i] + 1;
    sim.network = sim_network_new(nranks, sim.host_of, seed, costs);
    for (int i = 0; i < nranks; i++) {
        struct sim_rank *rank = &sim.ranks[i];

        rank->rank = i;
        rank->host = host_of[i];
        rank->random = sim_stream(seed, 1000 + (uint64_t)i);
        rank->fiber = take_fiber();
        if (sim.has_threads)
            rank->background = take_fiber();
        if (shares[rank->host])
            rank->heap = sim_heap_new(i, sim.ranks);
    }
    for (int i = 0; i < nranks; i++)
        make_world(&sim.ranks[i]);
}

/* Frees a world, as hvd_shutdown does. */
static void free_world(struct hvd__world *world)
{
    for (int i = 0; i < world->engine.table.nsets; i++)
        hvd__set_retire(world->engine.table.sets[i]);
    hvd__table_fini(&world->engine.table);
    hvd__trace_writer_fini(&world->engine.writer);
    free(world->break_message);
    free(world->host_of);
    hvd__submission_free(world->quick);
    free(world);
}

void sim_end(void)
{
    sim_network_stop(sim.network);
    for (int i = 0; i < sim.nranks; i++) {
        struct sim_rank *rank = &sim.ranks[i];

        return_fiber(rank->fiber);
        return_fiber(rank->background);
        sim.self = rank;
        if (rank->state == SIM_DEAD)
            hvd__world_break(rank->world, HVD_ERR_LOST, "dead");
        free_world(rank->world);
        sim.self = NULL;
    }
    hvd__shm_forget();
    for (int i = 0; i < sim.nranks; i++)
        sim_heap_free(sim.ranks[i].heap);
    sim_network_free(sim.network);
    free(sim.ranks);
    free(sim.host_of);
    sim.ranks = NULL;
    sim.nranks = 0;
}

static bool is_over(const void *context)
{
    const struct hvd__world *world = context;

    return atomic_load(&world->closed) || atomic_load(&world->broken);
}

int sim_shutdown(void)
{
    struct hvd__world *world = sim.self->world;
    struct hvd__set *set = NULL;

    while ((set = hvd__table_next_set(&world->engine.table, set))) {
        hvd__table_close(&world->engine.table, set, HVD_ERR_SHUTDOWN,
                         "hvd_shutdown has been called");
        atomic_store(&set->leaving, true);
    }
    hvd__progress_until(world, is_over, world, 0);
    return atomic_load(&world->broken) ? world->break_status : HVD_OK;
}

void sim_kill(struct sim_rank *rank)
{
    rank->state = SIM_DEAD;
    sim_network_kill(sim.network, rank->rank);
    sim_say("rank %d dies", rank->rank);
}

int64_t sim_next_timer(const struct sim_rank *rank)
{
    int64_t next = INT64_MAX;

    if (atomic_load(&rank->world->broken))
        return next;
    for (struct hvd__set *set = rank->world->engine.live; set;
         set = set->next) {
        int64_t since = set->agreement->relay.held_since_ns;

        if (since > 0 && since - STARTED_NS + HVD__HOLD_NS < next)
            next = since - STARTED_NS + HVD__HOLD_NS;
    }
    return next;
}
