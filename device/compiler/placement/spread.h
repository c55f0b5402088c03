/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.h - how a value lies on tiles: in one run of whole grains on each
 * tile, from its first tile on, around the chip.
 */
#ifndef IPU_COMPILER_PLACEMENT_SPREAD_H
#define IPU_COMPILER_PLACEMENT_SPREAD_H

#include "compiler/program.h"

/* Return the number of grains in that many bytes, and the number of tiles that
 * a block occupies. */
int64_t ipu__grains(size_t bytes);
int32_t ipu__block_width(const struct ipu_executable *executable,
                         const struct ipu__block *block);

struct ipu__spread {
    int64_t bytes;
    int64_t each, more; /* grains of each tile; tiles that have one more */
    int32_t first, used, tiles; /* tiles: of the chip */
};

/* Bytes [from, to) of a tensor. */
struct ipu__range {
    int64_t from, to;
};

struct ipu__spread ipu__spread_of(const struct ipu_executable *e, int32_t v);

/* Returns the bytes that a tile holds. */
struct ipu__range ipu__spread_held(const struct ipu__spread *s, int32_t tile);

/* Returns the tile that has a byte; there must be one. */
int32_t ipu__spread_tile(const struct ipu__spread *s, int64_t byte);

/* Returns the bytes on the tile that has most. */
int64_t ipu__spread_share(const struct ipu__spread *s);

bool ipu__spread_equal(const struct ipu__spread *a,
                       const struct ipu__spread *b);

int64_t ipu__range_length(struct ipu__range r);
int64_t ipu__range_common(struct ipu__range a, struct ipu__range b);

#endif
