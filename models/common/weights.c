/* SPDX-License-Identifier: Apache-2.0 */
#include "common/weights.h"

#include "common/network.h"
#include "common/outfile.h"
#include "common/problem.h"

#include <inttypes.h>
#include <string.h>

uint64_t weights_hash(float *const *values)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (int i = 0; i < NETWORK_VARIABLES; i++) {
        size_t bytes = (size_t)network_variables[i].count * sizeof(float);
        const unsigned char *at = (const unsigned char *)values[i];
        for (size_t k = 0; k < bytes; k++)
            hash = (hash ^ at[k]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* The JSON header, padded with spaces to a multiple of eight. Names need no
 * escaping: they are ours. Returns its length. */
static size_t write_header(char *text, size_t room)
{
    FILE *out = fmemopen(text, room, "w");
    int64_t offset = 0;

    if (!out)
        return 0;
    fputc('{', out);
    for (int i = 0; i < NETWORK_VARIABLES; i++) {
        const struct network_variable *v = &network_variables[i];
        int64_t end = offset + v->count * (int64_t)sizeof(float);
        fprintf(out, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                i > 0 ? "," : "", v->name);
        for (int k = 0; k < v->ndim; k++)
            fprintf(out, "%s%" PRId64, k > 0 ? "," : "", v->shape[k]);
        fprintf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", offset,
                end);
        offset = end;
    }
    fputc('}', out);
    while (ftell(out) % 8 != 0)
        fputc(' ', out);
    size_t length = (size_t)ftell(out);
    fclose(out);
    return length;
}

/* In little-endian order on any machine. */
static void write_floats(FILE *out, const float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        uint32_t bits;
        memcpy(&bits, &values[k], sizeof bits);
        const unsigned char bytes[4] = {
            (unsigned char)bits, (unsigned char)(bits >> 8),
            (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        fwrite(bytes, 1, sizeof bytes, out);
    }
}

int weights_save(const char *path, float *const *values)
{
    char header[2048];
    struct outfile out;
    size_t length = write_header(header, sizeof header);

    if (length == 0)
        return problem_set("--save-weights: out of memory");
    if (outfile_open(&out, "--save-weights", path) < 0)
        return PROBLEM;
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)length >> (8 * i) & 255), out.file);
    fwrite(header, 1, length, out.file);
    for (int i = 0; i < NETWORK_VARIABLES; i++)
        write_floats(out.file, values[i], network_variables[i].count);
    return outfile_commit(&out);
}
