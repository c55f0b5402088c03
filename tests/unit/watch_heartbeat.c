/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests three hosts in one process, which hear of each other through real
 * sockets: ranks 0 and 1 on "a", with one page; 2 and 3 on "b", with another; 4
 * alone on "c".
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ip_socket.h"
#include "suite.h"
#include "watch/heartbeat.h"

enum { N = 5 };
#define SECOND INT64_C(1000000000)

static const char *const host_names[N] = {"a 1", "a 1", "b 1", "b 1", "c 1"};
static struct hvd__page *pages[N]; /* by rank; the ranks of a host share one */
static struct hvd__places places[N];
static struct hvd__heartbeat *heartbeats[N];
static struct hvd__heartbeat_card cards[N];
static struct hvd__ip own; /* where all listen */
static char how[512];
static const struct hvd__page_shape shape = {N, 2};

static const char *host(const void *context, int rank)
{
    (void)context;
    return host_names[rank];
}

static struct hvd__page *new_page(void)
{
    int fd;
    struct hvd__page *page = hvd__page_create(shape, &fd);

    ck_assert(page != NULL);
    close(fd);
    return page;
}

/* Returns the line of a rank on the page of another. */
static struct hvd__line *line(int rank, int of)
{
    return &pages[rank]->lines[places[rank].line_of[of]];
}

/* Set 1 is ranks 0 to 2. */
static bool is_member(void *context, int32_t set, int rank)
{
    (void)context;
    return set == 0 || rank < 3;
}

static const struct hvd__watch_subject subject = {.is_member = is_member};

/* deaf is a rank without a watchdog; -1: all have one. */
static void open_all(int deaf)
{
    for (int r = 0; r < N; r++) {
        pages[r] = r == 1 || r == 3 ? pages[r - 1] : new_page();
        ck_assert_int_eq(hvd__places_open(&places[r], r, N, host, NULL),
                         HVD_OK);
        ck_assert_int_eq(hvd__heartbeat_open(&heartbeats[r], own, &places[r],
                                             host, NULL, &cards[r]),
                         HVD_OK);
        ck_assert(heartbeats[r] != NULL);
        atomic_store(&line(r, r)->state, HVD__LINE_ALIVE);
        atomic_store(&line(r, r)->pid, 100 + r);
    }
    for (int r = 0; r < N; r++) {
        for (int other = 0; other < N; other++)
            hvd__heartbeat_introduce(heartbeats[r], other, &cards[other],
                                     other != deaf);
        hvd__heartbeat_start(heartbeats[r], pages[r], &subject, SECOND);
    }
}

static void close_all(void)
{
    for (int r = 0; r < N; r++) {
        hvd__heartbeat_close(heartbeats[r]);
        hvd__places_close(&places[r]);
        if (r != 1 && r != 3)
            hvd__page_unmap(pages[r], shape);
    }
}

/* Takes in all datagrams that are there. Returns whether one told of the
 * end. */
static bool hear(int rank, struct hvd__cause *cause)
{
    struct pollfd fd = {.fd = hvd__heartbeat_fd(heartbeats[rank]),
                        .events = POLLIN};

    while (poll(&fd, 1, 100) > 0)
        if (hvd__heartbeat_receive(heartbeats[rank], cause))
            return true;
    return false;
}

static void just_hear(int rank)
{
    struct hvd__cause cause;

    ck_assert(!hear(rank, &cause));
}

static struct hvd__view view_of(int rank, int of)
{
    struct hvd__view view;

    hvd__heartbeat_look(heartbeats[rank], of, &view);
    return view;
}

/* Returns the rank that `rank` takes for lost; -1: none. */
static int lost(int rank, int64_t limit)
{
    int which = -1;

    return hvd__heartbeat_has_lost(heartbeats[rank], limit, &which, how,
                                   sizeof how)
               ? which
               : -1;
}

