/* SPDX-License-Identifier: Apache-2.0 */
#include "data/pieces.h"

#include "data/random.h"
#include "output/problem.h"

#include <string.h>

int pieces_init(struct pieces *pieces, const struct text *text, int context,
                int batch_size, int rank, int size, uint64_t seed,
                int64_t windows)
{
    int64_t test = text->count - text->train;
    /* A piece and the label of its last character. */
    int64_t all = (test - 1) / context;

    *pieces = (struct pieces){.text = text,
                              .context = context,
                              .batch_size = batch_size,
                              .rank = rank,
                              .size = size,
                              .replicas = 1,
                              .seed = seed};
    if (text->train <= context || test <= context)
        return problem_set("the text is too short for --context %d: of its "
                           "%lld characters a tenth, %lld, is for validation, "
                           "and each part must have more than %d",
                           context, (long long)text->count, (long long)test,
                           context);
    pieces->evaluated = windows > 0 && windows < all ? windows : all;
    return 0;
}

static void copy_piece(const struct pieces *p, int64_t from, int row,
                       int32_t *characters, int32_t *labels)
{
    const int32_t *at = p->text->numbers + from;
    size_t bytes = (size_t)p->context * sizeof *at;

    memcpy(characters + (int64_t)row * p->context, at, bytes);
    memcpy(labels + (int64_t)row * p->context, at + 1, bytes);
}

int pieces_fill(void *context, int64_t number, void *const *inputs)
{
    const struct pieces *p = context;
    /* Each replica takes the rows of a rank. */
    int64_t step = number / p->replicas, replica = number % p->replicas;
    uint64_t rank = (uint64_t)(p->rank * p->replicas + replica);
    uint64_t size = (uint64_t)p->size * (uint64_t)p->replicas;
    uint64_t starts = (uint64_t)(p->text->train - p->context);

    for (int row = 0; row < p->batch_size; row++) {
        uint64_t place = (uint64_t)row * size + rank;
        struct random r;

        random_seed(&r, p->seed * UINT64_C(0x9e3779b97f4a7c15) + place,
                    (uint64_t)step);
        copy_piece(p, (int64_t)(random_bits(&r) % starts), row, inputs[0],
                   inputs[1]);
    }
    return 0;
}

int64_t pieces_fill_test(void *context, int64_t step, void *const *inputs)
{
    const struct pieces *p = context;
    size_t bytes = (size_t)p->batch_size * (size_t)p->context * sizeof(int32_t);
    int rows = 0;

    memset(inputs[0], 0, bytes);
    memset(inputs[1], 0, bytes);
    for (; rows < p->batch_size; rows++) {
        int64_t piece = (step * p->batch_size + rows) * p->size + p->rank;

        if (piece >= p->evaluated)
            break;
        copy_piece(p, p->text->train + piece * p->context, rows, inputs[0],
                   inputs[1]);
    }
    return (int64_t)p->context * rows;
}
