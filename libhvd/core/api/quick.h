/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quick.h - the shortest way of a blocking call. Most blocking calls come when
 * nothing else is under way, and all ranks make them at about the same time.
 * Such a request never enters the request table: the calling thread posts it,
 * reads the slots of the others and completes it.
 */
#ifndef HVD_CORE_QUICK_H
#define HVD_CORE_QUICK_H

#include "core/world/world.h"

/* Runs or submits a request without a name. Returns false, and does nothing, if
 * it cannot go this way or is wrong. *handle is 0 if the request is complete
 * without an error; otherwise the caller must wait for it. */
bool hvd__quick_run(struct hvd__world *world, const hvd_request *given,
                    hvd_handle *handle);

#endif
