/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - has the servers of a cluster train: sends them the network and the
 * description, prints what their workers print, and takes the results.
 *
 * The process may end at any time, in any way: the servers notice, and end the
 * training. Functions that return int return 0, or PROBLEM with the text kept,
 * which names the server.
 */
#ifndef MODELS_REMOTE_CLIENT_H
#define MODELS_REMOTE_CLIENT_H

#include "remote/description.h"

struct remote_client;

/* The training that a client asks for. */
struct remote_job {
    struct remote_description *description; /* borrowed; files are filled in */
    /* Writes the files of the network for one rank of size into a folder. */
    int (*prepare)(void *context, int rank, int size, const char *folder);
    /* Takes a piece of a result; bytes 0: it is complete. */
    int (*take)(void *context, enum remote_result result, const void *data,
                size_t bytes);
    void *context; /* borrowed; of both */
};

/* Reads the description of the cluster, without calling anybody. */
int client_new(const char *cluster, struct remote_client **client);
void client_free(struct remote_client *client); /* NULL is accepted */

/* Returns the number of servers, which is that of the ranks. */
int client_size(const struct remote_client *client);

/* Trains. */
int client_train(struct remote_client *client, const struct remote_job *job);

#endif
