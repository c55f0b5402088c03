/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads spoilt checkpoints. Bits of a good one are turned, numbers are replaced
 * by small and by extreme ones, and the end is cut off or doubled. The checksum
 * is made right again, so that it does not refuse the file. The file is then
 * either refused, in one line that names it, with nothing changed, or it is
 * loaded, and the strategy goes on.
 *
 * The sequence is the same in every run, so that a failure occurs again. A
 * sanitized build (make sanitize) sees bytes read or written elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "hvd_strategy.h"
#include "suite.h"

enum { COUNT = 21, BLOCK = 64 << 10, MOST_BYTES = 1 << 16 };

static uint64_t state = 20040229;
static char path[300];
static float values[2][COUNT], before[2][COUNT];
static hvd_strategy *strategy;

static uint32_t any(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void must(int status)
{
    ck_assert_msg(status >= 0, "%s", hvd_last_error());
}

static void step(void)
{
    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < COUNT; i++)
            hvd_strategy_gradient(strategy, v)[i] = (float)(i - 9) / 4;
        must(hvd_strategy_ready(strategy, v));
    }
    must(hvd_strategy_step(strategy));
}

static void set_up(void)
{
    static const int64_t shapes[2][2] = {{3, 7}, {COUNT, 1}};
    const char *tmp = getenv("TMPDIR");
    hvd_strategy_options options;

    snprintf(path, sizeof path, "%s/hvd-fuzz.%ld", tmp ? tmp : "/tmp",
             (long)getpid());
    must(hvd_init());
    hvd_strategy_options_init(&options, sizeof options);
    must(hvd_strategy_new(&options, &strategy));
    must(hvd_strategy_add(strategy, "kernel", values[0], 2, shapes[0]));
    must(hvd_strategy_add(strategy, "bias", values[1], 1, shapes[1]));
    must(hvd_strategy_start(strategy));
    step();
    must(hvd_strategy_save(strategy, path));
}

static void tear_down(void)
{
    hvd_strategy_free(strategy);
    hvd_shutdown();
    unlink(path);
}

static size_t read_file(unsigned char *data)
{
    FILE *file = fopen(path, "rb");
    size_t bytes;

    ck_assert_ptr_nonnull(file);
    bytes = fread(data, 1, MOST_BYTES / 2, file);
    fclose(file);
    return bytes;
}

static void write_file(const unsigned char *data, size_t bytes)
{
    /* The file is not emptied first: it would go to the disk each time. */
    FILE *file = fopen(path, "r+b");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(ftruncate(fileno(file), (off_t)bytes), 0);
    fclose(file);
}

/* Changes some of the bytes before the checksum. Returns how many there are
 * then. */
static size_t spoil(unsigned char *data, size_t bytes)
{
    static const int64_t extremes[] = {INT32_MAX, INT32_MIN,  INT64_MAX,
                                       INT64_MIN, UINT32_MAX, 0xffff};
    int64_t number = any(3) ? (int64_t)any(30) - 2 : extremes[any(6)];
    size_t width = (size_t)4 << any(2), at = any((uint32_t)(bytes - 8));

    switch (any(8)) {
    case 0: return any((uint32_t)bytes);
    case 1: memcpy(data + bytes, data, bytes / 2); return bytes + bytes / 2;
    case 2:
    case 3: /* these are mostly heads, which precede names and elements */
        memcpy(data + any(40) * 4, &number, width);
        return bytes;
    case 4: memcpy(data + at, &number, width); return bytes;
    default: data[any(3) ? any(200) : at] ^= (unsigned char)(1u << any(8));
    }
    return bytes;
}

static void sign(unsigned char *data, size_t bytes)
{
    uint64_t mark = 0;

    for (size_t at = 0; at < bytes; at += BLOCK)
        mark = hvd__fingerprint(mark, data + at,
                                bytes - at < BLOCK ? bytes - at : BLOCK);
    memcpy(data + bytes, &mark, sizeof mark);
}

TEST(it_is_refused_or_loaded)
{
    static unsigned char good[MOST_BYTES], data[MOST_BYTES];
    size_t all = read_file(good) - sizeof(uint64_t);
    int rounds = getenv("HVD_TEST_FULL") ? 2000000 : 20000, loaded = 0;

    for (int round = 0; round < rounds; round++) {
        size_t bytes;
        int status;

        memcpy(data, good, all);
        bytes = spoil(data, all);
        sign(data, bytes);
        write_file(data, bytes + sizeof(uint64_t));
        memcpy(before, values, sizeof before);
        status = hvd_strategy_load(strategy, path);
        if (status >= 0) {
            loaded++;
            step();
            continue;
        }
        ck_assert_msg(status == HVD_ERR_FILE, "round %d: %s", round,
                      hvd_last_error());
        ck_assert_ptr_nonnull(strstr(hvd_last_error(), path));
        ck_assert_ptr_null(strchr(hvd_last_error(), '\n'));
        ck_assert_mem_eq(before, values, sizeof before);
    }
    ck_assert_int_gt(loaded, rounds / 50);
    ck_assert_int_lt(loaded, rounds / 10 * 9);
}

TEST_MAIN("fuzz_checkpoint", .set_up = set_up, .tear_down = tear_down,
          .seconds = 1800)
