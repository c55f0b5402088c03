/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_checkpoint.h - checkpoints of a training: named tensors and a JSON object
 * in files that survive a kill and a loss of power (libhvd-train).
 *
 * A checkpoint of step 1200 in a folder is a pair of files:
 *
 *     ckpt-1200.safetensors   the tensors, and all that the checkpoint says.
 *                             It is whole as soon as it has this name, and a
 *                             checksum covers each of its bytes.
 *     ckpt-1200.json          the same without the data, for people and
 *                             programs, and what became known later: the
 *                             metric. Nothing depends on it but that.
 *
 * There is no index: the newest checkpoint is found by listing the folder.
 *
 * Nothing here knows of ranks or devices. Under several ranks one of them
 * writes; for loading, rank 0 chooses the step (hvd_checkpoint_open) and the
 * others open that step (hvd_checkpoint_open_step), or it sends them what it
 * has read.
 *
 * Functions return 0 (HVD_OK) or more, or a negative HVD_ERR_*; the text is
 * hvd_last_error(). They need no hvd_init. A writer and an open checkpoint each
 * belong to one thread at a time; different ones are independent.
 */
#ifndef HVD_CHECKPOINT_H
#define HVD_CHECKPOINT_H

#include <hvd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A tensor that is saved, or into which one is loaded. Everything is
 * borrowed for the duration of the call. */
typedef struct hvd_checkpoint_tensor {
    const char *name; /* UTF-8; each stands once in a checkpoint */
    hvd_dtype dtype;
    int32_t ndim;
    const int64_t *shape; /* [ndim] */
    void *data;           /* row by row; saving only reads it */
} hvd_checkpoint_tensor;

/* The info is what a checkpoint says beside its tensors. */
typedef struct hvd_checkpoint_info {
    uint32_t size;    /* of the struct, as hvd_checkpoint_info_init got it */
    int32_t final;    /* 1: the training is over; default 0 */
    int64_t step;     /* steps made, from 0 */
    double time;      /* when it was saved, in seconds since 1970; ignored when
                         saving */
    double metric;    /* by which the best are kept; NaN (default): none yet */
    int64_t bytes;    /* of the file of tensors; ignored when saving */
    const char *json; /* an object with whatever else the training needs to go
                         on: epoch, position of the data, seed, strategy, ...;
                         NULL (default): {}. Borrowed; of an open checkpoint,
                         until it is closed */
} hvd_checkpoint_info;

/* Sets all members to their defaults; size is sizeof(hvd_checkpoint_info). */
void hvd_checkpoint_info_init(hvd_checkpoint_info *info, size_t size);

/* ------------------------------------------------------------------ writing */

typedef struct hvd_checkpoint_writer hvd_checkpoint_writer;

/* This says what hvd_checkpoint_save does while the checkpoint before is still
 * being written. */
typedef int32_t hvd_checkpoint_busy;
enum {
    HVD_CHECKPOINT_WAIT = 0, /* waits for it */
    HVD_CHECKPOINT_SKIP = 1  /* returns 1, and saves nothing */
};

typedef struct hvd_checkpoint_options {
    uint32_t size;    /* of the struct, as hvd_checkpoint_options_init got it */
    int32_t keep_max; /* newest checkpoints that are kept, by step; 0: all;
                         default 5. The one that was written last stays, too */
    int32_t keep_best; /* best checkpoints by metric that are kept beside them,
                          of equal ones the newest; default 0 */
    int32_t best_is_largest;  /* 1: the largest metric is the best; default 0 */
    double keep_every_hours;  /* the last checkpoint of every so many hours,
                                 counted from 1970, stays for ever; 0 (default):
                                 none. An Estimator has 10,000 */
    hvd_checkpoint_busy busy; /* HVD_CHECKPOINT_WAIT */
    int32_t inherits; /* 1: the folder is that of a training of which this
                         process has become the writer, in place of one
                         that may be stopped for ever with the folder
                         open: that is no hindrance; default 0 */
} hvd_checkpoint_options;

void hvd_checkpoint_options_init(hvd_checkpoint_options *options, size_t size);

/*
 * Opens a folder for writing. It is made if there is none (but not the folder
 * that it lies in). Files that a killed writer left unfinished are removed. A
 * thread is started, which does all the writing. options may be NULL.
 *
 * Returns HVD_ERR_FILE if nothing can be written there, or another writer has
 * the folder open for three seconds more (known on one host, and where the
 * file system has locks). A writer that was killed a moment ago is no
 * hindrance.
 */
int hvd_checkpoint_writer_open(const char *folder,
                               const hvd_checkpoint_options *options,
                               hvd_checkpoint_writer **writer);

/*
 * Saves a checkpoint: copies everything, and returns while the thread writes
 * it. One of the same step is replaced. info->json is checked and copied.
 *
 * Returns 1 if nothing was saved because the one before is still being written
 * (HVD_CHECKPOINT_SKIP). Returns the failure of the one before, if it could not
 * be written; then nothing is saved, and the next call tries again. HVD_ERR_
 * ARGUMENT: a name, shape or dtype cannot be saved, or json is no object.
 */
int hvd_checkpoint_save(hvd_checkpoint_writer *writer,
                        const hvd_checkpoint_info *info,
                        const hvd_checkpoint_tensor *tensors, int32_t count);

