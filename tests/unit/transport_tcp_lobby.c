/* SPDX-License-Identifier: Apache-2.0 */
/* A process of an elastic cluster counts as absent only if nothing listens at
 * its address: whoever founds a world relies on that. */
#include "tcp_ranks.h"
#include "transport/tcp/lobby.h"

/* Processes of a cluster, each with its lobby, and the transport with which it
 * calls the others; NULL: it has none now. */
static struct process {
    struct hvd__lobby *lobby;
    struct hvd__tcp *phone;
} processes[2];

static const struct hvd__asked asked = {ask, &ranks[0]};

static void open_phone(struct process *p)
{
    ck_assert_int_eq(hvd__lobby_phone(p->lobby, &asked, &p->phone), HVD_OK);
}

static void close_phone(struct process *p)
{
    p->phone->base.close(&p->phone->base);
    p->phone = NULL;
}

static void begin(void)
{
    prepare(2, NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            hvd__lobby_open(&ranks[i].options, 1, 2, &processes[i].lobby),
            HVD_OK);
        open_phone(&processes[i]);
        processes[i].lobby->guests.is_open = true;
    }
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        if (processes[i].phone)
            close_phone(&processes[i]);
        hvd__lobby_close(processes[i].lobby);
        processes[i].lobby = NULL;
    }
}

/* Lets both go on for so long. Returns the second one's call of the first. */
static const struct hvd__sender *call(int ms)
{
    for (; ms > 0; ms--)
        for (int i = 0; i < 2; i++)
            if (processes[i].phone)
                ck_assert_int_eq(hvd__tcp_drive(processes[i].phone, 1), HVD_OK);
    return hvd__sender_of(processes[1].phone, 0);
}

TEST(between_two_transports_a_process_is_there)
{
    begin();
    close_phone(&processes[0]);
    call(1);
    ck_assert(!call(50)->is_absent);
    ck_assert_int_eq(hvd__lobby_count(processes[0].lobby), 0);
    open_phone(&processes[0]);
    for (int i = 0; i < 50 && hvd__lobby_count(processes[0].lobby) == 0; i++)
        call(20);
    ck_assert_int_eq(hvd__lobby_count(processes[0].lobby), 1);
    ck_assert_int_eq(call(1)->stage, HVD__SENDER_OPEN);
    end();
}

TEST(a_process_that_has_ended_is_absent)
{
    begin();
    close_phone(&processes[0]);
    hvd__lobby_close(processes[0].lobby);
    call(1);
    ck_assert(call(50)->is_absent);
    ck_assert_int_eq(
        hvd__lobby_open(&ranks[0].options, 1, 2, &processes[0].lobby), HVD_OK);
    open_phone(&processes[0]);
    end();
}

/* A host that is cut off takes no call; a world may be behind the cut. */
TEST(a_call_that_nobody_takes_does_not_say_absent)
{
    struct hvd__sender *sender;

    begin();
    sender = hvd__sender_of(processes[1].phone, 0);
    ck_assert_int_eq(hvd__senders_call(processes[1].phone), HVD_OK);
    for (int i = 0; i < 100 && sender->stage == HVD__SENDER_IDLE; i++) {
        nap(1); /* its address is looked up */
        ck_assert_int_eq(hvd__senders_call(processes[1].phone), HVD_OK);
    }
    ck_assert_int_eq(sender->stage, HVD__SENDER_CALLING);
    sender->since_ns -= 11 * (int64_t)SECOND;
    ck_assert_int_eq(hvd__senders_call(processes[1].phone), HVD_OK);
    ck_assert_int_eq(sender->stage, HVD__SENDER_IDLE);
    ck_assert_str_eq(sender->why, "it does not answer");
    ck_assert(!sender->is_absent);
    end();
}

TEST_MAIN("transport_tcp_lobby", .set_up = set_up, .seconds = 30)