static void check_news(void)
{
    struct hvd__doing doing = {.since_ns = hvd__now_ns() - SECOND,
                               .text = "allreduce 'w'"};
    struct hvd__doing seen;

    open_all(-1);
    hvd__page_write_doing(line(0, 1), &doing);
    ck_assert_int_eq(view_of(3, 1).state, HVD__VIEW_ELSEWHERE);
    hvd__heartbeat_send(heartbeats[0]);
    just_hear(2);
    hvd__heartbeat_advance(heartbeats[3], SECOND / 4);
    /* Rank 2 has heard it, and rank 3 finds it on their page. */
    ck_assert_int_eq(view_of(3, 1).state, HVD__VIEW_ALIVE);
    ck_assert_int_eq(atomic_load(&line(3, 1)->pid), 101);
    hvd__page_read_doing(line(3, 1), &seen);
    ck_assert_str_eq(seen.text, "allreduce 'w'");
    ck_assert(seen.since_ns >= doing.since_ns - SECOND &&
              seen.since_ns <= hvd__now_ns() - SECOND / 2);
    ck_assert_str_eq(hvd__heartbeat_host(heartbeats[3], 1), "a");
    close_all();
}

/* Puts n requests on the page of a rank, with the keys first, first + 1, ... */
static void has(int rank, uint64_t first, int n)
{
    static struct hvd__in_flight f;

    f.nkeys = n;
    f.nrequests = n < HVD__PAGE_REQUESTS ? n : HVD__PAGE_REQUESTS;
    for (int i = 0; i < n; i++)
        f.keys[i] = first + (uint64_t)i;
    for (int i = 0; i < f.nrequests; i++) {
        f.requests[i].key = f.keys[i];
        snprintf(f.requests[i].name, sizeof f.requests[i].name, "'%d'",
                 (int)f.keys[i]);
    }
    hvd__page_write_flight(
        hvd__page_flight(pages[rank], places[rank].line_of[rank]), &f);
    atomic_store(&line(rank, rank)->in_flight, n);
}

/* Makes contact between all hosts. */
static void greet(void)
{
    static const int speakers[] = {0, 2, 4};

    for (size_t i = 0; i < 3; i++)
        hvd__heartbeat_send(heartbeats[speakers[i]]);
    for (size_t i = 0; i < 3; i++)
        just_hear(speakers[i]);
    for (int r = 0; r < N; r++)
        hvd__heartbeat_advance(heartbeats[r], SECOND / 4);
}

/* Lets a rank ask about n requests of a set, and all answer. */
static void ask(int rank, uint64_t first, int n, int32_t set)
{
    hvd__heartbeat_ask_begin(heartbeats[rank]);
    for (int i = 0; i < n; i++)
        hvd__heartbeat_ask_about(heartbeats[rank], first + (uint64_t)i, set);
    for (int round = 0; round < 3; round++) {
        hvd__heartbeat_ask(heartbeats[rank]);
        for (int r = 0; r < N; r++)
            just_hear(r);
    }
}

TEST(who_lacks_requests_says_so_when_asked)
{
    enum { MANY = 200 };
    struct hvd__view view;

    open_all(-1);
    greet();
    for (int r = 0; r < N; r++)
        has(r, 1000, MANY);
    has(3, 1000, MANY - 1);
    has(4, 5000, 2);
    ask(0, 1000, MANY, 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert(hvd__heartbeat_waits(heartbeats[0], 2, 1000 + (uint64_t)i));
        ck_assert(hvd__heartbeat_waits(heartbeats[0], 3, 1000 + (uint64_t)i) ==
                  (i < MANY - 1));
        ck_assert(!hvd__heartbeat_waits(heartbeats[0], 4, 1000 + (uint64_t)i));
        ck_assert(!hvd__heartbeat_is_told(heartbeats[0], 1000 + (uint64_t)i));
    }
    view = view_of(0, 4);
    ck_assert_int_eq(view.state, HVD__VIEW_ALIVE);
    ck_assert_int_eq(view.nrequests, 2); /* what it has instead */
    ck_assert_str_eq(view.requests[0].name, "'5000'");
    ck_assert_str_eq(view.requests[1].name, "'5001'");
    /* The next question is about something else. */
    ask(0, 5000, 1, 0);
    ck_assert(!hvd__heartbeat_waits(heartbeats[0], 2, 5000));
    ck_assert(hvd__heartbeat_waits(heartbeats[0], 4, 5000));
    close_all();
}

