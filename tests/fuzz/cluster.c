/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - gives spoilt texts to the reader of clusters. Good texts are
 * spoilt: characters are replaced, taken out, doubled or inserted, and words of
 * other texts are put in. Then
 *
 *     a refusal         is one line, with the name of the text
 *     an accepted text  obeys the rules: one chief and one evaluator at most,
 *                       ports and hosts that can be, no address twice; and its
 *                       canonical text, and the TF_CONFIG of each of its tasks,
 *                       are read as the same cluster
 *
 * The sequence is the same in every run, so that a failure occurs again. The
 * text has a block of memory of its own size, without a NUL, so a sanitized
 * build (make sanitize) sees a byte read too far.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hvd_cluster.h"
#include "suite.h"

enum { MOST = 4096 };

static const char *const good[] = {
    "{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]},"
    "\"task\":{\"type\":\"worker\",\"index\":1}}",
    "{\n  \"cluster\": {\n    \"chief\": [\"host0:2222\"],\n    \"worker\": "
    "[\"host1:2222\", \"10.0.0.7:2222\", \"[fe80::1]:2222\"],\n    \"ps\": "
    "[\"host4:2222\"],\n    \"evaluator\": [\"host5:2222\"]\n  },\n  \"task\": "
    "{\"type\": \"ps\", \"index\": 0}\n}\n",
    "{\"cluster\": {\"master\": [\"a:1\"], \"ps\": []}, \"environment\": "
    "\"cloud\", \"job\": {\"x\": [1, 2.5e3, true, null, \"\\u00e4\\n\"]}, "
    "\"task\": {\"type\": \"evaluator\", \"index\": 0, \"trial\": \"1\"}}",
};

static const char *const words[] = {
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\u0000",
    "\\",
    "\"chief\"",
    "\"ps\"",
    "\"a\"",
    "\"a:1\"",
    "\"b:65535\"",
    "\"cluster\"",
    "\"task\"",
    "0",
    "-1",
    "65536",
    "4294967297",
    "1e99",
    "::1",
    "[::]:1",
    "0.0.0.0",
    "\xc3\xa4",
    "\xff",
    "\n",
    "\"master\"",
    "null",
    "\"worker\"",
    "%s%n",
    "://",
    "\"index\"",
    "\"type\"",
    "\"evaluator\"",
    "%eth0",
    ".",
    "\"sparseCluster\"",
    "\"a:1\",\"b:1\"",
    "\t",
};

static uint64_t state = 20221107;

static size_t any(size_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % below;
}

/* ----------------------------------------------------------------- spoiling */

/* Puts these bytes in the place of n others. */
static size_t splice(char *text, size_t bytes, size_t at, size_t n,
                     const char *piece, size_t length)
{
    if (bytes - n + length > MOST)
        return bytes;
    memmove(text + at + length, text + at + n, bytes - at - n);
    memcpy(text + at, piece, length);
    return bytes - n + length;
}

static size_t spoil(char *text, size_t bytes)
{
    const char *word = words[any(sizeof words / sizeof *words)];
    size_t at = any(bytes + 1), left = bytes - at;
    size_t n = any((left < 24 ? left : 24) + 1);
    char piece[24];

    switch (any(8)) {
    case 0: return splice(text, bytes, at, n, "", 0);
    case 1: return any(20) ? bytes : at;
    case 2:
        if (left > 0)
            text[at] = (char)any(256);
        return bytes;
    case 3:
        if (left > 0)
            text[at] = "0123456789abc.:-\"{}[],"[any(22)];
        return bytes;
    case 4: /* doubles a piece */
        memcpy(piece, text + at, n);
        return splice(text, bytes, any(bytes + 1), 0, piece, n);
    case 5: return splice(text, bytes, at, n, word, strlen(word));
    case 6: /* replaces a word in quotes, so that the rest remains JSON */
        for (n = 0; at + n < bytes && text[at + n] != '"';)
            n++;
        return splice(text, bytes, at, n, word, strlen(word));
    default: return splice(text, bytes, at, 0, word, strlen(word));
    }
}

