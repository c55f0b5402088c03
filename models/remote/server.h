/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - waits for clients, and trains for one at a time, in a process that
 * it starts for each training (worker.h).
 */
#ifndef MODELS_REMOTE_SERVER_H
#define MODELS_REMOTE_SERVER_H

#include "remote/party.h"

/* Serves until a signal (SIGINT, SIGTERM, SIGHUP) comes, and returns its
 * number; or PROBLEM with the text kept, if it cannot listen. The port is for
 * the trainings; 0: any. */
int server_run(const struct remote_party *party, int job_port);

#endif
