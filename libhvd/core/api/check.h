/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - checks of a request that one rank can make alone.
 */
#ifndef HVD_CORE_CHECK_H
#define HVD_CORE_CHECK_H

#include "core/request/request.h"

/* Copies a request of a program that was built with any version. Fields that
 * the program's version lacks get their defaults; fields that this version
 * lacks must be zero, or the request is refused. */
int hvd__request_copy(const hvd_request *given, hvd_request *copy);

/* Marks a program's request that has flags of the library. The check then
 * refuses it as unknown, and the other ranks are informed. */
void hvd__request_distrust(hvd_request *given);

/*
 * Checks the rest for a set, fills the request's first part, and allocates all
 * the memory that it will need. A message says what is wrong but does not name
 * the request.
 */
int hvd__request_check(const hvd_request *given, const struct hvd__set *set,
                       struct hvd__request *request);

#endif