/* Gives a checkpoint of the folder a metric, in its JSON file, and removes
 * those that are no longer to be kept. Waits for the one that is being written.
 * HVD_ERR_FILE: there is none of that step. */
int hvd_checkpoint_set_metric(hvd_checkpoint_writer *writer, int64_t step,
                              double metric);

/* Waits until everything saved is on the disk. Returns the failure of the last
 * save, if nothing has returned it yet. */
int hvd_checkpoint_wait(hvd_checkpoint_writer *writer);

/* Does the same, and frees the writer, also on failure. NULL is accepted. */
int hvd_checkpoint_writer_close(hvd_checkpoint_writer *writer);

/* ------------------------------------------------------------------ reading */

typedef struct hvd_checkpoint hvd_checkpoint;

/* Sets *steps to the steps of the checkpoints in a folder, whether they are
 * whole or not, in ascending order; the caller frees it. Returns how many. A
 * folder that does not exist has none. */
int hvd_checkpoint_list(const char *folder, int64_t **steps);

/*
 * Opens a checkpoint. path is a folder, whose newest checkpoint that is whole
 * is opened; or a file of tensors, a checkpoint or any other in the format
 * safetensors, such as the weights of another program. All bytes of a
 * checkpoint are read and compared with its checksum.
 *
 * Returns 1, with *checkpoint NULL, if the folder has no checkpoint, or does
 * not exist; HVD_ERR_FILE if it has some and none is whole, or if the file
 * cannot be read or is damaged.
 */
int hvd_checkpoint_open(const char *path, hvd_checkpoint **checkpoint);

/* Opens the checkpoint of a step in a folder. */
int hvd_checkpoint_open_step(const char *folder, int64_t step,
                             hvd_checkpoint **checkpoint);

void hvd_checkpoint_close(hvd_checkpoint *checkpoint); /* NULL is accepted */

/* Returns what was wrong with newer checkpoints of the folder, which were
 * passed over, as one line; "" if there were none. Valid until the close. */
const char *hvd_checkpoint_passed_over(const hvd_checkpoint *checkpoint);

/* Returns the path of the file of tensors. Valid until the close. */
const char *hvd_checkpoint_path(const hvd_checkpoint *checkpoint);

/* Sets what the checkpoint says; info was initialised. HVD_ERR_FILE if the file
 * is no checkpoint, but other tensors. */
int hvd_checkpoint_get_info(const hvd_checkpoint *checkpoint,
                            hvd_checkpoint_info *info);

/* Find a member of the info's JSON by its path, as "data.epoch". Returns
 * HVD_ERR_ARGUMENT, with the output unchanged, if there is none, or none of
 * that type; text: valid until the close. */
int hvd_checkpoint_get_int(const hvd_checkpoint *checkpoint, const char *path,
                           int64_t *value);
int hvd_checkpoint_get_real(const hvd_checkpoint *checkpoint, const char *path,
                            double *value);
int hvd_checkpoint_get_text(const hvd_checkpoint *checkpoint, const char *path,
                            const char **value);

/* Returns the number of tensors. */
int32_t hvd_checkpoint_count(const hvd_checkpoint *checkpoint);

/* Describes tensor i, from 0, in the order of the file; data is NULL, and the
 * rest is valid until the close. dtype is -1 if hvd.h does not have it.
 * HVD_ERR_ARGUMENT: there is no such tensor. */
int hvd_checkpoint_describe(const hvd_checkpoint *checkpoint, int32_t i,
                            hvd_checkpoint_tensor *tensor);

/* Describes the tensor of a name. HVD_ERR_ARGUMENT: there is none. */
int hvd_checkpoint_find(const hvd_checkpoint *checkpoint, const char *name,
                        hvd_checkpoint_tensor *tensor);

/* Reads elements [first, first + count) of a tensor, counted row by row, and
 * converts floating types to dtype; other dtypes must be the tensor's own.
 * HVD_ERR_ARGUMENT: there is no such tensor, or not so many elements, or it has
 * another dtype. */
int hvd_checkpoint_read(const hvd_checkpoint *checkpoint, const char *name,
                        hvd_dtype dtype, int64_t first, int64_t count,
                        void *out);

/* A rename says where hvd_checkpoint_restore looks for a tensor that has
 * another name in the file. */
typedef struct hvd_checkpoint_rename {
    const char
        *wanted; /* a name; or, with / at its end, what names begin with */
    const char *saved; /* stands there in its place; NULL: it is not loaded */
} hvd_checkpoint_rename;

/* Bits of the flags of hvd_checkpoint_restore. */
enum {
    HVD_CHECKPOINT_PARTIAL = 1 /* tensors that the file does not have keep their
                                  values */
};

/*
 * Reads whole tensors by their names, as hvd_checkpoint_read does; shapes must
 * be equal. Of the renames, [nrenames], the first that fits counts. Returns how
 * many tensors were read. HVD_ERR_ARGUMENT, with nothing changed, if one is not
 * there or is another; all such are named.
 */
int hvd_checkpoint_restore(const hvd_checkpoint *checkpoint,
                           const hvd_checkpoint_tensor *tensors, int32_t count,
                           const hvd_checkpoint_rename *renames,
                           int32_t nrenames, uint32_t flags);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
