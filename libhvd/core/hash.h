/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - uthash that says when memory runs out instead of exiting: after
 * an ADD, hh.tbl of an element that could not be added is NULL.
 */
#ifndef HVD_CORE_HASH_H
#define HVD_CORE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
