/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - what this process is in the cluster of its TF_CONFIG: a worker, a
 * parameter server, which gets a rank behind those of the workers, or an
 * evaluator, which has none and gets a world of its own.
 */
#include "estimator/estimator.h"
#include "output/launcher.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd_cluster.h>
#include <stdlib.h>

/* What hvd_estimator_init has found. */
static bool is_evaluator;
static int servers;

int cluster_arrive(bool elastic)
{
    static int32_t known; /* the generation of the job that it came to */
    hvd_recovery how;

    if (hvd_last_recovery(&how, sizeof how) < 0 || how.generation == known ||
        how.old_rank >= 0)
        return 0;
    if (!elastic)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "this process has joined a job that runs already, "
                            "and its training is not elastic: give it the "
                            "options of the others");
    known = how.generation;
    agree_apart(true);
    return 0;
}

bool cluster_is_evaluator(void)
{
    return is_evaluator;
}

int cluster_servers(void)
{
    return servers;
}

static int start_evaluator(void)
{
    if (launcher_present())
        return problem_fail(HVD_ERR_LAUNCH,
                            "an evaluator is started by hand, or by hvd-run, "
                            "and not by mpirun: it has no rank");
    is_evaluator = true;
    unsetenv("TF_CONFIG");
    return hvd_init();
}

static int start_task(hvd_cluster *cluster)
{
    hvd_role role;
    int32_t index;
    int status = hvd_cluster_task(cluster, &role, &index);

    if (status < 0)
        return status;
    servers = launcher_present() ? 0 : hvd_cluster_count(cluster, HVD_ROLE_PS);
    if (role == HVD_ROLE_EVALUATOR)
        return start_evaluator();
    if (servers == 0)
        return hvd_init();
    status = hvd_cluster_rank_servers(cluster);
    return status < 0 ? status : hvd_init_cluster(cluster);
}

int hvd_estimator_init(void)
{
    hvd_cluster *cluster = NULL;
    int status = hvd_cluster_from_environment(&cluster);

    if (status >= 0)
        status = status > 0 ? start_task(cluster) : hvd_init();
    hvd_cluster_free(cluster);
    return status;
}

int cluster_find_evaluator(bool *found)
{
    hvd_cluster *cluster = NULL;
    double count = hvd_cluster_from_environment(&cluster) > 0 &&
                   hvd_cluster_count(cluster, HVD_ROLE_EVALUATOR) > 0;

    hvd_cluster_free(cluster);
    if (agree_sum(&count, 1) < 0)
        return problem_fail(HVD_ERR_PEER, "%s", problem_text());
    *found = count > 0;
    return 0;
}
