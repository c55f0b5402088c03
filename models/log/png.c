/* SPDX-License-Identifier: Apache-2.0 */
/* png.c - images as PNG files of 8 bits a channel, each row unfiltered. */
#include "log/sink.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void add_chunk(struct bytes *png, const char *name, const void *data,
                      size_t count)
{
    uint32_t length = htonl((uint32_t)count);
    uLong sum = crc32(0, (const Bytef *)name, 4);
    uint32_t check =
        htonl((uint32_t)(count ? crc32(sum, data, (uInt)count) : sum));

    bytes_add(png, &length, sizeof length);
    bytes_add(png, name, 4);
    bytes_add(png, data, count);
    bytes_add(png, &check, sizeof check);
}

static void add_head(struct bytes *png, int32_t height, int32_t width,
                     int32_t channels)
{
    static const uint8_t types[] = {0, 4, 2, 6};
    struct {
        uint32_t width, height;
        uint8_t rest[5];
    } head = {htonl((uint32_t)width), htonl((uint32_t)height), {8}};

    head.rest[1] = types[channels - 1];
    bytes_add(png, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(png, "IHDR", &head, 13);
}

int log_png(struct bytes *png, const uint8_t *pixels, int32_t height,
            int32_t width, int32_t channels)
{
    size_t row = (size_t)width * (size_t)channels, rows = (size_t)height;
    size_t all = (row + 1) * rows;
    uLongf count = compressBound(all);
    uint8_t *raw = calloc(1, all), *packed = malloc(count);
    int status = raw && packed ? 0 : log_no_memory();

    for (size_t y = 0; !status && y < rows; y++)
        memcpy(raw + (row + 1) * y + 1, pixels + row * y, row);
    if (!status && compress(packed, &count, raw, all) != Z_OK)
        status = log_no_memory();
    if (!status) {
        add_head(png, height, width, channels);
        add_chunk(png, "IDAT", packed, count);
        add_chunk(png, "IEND", NULL, 0);
        status = png->failed ? log_no_memory() : 0;
    }
    free(raw);
    free(packed);
    return status;
}
