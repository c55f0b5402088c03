/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - a profile as one HTML file that needs nothing else.
 */
#ifndef IPU_REPORT_PAGE_H
#define IPU_REPORT_PAGE_H

#include <jansson.h>

#include "report/text.h"

/* The page that shows the document. */
void ipu__text_put_page(struct ipu__text *text, const json_t *document);

/* What stands before and after it: made of the files of page/ when this is
 * built. */
extern const char ipu__page_before[], ipu__page_after[];

#endif
