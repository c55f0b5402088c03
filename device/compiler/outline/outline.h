/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline.h - code that congruent steps share.
 *
 *     congruent.c  finds steps that the same code could run
 *     outline.c    decides which of them share code, and what they copy for it
 */
#ifndef IPU_COMPILER_OUTLINE_OUTLINE_H
#define IPU_COMPILER_OUTLINE_OUTLINE_H

#include "compiler/program.h"

/* A block that a step reads or makes. A step lists each block once, in the
 * order of its ops. */
struct ipu__block_use {
    int32_t block;
    bool reads, makes;
};

enum { IPU__MOST_USED = IPU__MOST_PARTS * (IPU__MAX_INPUTS + 1) };

int32_t ipu__blocks_used(const struct ipu_executable *executable,
                         const struct ipu__step *step,
                         struct ipu__block_use users[IPU__MOST_USED]);

/* Congruent steps, in groups of two or more. */
struct ipu__congruent {
    int32_t *firsts; /* owned, [groups + 1]: where those of a group begin */
    int32_t *steps;  /* owned; ascending in each group */
    int32_t ngroups;
};

/*
 * Finds the groups. Steps are congruent if they have the same ops with the same
 * attributes on operands of the same shapes, spread in the same way. placed:
 * they are also on the same tiles and cost the same; otherwise their tiles may
 * still change.
 */
int ipu__congruent_init(const struct ipu_executable *executable, bool placed,
                        struct ipu__congruent *congruent);
void ipu__congruent_fini(struct ipu__congruent *congruent);

#endif
