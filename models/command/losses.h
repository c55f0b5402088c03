/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.h - the loss of every step of a training, for the file of --losses.
 */
#ifndef MODELS_LOSSES_H
#define MODELS_LOSSES_H

#include <stdint.h>

struct losses {
    struct losses_entry *entries; /* [count], owned */
    int64_t count, room;
};

/* Adds the loss of the steps up to this one: those since the last entry. */
int losses_add(struct losses *losses, int64_t step, double loss);

/* Writes a line "step loss" for each entry. PROBLEM with the text kept. */
int losses_write(const struct losses *losses, const char *path);

void losses_fini(struct losses *losses);

#endif
