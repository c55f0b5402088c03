/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_run.h - a run of a program that has servers train (--remote): it sends
 * them the network and its options, and writes the results that they send back.
 */
#ifndef MODELS_REMOTE_RUN_H
#define MODELS_REMOTE_RUN_H

struct training_run;

/* Does the work of main with functions, own data and options of the run, which
 * it frees. Returns the exit status. */
int remote_main(struct training_run *run);

#endif
