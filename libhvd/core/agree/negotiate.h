/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.h - this rank's side of agreeing by name on what to do next.
 */
#ifndef HVD_CORE_NEGOTIATE_H
#define HVD_CORE_NEGOTIATE_H

#include <stdbool.h>

struct hvd__set;
struct hvd__submission;
struct hvd__engine;

/* Driver's: announce what was submitted, take in what others say, decide
 * (where we coordinate), follow what was decided. Returns how many messages
 * are still on their way out. */
int hvd__negotiate_step(struct hvd__engine *engine, bool *moved);

/* Driver's: what was submitted, where it is agreed on by order: post it.
 * submission: that alone, which is not in the queue; NULL: what is. */
int hvd__negotiate_post(struct hvd__engine *engine,
                        struct hvd__submission *submission);

/* Driver's: agree on a submission by name, from now on. It is freed if it was
 * refused. */
int hvd__announce(struct hvd__set *set, struct hvd__submission *submission);

/* Driver's, best effort: tell the other ranks that this world is broken. */
void hvd__negotiate_break(struct hvd__engine *engine, int status,
                          const char *text);

#endif
