/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivors.c - the members of a job on several hosts agree on who is left.
 *
 * A member leads if it is the lowest that it does not know or suspect to be
 * lost. Everyone sends all that it knows to its leader, again and again, and
 * the leader to everyone, so that the number of letters grows with that of the
 * members. When all that are left are ready, and nothing new was heard for a
 * while, the leader proposes a round, higher than any that it has heard of,
 * with the list of those who are left:
 *
 *     leader                   each of the others in the list
 *       PROPOSED 7: {0 2 3} ->
 *                           <- CONFIRMED 7
 *       DECIDED 7           ->     all start a world of {0 2 3}
 *
 * Who has confirmed a list has lost all others for ever. A member confirms one
 * list a round, in ascending rounds, and only those of its own leader: it has
 * to suspect all that are lower. A leader confirms its own list last, when all
 * others have, and may drop it before that. If one more is lost, or the leader,
 * there is a proposal with a higher number.
 *
 * Losses are of two kinds. A loss for ever is passed on, and everyone believes
 * it: the kernel of its host has reported the end of the process, processes of
 * its host have given it up in the register that they share, it has said so
 * itself, or somebody has confirmed a list without it. A suspicion, which is
 * silence, is each member's own, and ends when the suspected is heard; else a
 * network that comes back would make all of both sides lost.
 *
 * Why there are no two worlds. A world starts only if all in its list meet, and
 * whoever is in a world refuses proposals of those whose base is another. So of
 * two worlds of one base, which both started, no member is in both. But two
 * lists that suffice (hvd__survivors_suffice) have a common member: say S and T
 * are disjoint, and C and D are the base less those proven to have ended by the
 * one and the other. Nobody in S or T has ended, so both are parts of C, and of
 * D: |S| + |T| <= |C|. From |S| >= |C|/2 follows |S| >= |T|, likewise the other
 * way round, hence |S| = |T| and C = D = S and T together, of which only one
 * has the lowest. If a member that was in a world has ended after its start,
 * its hosts' others that are not in that world were given up in their register
 * before, and report nothing more.
 *
 * A member may believe that a world has started when others have failed in it.
 * Then it has a higher base than these. They take it over, since they are in
 * its list, and so do not reckon with the older base any more. Who is not in
 * the list of a higher base has been given up.
 *
 * Spares. A spare is in no base. It writes to the leader of the last world, as
 * far as it knows it, from time to time, so that both know of the other; and if
 * that one is silent, to all of that world. A leader's list may have spares in
 * the place of those who are lost, always such with higher numbers than the
 * base has, so that the lowest of a world has been in the one before. Spares
 * confirm a list as others do, and make no difference to whether it suffices.
 * One that a list has passed over, because it was suspected, is lost for ever
 * as soon as somebody has confirmed that. A spare that was called, and whose
 * start has failed, is a spare as before, unless it hears that others have
 * started: then it is in their base. It ends when nobody of the last world is
 * left that it could hear, in good order if one of them has said that the job
 * has ended.
 *
 * A letter may be lost, doubled, late, or overtaken: each says all that its
 * sender knows, and nothing that it says stops being true, but for the stage,
 * whose numbers say which round they are about.
 */
#include "watch/survivors.h"

#include <string.h>

/* hvd_lost_reason less 1 */
enum { ENDED, FROZEN, CUT_OFF, ABSENT };

/* A standing world that another member has left for so long has ended. */
#define RECALL_NS INT64_C(1000000000)
/* The other members of a suspected member's host get this part of the time. */
enum { HURRY = 2 };
/* A spare that is called has this part of the time to answer. */
enum { CALL = 4 };
/* Who has not been heard for so many pings is asked for. */
enum { MISSED_PINGS = 4 };

/* ----------------------------------------------------------- sets of members
 */

int hvd__member_set_count(const struct hvd__member_set *set)
{
    int n = 0;

    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        n += __builtin_popcountll(set->words[w]);
    return n;
}

static int lowest(const struct hvd__member_set *set)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        if (set->words[w])
            return 64 * w + __builtin_ctzll(set->words[w]);
    return -1;
}

