/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.c - sends and receives blocks beside a round (straight.h).
 *
 * Any number of hosts up to 64. With h = 2^k hosts, m bytes a block, a host
 * sends h − 1 messages, k of which are those of the round, and (h−1)m bytes.
 * Cost: kα + (h−1)mβ. Source: the pairwise exchange of Thakur, Rabenseifner and
 * Gropp (2005), with several of its steps under way.
 */
#include "core/agree/straight.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/pattern.h"

/* So many bytes are on their way from a host at a time: enough to keep its link
 * busy. If more hosts sent to one at once, each connection would have a small
 * part of the link, and TCP would take that for the speed of the network. */
enum { BYTES_AT_ONCE = 128 << 10 };

static uint64_t bit_of(int host)
{
    return UINT64_C(1) << host;
}

/* Returns the only member of a host. */
static int member_of(const struct hvd__straight *straight, int host)
{
    return straight->hosts->members[host];
}

static unsigned char *blocks_of(const struct hvd__straight *straight, int host)
{
    return straight->blocks + (size_t)host * straight->stride;
}

/* ------------------------------------------------------------ life and data */

/* Returns bits for the hosts with which a host exchanges offers. */
static uint64_t partners_of(const struct hvd__hosts *hosts)
{
    const struct hvd__pairing p = hvd__pairing_of(hosts->own, hosts->n);
    uint64_t partners = 0;

    for (int i = 0; i < p.steps && p.number >= 0; i++)
        partners |= bit_of(hvd__pairing_partner(&p, i));
    return partners;
}

int hvd__straight_init(struct hvd__straight *straight,
                       const struct hvd__team *team,
                       const struct hvd__hosts *hosts, int tag)
{
    size_t n = (size_t)hosts->n;

    *straight =
        (struct hvd__straight){.team = team, .hosts = hosts, .tag = tag};
    if (!hvd__blocks_may_go_straight(hosts))
        return HVD_OK;
    straight->along = partners_of(hosts);
    straight->stride = (HVD__STRAIGHT_BYTES / n + 63) / 64 * 64;
    /* Pages of the blocks that no alltoall is large enough for cost nothing. */
    straight->blocks = malloc(n * straight->stride);
    straight->sends = calloc(n, sizeof *straight->sends);
    straight->receives = calloc(n, sizeof *straight->receives);
    if (straight->blocks && straight->sends && straight->receives)
        return HVD_OK;
    hvd__straight_fini(straight);
    return hvd__fail_memory(n * straight->stride);
}

void hvd__straight_fini(struct hvd__straight *straight)
{
    free(straight->blocks);
    free(straight->sends);
    free(straight->receives);
    *straight = (struct hvd__straight){0};
}

bool hvd__straight_is_busy(const struct hvd__straight *straight)
{
    for (int host = 0; straight->blocks && host < straight->hosts->n; host++)
        if (straight->sends[host].request || straight->receives[host].request)
            return true;
    return false;
}

/* Returns the block of a request for a host. */
static struct hvd__way_block block_for(const struct hvd__straight *straight,
                                       const struct hvd__request *request,
                                       int host)
{
    return hvd__way_block(request, member_of(straight, host),
                          straight->hosts->n);
}

static const unsigned char *at(const struct hvd__request *request,
                               struct hvd__way_block block)
{
    return (const unsigned char *)request->input + block.at;
}

void hvd__straight_fill(const struct hvd__straight *straight,
                        struct hvd__offer *offer,
                        const struct hvd__offer_slot *slot)
{
    size_t most = slot->bytes / (size_t)straight->hosts->n;

    for (int host = 0; host < straight->hosts->n; host++) {
        struct hvd__way_block block = block_for(straight, slot->request, host);
        unsigned char *to =
            offer->data + hvd__offer_member(slot, straight->hosts, host);

        if (host == straight->hosts->own)
            to = blocks_of(straight, host);
        else if (!(straight->along & bit_of(host)))
            continue;
        memcpy(to, at(slot->request, block), block.bytes);
        memset(to + block.bytes, 0, most - block.bytes);
    }
}

