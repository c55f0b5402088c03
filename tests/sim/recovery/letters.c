/* SPDX-License-Identifier: Apache-2.0 */
/* letters.c - the network of a story: who reaches whom, and what members and
 * the registers of their hosts tell each other. */
#include <stdlib.h>

#include "story.h"

bool story_reaches(const struct story *story, int a, int b)
{
    int ha = story->nodes[a].host, hb = story->nodes[b].host;

    return ha == hb || (!story->is_cut[ha] && !story->is_cut[hb] &&
                        !story->is_parted[ha][hb]);
}

int64_t story_delay(struct story *story)
{
    int64_t most = sim_once_in(&story->network, story->slow) ? 60000 : 1500;

    return 50000 + 1000 * (int64_t)sim_below(&story->network, (int)most);
}

static void send_letter(struct story *story, int to,
                        const struct hvd__letter *letter)
{
    int copies = 1 + (sim_below(&story->network, 100) < story->doubles);

    story->counts->letters++;
    if (sim_below(&story->network, 100) < story->loss)
        return;
    while (copies-- > 0) {
        struct hvd__letter *copy = malloc(sizeof *copy);

        *copy = *letter;
        story_push(story, (struct event){.at = story->now + story_delay(story),
                                         .kind = LETTER,
                                         .to = to,
                                         .from = letter->from,
                                         .letter = copy});
    }
}

/* The members of a host share a register of those of them that are lost for
 * ever. A member that finds itself there says nothing any more. */
void story_sync_register(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int j = 0; j < story->n; j++) {
        int fate = hvd__survivors_fate(&node->s, j);

        if (story->nodes[j].host != node->host)
            continue;
        if (fate != 0 && story->fate[j] == 0 && j != i)
            story->fate[j] = fate;
        if (story->fate[j] != 0 && fate == 0)
            hvd__survivors_lose(&node->s, j, story->fate[j]);
    }
}

void story_flush(struct story *story, int i)
{
    struct hvd__letter letter;
    int to;

    story_sync_register(story, i);
    while ((to = hvd__survivors_next(&story->nodes[i].s, &letter)) >= 0)
        send_letter(story, to, &letter);
}
