/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quick.h - a blocking call on its shortest way: most have nothing else under
 * way, and all ranks make them at about the same time. Such a request never
 * enters the request table: the calling thread posts it, sees the others' and
 * is done.
 */
#ifndef HVD_CORE_QUICK_H
#define HVD_CORE_QUICK_H

#include "core/world/world.h"

/* Whether a request without a name was carried out, or submitted. Not if it
 * cannot go this way, or is wrong: then nothing was done. *handle: 0 if it is
 * carried out, well; else it must be waited for. */
bool hvd__quick_run(struct hvd__world *world, const hvd_request *given,
                    hvd_handle *handle);

#endif
