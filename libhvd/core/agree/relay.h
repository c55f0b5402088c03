/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - the tree in which the members of a process set reach its
 * coordinator, and its decisions reach them. It exists so that the coordinator
 * hears hosts, not ranks, and no rank hears many.
 *
 * On each host the first member, the speaker, is the parent of the others. The
 * speakers form a tree of their own with few children each, whose root is the
 * coordinator. If all members are on one host, the coordinator is the parent of
 * all. Members are numbered by places, host by host, so that each rank speaks
 * for a range of places: its own and those of its descendants.
 *
 * Equal announcements of these members are held until all of them have made
 * theirs, and then sent as one. No announcement is held for longer than
 * HVD__HOLD_NS, because another rank may have left, so that what one member
 * announces has failed already. A member's announcements reach the coordinator
 * before it hears that the member joins or leaves. Decisions go down unchanged.
 * All of this is the driver's.
 */
#ifndef HVD_CORE_RELAY_H
#define HVD_CORE_RELAY_H

#include "core/agree/proposal.h"
#include "core/agree/wire.h"
#include "transport/hosts.h"

struct hvd__set;

/* The most nanoseconds for which an announcement is held. */
#define HVD__HOLD_NS INT64_C(5000000)

/* A member that this rank hears. */
struct hvd__relay_child {
    int member;
    int first, end; /* it speaks for the places first to end-1 */
    int64_t nheard; /* messages received from it */
};

struct hvd__relay {
    const struct hvd__hosts *hosts; /* borrowed; NULL: all on one host */
    int parent;                     /* a member; -1: this rank coordinates */
    int first, n; /* this rank speaks for n places from first on */
    struct hvd__relay_child *children; /* owned; those on other hosts first */
    int nchildren;
    int64_t nsent;          /* messages sent to the parent */
    struct hvd__writer out; /* the next one */

    /* The announcements of members that are to be passed on, by number from
     * first. The coordinator passes none on, and leaves this empty. */
    struct hvd__proposals held;
    int64_t held_since_ns; /* when the oldest was made; 0: none is held */
};

/* Fails with HVD_ERR_MEMORY. */
int hvd__relay_init(struct hvd__relay *relay, struct hvd__set *set);
void hvd__relay_fini(struct hvd__relay *relay);

/* Returns the child that is this member; NULL: none is. */
struct hvd__relay_child *hvd__relay_child(const struct hvd__relay *relay,
                                          int member);
/* Returns the number by which this rank knows the member at a place: the
 * coordinator its number in the set, others one from 0. */
int hvd__relay_number(const struct hvd__relay *relay, int place);

/* Passes on that a member is gone, who is given by this rank's numbers. The
 * coordinator must not call it. Fails with HVD_ERR_MEMORY. */
int hvd__relay_gone(struct hvd__set *set, int number, enum hvd__gone how);

/* Sends what is due to the parent. */
int hvd__relay_step(struct hvd__set *set);
/* Returns true if the parent, which has received nheard messages, knows all
 * that this rank has heard. */
bool hvd__relay_is_heard(const struct hvd__relay *relay, int64_t nheard);

/* Sends these records to each child. */
int hvd__relay_tell(struct hvd__set *set, const void *records, size_t bytes);
/* Tells each child to open an epoch, if it has sent no more than was received,
 * or, if refused is true, to refuse it. */
int hvd__relay_open(struct hvd__set *set, uint32_t epoch, bool refused);
/* Tells the parent and the children, if possible, that this world is broken. */
void hvd__relay_break(struct hvd__set *set, int status, const char *text);

#endif
