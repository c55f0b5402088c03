/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/party.h"

#include "core/settings/settings.h"
#include "core/world/job_key.h"
#include "output/problem.h"
#include "transport/tcp/handshake.h"

#include <hvd_cluster.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands for the number of a run, by which a rank and a server that listen on
 * the same address cannot be mistaken for each other. */
#define SESSION UINT64_C(0x72656d6f74652031)

struct remote_party {
    hvd_cluster *cluster; /* owned */
    struct hvd__job_key key;
    uint64_t fingerprint;
    int size, rank;
};

static int hvd_problem(void)
{
    return problem_set("%s", hvd_last_error());
}

/* Reads "worker:1". */
static int set_task(hvd_cluster *cluster, const char *task)
{
    char type[16];
    int index = 0, end = 0;

    /* "chief" alone is chief:0. */
    if (sscanf(task, "%15[a-z]%n:%d%n", type, &end, &index, &end) < 1 ||
        task[end] || hvd_role_from_name(type) < 0 || index < 0)
        return problem_set("--task: '%s' is not a task like worker:0 or "
                           "chief:0",
                           task);
    if (hvd_cluster_set_task(cluster, hvd_role_from_name(type), index) < 0)
        return problem_set("--task %s: the cluster has no such task", task);
    return 0;
}

static int load_cluster(const char *path, const char *task, bool is_client,
                        struct remote_party *party)
{
    int status;

    if (path) {
        if (hvd_cluster_load(path, is_client || task ? HVD_CLUSTER_NO_TASK : 0,
                             &party->cluster) < 0)
            return hvd_problem();
    } else {
        status = hvd_cluster_from_environment(&party->cluster);
        if (status < 0)
            return hvd_problem();
        if (status == 0)
            return problem_set("there is no cluster: give --cluster FILE, or "
                               "set TF_CONFIG");
    }
    if (task && set_task(party->cluster, task) < 0)
        return PROBLEM;
    if (hvd_cluster_check_allreduce(party->cluster) < 0 ||
        hvd_cluster_fingerprint(party->cluster, &party->fingerprint) < 0)
        return hvd_problem();
    party->size = hvd_cluster_size(party->cluster);
    party->rank = is_client ? -1 : hvd_cluster_rank(party->cluster);
    return is_client || party->rank >= 0 ? 0 : hvd_problem();
}

int party_new(const char *path, const char *task, bool is_client,
              struct remote_party **made)
{
    struct remote_party *party = calloc(1, sizeof *party);
    struct hvd__settings settings;
    int status;

    if (!party)
        return problem_set("no memory for the cluster");
    status = load_cluster(path, task, is_client, party);
    if (status == 0 && (hvd__settings_read(&settings) < 0 ||
                        hvd__job_key_read(&settings, &party->key) < 0))
        status = hvd_problem();
    if (status == 0)
        *made = party;
    else
        party_free(party);
    return status;
}

void party_free(struct remote_party *party)
{
    if (!party)
        return;
    hvd__job_key_forget(&party->key);
    hvd_cluster_free(party->cluster);
    free(party);
}

int party_size(const struct remote_party *party)
{
    return party->size;
}

int party_rank(const struct remote_party *party)
{
    return party->rank;
}

const char *party_address(const struct remote_party *party, int rank)
{
    hvd_role role;
    int32_t index;

    if (hvd_cluster_task_of(party->cluster, rank, &role, &index) < 0)
        return "";
    return hvd_cluster_address(party->cluster, role, index);
}

const char *party_name(const struct remote_party *party, int rank)
{
    static char name[HVD_CLUSTER_MAX_HOST + 48];
    hvd_role role = HVD_ROLE_WORKER;
    int32_t index = -1;

    hvd_cluster_task_of(party->cluster, rank, &role, &index);
    snprintf(name, sizeof name, "%s %d at %s", hvd_role_name(role), (int)index,
             party_address(party, rank));
    return name;
}

void party_job(const struct remote_party *party, int rank, struct hvd__job *job)
{
    *job = (struct hvd__job){.rank = rank,
                             .size = party->size,
                             .cluster = party->fingerprint,
                             .session = SESSION,
                             .is_started = true,
                             .key = party->key.bytes,
                             .key_bytes = party->key.count};
}

const void *party_key(const struct remote_party *party, size_t *bytes)
{
    *bytes = party->key.count;
    return party->key.bytes;
}

/* ----------------------------------------------------- the worker's cluster */

/* Adds the task of a rank, on another port of its host. */
static int add_task(const struct remote_party *party, hvd_cluster *to, int rank,
                    uint32_t port)
{
    const char *address = party_address(party, rank);
    const char *colon = strrchr(address, ':');
    char moved[HVD_CLUSTER_MAX_HOST + 16];
    hvd_role role;
    int32_t index;

    if (!colon || port == 0 || port > 65535)
        return problem_set("a client announced the port %u, which is none",
                           port);
    snprintf(moved, sizeof moved, "%.*s:%u", (int)(colon - address), address,
             port);
    if (hvd_cluster_task_of(party->cluster, rank, &role, &index) < 0 ||
        hvd_cluster_add(to, role, moved) < 0)
        return hvd_problem();
    return 0;
}

/* Writes the text of this process's task in a cluster. */
static int write_text(const struct remote_party *party, const hvd_cluster *of,
                      char **text)
{
    hvd_role role;
    int32_t index;
    int length;

    if (hvd_cluster_task(party->cluster, &role, &index) < 0)
        return hvd_problem();
    length = hvd_cluster_tf_config(of, role, index, NULL, 0);
    if (length < 0)
        return hvd_problem();
    *text = malloc((size_t)length + 1);
    if (!*text)
        return problem_set("no memory for the cluster");
    hvd_cluster_tf_config(of, role, index, *text, length + 1);
    return 0;
}

int party_tf_config(const struct remote_party *party, const uint32_t *ports,
                    char **text)
{
    hvd_cluster *moved;
    int status = 0;

    if (hvd_cluster_new(&moved) < 0)
        return hvd_problem();
    for (int rank = 0; rank < party->size && status == 0; rank++)
        status = add_task(party, moved, rank, ports[rank]);
    if (status == 0)
        status = write_text(party, moved, text);
    hvd_cluster_free(moved);
    return status;
}
