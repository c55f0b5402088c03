/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_quick.c - a blocking request in ordered mode, with nothing else under
 * way: one thread posts, compares, reduces and returns. On several hosts it
 * moves the round between them as well.
 */
#include <sched.h>

#include "base/clock.h"
#include "core/agree/agree.h"
#include "core/agree/agreement.h"
#include "core/request/sampling.h"

/*
 * A rank polls the others' slots for about ten microseconds without yielding
 * its core, because another process that gets the core may keep it for
 * milliseconds. Then it yields, because the rank that it waits for may need the
 * core. If yielding helped, as it does when ranks unexpectedly share a core,
 * polling wastes time: the rank polls less from then on, and in the end only
 * rarely. A message between hosts takes longer than a look.
 */
enum { LOOKS = 1000, LOOKS_YIELDING = 100, LOOKS_AT_HOSTS = 2000 };
enum { TRY_AGAIN = 256 };

#define SHORT_NS INT64_C(50000)

struct hvd__quick hvd__quick_begin(struct hvd__submission *submission,
                                   bool may_spin)
{
    struct hvd__ordered *x = &submission->set->agreement->ordered;
    struct hvd__quick quick = {.yields = LOOKS_YIELDING};

    if (x->nquick % TRY_AGAIN == 0)
        x->pauses = LOOKS;
    if (may_spin)
        quick.pauses = x->pauses;
    hvd__sampling_start(submission, false, x->nquick++);
    return quick;
}

/* Waits between two polls. Returns false if polling should stop. */
static bool pause_between(struct hvd__quick *quick)
{
    if (quick->pauses > 0) {
        quick->pauses--;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
        return true;
    }
    if (quick->since_ns == 0)
        quick->since_ns = hvd__now_ns();
    sched_yield();
    return quick->yields-- > 0;
}

/* Makes this rank poll less from now on if the others came soon after it had
 * yielded. */
int64_t hvd__quick_end(const struct hvd__submission *submission,
                       const struct hvd__quick *quick)
{
    struct hvd__ordered *x = &submission->set->agreement->ordered;
    int64_t yielded_ns =
        quick->since_ns > 0 ? hvd__now_ns() - quick->since_ns : 0;

    if (quick->since_ns > 0 && yielded_ns < SHORT_NS)
        x->pauses /= 4;
    hvd__sampling_end(&x->sampling, submission, yielded_ns);
    return x->sampling.quick_ns;
}

static enum hvd__quick_result reduce_in_place(struct hvd__ordered *x,
                                              struct hvd__request *request,
                                              struct hvd__quick *quick)
{
    if (!hvd__ordered_begin_share(x, request, x->decided))
        return HVD__QUICK_POSTED;
    x->decided++;
    while (!hvd__ordered_reduce_share(x))
        continue;
    hvd__ordered_consume(x);
    while (hvd__ordered_least_reduced(x) < request->state.sequence)
        if (!pause_between(quick))
            return HVD__QUICK_POSTED;
    x->unfinished.first = NULL;
    return HVD__QUICK_DONE;
}

/* Returns what is known of the request. On several hosts, moves the round that
 * decides it, as far as this rank speaks for its host; an error shows again in
 * the next step of the engine, which handles it. */
static enum hvd__verdict look(struct hvd__ordered *x)
{
    bool moved = false;

    if (x->round && hvd__speaker_step(x, &moved) < 0)
        return HVD__DIFFERENT;
    return hvd__ordered_judge(x);
}

enum hvd__quick_result hvd__quick_post(struct hvd__submission *submission,
                                       struct hvd__quick *quick)
{
    struct hvd__ordered *x = &submission->set->agreement->ordered;
    struct hvd__request *request = &submission->requests[0];
    enum hvd__verdict verdict;

    if (!hvd__ordered_post_submission(x, submission))
        return HVD__QUICK_NOT_POSTED;
    if (x->hosts)
        *quick = (struct hvd__quick){.yields = LOOKS_AT_HOSTS};
    while ((verdict = look(x)) == HVD__UNKNOWN && pause_between(quick))
        continue;
    if (verdict != HVD__AGREED)
        return HVD__QUICK_POSTED;
    if (hvd__ordered_run_here(x, request, x->decided)) {
        x->decided++;
        hvd__ordered_consume(x);
        /* The background thread sends what is left of our messages. */
        if (hvd__round_pending(x->round) > 0)
            atomic_store_explicit(&x->set->engine->sending, true,
                                  memory_order_relaxed);
        return HVD__QUICK_DONE;
    }
    return reduce_in_place(x, request, quick);
}

bool hvd__quick_is_possible(const struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;

    return x->state == HVD__ORDERED_OPEN && !x->waiting && !x->ending &&
           x->decided == x->posted && !x->now.request && !x->unfinished.first;
}

void hvd__quick_queue(struct hvd__submission *submission)
{
    hvd__ordered_submit(&submission->set->agreement->ordered, submission);
}