TEST(a_lower_rank_that_waits_tells)
{
    open_all(-1);
    greet();
    for (int r = 1; r < N; r++)
        has(r, 7, 2);
    has(1, 7, 1);
    ask(4, 7, 2, 0);
    ck_assert(hvd__heartbeat_is_told(heartbeats[4], 7));
    ck_assert(hvd__heartbeat_is_told(heartbeats[4], 8)); /* by rank 2 */
    ck_assert(!hvd__heartbeat_waits(heartbeats[4], 0, 7));
    ck_assert(!hvd__heartbeat_waits(heartbeats[4], 1, 8));
    ask(1, 7, 1, 0);
    ck_assert(!hvd__heartbeat_is_told(heartbeats[1], 7));
    close_all();
}

TEST(only_members_of_a_set_lack_its_requests)
{
    open_all(-1);
    greet();
    has(0, 7, 1);
    ask(0, 7, 1, 1);
    ck_assert(!hvd__heartbeat_waits(heartbeats[0], 2, 7));
    ck_assert(hvd__heartbeat_waits(heartbeats[0], 3, 7));
    ck_assert(hvd__heartbeat_waits(heartbeats[0], 4, 7));
    close_all();
}

TEST(a_silent_host_lacks_what_is_asked)
{
    open_all(-1);
    greet();
    for (int r = 0; r < N; r++)
        has(r, 7, 1);
    hvd__heartbeat_advance(heartbeats[0], 2 * SECOND);
    ck_assert(!hvd__heartbeat_waits(heartbeats[0], 4, 7));
    ck_assert_int_eq(view_of(0, 4).state, HVD__VIEW_SILENT);
    close_all();
}

TEST(silence_is_noticed_and_ends)
{
    open_all(-1);
    hvd__heartbeat_advance(heartbeats[4], 60 * SECOND);
    ck_assert_int_eq(lost(4, SECOND), -1); /* was never heard */
    hvd__heartbeat_send(heartbeats[0]);
    just_hear(4);
    hvd__heartbeat_advance(heartbeats[4], SECOND);
    ck_assert_int_eq(lost(4, SECOND), -1);
    hvd__heartbeat_advance(heartbeats[4], SECOND);
    ck_assert_int_eq(lost(4, 0), -1); /* never */
    ck_assert_int_eq(lost(4, SECOND), 0);
    ck_assert(strstr(how, "all of its host (ranks 0,1)"));
    ck_assert(strstr(how, "no heartbeat for 1.0 s"));
    ck_assert_int_eq(view_of(4, 1).state, HVD__VIEW_ALIVE);
    hvd__heartbeat_advance(heartbeats[4], SECOND);
    ck_assert_int_eq(view_of(4, 1).state, HVD__VIEW_SILENT);
    hvd__heartbeat_send(heartbeats[1]); /* another speaks for it */
    just_hear(4);
    hvd__heartbeat_advance(heartbeats[4], SECOND);
    ck_assert_int_eq(lost(4, SECOND), -1);
    close_all();
}

TEST(datagrams_go_to_who_speaks)
{
    struct pollfd fd;

    open_all(-1);
    hvd__heartbeat_send(heartbeats[3]);
    just_hear(0);
    hvd__heartbeat_advance(heartbeats[0], SECOND);
    hvd__heartbeat_send(heartbeats[0]);
    fd = (struct pollfd){.fd = hvd__heartbeat_fd(heartbeats[2]),
                         .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 100), 0);
    fd.fd = hvd__heartbeat_fd(heartbeats[3]);
    ck_assert_int_eq(poll(&fd, 1, 100), 1);
    close_all();
}

static void check_refusals(void)
{
    open_all(-1);
    hvd__heartbeat_send(heartbeats[4]);
    just_hear(0);
    hvd__heartbeat_advance(heartbeats[0], SECOND / 4);
    hvd__heartbeat_close(heartbeats[4]);
    heartbeats[4] = NULL;
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(lost(0, 0), -1);
        hvd__heartbeat_send(heartbeats[0]);
        just_hear(0);
        hvd__heartbeat_advance(heartbeats[0], SECOND / 4);
        ck_assert(hvd__heartbeat_has_refusals(heartbeats[0]));
    }
    ck_assert_int_eq(lost(0, 0), 4);
    ck_assert(strstr(how, "is gone"));
    close_all();
}

