/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - the description of a cluster: it is built task by task, whoever
 * reads it, so that a text and a program are held to the same rules; and it
 * answers which task has which address and rank.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cluster/parts.h"

static const char *const role_names[HVD_NUM_ROLES] = {
    [HVD_ROLE_CHIEF] = "chief",
    [HVD_ROLE_WORKER] = "worker",
    [HVD_ROLE_PS] = "ps",
    [HVD_ROLE_EVALUATOR] = "evaluator",
};

const char *hvd_role_name(hvd_role role)
{
    return role >= 0 && role < HVD_NUM_ROLES ? role_names[role] : NULL;
}

int hvd__role_find(const char *name, struct hvd__text *why)
{
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        if (strcmp(name, role_names[role]) == 0)
            return role;
    if (strcmp(name, "master") == 0)
        return HVD_ROLE_CHIEF;
    hvd__text_add(why,
                  "'%.*s' is not a role: give chief, worker, ps or evaluator",
                  hvd__quoted(name), name);
    return HVD_ERR_ARGUMENT;
}

int hvd_role_from_name(const char *name)
{
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    int role;

    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of a role is NULL");
    role = hvd__role_find(name, &why);
    return role < 0 ? hvd__fail_text(role, reason) : role;
}

static int check_cluster(const hvd_cluster *cluster)
{
    return cluster ? HVD_OK
                   : hvd__fail(HVD_ERR_ARGUMENT, "the cluster is NULL");
}

static int check_role(const hvd_cluster *cluster, hvd_role role)
{
    HVD_TRY(check_cluster(cluster));
    return hvd_role_name(role)
               ? HVD_OK
               : hvd__fail(HVD_ERR_ARGUMENT, "%d is not a role", (int)role);
}

/* ----------------------------------------------------------------- building */

int hvd_cluster_new(hvd_cluster **cluster)
{
    if (!cluster)
        return hvd__fail(HVD_ERR_ARGUMENT, "the place for a cluster is NULL");
    *cluster = calloc(1, sizeof **cluster);
    if (!*cluster)
        return hvd__fail_memory(sizeof **cluster);
    (*cluster)->bytes = 128; /* keys, brackets and a task */
    return HVD_OK;
}

void hvd_cluster_free(hvd_cluster *cluster)
{
    if (!cluster)
        return;
    for (int role = 0; role < HVD_NUM_ROLES; role++) {
        struct hvd__tasks *tasks = &cluster->tasks[role];

        while (tasks->count > 0)
            free(tasks->addresses[--tasks->count]);
        free(tasks->addresses);
    }
    hvd__names_fini(&cluster->names);
    free(cluster);
}

/* Makes the set of addresses anew, for twice as many. */
static int grow_names(hvd_cluster *cluster)
{
    int32_t most = 2 * cluster->names_room + 8;
    struct hvd__names names;

    HVD_TRY(hvd__names_init(&names, (size_t)most));
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        for (int32_t i = 0; i < cluster->tasks[role].count; i++)
            hvd__names_add(&names, cluster->tasks[role].addresses[i]);
    hvd__names_fini(&cluster->names);
    cluster->names = names;
    cluster->names_room = most;
    return HVD_OK;
}

/* Makes room for one more task. */
static int grow(hvd_cluster *cluster, struct hvd__tasks *tasks)
{
    if (cluster->count == cluster->names_room)
        HVD_TRY(grow_names(cluster));
    if (tasks->count == tasks->room) {
        int32_t room = 2 * tasks->room + 4;
        char **grown = realloc(tasks->addresses, (size_t)room * sizeof *grown);

        if (!grown)
            return hvd__fail_memory((size_t)room * sizeof *grown);
        tasks->addresses = grown;
        tasks->room = room;
    }
    return HVD_OK;
}

/* Gives the reason to refuse an address that another task has. */
static void name_owner(const hvd_cluster *cluster, const char *address,
                       struct hvd__text *why)
{
    for (int role = 0; role < HVD_NUM_ROLES; role++)
        for (int32_t i = 0; i < cluster->tasks[role].count; i++)
            if (strcmp(cluster->tasks[role].addresses[i], address) == 0)
                hvd__text_add(why,
                              "%s %d has the address '%.*s' already: give "
                              "every task one of its own",
                              role_names[role], (int)i, hvd__quoted(address),
                              address);
}

