/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/stall.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* MOST_TOLD is how many ranks are described one by one; a list of a thousand
 * helps nobody. */
enum { MOST_TOLD = 4 };
/* MOST_LISTED is how many are listed, so that there is room for these. */
enum { MOST_LISTED = 48 };

/* Returns whether a request waits for a rank. */
static bool is_missing(const struct hvd__scene *scene, int rank,
                       const struct hvd__watch_request *request)
{
    return scene->is_member(scene->context, request->set, rank) &&
           !scene->waits(scene->context, rank, request->key);
}

const char *hvd__doing_print(const struct hvd__doing *doing, int64_t now_ns,
                             char *text, size_t size)
{
    if (doing->since_ns == 0)
        snprintf(text, size, "nothing yet");
    else
        snprintf(text, size, "%s, %.1f s ago", doing->text,
                 (double)(now_ns - doing->since_ns) * 1e-9);
    return text;
}

/* Returns the request of a rank in flight that is most like this one: the same
 * but for its name, or of the same name but different. Returns NULL if there is
 * none. */
static const struct hvd__watch_request *similar(
    const struct hvd__view *view, const struct hvd__watch_request *request,
    bool *same_name)
{
    for (int i = 0; i < view->nrequests; i++) {
        const struct hvd__watch_request *r = &view->requests[i];

        *same_name = strcmp(r->name, request->name) == 0;
        if (!r->decided && (*same_name || strcmp(r->what, request->what) == 0))
            return r;
    }
    return NULL;
}

static void tell_state(struct hvd__text *out, const struct hvd__view *view)
{
    switch (view->state) {
    case HVD__VIEW_ELSEWHERE: hvd__text_add(out, "is on another host"); break;
    case HVD__VIEW_ALIVE: hvd__text_add(out, "is alive"); break;
    case HVD__VIEW_SILENT:
        hvd__text_add(out, "has been silent for %.1f s",
                      (double)view->silent_ns * 1e-9);
        break;
    default: hvd__text_add(out, "has shut down");
    }
}

static void tell(struct hvd__text *out, const struct hvd__scene *scene,
                 int rank, const struct hvd__watch_request *request,
                 int64_t now_ns)
{
    const struct hvd__watch_request *like;
    struct hvd__view view;
    char doing[160];
    bool same_name;

    scene->look(scene->context, rank, &view);
    hvd__text_add(out, "; rank %d ", rank);
    tell_state(out, &view);
    if (view.state == HVD__VIEW_ELSEWHERE)
        return;
    hvd__text_add(out, ", last operation: %s",
                  hvd__doing_print(&view.doing, now_ns, doing, sizeof doing));
    like = similar(&view, request, &same_name);
    if (like && same_name)
        hvd__text_add(out, ", has %s in flight as %s", like->name, like->what);
    else if (like)
        hvd__text_add(out, ", has %s of the same shape in flight", like->name);
}

const char *hvd__stall_print(const struct hvd__scene *scene,
                             const struct hvd__watch_request *request,
                             int64_t now_ns, char *text, size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);
    int told[MOST_TOLD], ntold = 0, nmissing = 0;

    hvd__text_add(&out, "%s (%s) has waited %.0f s", request->name,
                  request->what, (double)(now_ns - request->since_ns) * 1e-9);
    for (int rank = 0; rank < scene->nranks; rank++) {
        if (!is_missing(scene, rank, request))
            continue;
        if (nmissing < MOST_LISTED)
            hvd__text_add(&out, "%s%d", nmissing ? "," : " for rank ", rank);
        if (nmissing++ < MOST_TOLD)
            told[ntold++] = rank;
    }
    if (nmissing > MOST_LISTED)
        hvd__text_add(&out, ",...");
    if (nmissing == 0)
        hvd__text_add(&out, ", although all ranks have submitted it");
    for (int i = 0; i < ntold; i++)
        tell(&out, scene, told[i], request, now_ns);
    if (nmissing > ntold)
        hvd__text_add(&out, "; and %d more", nmissing - ntold);
    return text;
}

uint64_t hvd__stall_missing(const struct hvd__scene *scene,
                            const struct hvd__watch_request *request)
{
    uint64_t mark = 0;

    /* The ranks are mixed as FNV-1a mixes bytes. */
    for (int rank = 0; rank < scene->nranks; rank++)
        if (is_missing(scene, rank, request))
            mark = (mark ^ (uint64_t)(rank + 1)) * UINT64_C(0x100000001b3);
    return mark;
}

int hvd__stall_add(struct hvd__stall *stalls, int n, int most,
                   const struct hvd__watch_request *request, uint64_t missing)
{
    struct hvd__stall *s = stalls;

    while (s < stalls + n && s->missing != missing)
        s++;
    if (s == stalls + n) {
        if (n < most)
            *s = (struct hvd__stall){
                .missing = missing, .oldest = request, .n = 1};
        return n < most ? n + 1 : n;
    }
    if (request->since_ns < s->oldest->since_ns) {
        const struct hvd__watch_request *younger = s->oldest;

        s->oldest = request;
        request = younger;
    }
    if (s->n <= HVD__STALL_NAMES)
        s->others[s->n - 1] = request;
    s->n++;
    return n;
}

const char *hvd__stall_print_others(const struct hvd__stall *stall, char *text,
                                    size_t size)
{
    size_t used = strlen(text);
    struct hvd__text out = hvd__text_at(text + used, size - used);
    int names =
        stall->n - 1 < HVD__STALL_NAMES ? stall->n - 1 : HVD__STALL_NAMES;

    if (stall->n == 1)
        return text;
    hvd__text_add(&out, "; so %s %d more:", stall->n == 2 ? "does" : "do",
                  stall->n - 1);
    for (int i = 0; i < names; i++)
        hvd__text_add(&out, "%s %s", i ? "," : "", stall->others[i]->name);
    if (stall->n - 1 > names)
        hvd__text_add(&out, ", ...");
    return text;
}
