/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - carries out --profile: reports where the device's programs spend
 * memory and time, as text or in a directory. Only the rank that writes calls
 * these functions. where is the option's value; NULL: no profile.
 *
 *     profile_check(where)                  before anything that takes long
 *     profile_start(where, engine)          before the first run
 *     profile_finish(where, name, ...)      at the end
 */
#ifndef MODELS_PROFILE_H
#define MODELS_PROFILE_H

#include <stdbool.h>

/* Types of ipu.h, which files that include hvd.h may not include. */
struct ipu_executable;
struct ipu_engine;
struct ipu_pipeline;
struct ipu_profile;

/* A program that was run. */
struct profile_program {
    const char *name;                        /* "training" */
    const struct ipu_executable *executable; /* borrowed, as the engine */
    struct ipu_engine *engine;               /* NULL: it was not run */
    const struct ipu_pipeline *pipeline; /* not NULL: its programs, instead */
};

/* Checks that the profile can be written, and makes the directory. PROBLEM with
 * the text kept. */
int profile_check(const char *where);

/* Has the engine count. */
int profile_start(const char *where, struct ipu_engine *engine);

/* Has an engine measure times, from zero, or stop and forget them. */
int profile_record(struct ipu_engine *engine, bool on);

/* Writes profile.json and report.html to a folder, which is made, and prints
 * nothing. */
int profile_write(const char *folder, const char *title, int count,
                  const struct profile_program *programs);

/* Prints the profile if where is "text"; otherwise writes profile.json and
 * report.html into that directory. title names the whole ("mnist"). */
int profile_finish(const char *where, const char *title, int count,
                   const struct profile_program *programs);

/* Adds one program to a profile. Returns a status of the device. */
int profile_add(struct ipu_profile *profile,
                const struct profile_program *program);

/* The same as profile_finish, for a profile that the caller has filled. */
int profile_put(const char *where, const struct ipu_profile *profile);

#endif
