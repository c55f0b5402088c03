/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - profiles as JSON; docs/PROFILE.md describes it.
 */
#ifndef IPU_REPORT_JSON_H
#define IPU_REPORT_JSON_H

#include <jansson.h>

#include "report/profile.h"
#include "report/text.h"

/* The whole document, what follows from it included. IPU_ERR_MEMORY. */
int ipu__profile_pack(const struct ipu_profile *profile, json_t **document);

/* IPU_ERR_DATA, naming path and place; what follows from it is not read. */
int ipu__profile_unpack(const char *path, const json_t *document,
                        struct ipu_profile *profile);

/* A line for each row of what can be long, so that it can be looked at. */
void ipu__text_put_json(struct ipu__text *text, json_t *document);

#endif
