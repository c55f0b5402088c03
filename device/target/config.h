/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - a configuration as its two files see it: values by attribute, each
 * with the type of the attribute's default.
 */
#ifndef IPU_TARGET_CONFIG_H
#define IPU_TARGET_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "ipu.h"

struct ipu_config {
    json_t *values; /* owned; a complete object, by dotted names */
};

/* Return the value of an attribute, which must exist. Texts are borrowed until
 * it is set again. */
int64_t ipu__config_int(const ipu_config *config, const char *attribute);
double ipu__config_real(const ipu_config *config, const char *attribute);
bool ipu__config_bool(const ipu_config *config, const char *attribute);
const char *ipu__config_text(const ipu_config *config, const char *attribute);

/* Copies at most capacity numbers of a list; returns how many the list has. */
int32_t ipu__config_list(const ipu_config *config, const char *attribute,
                         int32_t *numbers, int32_t capacity);

#endif
