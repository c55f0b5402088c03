/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_report.h - what a program takes and where it goes: profiles. ipu.h
 * includes it.
 *
 *   ipu_profile_new        a profile, empty
 *   ipu_profile_add        a compiled program, and what an engine has counted
 *   ipu_profile_write      profile.json and report.html in a directory
 *   ipu_profile_print      the same as text
 *   ipu_profile_read       what was written, again
 *   ipu_profile_compare    two of them
 *
 * docs/PROFILE.md describes the file. Errors and threads are as in ipu.h. A
 * profile keeps copies of all it tells: executables and engines may be freed.
 */
#ifndef IPU_REPORT_H
#define IPU_REPORT_H

#include "ipu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------ what lies in memory */

typedef int32_t ipu_category;
enum {
    IPU_CATEGORY_VARIABLES = 0,
    IPU_CATEGORY_CONSTANTS = 1,
    IPU_CATEGORY_INPUTS = 2,        /* of streams */
    IPU_CATEGORY_RESULTS = 3,       /* of steps: activations, gradients */
    IPU_CATEGORY_TEMPORARY = 4,     /* what a step fetches and adds up */
    IPU_CATEGORY_CODE = 5,          /* of vertices, and of control */
    IPU_CATEGORY_EXCHANGE_CODE = 6, /* of exchanges */
    IPU_CATEGORY_STATE = 7,         /* of vertices */
    IPU_NUM_CATEGORIES = 8
};

/* "variables"; NULL if it is none. Static. */
const char *ipu_category_name(ipu_category category);

/* Tensors that share a place in memory, because each is computed in the place
 * of the one before. Texts are borrowed until the executable is freed. */
typedef struct ipu_block_info {
    uint32_t size; /* sizeof(ipu_block_info), set by the caller */
    ipu_category category;
    const char *tensor; /* the first of them */
    const char *op;     /* that makes it; NULL: none does */
    const char *file;   /* of the program, where it was asked for, or NULL */
    int32_t line;
    int32_t tensors; /* how many share the place */
    ipu_dtype dtype; /* of the first, as the shape */
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS];
    int64_t bytes;
    int32_t birth;       /* the step that makes it; -1: before the first */
    int32_t death;       /* the last that needs it; the number of steps: it is
                            there at the end */
    int32_t always_live; /* 1: from run to run */
} ipu_block_info;

/* How many there are. */
int ipu_executable_blocks(const ipu_executable *executable);

int ipu_executable_block(const ipu_executable *executable, int32_t block,
                         ipu_block_info *info);

/* What of a block lies on a tile while it is alive, in bytes. */
int64_t ipu_executable_block_on_tile(const ipu_executable *executable,
                                     int32_t block, int32_t tile);

/* ------------------------------------------------------------ what is counted
 */

/* 1: count from now on, anew; 0: stop, and forget. Off, counting costs a
 * comparison a step; on, reading a clock. Not while the engine runs. */
int ipu_engine_profile(ipu_engine *engine, int32_t on);

/* Nanoseconds on this machine, of all runs that have succeeded since counting
 * began. */
typedef struct ipu_engine_times {
    uint32_t size; /* sizeof(ipu_engine_times), set by the caller */
    int32_t reserved;
    int64_t runs;
    int64_t run_ns;     /* of all runs together, as those below */
    int64_t fastest_ns; /* of one */
    int64_t input_ns;   /* copying inputs to the device */
    int64_t output_ns;  /* ... and outputs back */
    int64_t call_ns;    /* in host calls */
    int64_t between_ns; /* from a run to the next: the median */
} ipu_engine_times;

/* IPU_ERR_STATE if it does not count. */
int ipu_engine_get_times(const ipu_engine *engine, ipu_engine_times *times);

/* Nanoseconds that a step has taken in all runs. IPU_ERR_STATE as above. */
int64_t ipu_engine_step_ns(const ipu_engine *engine, int32_t step);

/* ----------------------------------------------------------------- profiles */

typedef struct ipu_profile ipu_profile;

/* name: of what was profiled ("mnist"). */
int ipu_profile_new(const char *name, ipu_profile **profile);
void ipu_profile_free(ipu_profile *profile); /* NULL is accepted */

/*
 * Add a program: what the executable tells of it and, unless engine is NULL,
 * what the engine has counted (nothing, if it does not count). name is its
 * own among the profile's programs ("training"). ipu: the chip it runs on.
 */
int ipu_profile_add(ipu_profile *profile, const char *name, int32_t ipu,
                    const ipu_executable *executable, const ipu_engine *engine);

/* Of an ipu_stage_kind (ipu_pipeline.h): "forward"; NULL if it is none.
 * Static. */
const char *ipu_stage_kind_name(int32_t kind);

/* What one chip does in one slot of a pipeline's schedule; a chip that is not
 * named in a slot is idle. A chip may do several things in a slot, one after
 * the other. */
typedef struct ipu_pipeline_slot {
    int32_t ipu;
    int32_t slot; /* from 0; all chips meet between slots */
    int32_t stage;
    int32_t kind;       /* ipu_stage_kind: IPU_STAGE_FORWARD, ... */
    int32_t mini_batch; /* -1: none, as of an update */
    int32_t reserved;
    int64_t cycles;
} ipu_pipeline_slot;

/* Which stage ran which mini-batch when: replaces what was set before. The
 * slots are copied. */
int ipu_profile_set_pipeline(ipu_profile *profile, int32_t count,
                             const ipu_pipeline_slot *slots);

/*
 * Write profile.json and report.html into the directory, which is made if only
 * it is missing. Each file appears whole or not at all; those that were there
 * are replaced. IPU_ERR_DATA names the path and why.
 */
int ipu_profile_write(const ipu_profile *profile, const char *directory);

/* Could that be written? Makes the directory; leaves nothing in it. */
int ipu_profile_check_directory(const char *directory);

/* A profile.json, or the directory that has it. IPU_ERR_DATA for what cannot
 * be read, is no profile, or one of another version: where, and what is wrong
 * with it. */
int ipu_profile_read(const char *path, ipu_profile **profile);

typedef int32_t ipu_profile_format;
enum {
    IPU_PROFILE_TEXT = 0, /* no line is longer than 80 columns */
    IPU_PROFILE_JSON = 1,
    IPU_PROFILE_HTML = 2
};

/* *text, which ends with a newline, is the caller's, to free(). */
int ipu_profile_print(const ipu_profile *profile, ipu_profile_format format,
                      char **text);

/* By how much a figure of the profile, the worst of all programs that both
 * have, grew, in percent; negative: it shrank. */
typedef struct ipu_profile_change {
    uint32_t size;         /* sizeof(ipu_profile_change), set by the caller */
    int32_t programs;      /* that both have */
    double cycles_percent; /* of a run */
    double memory_percent; /* of the fullest tile */
    double ns_percent;     /* measured, of the fastest run; 0: not both are */
} ipu_profile_change;

/* IPU_ERR_DATA if they have no program in common. */
int ipu_profile_compare(const ipu_profile *before, const ipu_profile *after,
                        ipu_profile_change *change);

/* What changed, in all, by op and by step, the most first. As
 * ipu_profile_print. */
int ipu_profile_compare_print(const ipu_profile *before,
                              const ipu_profile *after,
                              ipu_profile_format format, char **text);

#ifdef __cplusplus
}
#endif

#endif
