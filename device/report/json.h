/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - converts profiles to JSON and back; docs/PROFILE.md describes the
 * format.
 */
#ifndef IPU_REPORT_JSON_H
#define IPU_REPORT_JSON_H

#include <jansson.h>

#include "report/profile.h"
#include "report/text.h"

/* Makes the whole document, including values derived from the profile. Returns
 * IPU_ERR_MEMORY on failure. */
int ipu__profile_pack(const struct ipu_profile *profile, json_t **document);

/* Fills the profile from a document and ignores derived values. Returns
 * IPU_ERR_DATA with the path and the place in it. */
int ipu__profile_unpack(const char *path, const json_t *document,
                        struct ipu_profile *profile);

/* Writes the document. Long tables have one line per row, so that people can
 * read them. */
void ipu__text_put_json(struct ipu__text *text, json_t *document);

#endif
