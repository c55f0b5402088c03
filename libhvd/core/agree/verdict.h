/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - texts that say why a proposal fails: what follows its name in the
 * message. world: the rank in the world of each of nranks members.
 */
#ifndef HVD_CORE_VERDICT_H
#define HVD_CORE_VERDICT_H

#include <stdbool.h>

#include "base/text.h"
#include "core/agree/proposal.h"

/* Says which ranks submitted which variant; or, if some were refused, where and
 * why. All that were not refused are known. */
void hvd__verdict_differing(struct hvd__text *out,
                            const struct hvd__proposal *proposal,
                            const int *world, int nranks, bool refused);

/* Says which of the ranks that are gone, [nranks], did not submit it, and why
 * they never will. HVD_ERR_MEMORY. */
int hvd__verdict_missing(struct hvd__text *out,
                         const struct hvd__proposal *proposal, const int *world,
                         int nranks, const int *gone, const char *why);

#endif
