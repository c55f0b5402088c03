/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_key.h - the key that the processes of a job share, by which they know
 * each other where no launcher has started them.
 */
#ifndef HVD_CORE_WORLD_JOB_KEY_H
#define HVD_CORE_WORLD_JOB_KEY_H

#include <stddef.h>

#include "core/settings/settings.h"

enum { HVD__KEY_LEAST = 16, HVD__KEY_MOST = 4096 };

struct hvd__job_key {
    unsigned char *bytes; /* owned, [count]; NULL: there is no key */
    size_t count;
};

/* Reads the key from where the settings say. Returns HVD_ERR_CONFIG if there is
 * none, if it is too short or too long, or if others than its owner may read
 * it. */
int hvd__job_key_read(const struct hvd__settings *settings,
                      struct hvd__job_key *key);

/* Overwrites and frees the key. */
void hvd__job_key_forget(struct hvd__job_key *key);

#endif
