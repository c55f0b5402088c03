/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - the two files of a checkpoint, as hvd_checkpoint.h describes them.
 *
 * The metadata of the safetensors file begins with "crc32": eight hexadecimal
 * digits, the CRC-32 of the whole file with zeros in their place. So each bit
 * of the file is covered, its header too.
 */
#ifndef MODELS_CHECKPOINT_FILE_H
#define MODELS_CHECKPOINT_FILE_H

#include "files/safetensors.h"

#include <limits.h>
#include <stdbool.h>

#define CHECKPOINT_TENSORS "safetensors"
#define CHECKPOINT_JSON "json"

/* A record has what a checkpoint says beside its tensors. A zeroed one is
 * empty. */
struct checkpoint_record {
    int64_t step;
    bool final;
    double time;   /* seconds since 1970 */
    double metric; /* NaN: none */
    json_t *state; /* owned: the caller's object */
    /* Of the file of tensors; set by writing and reading. */
    uint32_t crc;
    int64_t bytes;
};

void checkpoint_record_fini(struct checkpoint_record *record);

/* Sets path to "FOLDER/ckpt-STEP.ENDING". */
int checkpoint_path(char path[PATH_MAX], const char *folder, int64_t step,
                    const char *ending);

/* Returns the steps of the checkpoints in a folder, ascending, owned by the
 * caller; sets *count. NULL with the text kept. A missing folder has none. */
int64_t *checkpoint_steps(const char *folder, int *count);

/* Removes temporary files of checkpoints that killed writers have left. */
void checkpoint_sweep(const char *folder);

/* Writes the file of tensors, and then the one of JSON. */
int checkpoint_write(const char *folder, struct checkpoint_record *record,
                     const struct safetensors_tensor *tensors, int count);

/* Writes the JSON alone, for a new metric. */
int checkpoint_write_json(const char *folder,
                          const struct checkpoint_record *record,
                          const struct safetensors_tensor *tensors, int count);

/* Removes both files; one that is not there is no failure. */
int checkpoint_remove(const char *folder, int64_t step);

/* Opens a file of tensors without reading its data. *is_checkpoint: it is one,
 * and the record is what it says; else that is empty. */
int checkpoint_open_file(const char *path, struct safetensors **file,
                         struct checkpoint_record *record, bool *is_checkpoint);

/* Reads the whole file, and compares it with its checksum. */
int checkpoint_verify(const struct safetensors *file,
                      const struct checkpoint_record *record);

#endif
