/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - maps JSON members to fields of structs: one table for writing and
 * for reading.
 */
#ifndef IPU_REPORT_MEMBERS_H
#define IPU_REPORT_MEMBERS_H

#include <jansson.h>

#include "report/profile.h"

enum ipu__json_type {
    IPU__JSON_INT32,
    IPU__JSON_INT64,
    IPU__JSON_REAL,
    IPU__JSON_BOOL,
    IPU__JSON_TEXT,
    IPU__JSON_TEXT_OR_NULL,
    /* 0 if missing: older profiles lack it */
    IPU__JSON_INT32_OR_0,
    IPU__JSON_INT64_OR_0,
    IPU__JSON_REAL_OR_0
};

/* A member of an object. A list of members ends with a NULL name. */
struct ipu__json_member {
    const char *name;
    enum ipu__json_type type;
    size_t offset;
};

extern const struct ipu__json_member ipu__step_json[];
extern const struct ipu__json_member ipu__block_json[];
extern const struct ipu__json_member ipu__tiles_json[];
extern const struct ipu__json_member ipu__stream_json[];
extern const struct ipu__json_member ipu__memory_json[];
extern const struct ipu__json_member ipu__cycles_json[];
extern const struct ipu__json_member ipu__times_json[];
extern const struct ipu__json_member ipu__program_json[];
extern const struct ipu__json_member ipu__slot_json[];
extern const struct ipu__json_member ipu__run_json[];
extern const struct ipu__json_member ipu__stage_json[];
extern const struct ipu__json_member ipu__chip_json[];

/* Makes a new object; returns NULL without memory. */
json_t *ipu__json_pack(const struct ipu__json_member *members,
                       const void *object);

/* Makes a list of such objects, of rows of stride bytes each. */
json_t *ipu__json_pack_rows(const struct ipu__json_member *members,
                            const void *rows, int32_t count, size_t stride);

/* Fills a struct; the profile keeps the texts. Ignores members that are not in
 * the list. Returns IPU_ERR_DATA with where, the member, and the expected type.
 */
int ipu__json_unpack(const struct ipu__json_member *members, const char *where,
                     const json_t *json, struct ipu_profile *profile,
                     void *object);

#endif
