/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.c - counts the bytes by which a program exceeds its tiles.
 */
#include "base/error.h"
#include "compiler/compiler.h"

int ipu__excess(const struct ipu_executable *e, int64_t *excess)
{
    int32_t shards = ipu_executable_shards(e);

    *excess = e->info.fullest_tile_bytes + e->reserved_bytes -
              e->target.bytes_per_tile;
    if (shards == 1)
        return IPU_OK;
    for (int32_t s = 0; s < shards; s++) {
        ipu_shard_info info = {.size = sizeof info};
        int64_t more;

        IPU_TRY(ipu_executable_shard(e, s, &info));
        more = (info.tile_bytes - info.bytes_per_tile) * shards;
        *excess = s == 0 || more > *excess ? more : *excess;
    }
    return IPU_OK;
}

int ipu__fits(const struct ipu_executable *e)
{
    int shards = ipu_executable_shards(e), status;

    IPU_TRY(shards);
    if (shards == 1)
        return e->info.fullest_tile_bytes <= e->target.bytes_per_tile;
    status = ipu__check_shards(e);
    return status == IPU_ERR_FULL ? 0 : status < 0 ? status : 1;
}
