/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - why a proposal fails, in words: what follows its name in the
 * message. world: the rank in the world of each of nranks members.
 */
#ifndef HVD_CORE_VERDICT_H
#define HVD_CORE_VERDICT_H

#include <stdbool.h>

#include "base/text.h"
#include "core/agree/proposal.h"

/* Its variants differ: who submitted what; or some were refused: where, and
 * why. All that were not refused are known. */
void hvd__verdict_differing(struct hvd__text *out,
                            const struct hvd__proposal *proposal,
                            const int *world, int nranks, bool refused);

/* Who did not submit it, of those that are gone, [nranks], and why they never
 * will. HVD_ERR_MEMORY. */
int hvd__verdict_missing(struct hvd__text *out,
                         const struct hvd__proposal *proposal, const int *world,
                         int nranks, const int *gone, const char *why);

#endif
