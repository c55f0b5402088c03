/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_report.h - profiles: the memory, cycles and time of programs, in files
 * and as text. ipu.h includes it.
 *
 *   ipu_profile_new        makes an empty profile
 *   ipu_profile_add        adds a program, and what its engine has measured
 *   ipu_profile_write      writes profile.json and report.html to a directory
 *   ipu_profile_print      prints the profile as text
 *   ipu_profile_read       reads a profile.json
 *   ipu_profile_compare    compares two profiles
 *
 * docs/PROFILE.md describes the file. Errors and threads are as in ipu.h. A
 * profile keeps copies: executables and engines may be freed.
 */
#ifndef IPU_REPORT_H
#define IPU_REPORT_H

#include "ipu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- memory layout */

typedef int32_t ipu_category;
enum {
    IPU_CATEGORY_VARIABLES = 0,
    IPU_CATEGORY_CONSTANTS = 1,
    IPU_CATEGORY_INPUTS = 2,        /* streamed in by the host */
    IPU_CATEGORY_RESULTS = 3,       /* activations, gradients */
    IPU_CATEGORY_TEMPORARY = 4,     /* fetched operands and partial sums */
    IPU_CATEGORY_CODE = 5,          /* vertex and control code */
    IPU_CATEGORY_EXCHANGE_CODE = 6, /* code of exchanges */
    IPU_CATEGORY_STATE = 7,         /* state of vertices */
    IPU_NUM_CATEGORIES = 8
};

/* Returns the name of a category ("variables"), static, or NULL. */
const char *ipu_category_name(ipu_category category);

/* A block of memory, with the tensors that share it because each is computed in
 * the place of the one before. Texts are borrowed until the executable is
 * freed.
 */
typedef struct ipu_block_info {
    uint32_t size; /* sizeof(ipu_block_info), set by the caller */
    ipu_category category;
    const char *tensor; /* the first tensor */
    const char *op;     /* the op that makes it; NULL: none does */
    const char *file;   /* the source file that built the op, or NULL */
    int32_t line;
    int32_t tensors; /* number of tensors that share the block */
    ipu_dtype dtype; /* dtype of the first, like ndim and shape */
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS];
    int64_t bytes;
    int32_t birth;       /* the step that makes it; -1: before the first step */
    int32_t death;       /* the last step that needs it; the number of steps if
                            it is still needed at the end */
    int32_t always_live; /* 1: it lives from run to run */
    const char *module;  /* of ipu_module, or NULL */
} ipu_block_info;

/* Returns the number of blocks. */
int ipu_executable_blocks(const ipu_executable *executable);

/* Returns block number 0 to ipu_executable_blocks() - 1. */
int ipu_executable_block(const ipu_executable *executable, int32_t block,
                         ipu_block_info *info);

/* Returns the bytes of a block that lie on a tile while the block is alive. */
int64_t ipu_executable_block_on_tile(const ipu_executable *executable,
                                     int32_t block, int32_t tile);

/* ---------------------------------------------------------------- measuring */

/* on 1: starts measuring times from zero; on 0: stops, and forgets them. While
 * off it costs a comparison a step, while on a clock reading a step. Do not
 * call it while the engine runs. */
int ipu_engine_profile(ipu_engine *engine, int32_t on);

/* Nanoseconds on this machine, summed over all runs that have succeeded since
 * measuring began. */
typedef struct ipu_engine_times {
    uint32_t size; /* sizeof(ipu_engine_times), set by the caller */
    int32_t reserved;
    int64_t runs;
    int64_t run_ns;     /* all runs together */
    int64_t fastest_ns; /* the fastest run */
    int64_t input_ns;   /* copying inputs to the device */
    int64_t output_ns;  /* copying outputs to the host */
    int64_t call_ns;    /* host calls */
    int64_t between_ns; /* median time from the end of a run to the next */
} ipu_engine_times;

/* Returns the times, or IPU_ERR_STATE if the engine does not measure. */
int ipu_engine_get_times(const ipu_engine *engine, ipu_engine_times *times);

