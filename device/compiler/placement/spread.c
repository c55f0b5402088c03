/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/placement/spread.h"
#include "target/cost.h"

int64_t ipu__grains(size_t bytes)
{
    return (int64_t)((bytes + IPU__GRAIN_BYTES - 1) / IPU__GRAIN_BYTES);
}

int32_t ipu__block_width(const struct ipu_executable *e,
                         const struct ipu__block *block)
{
    int64_t grains = ipu__grains(block->bytes);
    int32_t tiles = block->tiles ? block->tiles : e->target.tiles;

    return grains < tiles ? (int32_t)grains : tiles;
}

int64_t ipu__bytes_on_tile(const struct ipu_executable *e,
                           const struct ipu__block *block, int32_t tile)
{
    int64_t grains = ipu__grains(block->bytes);
    int64_t used = ipu__block_width(e, block);
    int64_t i = (tile - block->first_tile + e->target.tiles) % e->target.tiles;

    if (block->remote || i >= used)
        return 0;
    return (grains / used + (i < grains % used)) * IPU__GRAIN_BYTES;
}

int64_t ipu__range_length(struct ipu__range r)
{
    return r.to > r.from ? r.to - r.from : 0;
}

int64_t ipu__range_common(struct ipu__range a, struct ipu__range b)
{
    return ipu__range_length((struct ipu__range){
        a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to});
}

struct ipu__spread ipu__spread_of(const struct ipu_executable *e, int32_t v)
{
    const struct ipu__block *b = &e->blocks[e->values[v].block];
    int64_t grains = ipu__grains(b->bytes);
    int32_t used = ipu__block_width(e, b);

    return (struct ipu__spread){.bytes = (int64_t)e->values[v].bytes,
                                .each = used ? grains / used : 0,
                                .more = used ? grains % used : 0,
                                .first = b->first_tile,
                                .used = used,
                                .tiles = e->target.tiles};
}

struct ipu__range ipu__spread_held(const struct ipu__spread *s, int32_t tile)
{
    int64_t i = tile - s->first;
    struct ipu__range r;

    if (i < 0)
        i += s->tiles;
    if (i >= s->used)
        return (struct ipu__range){0, 0};
    r.from = (i * s->each + (i < s->more ? i : s->more)) * IPU__GRAIN_BYTES;
    r.to = r.from + (s->each + (i < s->more)) * IPU__GRAIN_BYTES;
    if (r.to > s->bytes)
        r.to = s->bytes;
    return r;
}

int32_t ipu__spread_tile(const struct ipu__spread *s, int64_t byte)
{
    int64_t grain = byte / IPU__GRAIN_BYTES, longer = s->more * (s->each + 1);
    int64_t i = grain < longer ? grain / (s->each + 1)
                               : s->more + (grain - longer) / s->each;

    return (int32_t)((s->first + i) % s->tiles);
}

int64_t ipu__spread_share(const struct ipu__spread *s)
{
    int64_t bytes = (s->each + (s->more > 0)) * IPU__GRAIN_BYTES;

    return bytes < s->bytes ? bytes : s->bytes;
}

bool ipu__spread_equal(const struct ipu__spread *a, const struct ipu__spread *b)
{
    return a->bytes == b->bytes && a->first == b->first && a->used == b->used;
}
