/* SPDX-License-Identifier: Apache-2.0 */
/*
 * party.h - the servers of a cluster, as each of them and their clients know
 * them: who they are, where, and the key by which they believe each other.
 *
 * Functions that return int return 0, or PROBLEM with the text kept
 * (problem.h).
 */
#ifndef MODELS_REMOTE_PARTY_H
#define MODELS_REMOTE_PARTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd__job;
struct remote_party;

/*
 * Reads the description of the cluster from a file, or from TF_CONFIG if path
 * is NULL, and the key from where HVD_JOB_KEY_FILE or HVD_JOB_KEY_FD says.
 * task, as "worker:1", says which server this process is; NULL: what the
 * description says, or none if is_client.
 */
int party_new(const char *path, const char *task, bool is_client,
              struct remote_party **party);
void party_free(struct remote_party *party); /* NULL is accepted */

int party_size(const struct remote_party *party);

/* Returns which server this process is; -1: a client. */
int party_rank(const struct remote_party *party);

/* Returns a server's address, borrowed until party_free. */
const char *party_address(const struct remote_party *party, int rank);

/* Returns "worker 1 at host1:3737", borrowed until the next call. */
const char *party_name(const struct remote_party *party, int rank);

/* Returns what proves to a server, or to its caller, that the other is of this
 * party. Borrows from the party. */
void party_job(const struct remote_party *party, int rank,
               struct hvd__job *job);

/* Returns the key; its bytes are NULL if there is none. */
const void *party_key(const struct remote_party *party, size_t *bytes);

/*
 * Writes the TF_CONFIG of the worker that this server starts: the same tasks on
 * the same hosts, on these ports, [party_size]. The caller frees *text.
 */
int party_tf_config(const struct remote_party *party, const uint32_t *ports,
                    char **text);

#endif
