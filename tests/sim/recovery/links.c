/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - the connections between guests and hosts. What is sent over one
 * arrives in its order, and later if the network is cut meanwhile; and then its
 * end does, when the other side closes it, or dies.
 */
#include "story.h"

enum { GUEST_SIDE, HOST_SIDE };

static int side_of(const struct link *link, int i)
{
    return i == link->guest ? GUEST_SIDE : HOST_SIDE;
}

static int other_of(const struct link *link, int i)
{
    return i == link->guest ? link->host : link->guest;
}

uint32_t story_open_link(struct story *story, int guest, int host)
{
    uint32_t number = ++story->nlinks;

    story->links[number] = (struct link){.guest = guest, .host = host};
    number |= (uint32_t)sim_below(&story->calling, 1 << 15) << LINK_BITS;
    story->links[number % MOST_LINKS].ticket = number;
    return number;
}

struct link *story_link(struct story *story, uint32_t ticket)
{
    return &story->links[ticket % MOST_LINKS];
}

/* Returns the message, with its place in the order. */
static struct event number_message(struct link *link, struct event event)
{
    event.to = other_of(link, event.from);
    event.link = link->ticket;
    event.sequence = link->nsent[side_of(link, event.from)]++;
    return event;
}

void story_send_on(struct story *story, uint32_t ticket, struct event event)
{
    struct link *link = story_link(story, ticket);

    if (!link->is_closed[side_of(link, event.from)])
        story_send(story, number_message(link, event));
}

void story_close_link(struct story *story, uint32_t ticket, int i)
{
    struct link *link = story_link(story, ticket);
    const int side = side_of(link, i);

    if (ticket == 0 || link->is_closed[side])
        return;
    link->is_closed[side] = true;
    story_push(story,
               number_message(link, (struct event){
                                        .kind = HANGUP,
                                        .at = story->now + story_delay(story),
                                        .from = i,
                                    }));
}

void story_close_links(struct story *story, int i)
{
    for (uint32_t k = 1; k <= story->nlinks; k++)
        if (story->links[k].guest == i || story->links[k].host == i)
            story_close_link(story, story->links[k].ticket, i);
}

bool story_is_gone(struct story *story, uint32_t ticket, int i)
{
    const struct link *link = story_link(story, ticket);

    return link->has_ended[side_of(link, i)];
}

bool story_arrives(struct story *story, struct event *event)
{
    struct link *link = story_link(story, event->link);
    const int side = side_of(link, event->to);
    const bool reaches = story_reaches(story, event->from, event->to);

    if (link->is_closed[side])
        return false;
    if (!reaches || event->sequence != link->ntaken[side]) {
        event->at = story->now + (reaches ? MS : 30 * MS);
        story_push(story, *event);
        return false;
    }
    link->ntaken[side]++;
    link->has_ended[side] |= event->kind == HANGUP;
    return true;
}
