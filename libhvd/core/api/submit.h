/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.h - submits and waits for the library's own requests. It is private to
 * this room.
 */
#ifndef HVD_CORE_SUBMIT_H
#define HVD_CORE_SUBMIT_H

#include "core/world/world.h"

/* Submits a request and waits for it. This thread drives, and no other thread
 * is woken. output is as in hvd_wait_output, or NULL. name may be one of the
 * library's own. */
int hvd__run(const hvd_request *request, const char *name, hvd_tensor *output);

/* Submits a request of this version. */
int hvd__submit(const hvd_request *request, hvd_handle *handle);

/* Submits a group of requests that may have flags of the library's own. */
int hvd__submit_group(const char *name, const hvd_request *const *requests,
                      int32_t n, hvd_handle *handles);

/* Finds a process set, which the caller gives back. *set is NULL on failure. */
int hvd__find_set(struct hvd__world *world, int32_t id, struct hvd__set **set);
/* Makes a set of an earlier world again, of n ranks of this one, ascending.
 * Collective: all ranks give the same. */
int hvd__set_make_again(struct hvd__world *world, int32_t id,
                        const int32_t *ranks, int32_t n);
/* A set that is to be made. */
struct hvd__new_set {
    int32_t id;
    const int32_t *ranks; /* borrowed, [nranks], ascending */
    int32_t nranks;
    int tag_slot;
};
/* Makes this rank's part of a set and enters it into the table. Nothing may be
 * submitted to it before all its members have done that, and one of them has
 * called hvd__world_move_set. One change at a time. */
int hvd__set_enter(struct hvd__world *world, const struct hvd__new_set *new_set,
                   struct hvd__set **set);
/* Returns HVD_ERR_PROCESS_SET if this rank is not a member of a set. */
int hvd__check_member(const struct hvd__set *set);

/* Waits for a request. */
int hvd__wait(struct hvd__world *world, hvd_handle handle, hvd_tensor *output);

/* Fills a request of one dimension. */
void hvd__fill(hvd_request *request, hvd_kind kind, const void *in, void *out,
               const int64_t *count, hvd_dtype dtype);

#endif
