/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the options of replicas: what they are at first, and which are
 * refused.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "replica/replica.h"

void ipu_replicas_options_init(ipu_replicas_options *options, size_t size)
{
    const ipu_replicas_options defaults = {
        .size = (uint32_t)size, .ipus = 2, .shards = 1};

    if (!options)
        return;
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

int ipu_replica_count(int32_t ipus, int32_t shards)
{
    if (ipus < 1 || shards < 1 || ipus > IPU_MAX_IPUS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: %d IPUs of %d shards: 1 to %d of them, and "
                         "1 or more",
                         (int)ipus, (int)shards, IPU_MAX_IPUS);
    if (ipus < shards)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: a replica takes %d IPUs, one a shard, and "
                         "there are %d: take %d or a multiple of it",
                         (int)shards, (int)ipus, (int)shards);
    if (ipus % shards)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: %d IPUs are no multiple of the %d shards "
                         "that a replica takes: take %d or %d",
                         (int)ipus, (int)shards, (int)(ipus - ipus % shards),
                         (int)(ipus - ipus % shards + shards));
    return ipus / shards;
}

static int check_algorithm(const ipu_replicas_options *o)
{
    if (!ipu_cross_replica_algorithm_name(o->cross_replica_algorithm))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: there is no cross-replica algorithm %d: "
                         "there are 0 to %d",
                         (int)o->cross_replica_algorithm,
                         IPU_NUM_CROSS_REPLICA_ALGORITHMS - 1);
    if (o->packs < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: %d packs: 0 or more, and 0 packs nothing",
                         (int)o->packs);
    if (o->packs > 0 && o->maximum_cross_replica_sum_buffer_size > 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: %d packs, and a buffer of %" PRId64
                         " bytes: sums are sent in packs or by a buffer, so "
                         "set one of them to 0",
                         (int)o->packs,
                         o->maximum_cross_replica_sum_buffer_size);
    return IPU_OK;
}

int ipu__check_replicas_options(const ipu_replicas_options *o)
{
    IPU_TRY(ipu__check_size("replicas options", o->size, sizeof *o));
    if (o->threads < 0 || o->maximum_cross_replica_sum_buffer_size < 0)
        return ipu__fail(
            IPU_ERR_ARGUMENT,
            "replicas: %d threads, a buffer of %" PRId64 " bytes: 0 or more",
            (int)o->threads, o->maximum_cross_replica_sum_buffer_size);
    return check_algorithm(o);
}
