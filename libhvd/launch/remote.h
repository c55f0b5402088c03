/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - what hvd-run and its agents on other hosts tell each other.
 *
 * hvd-run starts an agent for each worker, "hvd-run --agent", by the remote
 * shell of the user, and writes records to the agent's standard input; the
 * agent starts the program as its child, whose outputs are its own, and ends
 * with its status. So nothing but that input and these outputs connects the two
 * hosts: when they end, because hvd-run or the remote shell is gone, the agent
 * ends the program. Key and environment are on no command line.
 *
 * A record is a letter, a text and a NUL.
 */
#ifndef LAUNCH_REMOTE_H
#define LAUNCH_REMOTE_H

enum launch__record {
    LAUNCH__DIRECTORY = 'D', /* to work in, if it is there */
    LAUNCH__VARIABLE = 'E',  /* NAME=VALUE of the environment */
    LAUNCH__KEY = 'K',       /* of the job, in hexadecimal digits */
    LAUNCH__WORD = 'A',      /* of the program's command line */
    LAUNCH__HOST = 'H',      /* "3 10.0.0.9": where worker 3 is */
    LAUNCH__RUN = 'R',       /* start the program */
    LAUNCH__SIGNAL = 'S'     /* a number: send it to the program */
};

/* The word with which hvd-run becomes an agent. */
#define LAUNCH__AGENT "--agent"

/* The name of a worker's host, in TF_CONFIG and in the agents' files of hosts
 * (HVD_HOSTS_FILE). */
#define LAUNCH__HOST_NAME "worker-%d"

#endif
