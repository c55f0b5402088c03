/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_cluster.h - the description of a cluster: which tasks train together, at
 * which addresses, and which of the tasks this process is.
 *
 * Programs that are started by hand, one process for each task, are told this
 * by the environment variable TF_CONFIG, in the form that TensorFlow defines:
 *
 *     {"cluster": {"worker": ["host1:3737", "host2:3737"]},
 *      "task": {"type": "worker", "index": 0}}
 *
 * docs/CLUSTERS.md explains the form, and lists every error with its remedy. A
 * program can also build a description itself: hvd_cluster_new,
 * hvd_cluster_add, hvd_cluster_set_task.
 *
 * Roles. A chief and workers train. Parameter servers (ps) hold variables for
 * them. An evaluator measures the newest checkpoint. There is at most one chief
 * and at most one evaluator.
 *
 * Ranks. The chief is rank 0 and the workers follow in their order; without a
 * chief, worker 0 is rank 0. Parameter servers and the evaluator take no part
 * in the reduction and have no rank; but see hvd_cluster_rank_servers.
 *
 * Addresses. An address is "host:port", where host is a name, an IPv4 address
 * or an IPv6 address in brackets, as in "[fe80::1]:3737". It is kept in
 * canonical form: names in lower case, IPv6 addresses as inet_ntop(3) writes
 * them. No two tasks may have the same address. Names are compared as text and
 * not looked up, so localhost:1 and 127.0.0.1:1 count as different.
 *
 * These functions open no socket, look up no name, block for nothing but a
 * file, and need no hvd_init. Every status and hvd_last_error() are as in
 * hvd.h. Functions that take a cluster return HVD_ERR_ARGUMENT if it is NULL.
 *
 * Threads: any thread may call these functions at any time. Several threads may
 * read one cluster at once, but no thread may use it while another changes it
 * (hvd_cluster_add, hvd_cluster_set_task) or frees it.
 */
#ifndef HVD_CLUSTER_H
#define HVD_CLUSTER_H

#include "hvd.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The role of a task says what it does. */
typedef int32_t hvd_role;
enum {
    HVD_ROLE_CHIEF = 0,  /* trains as rank 0, and writes what only one may; its
                            old name, "master", is understood too */
    HVD_ROLE_WORKER = 1, /* trains */
    HVD_ROLE_PS = 2,     /* holds variables: a parameter server */
    HVD_ROLE_EVALUATOR = 3,
    HVD_NUM_ROLES = 4
};

/* Limits of a description. */
enum {
    HVD_CLUSTER_MAX_BYTES = 1 << 20, /* of its text */
    HVD_CLUSTER_MAX_HOST = 253       /* bytes of a host's name, without NUL */
};

/* The bits of flags. */
enum {
    HVD_CLUSTER_NO_TASK = 1 /* the text may lack "task": it describes the
                               cluster to a process that is not in it */
};

/* Returns "chief", "worker", "ps" or "evaluator", static; NULL for all other
 * numbers. */
const char *hvd_role_name(hvd_role role);

/* Returns the role of that name, or HVD_ERR_ARGUMENT. "master" is the chief. */
int hvd_role_from_name(const char *name);

/* A description. */
typedef struct hvd_cluster hvd_cluster;

/* --------------------------------------------------------------- beginning */

/*
 * Reads the value of a TF_CONFIG: bytes of JSON, which need no NUL at the end.
 * *cluster is the caller's, for hvd_cluster_free; it is NULL after a failure.
 * Returns HVD_ERR_CONFIG for a text that is wrong: hvd_last_error() says at
 * which line, column and key, and what is right. Returns HVD_ERR_ARGUMENT for a
 * NULL pointer, a negative number of bytes or an unknown flag, or
 * HVD_ERR_MEMORY.
 */
int hvd_cluster_parse(const char *text, int64_t bytes, int32_t flags,
                      hvd_cluster **cluster);

/* Does the same with the contents of a regular file. Returns HVD_ERR_FILE, too,
 * if the file cannot be read. */
int hvd_cluster_load(const char *path, int32_t flags, hvd_cluster **cluster);

/* Does the same with the environment variable TF_CONFIG, whose text must have a
 * task. Returns 1 if there is a cluster; 0, with *cluster NULL, if the variable
 * is not set. It must not be called while another thread changes the
 * environment. */
int hvd_cluster_from_environment(hvd_cluster **cluster);

/* Makes a cluster without tasks, for hvd_cluster_free. Returns
 * HVD_ERR_ARGUMENT or HVD_ERR_MEMORY. */
int hvd_cluster_new(hvd_cluster **cluster);

/* Adds the next task of a role. Returns its index, from 0; or HVD_ERR_ARGUMENT
 * (no such role, a malformed or duplicate address, a second chief or evaluator,
 * more text than HVD_CLUSTER_MAX_BYTES) or HVD_ERR_MEMORY, and then nothing was
 * added. The address is copied. */
int hvd_cluster_add(hvd_cluster *cluster, hvd_role role, const char *address);

/* Says which task this process is. Returns HVD_ERR_ARGUMENT unless the cluster
 * has that task. Evaluator 0 may be missing from the cluster, since nobody
 * connects to it. */
int hvd_cluster_set_task(hvd_cluster *cluster, hvd_role role, int32_t index);

