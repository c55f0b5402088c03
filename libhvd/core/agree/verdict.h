/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - texts that say why a proposal fails. They follow its name in the
 * message. world holds the world rank of each of the nranks members.
 */
#ifndef HVD_CORE_VERDICT_H
#define HVD_CORE_VERDICT_H

#include <stdbool.h>

#include "base/text.h"
#include "core/agree/proposal.h"

/* Says which ranks submitted which variant or, if refused is true, which were
 * refused and why. */
void hvd__verdict_differing(struct hvd__text *out,
                            const struct hvd__proposal *proposal,
                            const int *world, int nranks, bool refused);

/* Says that an operation cannot complete because of the ranks that are flagged
 * in missing, and why they will never submit it. */
void hvd__verdict_missing(struct hvd__text *out, const int *world,
                          const int *missing, int nranks, const char *why);

#endif
