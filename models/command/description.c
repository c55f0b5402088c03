/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.c - the sources of a description exclude each other, so that
 * nobody trains in another cluster than he reads on his screen:
 *
 *   --cluster FILE    the file says who trains; --task, or else the rank that a
 *                     launcher gave, or else the file, which task this is
 *   TF_CONFIG         unless a launcher started the process, and no option asks
 *                     for a cluster
 *   a launcher        with --strategy multi-worker or --base-port: rank r is
 *                     worker r, which listens on the port base + r of this
 * host. The launcher only starts processes; they use no MPI
 */
#include "command/description.h"

#include "options/values.h"
#include "output/launcher.h"
#include "output/problem.h"
#include "trainer/strategy.h"

#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hvd_problem(void)
{
    return problem_set("%s", hvd_last_error());
}

/* ------------------------------------------------------------- of --cluster */

int description_read_task(const char *text, hvd_role *role, int32_t *index)
{
    size_t length = strcspn(text, ":");
    char name[16];
    int found, number = 0;

    snprintf(name, sizeof name, "%.*s", (int)length, text);
    found = length < sizeof name ? hvd_role_from_name(name) : -1;
    if (found < 0)
        return problem_set("--task '%s': give a role and its index: worker:1, "
                           "chief, ps:0 or evaluator",
                           text);
    if (text[length] && value_int("the index of --task", text + length + 1, 0,
                                  1 << 20, &number) < 0)
        return PROBLEM;
    if (!text[length] && (found == HVD_ROLE_WORKER || found == HVD_ROLE_PS))
        return problem_set("--task %s: there may be several: give the index, "
                           "as in %s:0",
                           text, text);
    *role = found;
    *index = number;
    return 0;
}

/* Sets the task of the launcher's rank. */
static int take_rank(const char *path, hvd_cluster *cluster)
{
    int size = launcher_size(), ranks = hvd_cluster_size(cluster);
    hvd_role role;
    int32_t index;

    if (size > 0 && size != ranks) {
        problem_set("--cluster %s: it has %d ranks, but the launcher started "
                    "%d processes",
                    path, ranks, size);
        return PROBLEM_EVERYWHERE;
    }
    if (hvd_cluster_task_of(cluster, launcher_rank(), &role, &index) < 0 ||
        hvd_cluster_set_task(cluster, role, index) < 0)
        return hvd_problem();
    return 0;
}

static int set_task(const struct options *o, hvd_cluster *cluster)
{
    hvd_role role = HVD_ROLE_CHIEF;
    int32_t index = 0;

    if (o->task) {
        if (description_read_task(o->task, &role, &index) < 0)
            return PROBLEM;
        if (hvd_cluster_set_task(cluster, role, index) < 0)
            return problem_set("--task %s: %s", o->task, hvd_last_error());
        return 0;
    }
    if (launcher_present())
        return take_rank(o->cluster, cluster);
    if (hvd_cluster_task(cluster, &role, &index) < 0)
        return problem_set("--cluster %s does not say which task this process "
                           "is: give --task, as in --task worker:0",
                           o->cluster);
    return 0;
}

static int load_file(const struct options *o, hvd_cluster **cluster)
{
    if (getenv("TF_CONFIG"))
        return problem_set("--cluster and the variable TF_CONFIG both describe "
                           "a cluster: unset TF_CONFIG, or leave --cluster "
                           "out");
    if (hvd_cluster_load(o->cluster, HVD_CLUSTER_NO_TASK, cluster) < 0)
        return problem_set("--cluster: %s", hvd_last_error());
    return set_task(o, *cluster);
}

/* ----------------------------------------------------------- of a launcher */

static int check_launcher(int size)
{
    if (size <= 0)
        return problem_set("the launcher of this process does not say how many "
                           "it started: describe the cluster in a file, for "
                           "--cluster");
    if (launcher_local_size() != size)
        return problem_set(
            "the launcher started %d processes, %d of them on this host, and "
            "does not say where the others are: describe the cluster in a "
            "file, for --cluster, whose tasks are the ranks in their order",
            size, launcher_local_size());
    return 0;
}

static int add_workers(int base, int size, hvd_cluster *cluster)
{
    for (int rank = 0; rank < size; rank++) {
        char address[40];

        snprintf(address, sizeof address, "localhost:%d", base + rank);
        if (hvd_cluster_add(cluster, HVD_ROLE_WORKER, address) < 0)
            return hvd_problem();
    }
    if (hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, launcher_rank()) < 0)
        return hvd_problem();
    return 0;
}

static int take_launcher(const struct options *o, hvd_cluster **cluster)
{
    int size = launcher_size();
    int base = o->base_port ? o->base_port : DESCRIPTION_BASE_PORT;

    if (check_launcher(size) < 0)
        return PROBLEM_EVERYWHERE;
    if (base + size - 1 > 65535) {
        problem_set("--base-port %d leaves no ports for %d processes: the last "
                    "one is 65535",
                    base, size);
        return PROBLEM_EVERYWHERE;
    }
    if (hvd_cluster_new(cluster) < 0)
        return hvd_problem();
    return add_workers(base, size, *cluster);
}

/* ------------------------------------------------------------------- which */

/* Checks what the strategy requires of how the process was started. */
static int check_start(const struct options *o, bool wanted)
{
    bool described = o->cluster || (getenv("TF_CONFIG") && !launcher_present());

    if (o->strategy == STRATEGY_HOROVOD && o->cluster)
        return problem_set("--strategy horovod is started by mpirun, over MPI; "
                           "--cluster is of --strategy multi-worker");
    if (o->strategy == STRATEGY_HOROVOD && o->base_port)
        return problem_set("--strategy horovod is started by mpirun, over MPI; "
                           "--base-port is of --strategy multi-worker");
    if (o->strategy == STRATEGY_HOROVOD && described)
        return problem_set("--strategy horovod is started by mpirun, and "
                           "TF_CONFIG describes a cluster without it: unset "
                           "TF_CONFIG, or use --strategy multi-worker");
    if (o->base_port && !launcher_present())
        return problem_set("--base-port gives ports to processes that mpirun "
                           "or --spawn starts");
    if (wanted && !described && !launcher_present())
        return problem_set("--strategy multi-worker needs a description of the "
                           "cluster: the variable TF_CONFIG, or --cluster FILE "
                           "and --task; or have the processes started by "
                           "mpirun or --spawn N");
    return 0;
}

static int find(const struct options *o, hvd_cluster **cluster)
{
    bool wanted = o->strategy == STRATEGY_MULTI_WORKER || o->base_port;

    if (check_start(o, wanted) < 0)
        return launcher_present() ? PROBLEM_EVERYWHERE : PROBLEM;
    if (o->cluster)
        return load_file(o, cluster);
    if (getenv("TF_CONFIG") && (wanted || !launcher_present())) {
        if (o->base_port)
            return problem_set("--base-port and the variable TF_CONFIG both "
                               "describe a cluster: unset TF_CONFIG");
        return hvd_cluster_from_environment(cluster) < 0 ? hvd_problem() : 0;
    }
    return wanted ? take_launcher(o, cluster) : 0;
}

int description_find(const struct options *options, hvd_cluster **cluster)
{
    int status;

    *cluster = NULL;
    status = find(options, cluster);
    if (status < 0) {
        hvd_cluster_free(*cluster);
        *cluster = NULL;
    }
    return status;
}
