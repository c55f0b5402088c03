/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the checks that one rank can make of a request alone.
 */
#ifndef HVD_CORE_CHECK_H
#define HVD_CORE_CHECK_H

#include "core/request/request.h"

/* Copies a request of a program of any version: fields that it does not know
 * have their defaults, fields that we do not know are refused unless they are
 * zero. */
int hvd__request_copy(const hvd_request *given, hvd_request *copy);

/* Marks a request of a program that has flags of the library's own: it is
 * refused as unknown when it is checked, and the other ranks learn of it. */
void hvd__request_distrust(hvd_request *given);

/*
 * Checks the rest, for a set, and fills the request's first part, with all the
 * memory that it will need. A message says what is wrong, and not with which
 * request.
 */
int hvd__request_check(const hvd_request *given, const struct hvd__set *set,
                       struct hvd__request *request);

#endif
