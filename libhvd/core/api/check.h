/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what one rank can judge of a request alone.
 */
#ifndef HVD_CORE_CHECK_H
#define HVD_CORE_CHECK_H

#include "core/request/request.h"

/* Copy what a program gave as a request, of whatever version: fields that it
 * does not know have their defaults, fields that we do not know are refused
 * unless zero. */
int hvd__request_copy(const hvd_request *given, hvd_request *copy);

/* What a program gave must not have flags of our own: if it has, they are
 * refused as unknown when it is checked, and told to the other ranks. */
void hvd__request_distrust(hvd_request *given);

/*
 * Check the rest, on a set, and fill the request's first part, with all the
 * memory that its way will need. A message says what is wrong, and not with
 * which request.
 */
int hvd__request_check(const hvd_request *given, const struct hvd__set *set,
                       struct hvd__request *request);

#endif
