/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - checks names of requests. */
#ifndef HVD_CORE_NAMES_H
#define HVD_CORE_NAMES_H

/* Checks a name and returns its bytes. A request with an invalid name is not
 * announced: no other rank can have submitted it. */
int hvd__name_check(const char *name);

#endif