int hvd__cluster_insert(hvd_cluster *cluster, hvd_role role,
                        const char *address, struct hvd__text *why)
{
    struct hvd__tasks *tasks = &cluster->tasks[role];
    bool is_single = role == HVD_ROLE_CHIEF || role == HVD_ROLE_EVALUATOR;
    char canonical[HVD__ADDRESS_SIZE], *copy;
    size_t bytes;

    if (is_single && tasks->count == 1) {
        hvd__text_add(why, "a cluster has at most one %s", role_names[role]);
        return HVD_ERR_ARGUMENT;
    }
    if (!hvd__address_read(address, canonical, why))
        return HVD_ERR_ARGUMENT;
    bytes = cluster->bytes + strlen(canonical) + strlen("\"\",");
    if (bytes > HVD_CLUSTER_MAX_BYTES) {
        hvd__text_add(why,
                      "with this task the cluster's text would be longer than "
                      "%d bytes",
                      HVD_CLUSTER_MAX_BYTES);
        return HVD_ERR_ARGUMENT;
    }
    HVD_TRY(grow(cluster, tasks));
    copy = strdup(canonical);
    if (!copy)
        return hvd__fail_memory(sizeof canonical);
    if (!hvd__names_add(&cluster->names, copy)) {
        name_owner(cluster, copy, why);
        free(copy);
        return HVD_ERR_ARGUMENT;
    }
    cluster->bytes = bytes;
    cluster->count++;
    tasks->addresses[tasks->count] = copy;
    return tasks->count++;
}

int hvd_cluster_add(hvd_cluster *cluster, hvd_role role, const char *address)
{
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);
    int index;

    HVD_TRY(check_role(cluster, role));
    if (!address)
        return hvd__fail(HVD_ERR_ARGUMENT, "the address of a task is NULL");
    index = hvd__cluster_insert(cluster, role, address, &why);
    return index == HVD_ERR_ARGUMENT
               ? hvd__fail(index, "%s %d: %s", role_names[role],
                           (int)cluster->tasks[role].count, reason)
               : index;
}

/* ---------------------------------------------------------------- this task */

bool hvd__cluster_may_be(const hvd_cluster *cluster, hvd_role role,
                         int64_t index, struct hvd__text *why)
{
    int32_t count = cluster->tasks[role].count;
    bool is_unlisted = role == HVD_ROLE_EVALUATOR && count == 0;

    if (index >= 0 && index < count + is_unlisted)
        return true;
    if (count == 0 && !is_unlisted)
        hvd__text_add(why, "the cluster has no task of type %s",
                      role_names[role]);
    else if (count <= 1)
        hvd__text_add(why,
                      "%lld is not an index of a task of type %s: the only one "
                      "is 0",
                      (long long)index, role_names[role]);
    else
        hvd__text_add(why,
                      "%lld is not an index of a task of type %s: there are 0 "
                      "to %d",
                      (long long)index, role_names[role], (int)count - 1);
    return false;
}

int hvd_cluster_set_task(hvd_cluster *cluster, hvd_role role, int32_t index)
{
    char reason[HVD__MESSAGE_MAX];
    struct hvd__text why = hvd__text_at(reason, sizeof reason);

    HVD_TRY(check_role(cluster, role));
    if (!hvd__cluster_may_be(cluster, role, index, &why))
        return hvd__fail(HVD_ERR_ARGUMENT, "task: %s", reason);
    cluster->has_task = true;
    cluster->role = role;
    cluster->index = index;
    return HVD_OK;
}

static int check_task(const hvd_cluster *cluster)
{
    HVD_TRY(check_cluster(cluster));
    return cluster->has_task
               ? HVD_OK
               : hvd__fail(HVD_ERR_ARGUMENT,
                           "the cluster does not say which task this process "
                           "is");
}

int hvd_cluster_task(const hvd_cluster *cluster, hvd_role *role, int32_t *index)
{
    HVD_TRY(check_task(cluster));
    if (!role || !index)
        return hvd__fail(HVD_ERR_ARGUMENT, "the place for a task is NULL");
    *role = cluster->role;
    *index = cluster->index;
    return HVD_OK;
}

/* -------------------------------------------------- tasks, addresses, ranks */

int hvd_cluster_count(const hvd_cluster *cluster, hvd_role role)
{
    HVD_TRY(check_role(cluster, role));
    return cluster->tasks[role].count;
}

