/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests a name for a mistyped one: the name that takes the fewest changes of
 * a letter (Levenshtein's distance), unless that is nearly all of them. */
#include <string.h>

#include "target/target.h"

enum { LONGEST = 96 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int row[LONGEST + 1], length = (int)strlen(b);

    if (length > LONGEST)
        return LONGEST;
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int above = row[j];

            row[j] = least(least(above, row[j - 1]) + 1,
                           diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *ipu__nearest(const char *word, const void *names, size_t stride)
{
    const char *best = NULL;
    int fewest = (int)strlen(word) / 2 + 1;

    for (const char *at = names;; at += stride) {
        const char *name;
        int changes;

        memcpy(&name, at, sizeof name);
        if (!name)
            return best;
        changes = distance(word, name);
        if (changes < fewest) {
            fewest = changes;
            best = name;
        }
    }
}