TEST(who_has_said_goodbye_is_not_missed)
{
    open_all(-1);
    hvd__heartbeat_send(heartbeats[4]);
    just_hear(0);
    hvd__heartbeat_advance(heartbeats[0], SECOND / 4);
    atomic_store(&line(4, 4)->state, HVD__LINE_LEFT);
    hvd__heartbeat_send_goodbye(heartbeats[4]);
    hvd__heartbeat_close(heartbeats[4]);
    heartbeats[4] = NULL;
    just_hear(0);
    for (int round = 0; round < 4; round++) {
        hvd__heartbeat_send(heartbeats[0]);
        just_hear(0);
        hvd__heartbeat_advance(heartbeats[0], 60 * SECOND);
    }
    ck_assert_int_eq(lost(0, SECOND), -1);
    ck_assert_int_eq(view_of(0, 4).state, HVD__VIEW_LEFT);
    close_all();
}

TEST(an_end_reaches_every_rank_elsewhere)
{
    static const struct hvd__cause sent = {1, HVD_ERR_LOST, 0, HVD_LOST_ENDED,
                                           "rank 0 is gone"};
    struct hvd__cause cause;

    open_all(-1);
    hvd__heartbeat_send_end(heartbeats[1], &sent);
    for (int r = 2; r < N; r++) {
        ck_assert(hear(r, &cause) || r == 3);
        ck_assert_int_eq(cause.finder, 1);
        ck_assert_int_eq(cause.lost, 0);
        ck_assert_int_eq(cause.reason, HVD_LOST_ENDED);
        ck_assert_int_eq(cause.status, HVD_ERR_LOST);
        ck_assert_str_eq(cause.text, "rank 0 is gone");
    }
    just_hear(0);
    close_all();
}

TEST(hosts_that_cannot_take_part_are_left_out)
{
    struct pollfd fd;
    char text[512];

    open_all(3); /* and so all of "b" */
    hvd__heartbeat_send(heartbeats[0]);
    fd = (struct pollfd){.fd = hvd__heartbeat_fd(heartbeats[2]),
                         .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 100), 0);
    hvd__heartbeat_send(heartbeats[2]);
    just_hear(0);
    ck_assert_int_eq(view_of(0, 2).state, HVD__VIEW_ELSEWHERE);
    /* "c" is the only host that should send, and it has sent nothing. */
    ck_assert(!hvd__heartbeat_lacks_contact(heartbeats[0], text, sizeof text));
    hvd__heartbeat_advance(heartbeats[0], 60 * SECOND);
    ck_assert(hvd__heartbeat_lacks_contact(heartbeats[0], text, sizeof text));
    ck_assert(strstr(text, "1 of 2 other hosts (c) cannot be watched"));
    ck_assert(!hvd__heartbeat_lacks_contact(heartbeats[0], text, sizeof text));
    close_all();
}

/* Sends from the socket of a stranger, who may know the layout of a
 * datagram. */
