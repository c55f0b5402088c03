/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - which processes are members of which job. */
#include <stdlib.h>

#include "story.h"

int story_member(const struct job *job, int i)
{
    for (int m = 0; m < job->n; m++)
        if (job->who[m] == i)
            return m;
    return -1;
}

uint32_t story_processes(const struct job *job,
                         const struct hvd__member_set *list)
{
    uint32_t all = 0;

    for (int m = 0; m < job->n; m++)
        if (hvd__member_set_has(list, m))
            all |= UINT32_C(1) << job->who[m];
    return all;
}

bool story_shares_host(const struct story *story, const struct job *job)
{
    for (int m = 1; m < job->n; m++)
        if (story->nodes[job->who[m]].host != story->nodes[job->who[0]].host)
            return false;
    return true;
}

void story_take_part(struct story *story, int i, int number)
{
    const struct hvd__survivors_times times = {SILENCE, LIMIT, SETTLE, RESEND,
                                               PING};
    const struct job *job = &story->jobs[number];
    struct node *node = &story->nodes[i];
    struct hvd__survivors *s = calloc(1, sizeof *s);

    hvd__survivors_init(s, job->n, story_member(job, i), &times);
    hvd__survivors_reserve(s, number == 0 ? story->size : job->n);
    hvd__survivors_join(s, job->nelders);
    for (int m = 0; m < job->n; m++)
        s->host[m] = (int16_t)story->nodes[job->who[m]].host;
    node->in[number] = s;
    node->was_in[number] = true;
}

void story_drop_out(struct story *story, int i, int number)
{
    free(story->nodes[i].in[number]);
    story->nodes[i].in[number] = NULL;
}
