/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - which member of the JSON is which field of which struct: one
 * table for writing and for reading.
 */
#ifndef IPU_REPORT_MEMBERS_H
#define IPU_REPORT_MEMBERS_H

#include <jansson.h>

#include "report/profile.h"

enum ipu__member_type {
    IPU__MEMBER_INT32,
    IPU__MEMBER_INT64,
    IPU__MEMBER_REAL,
    IPU__MEMBER_BOOL,
    IPU__MEMBER_TEXT,
    IPU__MEMBER_TEXT_OR_NULL
};

/* A list of them ends with a NULL name. */
struct ipu__member {
    const char *name;
    enum ipu__member_type type;
    size_t offset;
};

extern const struct ipu__member ipu__step_members[];
extern const struct ipu__member ipu__block_members[];
extern const struct ipu__member ipu__tiles_members[];
extern const struct ipu__member ipu__stream_members[];
extern const struct ipu__member ipu__memory_members[];
extern const struct ipu__member ipu__cycles_members[];
extern const struct ipu__member ipu__times_members[];
extern const struct ipu__member ipu__program_members[];
extern const struct ipu__member ipu__slot_members[];

/* A new object; NULL: no memory. */
json_t *ipu__members_pack(const struct ipu__member *members,
                          const void *object);

/* IPU_ERR_DATA, naming where, the member, and what it should be. Texts are
 * kept by the profile. Members that are not in the list are left alone. */
int ipu__members_unpack(const struct ipu__member *members, const char *where,
                        const json_t *json, struct ipu_profile *profile,
                        void *object);

#endif