static void send_as_stranger(const void *bytes, size_t size, int to)
{
    struct sockaddr_storage address;
    struct hvd__ip near =
        hvd__ip_is_any(own) ? hvd__ip_of_v4(htonl(INADDR_LOOPBACK)) : own;
    socklen_t length =
        hvd__ip_socket(near, (in_port_t)cards[to].port, &address);
    int fd = socket(address.ss_family, SOCK_DGRAM, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(
        sendto(fd, bytes, size, 0, (struct sockaddr *)&address, length), 0);
    close(fd);
}

static void check_strangers(void)
{
    unsigned char datagram[1400], junk[1400];
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    uint64_t beats;
    ssize_t size;

    open_all(-1);
    hvd__heartbeat_send(heartbeats[4]);
    size = recvfrom(hvd__heartbeat_fd(heartbeats[0]), datagram, sizeof datagram,
                    0, (struct sockaddr *)&from, &length);
    ck_assert_int_gt(size, 0);
    for (size_t n = 0; n <= sizeof junk; n += 50) {
        memset(junk, 'j', sizeof junk);
        memcpy(junk, datagram, n % 100 ? 8 : 0); /* some pass the filter */
        send_as_stranger(junk, n, 0);
    }
    datagram[size - 1] ^= 1;
    send_as_stranger(datagram, (size_t)size, 0);
    just_hear(0);
    ck_assert_uint_eq(atomic_load(&line(0, 4)->beats), 0);
    datagram[size - 1] ^= 1;
    send_as_stranger(datagram, (size_t)size, 0); /* a copy is accepted, once */
    just_hear(0);
    beats = atomic_load(&line(0, 4)->beats);
    ck_assert_uint_eq(beats, 1);
    send_as_stranger(datagram, (size_t)size, 0);
    send_as_stranger(datagram, (size_t)size, 1);
    just_hear(0);
    just_hear(1);
    ck_assert_uint_eq(atomic_load(&line(0, 4)->beats), beats);
    send_as_stranger(datagram, (size_t)size, 4); /* comes from rank 4 itself */
    just_hear(4);
    ck_assert_uint_eq(atomic_load(&line(4, 4)->beats), 0);
    close_all();
}

TEST(news_reach_the_status_page_of_another_host)
{
    check_news();
}

TEST(the_dead_refuse_datagrams)
{
    check_refusals();
}

TEST(strangers_and_echoes_change_nothing)
{
    check_strangers();
}

static struct hvd__ip loopback_v6(void)
{
    struct hvd__ip ip;

    memcpy(ip.words, &in6addr_loopback, sizeof ip.words);
    return ip;
}

TEST(ipv6_does_the_same)
{
    own = loopback_v6();
    check_news();
    check_refusals();
    check_strangers();
}

/* Returns the address that a socket is bound to. */
static struct hvd__ip address_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;

    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return hvd__ip_of((struct sockaddr *)&address);
}

static void check_own(struct hvd__ip mine)
{
    struct hvd__heartbeat_card card;
    struct hvd__heartbeat *heartbeat;
    struct hvd__places all;

    ck_assert_int_eq(hvd__places_open(&all, 0, N, host, NULL), HVD_OK);
    ck_assert_int_eq(
        hvd__heartbeat_open(&heartbeat, mine, &all, host, NULL, &card), HVD_OK);
    ck_assert(hvd__ip_equal(address_of(hvd__heartbeat_fd(heartbeat)), mine));
    ck_assert_int_eq(card.naddresses, 1);
    ck_assert(hvd__ip_equal(card.addresses[0], mine));
    hvd__heartbeat_close(heartbeat);
    hvd__places_close(&all);
}

TEST(only_the_own_address_is_listened_on)
{
    check_own(hvd__ip_of_v4(htonl(INADDR_LOOPBACK)));
    check_own(loopback_v6());
}

TEST(an_address_of_another_host_cannot_be_listened_on)
{
    struct hvd__heartbeat_card card;
    struct hvd__heartbeat *heartbeat;
    struct hvd__places all;

    ck_assert_int_eq(hvd__places_open(&all, 0, N, host, NULL), HVD_OK);
    ck_assert_int_eq(hvd__heartbeat_open(&heartbeat,
                                         hvd__ip_of_v4(htonl(0xc0000201)), &all,
                                         host, NULL, &card),
                     HVD_OK);
    ck_assert(heartbeat == NULL);
    ck_assert_int_eq(card.port, 0);
    hvd__places_close(&all);
}

TEST(one_host_needs_no_socket)
{
    struct hvd__heartbeat_card card;
    struct hvd__heartbeat *heartbeat;
    struct hvd__places two;

    ck_assert_int_eq(hvd__places_open(&two, 1, 2, host, NULL), HVD_OK);
    ck_assert_int_eq(
        hvd__heartbeat_open(&heartbeat, own, &two, host, NULL, &card), HVD_OK);
    hvd__places_close(&two);
    ck_assert(heartbeat == NULL);
    ck_assert_int_eq(card.port, 0);
    hvd__heartbeat_close(NULL);
}

TEST_MAIN("watch_heartbeat", .seconds = 60)
