/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over UCX, of a rank that sends to itself: how it sleeps. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "suite.h"
#include "transport/transport.h"

#define SECOND INT64_C(1000000000)

enum { FOR_EVER = 600, BYTES = 64, TAG = 3 };

static struct hvd__transport *t;

/* Returns false if this host has no UCX, or one that cannot sleep. */
static bool open_ucx(void)
{
    struct hvd__transport *below;

    hvd__log_set(HVD__LOG_ERROR, -1);
    ck_assert_int_eq(hvd__self_open(&below), HVD_OK);
    if (hvd__ucx_open(below, SECOND, &t) == HVD_OK && t->sleep)
        return true;
    t = NULL;
    below->close(below);
    return false;
}

static void send_and_receive(unsigned char *in, const unsigned char *out)
{
    struct hvd__transfer sending, receiving;
    int done = 0;

    ck_assert_int_eq(t->receive(t, 0, TAG, in, BYTES, &receiving), HVD_OK);
    ck_assert_int_eq(t->send(t, 0, TAG, out, BYTES, &sending), HVD_OK);
    /* Whoever sleeps only while nothing has come is woken each time. */
    while ((done = t->test(t, &receiving)) == 0)
        t->sleep(t, FOR_EVER * SECOND);
    ck_assert_int_eq(done, 1);
    while ((done = t->test(t, &sending)) == 0)
        t->sleep(t, FOR_EVER * SECOND);
    ck_assert_int_eq(done, 1);
}

TEST(what_comes_ends_the_sleep)
{
    unsigned char out[BYTES], in[BYTES];

    if (!open_ucx())
        return;
    for (int i = 0; i < 100; i++) {
        memset(out, i + 1, sizeof out);
        memset(in, 0, sizeof in);
        send_and_receive(in, out);
        ck_assert_mem_eq(in, out, sizeof out);
    }
    t->close(t);
}

TEST(a_sleep_ends_when_nothing_comes)
{
    if (!open_ucx())
        return;
    for (int i = 0; i < 100; i++) {
        int64_t since = hvd__now_ns();

        while (hvd__now_ns() - since < 2000000)
            t->sleep(t, 1000000);
    }
    t->close(t);
}

TEST_MAIN("transport_ucx", .seconds = 60)