/* Returns the nanoseconds that a step has taken in all runs, or IPU_ERR_STATE
 * if the engine does not measure. */
int64_t ipu_engine_step_ns(const ipu_engine *engine, int32_t step);

/* ----------------------------------------------------------------- profiles */

typedef struct ipu_profile ipu_profile;

/* Makes a profile. name is that of the program that is profiled ("mnist"). */
int ipu_profile_new(const char *name, ipu_profile **profile);
void ipu_profile_free(ipu_profile *profile); /* NULL is accepted */

/*
 * Adds a program: the executable's memory and cycles and, unless engine is NULL
 * or does not measure, the engine's times. name is unique among the profile's
 * programs ("training"). ipu is the number of the chip that it runs on.
 */
int ipu_profile_add(ipu_profile *profile, const char *name, int32_t ipu,
                    const ipu_executable *executable, const ipu_engine *engine);

/* Returns the name of an ipu_stage_kind (ipu_pipeline.h; "forward"), static, or
 * NULL. */
const char *ipu_stage_kind_name(int32_t kind);

/* The work of one chip in one slot of a pipeline's schedule. A chip without an
 * entry is idle in that slot; a chip with several does them in turn. */
typedef struct ipu_pipeline_slot {
    int32_t ipu;
    int32_t slot; /* from 0; all chips meet between slots */
    int32_t stage;
    int32_t kind;       /* ipu_stage_kind: IPU_STAGE_FORWARD, ... */
    int32_t mini_batch; /* -1: none, for an update */
    int32_t reserved;
    int64_t cycles;
} ipu_pipeline_slot;

/* Sets which stage ran which mini-batch when, replacing an earlier call's. The
 * slots are copied. */
int ipu_profile_set_pipeline(ipu_profile *profile, int32_t count,
                             const ipu_pipeline_slot *slots);

/*
 * Writes profile.json and report.html to a directory, and makes the directory
 * if its parent exists. Each file appears whole or not at all, and replaces an
 * existing one. The text of IPU_ERR_DATA names the path and the reason.
 */
int ipu_profile_write(const ipu_profile *profile, const char *directory);

/* Checks that a profile could be written there. Makes the directory and leaves
 * nothing in it. */
int ipu_profile_check_directory(const char *directory);

/* Reads a profile.json; path is the file or its directory. Returns IPU_ERR_DATA
 * if it cannot be read, or is no profile, or one of another version; the text
 * says where and what is wrong. */
int ipu_profile_read(const char *path, ipu_profile **profile);

typedef int32_t ipu_profile_format;
enum {
    IPU_PROFILE_TEXT = 0, /* no line is longer than 80 columns */
    IPU_PROFILE_JSON = 1,
    IPU_PROFILE_HTML = 2
};

/* Prints the profile. The caller owns *text, which ends with a newline, and
 * frees it with free(). */
int ipu_profile_print(const ipu_profile *profile, ipu_profile_format format,
                      char **text);

/* A change says how much the figures of two profiles differ, in percent, for
 * the program with the largest increase among those in both profiles; negative:
 * it shrank. */
typedef struct ipu_profile_change {
    uint32_t size;         /* sizeof(ipu_profile_change), set by the caller */
    int32_t programs;      /* number of programs in both */
    double cycles_percent; /* cycles of a run */
    double memory_percent; /* bytes on the fullest tile */
    double ns_percent;     /* measured time of the fastest run; 0 unless both
                              profiles have it */
} ipu_profile_change;

/* Compares two profiles: programs of the same name or, if each has only one,
 * these; and both pipelines. If only one profile has a pipeline, each program of
 * the other one is compared with all of the pipeline's together; and if no names
 * are the same, all programs of one profile with all of the other. The member
 * programs does not count these. */
int ipu_profile_compare(const ipu_profile *before, const ipu_profile *after,
                        ipu_profile_change *change);

/* Prints the differences in total, by op and by step, the largest first. *text
 * is as in ipu_profile_print. */
int ipu_profile_compare_print(const ipu_profile *before,
                              const ipu_profile *after,
                              ipu_profile_format format, char **text);

#ifdef __cplusplus
}
#endif

#endif
