/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that compilations report their progress, and that they stop wherever
 * the callback asks for it.
 */
#include "suite.h"
#include <stdbool.h>

#include "one_device.h"

enum { LAYERS = 400, MOST_PHASES = 16 };

static struct {
    int calls, stop_at, status;
    int nphases, calls_in_phase, most_in_phase;
    char phases[MOST_PHASES][32];
    int64_t done, total;
} seen;

static int on_progress(void *context, const char *phase, int64_t done,
                       int64_t total)
{
    ck_assert_ptr_eq(context, &seen);
    ck_assert_int_ge(done, 0);
    ck_assert_int_le(done, total);
    if (seen.nphases == 0 ||
        strcmp(seen.phases[seen.nphases - 1], phase) != 0) {
        for (int i = 0; i < seen.nphases; i++)
            ck_assert_str_ne(seen.phases[i], phase);
        ck_assert_int_lt(seen.nphases, MOST_PHASES);
        snprintf(seen.phases[seen.nphases++], sizeof *seen.phases, "%s", phase);
        ck_assert_int_eq(done, 0);
        seen.calls_in_phase = 0;
    } else {
        ck_assert_int_ge(done, seen.done);
        ck_assert_int_eq(total, seen.total);
    }
    seen.done = done;
    seen.total = total;
    if (++seen.calls_in_phase > seen.most_in_phase)
        seen.most_in_phase = seen.calls_in_phase;
    return seen.calls++ == seen.stop_at ? seen.status : 0;
}

static int compile(int stop_at, int status)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .progress = on_progress,
                                         .progress_context = &seen};

    memset(&seen, 0, sizeof seen);
    seen.stop_at = stop_at;
    seen.status = status;
    return ipu_compile_with(d.graph, &options, &d.executable);
}

static void set_up(void)
{
    ipu_tensor x, w;

    d = device_new();
    x = device_floats(&d, "x", 2, SHAPE(8, 8));
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(8, 8));
    for (int i = 0; i < LAYERS; i++)
        x = ipu_tanh(d.graph, ipu_matmul(d.graph, x, w));
    MUST(ipu_output(d.graph, "y", x));
}

TEST(every_phase_is_told)
{
    static const char *const some[] = {"schedule", "liveness", "memory",
                                       "place",    "cost",     "fit"};

    MUST(compile(-1, 0));
    for (int i = 0; i < 6; i++) {
        bool found = false;

        for (int k = 0; k < seen.nphases; k++)
            found |= strcmp(seen.phases[k], some[i]) == 0;
        ck_assert_msg(found, "%s was not told", some[i]);
    }
    /* A long phase reports each hundredth, and rounding adds a few. */
    ck_assert_int_ge(seen.most_in_phase, 80);
    ck_assert_int_le(seen.most_in_phase, 110);
}

TEST(it_stops_wherever_it_is_told_to)
{
    int total, tried = 0;

    MUST(compile(-1, 0));
    total = seen.calls;
    ipu_executable_free(d.executable);
    d.executable = NULL;
    for (int i = 0; i < total; i += i % 50 == 49 ? 1 : 7, tried++) {
        MUST_FAIL(compile(i, tried % 2 ? 5 : -3), IPU_ERR_CALLBACK,
                  tried % 2 ? "progress function, which returned 5"
                            : "progress function, which returned -3");
        ck_assert_int_eq(seen.calls, i + 1);
        ck_assert_ptr_null(d.executable);
        ck_assert_msg(strstr(ipu_last_error(), seen.phases[seen.nphases - 1]) !=
                          NULL,
                      "the phase is not in: %s", ipu_last_error());
    }
    ck_assert_int_gt(tried, 20);
    MUST(compile(-1, 0)); /* the graph is unchanged */
}

TEST(who_watches_changes_nothing)
{
    static char watched[1 << 18], alone[1 << 18];

    MUST(compile(-1, 0));
    ck_assert_int_lt(
        ipu_executable_print(d.executable, watched, sizeof watched),
        sizeof watched);
    ipu_executable_free(d.executable);
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    ipu_executable_print(d.executable, alone, sizeof alone);
    ck_assert_str_eq(watched, alone);
}

/* Without steps nothing is counted, but each phase is reported. */
TEST(an_empty_graph_has_phases)
{
    device_free(&d);
    d = device_new();
    MUST(compile(-1, 0));
    ck_assert_int_ge(seen.nphases, 6);
}

TEST_MAIN("device_progress", .set_up = set_up, .tear_down = one_device_free,
          .seconds = 120)
