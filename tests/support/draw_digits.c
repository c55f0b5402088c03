/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests-draw-digits DIR TRAIN TEST - writes the digits that mnist draws by
 * default, as MNIST's files, for tests that train on the same ones again and
 * again.
 */
#include "data/digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SEED = 1, SIDE = 28 };

static void put(FILE *file, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(word >> shift & 255), file);
}

static int write_file(const char *folder, const char *name,
                      const uint32_t *header, int words, const uint8_t *bytes,
                      size_t count)
{
    char path[4096];
    FILE *file;
    int status;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file) {
        perror(path);
        return -1;
    }
    for (int i = 0; i < words; i++)
        put(file, header[i]);
    fwrite(bytes, 1, count, file);
    status = ferror(file) ? -1 : 0;
    if (fclose(file) != 0 || status < 0) {
        perror(path);
        return -1;
    }
    return 0;
}

static int write_set(const char *folder, int set, uint32_t count)
{
    static const char *const images_of[] = {"train-images-idx3-ubyte",
                                            "t10k-images-idx3-ubyte"};
    static const char *const labels_of[] = {"train-labels-idx1-ubyte",
                                            "t10k-labels-idx1-ubyte"};
    struct images drawn;
    int status;

    if (digits_draw(SEED, set, count, NULL, &drawn) < 0)
        return -1;
    status = write_file(folder, images_of[set],
                        (const uint32_t[]){2051, count, SIDE, SIDE}, 4,
                        drawn.pixels, (size_t)count * SIDE * SIDE);
    if (status == 0)
        status =
            write_file(folder, labels_of[set], (const uint32_t[]){2049, count},
                       2, drawn.labels, count);
    images_fini(&drawn);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: tests-draw-digits DIR TRAIN TEST\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) < 0) {
        perror(argv[1]);
        return 1;
    }
    if (write_set(argv[1], DIGITS_TRAIN, (uint32_t)atoi(argv[2])) < 0 ||
        write_set(argv[1], DIGITS_TEST, (uint32_t)atoi(argv[3])) < 0)
        return 1;
    return 0;
}
