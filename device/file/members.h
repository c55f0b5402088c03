/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - which members of a struct a file keeps, and how.
 *
 * A struct in a file is its members that are not 0, each with a number, a type
 * and how many there are. A member that a file does not have is 0; so one may
 * be added at any time, if 0 in it means what was before. Its number is new,
 * and never used again for another.
 */
#ifndef IPU_FILE_MEMBERS_H
#define IPU_FILE_MEMBERS_H

#include "file/pack.h"

enum ipu__member_type {
    IPU__BOOL = 1,
    IPU__INT32,
    IPU__INT64, /* size_t and uint64_t too */
    IPU__REAL
};

struct ipu__layout_member {
    uint8_t number; /* from 1 on, rising */
    uint8_t type;
    uint32_t offset, bytes;
    const char *name;
};

struct ipu__layout {
    const char *name; /* for messages: "a step" */
    const struct ipu__layout_member *members;
    int32_t nmembers;
    size_t bytes; /* of the whole struct */
};

extern const struct ipu__layout ipu__tensor_layout;
extern const struct ipu__layout ipu__node_layout;
extern const struct ipu__layout ipu__attributes_layout;
extern const struct ipu__layout ipu__sink_layout;
extern const struct ipu__layout ipu__assign_layout;
extern const struct ipu__layout ipu__region_layout;
extern const struct ipu__layout ipu__feed_tensor_layout;

extern const struct ipu__layout ipu__target_layout;
extern const struct ipu__layout ipu__executable_layout;
extern const struct ipu__layout ipu__value_layout;
extern const struct ipu__layout ipu__block_layout;
extern const struct ipu__layout ipu__step_layout;
extern const struct ipu__layout ipu__part_layout;
extern const struct ipu__layout ipu__stream_layout;
extern const struct ipu__layout ipu__tile_layout;

/* Bytes that a struct takes at least. */
enum { IPU__LEAST_STRUCT = 4 };

void ipu__put_struct(struct ipu__writer *writer,
                     const struct ipu__layout *layout, const void *value);

/* IPU_ERR_DATA unless all members of 64 bits are amounts: of bytes, cycles,
 * elements. They are not less than 0, and small enough to be added up. */
int ipu__check_amounts(const struct ipu__reader *reader,
                       const struct ipu__layout *layout, const void *value);

/* Members that the layout has not are left as they are. */
int ipu__get_struct(struct ipu__reader *reader,
                    const struct ipu__layout *layout, void *value);

#endif