/* ----------------------------------------------------------------- checking */

static void check_refusal(void)
{
    const char *error = hvd_last_error();

    if (strncmp(error, "the description of the cluster", 30) != 0 ||
        strchr(error, '\n') || strlen(error) < 40)
        ck_abort_msg("an error without a place: %s", error);
}

/* Only these characters are left, so a text of the cluster needs no escapes. */
static void check_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    int port = colon ? atoi(colon + 1) : 0;
    size_t allowed = strspn(address, "abcdefghijklmnopqrstuvwxyz0123456789"
                                     "-._[]:");

    if (port < 1 || port > 65535 || colon == address || address[allowed])
        ck_abort_msg("'%s' is no address", address);
}

static void check_addresses(const hvd_cluster *cluster)
{
    ck_assert_int_le(hvd_cluster_count(cluster, HVD_ROLE_CHIEF), 1);
    ck_assert_int_le(hvd_cluster_count(cluster, HVD_ROLE_EVALUATOR), 1);
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        for (int i = 0; i < hvd_cluster_count(cluster, role); i++) {
            const char *address = hvd_cluster_address(cluster, role, i);

            check_address(address);
            for (int j = 0; j < i; j++)
                ck_assert_str_ne(address,
                                 hvd_cluster_address(cluster, role, j));
        }
}

/* Reads a text that the cluster has made; it must give the same cluster. */
static void check_made(const char *text, int32_t flags, const char *canonical)
{
    static char again[2 * MOST];
    hvd_cluster *read;

    if (hvd_cluster_parse(text, (int64_t)strlen(text), flags, &read) < 0)
        ck_abort_msg("%s: %s", text, hvd_last_error());
    hvd_cluster_text(read, again, sizeof again);
    ck_assert_str_eq(again, canonical);
    hvd_cluster_free(read);
}

static void check_accepted(const hvd_cluster *cluster, bool has_task)
{
    static char canonical[2 * MOST], text[2 * MOST];
    int nranks = 0;

    check_addresses(cluster);
    hvd_cluster_text(cluster, canonical, sizeof canonical);
    check_made(canonical, HVD_CLUSTER_NO_TASK, canonical);
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        for (int i = 0; i < hvd_cluster_count(cluster, role); i++) {
            hvd_cluster_tf_config(cluster, role, i, text, sizeof text);
            check_made(text, 0, canonical);
            nranks += hvd_cluster_rank_of(cluster, role, i) >= 0;
        }
    ck_assert_int_eq(nranks, hvd_cluster_size(cluster));
    if (has_task)
        ck_assert_int_ge(hvd_cluster_is_chief(cluster), 0);
}

TEST(a_text_is_refused_or_obeys_the_rules)
{
    int rounds = getenv("HVD_TEST_FULL") ? 2000000 : 100000, naccepted = 0;
    static char text[MOST];

    for (int round = 0; round < rounds; round++) {
        const char *start = good[any(sizeof good / sizeof *good)];
        int32_t flags = any(2) ? HVD_CLUSTER_NO_TASK : 0;
        size_t bytes = strlen(start);
        hvd_cluster *cluster = (hvd_cluster *)&cluster;
        char *own;

        memcpy(text, start, bytes);
        for (size_t times = any(4); times > 0; times--)
            bytes = spoil(text, bytes);
        own = malloc(bytes + 1);
        memcpy(own + 1, text, bytes); /* its end is that of the block */
        if (hvd_cluster_parse(own + 1, (int64_t)bytes, flags, &cluster) < 0) {
            ck_assert_ptr_null(cluster);
            check_refusal();
        } else {
            check_accepted(cluster, !flags);
            naccepted++;
        }
        hvd_cluster_free(cluster);
        free(own);
    }
    /* Both must be common, or little is tested. */
    ck_assert_int_gt(naccepted, rounds / 5);
    ck_assert_int_lt(naccepted, rounds / 2);
}

TEST_MAIN("fuzz_cluster", .seconds = 1800)
