/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.c - keeps the losses in memory until the training is over, so that the
 * file appears whole or not at all.
 */
#include "command/losses.h"

#include "output/outfile.h"
#include "output/problem.h"

#include <inttypes.h>
#include <stdlib.h>

struct losses_entry {
    int64_t step;
    double loss;
};

int losses_add(struct losses *losses, int64_t step, double loss)
{
    if (losses->count == losses->room) {
        int64_t room = 2 * losses->room + 256;
        struct losses_entry *grown =
            realloc(losses->entries, (size_t)room * sizeof *grown);

        if (!grown)
            return problem_set("no memory for the losses of --losses");
        losses->entries = grown;
        losses->room = room;
    }
    losses->entries[losses->count++] = (struct losses_entry){step, loss};
    return 0;
}

int losses_write(const struct losses *losses, const char *path)
{
    struct outfile out;
    int status = outfile_open(&out, "--losses", path);

    if (status < 0)
        return status;
    for (int64_t i = 0; i < losses->count; i++)
        fprintf(out.file, "%" PRId64 " %.9g\n", losses->entries[i].step,
                losses->entries[i].loss);
    return outfile_commit(&out);
}

void losses_fini(struct losses *losses)
{
    free(losses->entries);
    *losses = (struct losses){0};
}
