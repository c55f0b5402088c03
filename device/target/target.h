/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - the chip and systems of chips: the fields of a target as a table,
 * suggestions for mistyped names, systems. The door of this room, with cost.h
 * (cycles), plans.h (plans of products) and work.h (the work of an op on the
 * chip).
 *
 * The room is a model: pure functions of an ipu_target or ipu_system, without
 * state except plans. The graph, the compiler, and all rooms above them use it.
 */
#ifndef IPU_TARGET_TARGET_H
#define IPU_TARGET_TARGET_H

#include <stddef.h>

#include "ipu.h"

enum ipu__field_type { IPU__FIELD_INT32, IPU__FIELD_INT64, IPU__FIELD_REAL };

/* A number of a target, with its name and its allowed values. */
struct ipu__field {
    const char *name;
    enum ipu__field_type type;
    size_t offset;
    double least, most;
};

/* The fields of a target; the list ends with a NULL name. */
extern const struct ipu__field ipu__target_fields[];

/* Returns IPU_ERR_ARGUMENT unless the field may have this value; whose names
 * the target, or the file. */
int ipu__field_check(const struct ipu__field *field, double value,
                     const char *whose);

/* Returns the name nearest to a mistyped one; NULL if none is near. stride is
 * the distance of the names in an array of structs that begin with them; a NULL
 * name ends it. */
const char *ipu__nearest(const char *word, const void *names, size_t stride);

/* Reads the JSON in a file. Returns IPU_ERR_DATA with the line of a mistake, of
 * which fault, or "", is said first. The caller owns *root. */
struct json_t;
int ipu__json_load(const char *path, const char *fault, struct json_t **root);

/* Does the work of ipu_target_load with the object of a file; path names it. On
 * failure, target is partly changed. */
int ipu__target_from_json(const char *path, struct json_t *root,
                          ipu_target *target);

/* Returns the rack of a chip of the system, counted from 0. */
int32_t ipu__rack_of(const ipu_system *system, int32_t ipu);

/* Sets *system to the requested one or, if asked is NULL, to an M2000 or to the
 * smallest Pod that has that many IPUs. */
int ipu__find_system(const ipu_system *asked, int32_t ipus, ipu_system *system);

/* Returns IPU_ERR_ARGUMENT unless a product may have this proportion of a tile:
 * more than 0 and at most 1, or 0 for not set. what names the owner in errors.
 */
int ipu__check_proportion(const char *what, double proportion);

#endif
