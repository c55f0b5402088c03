/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory runs out.
 *
 * A tensor larger than any memory fails at ipu_engine_new. Besides, this
 * program has an allocator of its own, before the C library's, that can fail at
 * the n-th request: a graph, executable and engine are made, used and freed for
 * n = 1, 2, ... until no request fails. Each failure must be reported as
 * IPU_ERR_MEMORY, and nothing may leak. Sanitizers have allocators of their
 * own: with them, only the first test runs.
 */
#include "suite.h"

#include <stdlib.h>

#include "device.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* The sanitizers would end the program instead of returning NULL. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#else
#define FAILING_ALLOCATOR

/* Number of requests until one fails; less than 0 if none fails. One thread
 * uses it. */
static long until_failure = -1;
static long blocks; /* number allocated and not freed, while counting */
static int counting;

static int fails(void)
{
    return until_failure > 0 && --until_failure == 0;
}

/* Counts a block made while counting. Older blocks are not freed meanwhile. */
static void *counted(void *block)
{
    blocks += counting && block;
    return block;
}

/* The names are glibc's own names for its allocators. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

#define OURS __attribute__((visibility("default"), noinline))

OURS void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

OURS void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

OURS void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

OURS void *realloc(void *block, size_t size)
{
    void *moved;

    if (fails())
        return NULL;
    moved = __libc_realloc(block, size);
    return block ? moved : counted(moved);
}

OURS void free(void *block)
{
    blocks -= counting && block;
    __libc_free(block);
}

#endif

LOOP_TEST(a_tensor_larger_than_memory, 0, 2)
{
    const int64_t shape[] = {INT64_C(1) << 50};
    const ipu_compile_options all_the_same = {.size = sizeof all_the_same,
                                              .allow_out_of_memory = 1};
    struct device d = device_new();

    setenv("IPU_POISON", _i ? "1" : "0", 1);
    ipu_variable(d.graph, "v", IPU_FLOAT32, 1, shape);
    MUST(ipu_compile_with(d.graph, &all_the_same, &d.executable));
    MUST_FAIL(ipu_engine_new(d.executable, &d.engine), IPU_ERR_MEMORY,
              "out of memory: 4503599627370496 bytes");
    ck_assert_ptr_null(d.engine);
    device_free(&d);
}

#ifdef FAILING_ALLOCATOR

/* A builder as programs have it: it looks once, at ipu_compile. */
static int compile(ipu_graph *g, ipu_executable **executable)
{
    char name[] = "v00";
    ipu_tensor variables[40], gradients[40];
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(3, 3)), loss;

    for (int i = 0; i < 40; i++) {
        name[1] = (char)('0' + i / 10);
        name[2] = (char)('0' + i % 10);
        name[0] = 'v';
        variables[i] = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(3, 3));
        x = ipu_relu(g, ipu_matmul(g, x, variables[i]));
    }
    loss = ipu_reduce_sum(g, ipu_reshape(g, x, 1, SHAPE(-1)), 1);
    if (ipu_gradients(g, loss, 40, variables, gradients) == IPU_OK)
        for (int i = 0; i < 40; i++) {
            name[0] = 'g';
            name[1] = (char)('0' + i / 10);
            name[2] = (char)('0' + i % 10);
            ipu_host_call(g, name, gradients[i], device_no_call, NULL);
        }
    ipu_output(g, "y", x);
    return ipu_compile(g, NULL, executable);
}

static int live(void)
{
    struct device d = {0};
    int status = ipu_graph_new(&d.graph);

    if (status == IPU_OK)
        status = compile(d.graph, &d.executable);
    if (status == IPU_OK)
        status = ipu_engine_new(d.executable, &d.engine);
    device_free(&d);
    return status;
}

LOOP_TEST(memory_may_run_out_anywhere, 0, 2)
{
    long n = 0;
    int status = IPU_ERR_MEMORY;

    setenv("IPU_POISON", _i ? "1" : "0", 1);
    MUST(live()); /* some memory is allocated once for all */
    while (status == IPU_ERR_MEMORY) {
        long left;

        blocks = 0;
        counting = 1;
        until_failure = ++n;
        status = live();
        until_failure = -1;
        counting = 0;
        left = blocks;
        ck_assert_msg(left == 0, "request %ld failed: %ld blocks are left", n,
                      left);
        ck_assert_msg(status == IPU_OK || strstr(ipu_last_error(), "memory"),
                      "request %ld failed: %s", n, ipu_last_error());
    }
    ck_assert_msg(status == IPU_OK, "request %ld failed: status %d, %s", n,
                  status, ipu_last_error());
    ck_assert_int_gt(n, 500); /* requests were made to fail */
}

#endif

TEST_MAIN("device_memory", .seconds = 120)
