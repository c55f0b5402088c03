/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_cluster.c - starts a world of the tasks of a cluster, without MPI: the
 * ranks meet at the addresses that the description gives them.
 *
 * hvd_init comes here if TF_CONFIG is set and no launcher of MPI has started
 * the process.
 */
#include "core/world/init_cluster.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "core/world/elastic.h"
#include "core/world/job_key.h"
#include "core/world/world.h"
#include "hvd_cluster.h"
#include "transport/fault.h"
#include "transport/transport.h"

enum { NAME_BYTES = 32, ATTEMPTS = 10, EAGER = 3 };

/* The addresses and names of all ranks. */
struct places {
    const char **addresses; /* owned, [size]; the texts are the cluster's */
    const char **names;     /* owned, [size]; the texts lie behind them */
};

static int name_ranks(const hvd_cluster *cluster, int size,
                      struct places *places)
{
    size_t pointers = (size_t)size * sizeof(char *);
    char *text;

    places->addresses = malloc(pointers);
    places->names = malloc(pointers + (size_t)size * NAME_BYTES);
    if (!places->addresses || !places->names)
        return hvd__fail_memory(2 * pointers + (size_t)size * NAME_BYTES);
    text = (char *)(places->names + size);
    for (int rank = 0; rank < size; rank++, text += NAME_BYTES) {
        hvd_role role;
        int32_t index;

        HVD_TRY(hvd_cluster_task_of(cluster, rank, &role, &index));
        places->addresses[rank] = hvd_cluster_address(cluster, role, index);
        places->names[rank] = text;
        if (role == HVD_ROLE_CHIEF)
            snprintf(text, NAME_BYTES, "the chief");
        else
            snprintf(text, NAME_BYTES, "%s %d", hvd_role_name(role),
                     (int)index);
    }
    return HVD_OK;
}

/* ------------------------------------------------------ elastic clusters */

static int read_least(const struct hvd__settings *settings, int most,
                      int *least)
{
    const char *text = settings->elastic_min;
    char *end;
    long value = *text ? strtol(text, &end, 10) : most;

    if (*text && (*end || value < 1 || value > most))
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_ELASTIC_MIN='%s' is not a number of ranks: give "
                         "1 to %d, as many as the cluster has without spares",
                         text, most);
    *least = (int)value;
    return HVD_OK;
}

static int ask_nothing(void *context)
{
    (void)context;
    return HVD_OK;
}

/* Finds a world that lets this process in, or founds one, and starts in it. */
static int enter(const struct hvd__tcp_options *options,
                 const struct hvd__settings *settings, int least, int most)
{
    const struct hvd__lobby_limits limits = {
        settings->start_ns, settings->stall_check_ns,
        settings->heartbeat_ns + HVD__FAULT_GRACE_NS, settings->heartbeat_ns};
    const struct hvd__asked asked = {ask_nothing, NULL};
    struct hvd__admission admission = {.ranks = NULL};
    struct hvd__lobby *lobby;
    int status = hvd__lobby_open(options, least, most, &lobby);

    if (status < 0)
        return status;
    status = hvd__lobby_enter(lobby, &limits, &asked, &admission);
    if (status == HVD_OK)
        status = hvd__world_init(
            &(struct hvd__origin){.lobby = lobby, .admission = &admission});
    else
        hvd__lobby_close(lobby);
    if (status == HVD_ERR_LOST && admission.n > 0)
        status = 1;
    free(admission.ranks);
    return status;
}

/* Each attempt that fails holds up the world that lets this process in, for a
 * heartbeat time if the network keeps it from one of the others. After the
 * first few it waits, from 1 s to about a minute. */
static void wait_to_try_again(int nfailed)
{
    if (nfailed >= EAGER)
        sleep(1U << (nfailed - EAGER));
}

/* The process was let in so often, and no world of which it is has started. */
static int fail_to_start(void)
{
    char why[HVD__MESSAGE_MAX];

    snprintf(why, sizeof why, "%s", hvd_last_error());
    return hvd__fail(HVD_ERR_LOST,
                     "the others have let this process in %d times, and each "
                     "time it could not start with them: %.600s",
                     ATTEMPTS, why);
}

/* Whoever was let in, and then found that another one had gone, tries again. */
static int start_elastic(const struct hvd__tcp_options *options,
                         const struct hvd__settings *settings)
{
    int nspares = 0, most, least = 1, status = 1;

    HVD_TRY(hvd__elastic_read_spares(settings, options->size, &nspares));
    most = options->size - nspares;
    HVD_TRY(read_least(settings, most, &least));
    for (int i = 0; i < ATTEMPTS && status > 0; i++) {
        wait_to_try_again(i);
        status = enter(options, settings, least, most);
    }
    return status > 0 ? fail_to_start() : status;
}

