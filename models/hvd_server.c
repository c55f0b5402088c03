/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_server - waits on a host of a cluster for clients that have it train
 * (mnist --remote, char_gpt --remote), together with the servers of the other
 * hosts.
 */
#include "options/line.h"
#include "options/values.h"
#include "output/problem.h"
#include "remote/server.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

struct server_options {
    const char *cluster, *task; /* NULL: as TF_CONFIG says */
    int job_port;               /* 0: any */
};

static const struct argp_option table[] = {
    {"cluster", 'c', "FILE", 0,
     "the description of the cluster (default: the variable TF_CONFIG)", 0},
    {"task", 't', "TASK", 0,
     "which task of it this process is, as worker:0 or chief:0 (default: what "
     "the description says)",
     0},
    {"job-port", 'p', "PORT", 0,
     "the port on which workers of this host train, for firewalls (default: "
     "any that is free)",
     0},
    LINE_ROWS,
    {0}};

static int take(void *context, int key, const char *value)
{
    struct server_options *o = context;

    switch (key) {
    case 'c': return value_path("--cluster", value, &o->cluster);
    case 't': o->task = value; return 0;
    default: return value_int("--job-port", value, 1, 65535, &o->job_port);
    }
}

int main(int argc, char **argv)
{
    struct server_options options = {.cluster = NULL};
    const struct line line = {
        "hvd-server",
        "Wait for clients (mnist --remote, char_gpt --remote) and train for "
        "one after the other, together with the servers of the other hosts of "
        "a cluster.\v"
        "The key that servers and clients share is read from where "
        "HVD_JOB_KEY_FILE or HVD_JOB_KEY_FD says; without one, only addresses "
        "of the loopback interface are served.\n\n"
        "Example:\n"
        "  HVD_JOB_KEY_FILE=job.key hvd-server --cluster cluster.json --task "
        "worker:0",
        table,
        take,
        &options,
        NULL,
        NULL};
    struct remote_party *party = NULL;
    int outcome = line_parse(&line, argc, argv), status;

    if (outcome != LINE_RUN)
        return line_settle(&line, outcome);
    status = party_new(options.cluster, options.task, false, &party);
    if (status == 0)
        status = server_run(party, options.job_port);
    party_free(party);
    if (status > 0) { /* ends by the signal, so that a shell sees it */
        sigset_t none;

        signal(status, SIG_DFL);
        raise(status);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
    }
    return line_end(&line, status);
}
