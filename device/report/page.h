/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - shows a profile as one HTML file that needs no other file.
 */
#ifndef IPU_REPORT_PAGE_H
#define IPU_REPORT_PAGE_H

#include <jansson.h>

#include "report/text.h"

/* Writes the page that shows the document. */
void ipu__text_put_page(struct ipu__text *text, const json_t *document);

/* The parts of the page before and after the document, made from the files of
 * page/ by the build. */
extern const char ipu__page_before[], ipu__page_after[];

#endif