void hvd__straight_sources(const struct hvd__straight *straight,
                           const struct hvd__offer *offer, const void **sources)
{
    const struct hvd__offer_slot *slot = hvd__offer_straight(offer);

    for (int host = 0; host < straight->hosts->n; host++)
        sources[member_of(straight, host)] =
            straight->along & bit_of(host)
                ? offer->data + hvd__offer_member(slot, straight->hosts, host)
                : blocks_of(straight, host);
}

/* ------------------------------------------------------------------- moving */

void hvd__straight_begin(struct hvd__straight *straight,
                         const struct hvd__offer *offer)
{
    const struct hvd__offer_slot *slot = hvd__offer_straight(offer);

    straight->request = slot ? slot->request : NULL;
    straight->nmet = 0;
    straight->received = straight->along;
}

/* Posts receives from hosts that are known to send. */
static int receive_blocks(struct hvd__straight *straight, uint64_t sending)
{
    uint64_t left = sending & ~straight->received;

    straight->received |= left;
    for (int host = 0; left && host < straight->hosts->n; host++)
        if (left & bit_of(host) && host != straight->hosts->own)
            HVD_TRY(hvd__team_receive(straight->team, member_of(straight, host),
                                      straight->tag, blocks_of(straight, host),
                                      straight->stride,
                                      &straight->receives[host]));
    return HVD_OK;
}

static int test(const struct hvd__straight *straight,
                struct hvd__transfer *transfer)
{
    struct hvd__transport *t = straight->team->transport;

    return transfer->request ? t->test(t, transfer) : 1;
}

/* Returns the host that is met as the i-th, which this one sends to, or which
 * sends to this one. */
static int host_to(const struct hvd__straight *straight, int i)
{
    return (straight->hosts->own + i) % straight->hosts->n;
}

static int host_from(const struct hvd__straight *straight, int i)
{
    return (straight->hosts->own - i + straight->hosts->n) % straight->hosts->n;
}

/* Returns 1 if the blocks to and from the hosts that are met as the i-th have
 * moved; 0 if it is not yet known whether that host sends, either. */
static int test_pair(struct hvd__straight *straight, int i, bool all_known)
{
    int from = host_from(straight, i);
    int done = test(straight, &straight->sends[host_to(straight, i)]);

    if (done <= 0)
        return done;
    if (!all_known && !(straight->received & bit_of(from)))
        return 0;
    return test(straight, &straight->receives[from]);
}

/* Sends blocks as long as not too many are on their way. Returns 1 if all are
 * sent. */
static int send_blocks(struct hvd__straight *straight, bool all_known)
{
    const struct hvd__request *request = straight->request;
    int most = BYTES_AT_ONCE /
                   (int)hvd__way_block(request, 0, straight->hosts->n).bytes +
               1;

    while (straight->nmet < straight->hosts->n - 1) {
        int i = straight->nmet + 1, host = host_to(straight, i);

        if (i > most) {
            int done = test_pair(straight, i - most, all_known);

            if (done <= 0)
                return done;
        }
        if (!(straight->along & bit_of(host))) {
            struct hvd__way_block block = block_for(straight, request, host);

            HVD_TRY(hvd__team_send(straight->team, member_of(straight, host),
                                   straight->tag, at(request, block),
                                   block.bytes, &straight->sends[host]));
        }
        straight->nmet++;
    }
    return 1;
}

int hvd__straight_step(struct hvd__straight *straight,
                       const struct hvd__offer *offer, bool all_known)
{
    int done = 1;

    if (!offer->straight)
        return 1;
    HVD_TRY(receive_blocks(straight, offer->straight));
    if (straight->request)
        done = send_blocks(straight, all_known);
    /* Until all is known, the round asks the network, which a test does. */
    if (!all_known)
        return done < 0 ? done : 0;
    for (int i = 1; done > 0 && i < straight->hosts->n; i++)
        done = test_pair(straight, i, all_known);
    return done;
}
