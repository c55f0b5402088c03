/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - what --profile asks for: where the device's programs spend
 * memory and time, as text or in a directory. Only the rank that writes calls
 * these; where is the option's value, and NULL means that nothing is wanted.
 *
 *     profile_check(where)                  before anything that takes long
 *     profile_start(where, engine)          before the first run
 *     profile_finish(where, name, ...)      at the end
 */
#ifndef MODELS_PROFILE_H
#define MODELS_PROFILE_H

/* Of ipu.h, which not everybody who includes this may see. */
struct ipu_executable;
struct ipu_engine;
struct ipu_pipeline;
struct ipu_profile;

/* One of the programs that were run. */
struct profile_program {
    const char *name;                        /* "training" */
    const struct ipu_executable *executable; /* borrowed, as the engine */
    const struct ipu_engine *engine;         /* NULL: it was not run */
    const struct ipu_pipeline *pipeline; /* not NULL: its programs, instead */
};

/* Can it be written? The directory is made. PROBLEM with the text kept. */
int profile_check(const char *where);

/* Have the engine count. */
int profile_start(const char *where, struct ipu_engine *engine);

/* "text": print it on standard output; else write profile.json and report.html
 * into the directory. title: of the whole ("mnist"). */
int profile_finish(const char *where, const char *title, int count,
                   const struct profile_program *programs);

/* Adds one program. A status of the device. */
int profile_add(struct ipu_profile *profile,
                const struct profile_program *program);

/* The same as profile_finish with a profile that the program has filled itself.
 */
int profile_put(const char *where, const struct ipu_profile *profile);

#endif
