/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.h - what lets the survivors of a loss go on (recover.h), and outlives
 * their worlds. Callers hold the lock of hvd_init.
 */
#ifndef HVD_CORE_WORLD_ELASTIC_H
#define HVD_CORE_WORLD_ELASTIC_H

#include "watch/members.h"

struct hvd__settings;
struct hvd__world;

/* The worlds of a process share one of these if the process may recover. */
struct hvd__elastic {
    struct hvd__members *members; /* owned */
    struct hvd__transport *root;  /* owned: the first world's, of which those of
                                     later ones are made */
    struct hvd__lobby *lobby; /* owned: who waits to join; NULL: nobody can */
    int *places;         /* owned, [members]: their ranks in the cluster; NULL:
                            nobody is let in */
    int32_t generation;  /* of its first world */
    hvd_lost_rank *lost; /* owned, [nlost]: whom the last recovery left
                            out, by their ranks in the world before */
    int nlost;
    bool has_spares; /* the last members are no ranks, or were not at first */
    bool is_new;     /* this process has been in no world yet */
    int32_t last_id; /* of the process sets of the worlds so far */
};

/* Reads how many of size ranks are spares. */
int hvd__elastic_read_spares(const struct hvd__settings *settings, int size,
                             int *nspares);

/* Collective, while the first world starts, if the settings want it: the world
 * can then be recovered from, unless the ranks of a host share no memory, or
 * hosts cannot write to each other, which a warning says. host(context, rank)
 * returns the name of a rank's host. */
int hvd__elastic_open(struct hvd__world *world,
                      const char *(*host)(const void *context, int rank),
                      const void *context);
/* Collective, when the world's watch has been opened: without one, nothing
 * shows the others that this process is alive. */
int hvd__elastic_check(struct hvd__world *world);
/* This rank has started its world. Collective if there are several hosts and
 * some ranks are new: they count when all have started. If another rank is lost
 * before that, the world has started, and is broken; but not for one that
 * joins, to which this fails. */
int hvd__elastic_begin(struct hvd__world *world);
/* Tells spares that this process has left its last world. Accepts NULL. */
void hvd__elastic_leave(struct hvd__elastic *elastic, bool in_good_order);
/* Tells the members whom the watch of this world, if it has one, has found
 * lost. The world's ranks are those of the last round. */
void hvd__elastic_hand_over(struct hvd__world *world);
/* Leaves a member out of the next world. */
void hvd__elastic_exclude(struct hvd__elastic *elastic, int member);
/* Accepts NULL. */
void hvd__elastic_close(struct hvd__elastic *elastic);

/* Returns whether these are not the ranks of a world, but those and spares, of
 * whom a world is to be made. */
bool hvd__elastic_is_assembly(const struct hvd__world *world);

/* Returns whether a rank was lost in this process's life. */
bool hvd__elastic_has_lost(const struct hvd__elastic *elastic);

#endif