/* Frees a cluster and all texts that it lent; NULL is accepted. */
void hvd_cluster_free(hvd_cluster *cluster);

/* --------------------------------------------------------------- questions */

/* Returns the number of tasks of a role. Returns HVD_ERR_ARGUMENT for a role
 * that does not exist. */
int hvd_cluster_count(const hvd_cluster *cluster, hvd_role role);

/* Returns the address of a task in canonical form, borrowed until
 * hvd_cluster_free; NULL if the cluster has no such task. */
const char *hvd_cluster_address(const hvd_cluster *cluster, hvd_role role,
                                int32_t index);

/* Gives the task that this process is. Returns HVD_ERR_ARGUMENT, and writes
 * nothing, if the cluster does not say. */
int hvd_cluster_task(const hvd_cluster *cluster, hvd_role *role,
                     int32_t *index);

/*
 * Gives the parameter servers ranks, too, behind those of the workers: for a
 * training of the kind HVD_STRATEGY_PARAMETER_SERVER (hvd_strategy.h), whose
 * last ranks are servers. To be called on all tasks before hvd_init_cluster,
 * which then takes them in. Returns the number of servers, or HVD_ERR_CONFIG if
 * there is none.
 */
int hvd_cluster_rank_servers(hvd_cluster *cluster);

/* Returns the number of ranks: the chief and the workers. */
int hvd_cluster_size(const hvd_cluster *cluster);

/* Returns the rank of this process. Returns HVD_ERR_ARGUMENT if its task has
 * none, or if the cluster does not say which task it is. */
int hvd_cluster_rank(const hvd_cluster *cluster);

/* Returns the rank of a task. Returns HVD_ERR_ARGUMENT if it has none, or if
 * there is no such task. */
int hvd_cluster_rank_of(const hvd_cluster *cluster, hvd_role role,
                        int32_t index);

/* Gives the task of a rank. Returns HVD_ERR_ARGUMENT, and writes nothing, if
 * there is no such rank. */
int hvd_cluster_task_of(const hvd_cluster *cluster, int rank, hvd_role *role,
                        int32_t *index);

/* Returns 1 if this process is the chief, or worker 0 of a cluster without a
 * chief; 0 if it is another task; HVD_ERR_ARGUMENT if the cluster does not say
 * which task it is. (TensorFlow also counts every evaluator as a chief. Ours is
 * none: only one process may write checkpoints.) */
int hvd_cluster_is_chief(const hvd_cluster *cluster);

/* Checks that the chief and the workers can average gradients among themselves:
 * there is at least one of them, there is no ps, and if the cluster says which
 * task this process is, it has a place in such a training. Returns HVD_OK, or
 * HVD_ERR_CONFIG with the reason. */
int hvd_cluster_check_allreduce(const hvd_cluster *cluster);

/* ------------------------------------------------------------------- start */

/*
 * Starts libhvd, as hvd_init does, with the chief and the workers of a cluster
 * as its ranks, without MPI: the processes may be started by hand, in any
 * order, and meet at the addresses of the cluster. cluster must say which task
 * this process is; it is borrowed until the call returns.
 *
 * hvd_init does the same with the cluster of TF_CONFIG, if that variable is
 * set, no launcher of MPI has started the process and MPI is not initialised.
 *
 * Collective over the ranks, and blocking: it waits for the others for at most
 * HVD_START_TIME, and reports whom it misses every HVD_STALL_CHECK_TIME. Ranks
 * of one host share its memory. Unless all addresses are of the loopback
 * interface, the processes need a key that they share (HVD_JOB_KEY_FILE or
 * HVD_JOB_KEY_FD): whoever does not have it is refused.
 *
 * Returns HVD_OK, also if libhvd has been started already; HVD_ERR_CONFIG if
 * TF_CONFIG is set and describes another cluster or task, if this process
 * cannot listen on its address, if the key cannot be used, or if the cluster is
 * not one for training by allreduce (hvd_cluster_check_allreduce);
 * HVD_ERR_LAUNCH if this task has no rank, or another one refuses this process;
 * HVD_ERR_LOST if the others do not come; and what hvd_init returns.
 */
int hvd_init_cluster(const hvd_cluster *cluster);

/* ------------------------------------------------------------------- texts */

/*
 * Writes the canonical text of the cluster, without a task: the same on all
 * tasks, if their descriptions say the same, however these are written. It is
 * JSON on one line that hvd_cluster_parse reads with HVD_CLUSTER_NO_TASK as an
 * equal cluster. The text is cut to size bytes with the NUL; it may be NULL if
 * size is 0. Returns the length of all of it, without the NUL, or
 * HVD_ERR_ARGUMENT, too, for a cluster without tasks.
 */
int hvd_cluster_text(const hvd_cluster *cluster, char *text, int64_t size);

/* Writes, in the same way, the TF_CONFIG of a task, for a process that is to be
 * that task. HVD_ERR_ARGUMENT is returned for a task that the cluster has
 * not. */
int hvd_cluster_tf_config(const hvd_cluster *cluster, hvd_role role,
                          int32_t index, char *text, int64_t size);

/* Gives 64 bits that stand for the canonical text, by which tasks find out that
 * their descriptions differ. It proves nothing against an attacker. */
int hvd_cluster_fingerprint(const hvd_cluster *cluster, uint64_t *fingerprint);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
