/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/devices.h"

#include "collectives/agree.h"
#include "collectives/machine.h"
#include "hvd.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The facts about one process, as they are sent. */
struct record {
    int pid, local_rank;
    char host[64], processor[128];
};

static struct nccl_device *arrange(const struct record *records, int nranks,
                                   struct nccl_device *list)
{
    for (int r = 0; r < nranks; r++)
        list[r] = (struct nccl_device){.rank = r,
                                       .pid = records[r].pid,
                                       .local_rank = records[r].local_rank,
                                       .host = records[r].host,
                                       .what = records[r].processor};
    return list;
}

struct nccl_device *devices_gather(int nranks)
{
    size_t n = (size_t)nranks;
    /* The devices come first: their address is that of the allocation. */
    struct nccl_device *list =
        calloc(1, n * (sizeof(struct nccl_device) + sizeof(struct record)));
    struct record *records = list ? (struct record *)(list + n) : NULL;
    struct record mine;

    if (!agree_well(list != NULL) || !list) {
        free(list);
        return NULL;
    }
    memset(&mine, 0, sizeof mine);
    mine.pid = (int)getpid();
    mine.local_rank = hvd_local_rank();
    machine_host(mine.host, sizeof mine.host);
    machine_processor(mine.processor, sizeof mine.processor);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, records, sizeof mine, MPI_BYTE,
                  MPI_COMM_WORLD);
    return arrange(records, nranks, list);
}
