/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - a file is read whole and decoded once into code points, which are
 * sorted and counted to make the vocabulary. A file with a NUL, or with bytes
 * that are not UTF-8, is not a text.
 *
 * The documentation is found by the path of the program: in the tree that it
 * was built in, or where it is installed.
 */
#include "data/text.h"

#include "data/fnv1a.h"
#include "disk/disk.h"
#include "output/problem.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A longer text is a mistake: it would take too long. */
#define MOST_BYTES ((int64_t)1 << 31)

/* The places of the documentation, from the program's directory. */
static const char *const places[] = {"../share/doc/hvd", "../../docs",
                                     "../../../docs"};

/* ----------------------------------------------------------------- decoding */

int64_t text_decode(const char **bytes, const char *end)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)*bytes;
    uint32_t first = *at, point;
    int more = first < 0x80             ? 0
               : (first & 0xe0) == 0xc0 ? 1
               : (first & 0xf0) == 0xe0 ? 2
               : (first & 0xf8) == 0xf0 ? 3
                                        : -1;

    if (more < 0 || end - *bytes <= more)
        return -1;
    point = more == 0 ? first : first & (0x3fU >> more);
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return -1;
        point = point << 6 | (at[i] & 0x3fU);
    }
    if (point < least[more] || point > 0x10ffff ||
        (point >= 0xd800 && point < 0xe000))
        return -1;
    *bytes += more + 1;
    return point;
}

void text_write(const struct text *text, int number, FILE *out)
{
    uint32_t point = text->vocabulary[number];

    if (point < 0x80) {
        fputc((int)point, out);
    } else if (point < 0x800) {
        fputc((int)(0xc0 | point >> 6), out);
        fputc((int)(0x80 | (point & 0x3f)), out);
    } else if (point < 0x10000) {
        fputc((int)(0xe0 | point >> 12), out);
        fputc((int)(0x80 | (point >> 6 & 0x3f)), out);
        fputc((int)(0x80 | (point & 0x3f)), out);
    } else {
        fputc((int)(0xf0 | point >> 18), out);
        fputc((int)(0x80 | (point >> 12 & 0x3f)), out);
        fputc((int)(0x80 | (point >> 6 & 0x3f)), out);
        fputc((int)(0x80 | (point & 0x3f)), out);
    }
}

static int compare_points(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int text_find(const struct text *text, uint32_t character)
{
    const uint32_t *found =
        bsearch(&character, text->vocabulary, (size_t)text->characters,
                sizeof character, compare_points);

    return found ? (int)(found - text->vocabulary) : -1;
}

/* ------------------------------------------------------------------ loading */

/* Decodes the bytes into code points, which take the place of the numbers. */
static int decode_text(const char *what, const char *bytes, size_t length,
                       struct text *text)
{
    const char *at = bytes, *end = bytes + length;

    while (at < end) {
        int64_t offset = at - bytes;
        int64_t point = text_decode(&at, end);

        if (point <= 0)
            return problem_set("%s: byte %lld is no character of a text: %s",
                               what, (long long)offset,
                               point == 0 ? "it is 0" : "this is no UTF-8");
        text->numbers[text->count++] = (int32_t)point;
    }
    return 0;
}

/* Makes the vocabulary, and numbers the characters by it. */
static int number_characters(struct text *text)
{
    uint32_t *sorted = calloc((size_t)text->count, sizeof *sorted);

    if (!sorted)
        return problem_set("no memory for the text's vocabulary");
    memcpy(sorted, text->numbers, (size_t)text->count * sizeof *sorted);
    qsort(sorted, (size_t)text->count, sizeof *sorted, compare_points);
    text->characters = 1;
    for (int64_t i = 1; i < text->count; i++)
        if (sorted[i] != sorted[text->characters - 1])
            sorted[text->characters++] = sorted[i];
    text->vocabulary = sorted;
    for (int64_t i = 0; i < text->count; i++)
        text->numbers[i] = text_find(text, (uint32_t)text->numbers[i]);
    return 0;
}

int text_from(const char *what, const char *bytes, size_t length,
              struct text *text)
{
    *text = (struct text){.hash = fnv1a(FNV1A_START, bytes, length)};
    if (length == 0)
        return problem_set("%s is empty", what);
    text->numbers = calloc(length, sizeof *text->numbers);
    if (!text->numbers)
        return problem_set("%s: no memory for %zu characters", what, length);
    if (decode_text(what, bytes, length, text) < 0 ||
        number_characters(text) < 0) {
        text_fini(text);
        return PROBLEM;
    }
    text->train = text->count - text->count / 10;
    return 0;
}

void text_fini(struct text *text)
{
    free(text->numbers);
    free(text->vocabulary);
    *text = (struct text){0};
}

/* Appends a file to bytes. */
static int append_file(const char *path, char **bytes, size_t *length)
{
    struct stat st;
    int status;
    FILE *file = disk__read_stream(path, &status);

    if (!file)
        return problem_set("--text: %s: %s", path, disk__text(status));
    char *grown = NULL;
    if (fstat(fileno(file), &st) != 0)
        status = problem_set("--text: %s: %s", path, strerror(errno));
    else if ((int64_t)st.st_size > MOST_BYTES)
        status = problem_set("--text: %s: %lld bytes are more than %lld", path,
                             (long long)st.st_size, (long long)MOST_BYTES);
    else if (!(grown = realloc(*bytes, *length + (size_t)st.st_size + 1)))
        status = problem_set("--text: %s: no memory for %lld bytes", path,
                             (long long)st.st_size);
    if (grown)
        *bytes = grown;
    if (status == 0) {
        *length += fread(grown + *length, 1, (size_t)st.st_size, file);
        if (ferror(file))
            status = problem_set("--text: %s: %s", path, strerror(errno));
    }
    fclose(file);
    return status;
}

/* Finds the Markdown files of the documentation, sorted; TRAINING.md must be
 * among them. Returns 0 if they are there. */
static int find_documentation(glob_t *found)
{
    char program[PATH_MAX - 64], pattern[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return GLOB_NOMATCH;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s/TRAINING.md", program,
                 places[i]);
        if (access(pattern, R_OK) != 0)
            continue;
        snprintf(pattern, sizeof pattern, "%s/%s/*.md", program, places[i]);
        return glob(pattern, 0, NULL, found);
    }
    return GLOB_NOMATCH;
}

static int append_documentation(char **bytes, size_t *length)
{
    glob_t found;
    int status = 0;

    if (find_documentation(&found) != 0)
        return problem_set("hvd's documentation is not beside the program: "
                           "give a text to learn with --text FILE");
    for (size_t i = 0; i < found.gl_pathc && status == 0; i++)
        status = append_file(found.gl_pathv[i], bytes, length);
    globfree(&found);
    return status;
}

int text_load(const char *path, struct text *text)
{
    char *bytes = NULL, what[PATH_MAX];
    size_t length = 0;
    int status = path ? append_file(path, &bytes, &length)
                      : append_documentation(&bytes, &length);

    *text = (struct text){0};
    snprintf(what, sizeof what, "--text: %s", path ? path : "documentation");
    if (status == 0)
        status = text_from(what, bytes, length, text);
    free(bytes);
    return status;
}
