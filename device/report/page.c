/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <string.h>

/* Writes JSON into the page. In JSON a < can occur only in a text, where it may
 * be escaped; so nothing in the document ends its script element. */
static int put_escaped(const char *data, size_t bytes, void *context)
{
    struct ipu__text *text = context;

    while (bytes > 0) {
        const char *sign = memchr(data, '<', bytes);
        size_t length = sign ? (size_t)(sign - data) : bytes;

        ipu__text_put_raw(text, data, length);
        data += length;
        bytes -= length;
        if (sign) {
            ipu__text_put_raw(text, "\\u003c", 6);
            data++;
            bytes--;
        }
    }
    return 0;
}

void ipu__text_put_page(struct ipu__text *text, const json_t *document)
{
    ipu__text_put_raw(text, ipu__page_before, strlen(ipu__page_before));
    json_dump_callback(document, put_escaped, text,
                       JSON_COMPACT | JSON_REAL_PRECISION(15));
    ipu__text_put_raw(text, ipu__page_after, strlen(ipu__page_after));
}