/* Starts the world of a cluster that has passed all checks. */
static int start(const hvd_cluster *cluster,
                 const struct hvd__settings *settings,
                 const struct hvd__job_key *key)
{
    struct places places = {NULL, NULL};
    struct hvd__tcp_options options = {
        .rank = hvd_cluster_rank(cluster),
        .size = hvd_cluster_size(cluster),
        .key = key->bytes,
        .key_bytes = key->count,
    };
    int status = hvd_cluster_fingerprint(cluster, &options.cluster);

    if (status == HVD_OK)
        status = name_ranks(cluster, options.size, &places);
    options.addresses = places.addresses;
    options.names = places.names;
    if (status == HVD_OK && settings->elastic && options.size > 1)
        status = start_elastic(&options, settings);
    else if (status == HVD_OK)
        status = hvd__world_init(&(struct hvd__origin){.tcp = &options});
    free(places.addresses);
    free(places.names);
    return status;
}

static bool has_ranked_servers(const hvd_cluster *cluster)
{
    return hvd_cluster_size(cluster) >
           hvd_cluster_count(cluster, HVD_ROLE_CHIEF) +
               hvd_cluster_count(cluster, HVD_ROLE_WORKER);
}

static int check_rank(const hvd_cluster *cluster)
{
    hvd_role role;
    int32_t index;

    HVD_TRY(hvd_cluster_task(cluster, &role, &index));
    if (hvd_cluster_rank(cluster) >= 0)
        return has_ranked_servers(cluster)
                   ? HVD_OK
                   : hvd_cluster_check_allreduce(cluster);
    return hvd__fail(HVD_ERR_LAUNCH,
                     "this process is %s %d of the cluster, which has no rank: "
                     "only the chief and the workers call hvd_init",
                     hvd_role_name(role), (int)index);
}

static int init(const hvd_cluster *cluster)
{
    struct hvd__settings settings;
    struct hvd__job_key key;
    int status;

    HVD_TRY(check_rank(cluster));
    HVD_TRY(hvd__settings_read(&settings));
    HVD_TRY(hvd__hosts_file_use(settings.hosts_file));
    HVD_TRY(hvd__job_key_read(&settings, &key));
    status = start(cluster, &settings, &key);
    hvd__job_key_forget(&key);
    return status;
}

/* ------------------------------------------------------ where it comes from */

/* Writes the TF_CONFIG of the task that a cluster says this process is. The
 * caller frees it; NULL with the last error set. */
static char *text_of(const hvd_cluster *cluster)
{
    hvd_role role;
    int32_t index;
    int length;
    char *text;

    if (hvd_cluster_task(cluster, &role, &index) < 0)
        return NULL;
    length = hvd_cluster_tf_config(cluster, role, index, NULL, 0);
    text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text)
        hvd_cluster_tf_config(cluster, role, index, text, length + 1);
    else if (length >= 0)
        hvd__fail_memory((size_t)length + 1);
    return text;
}

/* A program may give what TF_CONFIG says, but nothing else. */
static int check_environment(const hvd_cluster *given)
{
    hvd_cluster *other;
    char *mine, *theirs;
    int status = hvd_cluster_from_environment(&other);

    if (status <= 0)
        return status;
    mine = text_of(given);
    theirs = mine ? text_of(other) : NULL;
    status = mine && theirs ? HVD_OK : HVD_ERR_ARGUMENT;
    if (status == HVD_OK && strcmp(mine, theirs) != 0)
        status = hvd__fail(HVD_ERR_CONFIG,
                           "the program describes a cluster, and TF_CONFIG "
                           "describes another one: unset TF_CONFIG");
    free(mine);
    free(theirs);
    hvd_cluster_free(other);
    return status;
}

int hvd_init_cluster(const hvd_cluster *cluster)
{
    if (hvd_is_initialized())
        return HVD_OK;
    HVD_TRY(check_environment(cluster));
    return init(cluster);
}

int hvd__world_init_environment(void)
{
    hvd_cluster *cluster;
    int status = hvd_cluster_from_environment(&cluster);

    if (status <= 0)
        return status;
    status = init(cluster);
    hvd_cluster_free(cluster);
    return status < 0 ? status : 1;
}
