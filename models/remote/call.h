/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - how a client calls a server, and both prove that they have the key.
 */
#ifndef MODELS_REMOTE_CALL_H
#define MODELS_REMOTE_CALL_H

#include "remote/party.h"

/* Calls a server and waits, ten seconds at most. *fd is the caller's. PROBLEM
 * with the text kept, which names the server. */
int call_server(const struct remote_party *party, int rank, int *fd);

#endif
