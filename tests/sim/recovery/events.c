/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - the queue of what happens in a story, by time; and what is said of
 * it. */
#include <stdlib.h>

#include "story.h"

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void story_push(struct story *story, struct event event)
{
    int i = story->nevents++;

    if (i == story->room) {
        story->room = 2 * story->room + 64;
        story->heap =
            realloc(story->heap, (size_t)story->room * sizeof *story->heap);
    }
    event.order = story->order++;
    for (; i > 0 && is_before(&event, &story->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        story->heap[i] = story->heap[(i - 1) / 2];
    story->heap[i] = event;
}

struct event story_pop(struct story *story)
{
    struct event first = story->heap[0], last = story->heap[--story->nevents];
    int i = 0;

    for (;;) {
        int child = 2 * i + 1;

        if (child + 1 < story->nevents &&
            is_before(&story->heap[child + 1], &story->heap[child]))
            child++;
        if (child >= story->nevents || is_before(&last, &story->heap[child]))
            break;
        story->heap[i] = story->heap[child];
        i = child;
    }
    story->heap[i] = last;
    return first;
}

void story_fail(struct story *story, const char *what, int node)
{
    printf("seed %llu: at %.1f ms, process %d: %s\n",
           (unsigned long long)story->seed, (double)story->now * 1e-6, node,
           what);
    story->is_bad = true;
}

const char *story_list_text(uint32_t list)
{
    static char text[3 * MOST + 1];
    int at = 0;

    for (int i = 0; i < MOST; i++)
        if (list >> i & 1)
            at += sprintf(text + at, "%s%d", at > 0 ? " " : "", i);
    return text;
}