const char *hvd_cluster_address(const hvd_cluster *cluster, hvd_role role,
                                int32_t index)
{
    if (check_role(cluster, role) < 0)
        return NULL;
    if (index >= 0 && index < cluster->tasks[role].count)
        return cluster->tasks[role].addresses[index];
    hvd__fail(HVD_ERR_ARGUMENT, "the cluster has no %s %d", role_names[role],
              (int)index);
    return NULL;
}

/* The roles that may have ranks, in the order of these. */
static const hvd_role ranked[] = {HVD_ROLE_CHIEF, HVD_ROLE_WORKER, HVD_ROLE_PS};
enum { RANKED = sizeof ranked / sizeof *ranked };

/* Returns how many tasks of a role have ranks. */
static int32_t count_ranked(const hvd_cluster *cluster, hvd_role role)
{
    if (role == HVD_ROLE_EVALUATOR ||
        (role == HVD_ROLE_PS && !cluster->servers_have_ranks))
        return 0;
    return cluster->tasks[role].count;
}

int hvd_cluster_rank_servers(hvd_cluster *cluster)
{
    HVD_TRY(check_cluster(cluster));
    if (cluster->tasks[HVD_ROLE_PS].count == 0)
        return hvd__fail(HVD_ERR_CONFIG,
                         "the cluster has no tasks of type ps, which hold the "
                         "variables: add \"ps\" to the cluster");
    cluster->servers_have_ranks = true;
    return cluster->tasks[HVD_ROLE_PS].count;
}

int hvd_cluster_size(const hvd_cluster *cluster)
{
    int size = 0;

    HVD_TRY(check_cluster(cluster));
    for (int i = 0; i < RANKED; i++)
        size += count_ranked(cluster, ranked[i]);
    return size;
}

int hvd_cluster_rank_of(const hvd_cluster *cluster, hvd_role role,
                        int32_t index)
{
    int rank = index;

    HVD_TRY(check_role(cluster, role));
    if (role == HVD_ROLE_EVALUATOR ||
        (role == HVD_ROLE_PS && !cluster->servers_have_ranks))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s %d has no rank: it takes no part in the reduction",
                         role_names[role], (int)index);
    if (!hvd_cluster_address(cluster, role, index))
        return HVD_ERR_ARGUMENT;
    for (int i = 0; i < RANKED && ranked[i] != role; i++)
        rank += count_ranked(cluster, ranked[i]);
    return rank;
}

int hvd_cluster_task_of(const hvd_cluster *cluster, int rank, hvd_role *role,
                        int32_t *index)
{
    int size = hvd_cluster_size(cluster), i = 0;

    HVD_TRY(size);
    if (rank < 0 || rank >= size)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the cluster has no rank %d: it has %d ranks", rank,
                         size);
    if (!role || !index)
        return hvd__fail(HVD_ERR_ARGUMENT, "the place for a task is NULL");
    for (; i < RANKED - 1 && rank >= count_ranked(cluster, ranked[i]); i++)
        rank -= count_ranked(cluster, ranked[i]);
    *role = ranked[i];
    *index = rank;
    return HVD_OK;
}

int hvd_cluster_rank(const hvd_cluster *cluster)
{
    HVD_TRY(check_task(cluster));
    return hvd_cluster_rank_of(cluster, cluster->role, cluster->index);
}

int hvd_cluster_is_chief(const hvd_cluster *cluster)
{
    HVD_TRY(check_task(cluster));
    return cluster->role == HVD_ROLE_CHIEF ||
           (cluster->role == HVD_ROLE_WORKER && cluster->index == 0 &&
            cluster->tasks[HVD_ROLE_CHIEF].count == 0);
}

/* ------------------------------------------------------------------- checks */

int hvd_cluster_check_allreduce(const hvd_cluster *cluster)
{
    int size = hvd_cluster_size(cluster);

    HVD_TRY(size);
    if (cluster->tasks[HVD_ROLE_PS].count > 0)
        return hvd__fail(HVD_ERR_CONFIG,
                         "the cluster has tasks of type ps (%d), which have no "
                         "part in an all-reduce: the chief and the workers "
                         "keep the variables; remove \"ps\" from the cluster",
                         (int)cluster->tasks[HVD_ROLE_PS].count);
    if (size == 0)
        return hvd__fail(HVD_ERR_CONFIG,
                         "the cluster has neither a chief nor a worker, so "
                         "nobody trains");
    return HVD_OK;
}
