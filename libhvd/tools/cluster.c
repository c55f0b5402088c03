/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - prints a cluster: its tasks with their ranks and addresses, which
 * of them this process would be, and whether they can train together. It opens
 * no socket.
 */
#include "cluster.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"
#include "hvd_cluster.h"

/* The task that a process of this TF_CONFIG is. */
struct own_task {
    bool is_known;
    hvd_role role;
    int32_t index;
};

static void print_task(const hvd_cluster *cluster, const struct own_task *own,
                       hvd_role role, int32_t index)
{
    const char *address = hvd_cluster_address(cluster, role, index);
    bool is_own = own->is_known && own->role == role && own->index == index;
    char rank[16] = "-", task[32];

    if (role == HVD_ROLE_CHIEF || role == HVD_ROLE_WORKER)
        snprintf(rank, sizeof rank, "%d",
                 hvd_cluster_rank_of(cluster, role, index));
    snprintf(task, sizeof task, "%s %d", hvd_role_name(role), (int)index);
    printf("  %5s  %-12s %s%s\n", rank, task,
           address ? address : "(not in the cluster)",
           is_own ? "  <- this process" : "");
}

static void print_tasks(const hvd_cluster *cluster, const struct own_task *own)
{
    puts("   rank  task         address");
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        for (int i = 0; i < hvd_cluster_count(cluster, role); i++)
            print_task(cluster, own, role, i);
    if (own->is_known && own->index >= hvd_cluster_count(cluster, own->role))
        print_task(cluster, own, own->role, own->index);
}

static void print_facts(const hvd_cluster *cluster, const struct own_task *own)
{
    uint64_t fingerprint = 0;

    if (!own->is_known)
        puts("This process: the text has no \"task\"");
    if (hvd_cluster_check_allreduce(cluster) < 0)
        printf("Training by allreduce: no, %s\n", hvd_last_error());
    else
        printf("Training by allreduce: yes, on %d rank%s\n",
               hvd_cluster_size(cluster),
               hvd_cluster_size(cluster) == 1 ? "" : "s");
    hvd_cluster_fingerprint(cluster, &fingerprint);
    printf("Fingerprint, the same on all tasks: %016" PRIx64 "\n", fingerprint);
}

int cluster_print(const char *path)
{
    hvd_cluster *cluster;
    struct own_task own;
    int status = path ? hvd_cluster_load(path, HVD_CLUSTER_NO_TASK, &cluster)
                      : hvd_cluster_from_environment(&cluster);

    HVD_TRY(status);
    if (!cluster)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "TF_CONFIG is not set: set it, or name a file");
    own.is_known = hvd_cluster_task(cluster, &own.role, &own.index) >= 0;
    printf("Cluster of %s:\n", path ? path : "TF_CONFIG");
    print_tasks(cluster, &own);
    print_facts(cluster, &own);
    hvd_cluster_free(cluster);
    return HVD_OK;
}
