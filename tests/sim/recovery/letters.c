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

void story_send(struct story *story, struct event event)
{
    if (story->nodes[event.from].is_dead) {
        free(event.letter);
        return;
    }
    event.at = story->now + story_delay(story);
    story_push(story, event);
    if (story->ngrowths > 0 || story->founds)
        story_strike(story, &event);
}

static void send_letter(struct story *story, int job, int to,
                        const struct hvd__letter *letter)
{
    int copies = 1 + (sim_below(&story->network, 100) < story->doubles);

    story->counts->letters++;
    if (sim_below(&story->network, 100) < story->loss)
        return;
    while (copies-- > 0) {
        struct hvd__letter *copy = malloc(sizeof *copy);

        *copy = *letter;
        story_send(story,
                   (struct event){.kind = LETTER,
                                  .to = story->jobs[job].who[to],
                                  .from = story->jobs[job].who[letter->from],
                                  .job = job,
                                  .letter = copy});
    }
}

/* The members of a host share a register of those of them that are lost for
 * ever. A member that finds itself there says nothing any more; so does one
 * that finds itself in that of the world that was to grow out of its own. */
void story_sync_register(struct story *story, int i, int number)
{
    struct job *job = &story->jobs[number];
    const struct node *node = &story->nodes[i];
    struct hvd__survivors *s = node->in[number];

    for (int m = 0; m < job->n; m++) {
        int fate = hvd__survivors_fate(s, m);

        if (story->nodes[job->who[m]].host != node->host)
            continue;
        if (fate != 0 && job->fate[m] == 0 && m != s->self)
            job->fate[m] = fate;
        if (job->fate[m] != 0 && fate == 0)
            hvd__survivors_lose(s, m, job->fate[m]);
    }
    if (node->phase == FINDING && number == node->job) {
        const struct job *made = &story->jobs[node->to_job];
        int fate = made->fate[story_member(made, i)];

        if (fate != 0)
            hvd__survivors_lose(s, s->self, fate);
    }
}

void story_flush(struct story *story, int i, int job)
{
    struct hvd__letter letter;
    int to;

    story_sync_register(story, i, job);
    while ((to = hvd__survivors_next(story->nodes[i].in[job], &letter)) >= 0)
        send_letter(story, job, to, &letter);
}