static int highest(const struct hvd__member_set *set)
{
    for (int w = HVD__MEMBER_SET_WORDS - 1; w >= 0; w--)
        if (set->words[w])
            return 64 * w + 63 - __builtin_clzll(set->words[w]);
    return -1;
}

static void unite(struct hvd__member_set *set,
                  const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] |= other->words[w];
}

static void cut(struct hvd__member_set *set,
                const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] &= other->words[w];
}

static void remove_all(struct hvd__member_set *set,
                       const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] &= ~other->words[w];
}

static bool are_equal(const struct hvd__member_set *a,
                      const struct hvd__member_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_part(const struct hvd__member_set *a,
                    const struct hvd__member_set *b)
{
    struct hvd__member_set rest = *a;

    remove_all(&rest, b);
    return lowest(&rest) < 0;
}

/* ------------------------------------------------------------- who is left */

int hvd__survivors_fate(const struct hvd__survivors *s, int member)
{
    for (int reason = 0; reason < HVD__NREASONS; reason++)
        if (hvd__member_set_has(&s->lost[reason], member))
            return reason + 1;
    return 0;
}

static struct hvd__member_set all_lost(const struct hvd__survivors *s)
{
    struct hvd__member_set all = s->lost[0];

    for (int reason = 1; reason < HVD__NREASONS; reason++)
        unite(&all, &s->lost[reason]);
    return all;
}

/* Returns the members of the base that are neither lost nor suspected, nor have
 * left for good. */
static struct hvd__member_set all_live(const struct hvd__survivors *s)
{
    struct hvd__member_set live = s->base_list, lost = all_lost(s);

    remove_all(&live, &lost);
    remove_all(&live, &s->suspected);
    remove_all(&live, &s->left);
    return live;
}

bool hvd__survivors_is_spare(const struct hvd__survivors *s, int member)
{
    return s->size < s->n && member > highest(&s->base_list);
}

/* Returns whether this member is in no world yet. */
static bool is_apart(const struct hvd__survivors *s)
{
    return !hvd__member_set_has(&s->base_list, s->self);
}

bool hvd__survivors_is_live(const struct hvd__survivors *s, int member)
{
    return (hvd__member_set_has(&s->base_list, member) ||
            hvd__survivors_is_spare(s, member)) &&
           !hvd__member_set_has(&s->suspected, member) &&
           hvd__survivors_fate(s, member) == 0;
}

/* Returns the list that a leader proposes: those who are left, and the lowest
 * spares until they are enough. */
static struct hvd__member_set all_wanted(const struct hvd__survivors *s)
{
    struct hvd__member_set wanted = all_live(s);
    int n = hvd__member_set_count(&wanted);

    for (int i = highest(&s->base_list) + 1;
         i < s->n && n < s->size && !s->is_dismissed; i++)
        if (hvd__survivors_is_live(s, i)) {
            hvd__member_set_add(&wanted, i);
            n++;
        }
    return wanted;
}

bool hvd__survivors_is_doubted(const struct hvd__survivors *s, int member)
{
    return !hvd__survivors_is_live(s, member) ||
           (s->leader != s->self && hvd__member_set_has(&s->doubted, member));
}

/* Returns the members of the base that are not proven to have ended. */
static struct hvd__member_set all_counted(const struct hvd__survivors *s)
{
    struct hvd__member_set counted = s->base_list;

    remove_all(&counted, &s->lost[ENDED]);
    return counted;
}

bool hvd__survivors_suffice(const struct hvd__survivors *s,
                            const struct hvd__member_set *list)
{
    struct hvd__member_set counted = all_counted(s), ours = *list;
    int n, all = hvd__member_set_count(&counted);

    cut(&ours, &s->base_list);
    n = 2 * hvd__member_set_count(&ours);

    return n > all ||
           (n == all && all > 0 && hvd__member_set_has(list, lowest(&counted)));
}

static bool is_agreeing(const struct hvd__survivors *s)
{
    return s->stage == HVD__STAGE_AGREEING || s->stage == HVD__STAGE_PROPOSED ||
           s->stage == HVD__STAGE_CONFIRMED;
}

static bool has_ended(const struct hvd__survivors *s)
{
    return s->stage == HVD__STAGE_OUT || s->stage == HVD__STAGE_TOO_FEW ||
           s->stage == HVD__STAGE_OVER || s->stage == HVD__STAGE_FORSAKEN;
}

/* ---------------------------------------------------------- whom to write to
 */

/* A leader writes to all who may go on; others to their leader, and to lower
 * ones that they suspect, who might hear it; who has ended, to spares, too. So
 * does a leader that sees too few: they may know of others that have ended. */
static struct hvd__member_set all_partners(const struct hvd__survivors *s)
{
    struct hvd__member_set partners = s->base_list, lost = all_lost(s),
                           live = all_live(s);
    const bool asks = has_ended(s) || (is_agreeing(s) && s->leader == s->self &&
                                       !hvd__survivors_suffice(s, &live));

    if (s->stage == HVD__STAGE_WORKING)
        return (struct hvd__member_set){{0}};
    if (s->stage == HVD__STAGE_DECIDED)
        partners = s->list;
    if (s->stage == HVD__STAGE_PROPOSED)
        unite(&partners, &s->list);
    for (int i = s->size; i < s->n && asks; i++)
        hvd__member_set_add(&partners, i);
    if (has_ended(s))
        remove_all(&partners, &s->lost[ENDED]);
    else
        remove_all(&partners, &lost);
    for (int i = s->leader + 1; i < s->n; i++)
        if (s->leader != s->self && !has_ended(s))
            hvd__member_set_drop(&partners, i);
    hvd__member_set_drop(&partners, s->self);
    return partners;
}

/* Something has changed that the others have to know. */
static void tell(struct hvd__survivors *s)
{
    struct hvd__member_set partners = all_partners(s);

    unite(&s->due, &partners);
    s->sent_ns = 0;
}

/* Something has changed that a proposal depends on. */
static void unsettle(struct hvd__survivors *s)
{
    s->settled_ns = 0;
}

static void end(struct hvd__survivors *s, enum hvd__survivors_stage stage)
{
    if (has_ended(s))
        return;
    s->stage = stage;
    tell(s);
}

/* A spare hears nobody who could call it any more. A job that has dismissed its
 * spares has not needed them, however it ended. */
static void end_waiting(struct hvd__survivors *s)
{
    end(s, lowest(&s->left) >= 0 || s->is_dismissed ? HVD__STAGE_OVER
                                                    : HVD__STAGE_FORSAKEN);
}

static void choose_leader(struct hvd__survivors *s)
{
    struct hvd__member_set live = all_live(s);
    int before = s->leader;

    /* While a world starts, those in it are all that count. */
    if (s->stage == HVD__STAGE_DECIDED)
        cut(&live, &s->list);
    s->leader = lowest(&live);
    if (s->leader < 0) {
        s->leader = s->self;
        if (is_apart(s))
            end_waiting(s);
    }
    if (s->leader == before)
        return;
    memset(s->silent_ns, 0, (size_t)s->n * sizeof *s->silent_ns);
    unsettle(s);
    tell(s);
}

/* -------------------------------------------------------------- the stages */

/* Returns the stage of a member that has confirmed nothing that still counts.
 */
static enum hvd__survivors_stage idle_stage(const struct hvd__survivors *s)
{
    return is_apart(s) ? HVD__STAGE_STANDBY : HVD__STAGE_AGREEING;
}

/* Notes for ever what is in a set. */
static void lose_all(struct hvd__survivors *s,
                     const struct hvd__member_set *members, int reason)
{
    struct hvd__member_set news = *members, lost = all_lost(s);

    /* A proof counts even if the member is lost already. */
    remove_all(&news, reason == ENDED ? &s->lost[ENDED] : &lost);
    if (lowest(&news) < 0)
        return;
    unite(&s->lost[reason], &news);
    for (int r = ENDED + 1; r < HVD__NREASONS && reason == ENDED; r++)
        remove_all(&s->lost[r], &news);
    unsettle(s);
    if (hvd__member_set_has(&news, s->self)) {
        end(s, HVD__STAGE_OUT);
        return;
    }
    if (s->stage != HVD__STAGE_WORKING)
        tell(s);
    else if (s->leader != s->self && highest(&news) > highest(&s->base_list))
        hvd__member_set_add(&s->due, s->leader); /* it looks after spares */
    choose_leader(s);
}

void hvd__survivors_lose(struct hvd__survivors *s, int member, int reason)
{
    struct hvd__member_set one = {{0}};

    hvd__member_set_add(&one, member);
    lose_all(s, &one, reason - 1);
}

void hvd__survivors_suspect(struct hvd__survivors *s, int member)
{
    if (member == s->self || has_ended(s) || !hvd__survivors_is_live(s, member))
        return;
    hvd__member_set_add(&s->suspected, member);
    /* Its host may be cut off: then the others of that host are silent, too,
     * and are waited for less long. */
    for (int i = 0; i < s->n; i++)
        if (s->host[i] == s->host[member])
            s->patience_ns[i] = s->times.silence_ns / HURRY;
    unsettle(s);
    choose_leader(s);
}

void hvd__survivors_init(struct hvd__survivors *s, int n, int self,
                         const struct hvd__survivors_times *times)
{
    memset(s, 0, sizeof *s);
    s->n = s->size = n;
    s->self = self;
    s->times = *times;
    for (int i = 0; i < n; i++) {
        hvd__member_set_add(&s->base_list, i);
        s->patience_ns[i] = times->silence_ns;
        s->host[i] = (int16_t)i;
    }
}

void hvd__survivors_reserve(struct hvd__survivors *s, int size)
{
    s->size = size;
    for (int i = size; i < s->n; i++)
        hvd__member_set_drop(&s->base_list, i);
    if (s->self >= size)
        s->stage = HVD__STAGE_STANDBY;
}

void hvd__survivors_dismiss(struct hvd__survivors *s)
{
    s->is_dismissed = true;
    if (s->leader != s->self)
        hvd__member_set_add(&s->due, s->leader);
}

void hvd__survivors_leave(struct hvd__survivors *s)
{
    hvd__member_set_add(&s->left, s->self);
    s->agreed = (struct hvd__member_set){{0}};
    end(s, HVD__STAGE_OVER);
}

bool hvd__survivors_has_told(const struct hvd__survivors *s)
{
    for (int i = 0; i < s->n; i++)
        if (hvd__survivors_is_spare(s, i) && hvd__survivors_is_live(s, i) &&
            !hvd__member_set_has(&s->agreed, i))
            return false;
    return true;
}

void hvd__survivors_enter(struct hvd__survivors *s)
{
    if (s->stage == HVD__STAGE_DECIDED)
        s->failed = s->round;
    else if (s->stage != HVD__STAGE_WORKING)
        return;
    s->stage = idle_stage(s);
    s->is_broken = false;
    s->recalled_ns = 0;
    s->waited_ns = 0;
    unsettle(s);
    memset(s->silent_ns, 0, (size_t)s->n * sizeof *s->silent_ns);
    choose_leader(s);
    tell(s);
}

void hvd__survivors_be_ready(struct hvd__survivors *s)
{
    if (!is_agreeing(s) || hvd__member_set_has(&s->ready, s->self))
        return;
    hvd__member_set_add(&s->ready, s->self);
    tell(s);
}

void hvd__survivors_start(struct hvd__survivors *s)
{
    if (s->stage != HVD__STAGE_DECIDED)
        return;
    s->stage = HVD__STAGE_WORKING;
    s->base = s->round;
    s->base_list = s->list;
    if (s->founded == 0 && s->size < s->n)
        s->founded = s->base;
    s->ready = (struct hvd__member_set){{0}};
    remove_all(&s->suspected, &s->list);
    s->recalled_ns = 0;
    for (int i = 0; i < s->n; i++)
        s->patience_ns[i] = s->times.silence_ns;
}

/* Everyone in the list has confirmed it, this member, too: the others are lost
 * for ever. */
static void bind(struct hvd__survivors *s, enum hvd__survivors_stage stage)
{
    struct hvd__member_set others = s->base_list;

    for (int i = highest(&others) + 1; i < highest(&s->list); i++)
        hvd__member_set_add(&others, i); /* spares that were passed over */
    remove_all(&others, &s->list);
    remove_all(&s->suspected, &s->list); /* their leader hears them */
    s->stage = stage;
    lose_all(s, &others, CUT_OFF);
    choose_leader(s);
    tell(s);
}

static void propose(struct hvd__survivors *s,
                    const struct hvd__member_set *list)
{
    s->round = ++s->seen;
    s->list = *list;
    s->waited_ns = 0;
    s->is_outbid = false;
    s->agreed = (struct hvd__member_set){{0}};
    hvd__member_set_add(&s->agreed, s->self);
    s->stage = HVD__STAGE_PROPOSED;
    tell(s);
}

static void give_up(struct hvd__survivors *s, int few, int of)
{
    s->few = few;
    s->of = of;
    end(s, HVD__STAGE_TOO_FEW);
}

/* Returns how long a leader that sees too few waits for what spares know. */
static int64_t patience_of(const struct hvd__survivors *s)
{
    for (int i = s->size; i < s->n; i++)
        if (hvd__survivors_is_spare(s, i) && hvd__survivors_is_live(s, i))
            return s->times.settle_ns + MISSED_PINGS * s->times.ping_ns;
    return s->times.settle_ns;
}

static void lead(struct hvd__survivors *s)
{
    struct hvd__member_set live = all_live(s), wanted = all_wanted(s),
                           counted = all_counted(s);

    if (s->stage == HVD__STAGE_CONFIRMED)
        s->stage = HVD__STAGE_AGREEING;
    if (s->stage == HVD__STAGE_PROPOSED && are_equal(&s->list, &wanted) &&
        is_part(&s->list, &s->agreed) && hvd__survivors_suffice(s, &live)) {
        bind(s, HVD__STAGE_DECIDED);
        return;
    }
    if (s->settled_ns < s->times.settle_ns)
        return;
    if (!hvd__survivors_suffice(s, &live)) {
        if (s->settled_ns >= patience_of(s))
            give_up(s, hvd__member_set_count(&live),
                    hvd__member_set_count(&counted));
    } else if (is_part(&live, &s->ready) &&
               (s->stage != HVD__STAGE_PROPOSED || s->is_outbid ||
                !are_equal(&s->list, &wanted)))
        propose(s, &wanted);
}

/* Does what can be done, after something has happened. */
static void step(struct hvd__survivors *s)
{
    if (s->stage == HVD__STAGE_DECIDED) {
        for (int i = 0; i < s->n; i++)
            s->is_broken |= hvd__member_set_has(&s->list, i) &&
                            !hvd__survivors_is_live(s, i);
        return;
    }
    if (is_apart(s)) {
        if (s->stage == HVD__STAGE_CONFIRMED && lowest(&s->list) != s->leader)
            s->stage = HVD__STAGE_STANDBY;
        return;
    }
    if (!is_agreeing(s) || !hvd__member_set_has(&s->ready, s->self))
        return;
    if (s->leader == s->self)
        lead(s);
    else if (s->stage == HVD__STAGE_PROPOSED ||
             (s->stage == HVD__STAGE_CONFIRMED &&
              lowest(&s->list) != s->leader))
        s->stage = HVD__STAGE_AGREEING;
    /* A sole leader has nobody to wait for. */
    if (s->stage == HVD__STAGE_PROPOSED && hvd__member_set_count(&s->list) == 1)
        lead(s);
}

/* ------------------------------------------------------------------- letters
 */

static bool may_confirm(const struct hvd__survivors *s,
                        const struct hvd__letter *letter)
{
    struct hvd__member_set lost = all_lost(s), common = letter->list;

    cut(&common, &lost);
    return letter->from == s->leader && lowest(&letter->list) == letter->from &&
           hvd__member_set_has(&letter->list, s->self) &&
           letter->round > s->round && lowest(&common) < 0 &&
           (is_apart(s) || hvd__member_set_has(&s->ready, s->self)) &&
           hvd__survivors_suffice(s, &letter->list);
}

/* Takes what a letter says about a round. */
static void hear_of_round(struct hvd__survivors *s,
                          const struct hvd__letter *letter)
{
    bool is_same = letter->round == s->round && letter->round != 0,
         is_in = hvd__member_set_has(&letter->list, s->self);

    switch (letter->stage) {
    case HVD__STAGE_PROPOSED:
        if ((is_agreeing(s) || s->stage == HVD__STAGE_STANDBY) &&
            may_confirm(s, letter)) {
            s->round = letter->round;
            s->list = letter->list;
            bind(s, HVD__STAGE_CONFIRMED);
        } else if (s->stage == idle_stage(s) && is_same &&
                   letter->from == s->leader &&
                   are_equal(&letter->list, &s->list)) {
            /* The list is still confirmed: this member had suspected its leader
             * for a moment only. */
            bind(s, HVD__STAGE_CONFIRMED);
        }
        /* Is the one that this spare follows still there? */
        if (s->stage == HVD__STAGE_STANDBY && letter->from != s->leader)
            hvd__member_set_add(&s->due, s->leader);
        hvd__member_set_add(&s->answers, letter->from);
        break;
    case HVD__STAGE_CONFIRMED:
        if (s->stage == HVD__STAGE_PROPOSED && is_same)
            hvd__member_set_add(&s->agreed, letter->from);
        else if (s->stage == HVD__STAGE_DECIDED && is_same)
            hvd__member_set_add(&s->answers, letter->from);
        break;
    case HVD__STAGE_DECIDED:
        if (s->stage == HVD__STAGE_CONFIRMED && is_same &&
            are_equal(&letter->list, &s->list))
            bind(s, HVD__STAGE_DECIDED);
        else if (is_agreeing(s) && is_apart(s) && !is_in)
            s->stage = HVD__STAGE_STANDBY;
        else if (is_agreeing(s) && !is_in)
            hvd__survivors_lose(s, s->self, CUT_OFF + 1);
        break;
    case HVD__STAGE_TOO_FEW:
        if (is_agreeing(s) && letter->from == s->leader && !is_apart(s))
            give_up(s, letter->few, letter->of);
        else
            hvd__survivors_lose(s, letter->from, ABSENT + 1);
        break;
    case HVD__STAGE_FORSAKEN:
    case HVD__STAGE_OUT:
        hvd__survivors_lose(s, letter->from, ABSENT + 1);
        break;
    case HVD__STAGE_OVER:
        if (!is_apart(s))
            break;
        unite(&s->left, &letter->left);
        choose_leader(s);
        break;
    default: break;
    }
}

/* Takes over a base in which this member is, or which this spare waits for. */
static void take_over(struct hvd__survivors *s,
                      const struct hvd__letter *letter)
{
    s->base = letter->base;
    s->base_list = letter->base_list;
    s->founded = letter->founded;
    s->stage = idle_stage(s);
    s->waited_ns = 0;
    for (int i = 0; i < s->n; i++)
        if (i != s->self)
            hvd__member_set_drop(&s->ready, i);
    unsettle(s);
    choose_leader(s);
    tell(s);
}

/* A suspected member is there after all. */
static void notice(struct hvd__survivors *s, int member)
{
    s->silent_ns[member] = 0;
    if (!hvd__member_set_has(&s->suspected, member))
        return;
    hvd__member_set_drop(&s->suspected, member);
    s->patience_ns[member] = s->times.silence_ns;
    unsettle(s);
    choose_leader(s);
}

/* Returns whether one of the list has used the round, or a higher one, for
 * another list. */
static bool is_outbidding(const struct hvd__survivors *s,
                          const struct hvd__letter *letter)
{
    return s->stage == HVD__STAGE_PROPOSED && !s->is_outbid &&
           hvd__member_set_has(&s->list, letter->from) &&
           (letter->round > s->round ||
            (letter->round == s->round && !are_equal(&letter->list, &s->list)));
}

/* Takes what a letter of the same base says. */
static void hear_of_base(struct hvd__survivors *s,
                         const struct hvd__letter *letter)
{
    struct hvd__member_set ready = letter->ready;

    for (int reason = 0; reason < HVD__NREASONS; reason++)
        lose_all(s, &letter->lost[reason], reason);
    if (letter->from == s->leader)
        s->doubted = letter->suspected;
    cut(&ready, &s->base_list);
    if (letter->stage != HVD__STAGE_WORKING && !is_part(&ready, &s->ready) &&
        is_agreeing(s)) {
        unite(&s->ready, &ready);
        if (s->leader == s->self)
            tell(s);
    }
    if (is_outbidding(s, letter)) {
        s->is_outbid = true;
        unsettle(s);
    }
    if (s->stage == HVD__STAGE_DECIDED && letter->failed >= s->round &&
        hvd__member_set_has(&s->list, letter->from))
        s->is_broken = true;
    if (!has_ended(s) && hvd__survivors_fate(s, letter->from) == 0)
        hear_of_round(s, letter);
}

void hvd__survivors_hear(struct hvd__survivors *s,
                         const struct hvd__letter *letter)
{
    int from = letter->from;
    bool is_in;

    if (from < 0 || from >= s->n || from == s->self)
        return;
    is_in = hvd__member_set_has(&letter->base_list, s->self);
    if (!letter->is_answer)
        hvd__member_set_add(&s->answers, from);
    if (s->stage == HVD__STAGE_OVER &&
        hvd__member_set_has(&letter->left, s->self))
        hvd__member_set_add(&s->agreed, from);
    if (letter->base > s->base && !is_in && !is_apart(s) && !has_ended(s)) {
        hvd__survivors_lose(s, s->self, CUT_OFF + 1);
        return;
    }
    if (has_ended(s) || hvd__survivors_fate(s, from) != 0)
        return;
    notice(s, from);
    s->is_dismissed |= letter->is_dismissed;
    if (hvd__member_set_has(&s->base_list, from))
        s->alone_ns = 0;
    if (letter->seen > s->seen)
        s->seen = letter->seen;
    if (letter->base > s->base &&
        (is_agreeing(s) || s->stage == HVD__STAGE_STANDBY))
        take_over(s, letter);
    else if (letter->base > s->base && is_apart(s))
        s->is_broken = true; /* they have gone on without this start */
    if (letter->base == s->base)
        hear_of_base(s, letter);
    /* The sender has left the world that this member is still in. */
    if (s->stage == HVD__STAGE_WORKING && letter->base == s->base &&
        letter->stage != HVD__STAGE_WORKING &&
        hvd__member_set_has(&s->base_list, from) && s->recalled_ns == 0)
        s->recalled_ns = 1;
    step(s);
}

int hvd__survivors_next(struct hvd__survivors *s, struct hvd__letter *letter)
{
    int to = lowest(&s->due);

    *letter = (struct hvd__letter){
        .from = s->self,
        .is_answer = to < 0,
        .is_dismissed = s->is_dismissed,
        .stage = (uint8_t)s->stage,
        .base = s->base,
        .round = s->round,
        .failed = s->failed,
        .seen = s->seen,
        .founded = s->founded,
        .few = s->few,
        .of = s->of,
        .base_list = s->base_list,
        .list = s->list,
        .ready = s->ready,
        .suspected = s->suspected,
        .left = s->left,
    };
    memcpy(letter->lost, s->lost, sizeof letter->lost);
    if (to < 0)
        to = lowest(&s->answers);
    if (to < 0)
        return -1;
    hvd__member_set_drop(&s->due, to);
    hvd__member_set_drop(&s->answers, to);
    return to;
}

/* ---------------------------------------------------------------------- time
 */

static void count_silence_of(struct hvd__survivors *s, int member,
                             int64_t passed_ns, int64_t patience_ns)
{
    s->silent_ns[member] += passed_ns;
    if (patience_ns > 0 && s->silent_ns[member] >= patience_ns)
        hvd__survivors_suspect(s, member);
}

/* A leader listens to all, and to the spares that it has called, the others to
 * their leader. */
static void count_silence(struct hvd__survivors *s, int64_t passed_ns)
{
    const bool has_list =
        s->stage == HVD__STAGE_PROPOSED || s->stage == HVD__STAGE_DECIDED;

    for (int i = 0; i < s->n; i++) {
        const bool is_old = hvd__member_set_has(&s->base_list, i),
                   is_called = has_list && hvd__member_set_has(&s->list, i);

        if (i == s->self || (s->leader != s->self && i != s->leader))
            continue;
        if (!hvd__survivors_is_live(s, i) || (!is_old && !is_called) ||
            (s->stage == HVD__STAGE_DECIDED && !is_called))
            continue;
        count_silence_of(s, i, passed_ns,
                         s->patience_ns[i] / (is_old ? 1 : CALL));
    }
}

/* The leader of a standing world looks after the spares, which write to it. */
static void look_after_spares(struct hvd__survivors *s, int64_t passed_ns)
{
    if (s->leader != s->self || s->size == s->n)
        return;
    s->sent_ns += passed_ns;
    for (int i = s->size; i < s->n; i++) {
        if (!hvd__survivors_is_spare(s, i) || !hvd__survivors_is_live(s, i))
            continue;
        count_silence_of(s, i, passed_ns, s->patience_ns[i]);
        if (s->silent_ns[i] > MISSED_PINGS * s->times.ping_ns &&
            s->sent_ns >= s->times.ping_ns)
            hvd__member_set_add(&s->due, i);
    }
    if (s->sent_ns >= s->times.ping_ns)
        s->sent_ns = 0;
}

/* A spare writes to the leader, and to all if that one seems to be gone. */
static void stand_by(struct hvd__survivors *s, int64_t passed_ns)
{
    struct hvd__member_set live = all_live(s);
    bool is_due;

    s->alone_ns += passed_ns;
    s->sent_ns += passed_ns;
    is_due = s->sent_ns >= s->times.ping_ns;
    for (int i = 0; i < s->n; i++) {
        if (!hvd__member_set_has(&live, i) ||
            (i != s->leader && s->alone_ns <= MISSED_PINGS * s->times.ping_ns))
            continue;
        if (is_due)
            hvd__member_set_add(&s->due, i);
        count_silence_of(s, i, passed_ns, s->patience_ns[i]);
    }
    if (is_due)
        s->sent_ns = 0;
}

/* Members that do not come in time are lost. A leader knows which, also of
 * spares that it has called; the others know it of their leader. */
static void look_at_limit(struct hvd__survivors *s)
{
    struct hvd__member_set late = all_live(s);

    if (s->times.limit_ns <= 0 || s->waited_ns < s->times.limit_ns ||
        !hvd__member_set_has(&s->ready, s->self))
        return;
    remove_all(&late, &s->ready);
    if (s->stage == HVD__STAGE_PROPOSED) {
        struct hvd__member_set called = s->list;

        remove_all(&called, &s->base_list);
        remove_all(&called, &s->agreed);
        unite(&late, &called);
    }
    for (int i = 0; i < s->n && s->leader != s->self; i++)
        if (i != s->leader)
            hvd__member_set_drop(&late, i);
    if (lowest(&late) < 0)
        return;
    s->waited_ns = 0;
    lose_all(s, &late, ABSENT);
}

void hvd__survivors_pass(struct hvd__survivors *s, int64_t passed_ns)
{
    if (s->stage == HVD__STAGE_WORKING && s->recalled_ns > 0) {
        s->recalled_ns += passed_ns;
        s->is_broken |= s->recalled_ns > RECALL_NS;
    }
    if (s->stage == HVD__STAGE_WORKING)
        look_after_spares(s, passed_ns);
    if (s->stage == HVD__STAGE_STANDBY)
        stand_by(s, passed_ns);
    if (s->stage == HVD__STAGE_WORKING || s->stage == HVD__STAGE_STANDBY ||
        has_ended(s))
        return;
    s->settled_ns += passed_ns;
    s->waited_ns += passed_ns;
    s->sent_ns += passed_ns;
    count_silence(s, passed_ns);
    if (is_agreeing(s))
        look_at_limit(s);
    if (s->sent_ns >= s->times.resend_ns)
        tell(s);
    step(s);
}
