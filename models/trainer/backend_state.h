/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_state.h - what a training keeps beside its variables, as a list of
 * tensors: those of the devices first, such as counters and an optimiser's
 * moments, then those of an optimiser on the host or on parameter servers
 * (exchange.h).
 *
 * Either optimiser has the same names for the same tensors, so that a training
 * that one has begun goes on with the other; only numbers of updates are kept
 * otherwise (snapshot.h).
 */
#ifndef MODELS_BACKEND_STATE_H
#define MODELS_BACKEND_STATE_H

#include "model/model.h"
#include "trainer/backend.h"

/* trainer_states, trainer_state_read and trainer_state_write (trainer.h) call
 * these. Here, the newest variables of servers come to the host only. */
int backend_states(const struct backend *backend, const struct model *model,
                   struct trainer_state **states);
int backend_state_read(const struct backend *backend, const struct model *model,
                       void *const *data);
int backend_state_write(struct backend *backend, const struct model *model,
                        const void *const *data);

#endif
