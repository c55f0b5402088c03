/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meeting.h - the place where replicas meet that are within loops, each on a
 * thread.
 */
#ifndef IPU_REPLICA_MEETING_H
#define IPU_REPLICA_MEETING_H

#include "compiler/program.h"

struct ipu__meeting;

int ipu__meeting_new(int32_t replicas, struct ipu__meeting **meeting);
void ipu__meeting_free(struct ipu__meeting *meeting); /* NULL is accepted */

/* Nobody has come or left. */
void ipu__meeting_open(struct ipu__meeting *meeting);

/* A replica has done its part of the program, or failed: it will not come. */
void ipu__meeting_leave(struct ipu__meeting *meeting);

/* Waits until all replicas have come (an ipu__meet_fn); data is then the sum or
 * the mean of its group. Returns IPU_ERR_STATE if one of them has left, or has
 * come to another step. */
int ipu__meeting_come(void *meeting, int32_t replica,
                      const struct ipu__step *step,
                      const struct ipu__shape *shape, void *data);

/* Returns how often all have met. */
int64_t ipu__meeting_count(struct ipu__meeting *meeting);

#endif
