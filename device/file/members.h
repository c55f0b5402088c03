/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the members of a struct that a file keeps, and their encoding.
 *
 * A struct in a file consists of its members that are not 0, each with a
 * number, a type and a count. A member that a file lacks is 0. So a member may
 * be added at any time if 0 in it means the earlier behaviour. Its number must
 * be new, and is never used again for another member.
 *
 * An index that may be none is -1 then, in memory; a file has index + 1, an
 * IPU__INT32, and so leaves out none.
 */
#ifndef IPU_FILE_MEMBERS_H
#define IPU_FILE_MEMBERS_H

#include "file/pack.h"
#include "graph/layout.h"

extern const struct ipu__layout ipu__tensor_layout;
extern const struct ipu__layout ipu__node_layout;
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

/* The least bytes that a struct takes. */
enum { IPU__LEAST_STRUCT = 4 };

void ipu__put_struct(struct ipu__writer *writer,
                     const struct ipu__layout *layout, const void *value);

/* Checks that all members of 64 bits are amounts of bytes, cycles or
 * elements: at least 0, and small enough to be added up. Returns
 * IPU_ERR_DATA otherwise. */
int ipu__check_amounts(const struct ipu__reader *reader,
                       const struct ipu__layout *layout, const void *value);

/* Reads a struct. Members that are not in the layout keep their values, and so
 * do those that the file lacks, but for indices: these become none. */
int ipu__get_struct(struct ipu__reader *reader,
                    const struct ipu__layout *layout, void *value);

#endif
