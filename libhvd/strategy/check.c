/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - are the variables still the same on all ranks, bit by bit?
 *
 * Averages have the same bits everywhere, and so have updates. What makes
 * ranks drift apart is the rest: a learning rate that one rank changed, a
 * variable written by the program, memory that forgets.
 *
 * Each variable is a fingerprint. Rank 0's go to everyone, everyone says which
 * is the first that differs from its own, and of the first of all, the
 * fingerprints of all ranks say who is alone with its bits: those that are not
 * what most ranks have. One message of 8 bytes a variable, two of 8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "core/fingerprint.h"
#include "strategy/strategy.h"

/* The fingerprint that most ranks have; of several, that of the lowest. */
static uint64_t most_common(const uint64_t *marks, int n)
{
    int best = 0, most = 0;

    for (int i = 0; i < n; i++) {
        int same = 0;

        for (int k = 0; k < n; k++)
            same += marks[k] == marks[i];
        if (same > most) {
            most = same;
            best = i;
        }
    }
    return marks[best];
}

static int tell(const struct hvd__variable *v, const uint64_t *marks, int n,
                int *odd)
{
    char buffer[HVD__MESSAGE_MAX];
    struct hvd__text text = hvd__text_at(buffer, sizeof buffer);
    uint64_t common = most_common(marks, n);

    for (int rank = 0; rank < n; rank++)
        odd[rank] = marks[rank] != common;
    hvd__text_add(&text,
                  "variable '%s' is not the same on all ranks: other bits on ",
                  v->name);
    hvd__text_add_ranks(&text, NULL, odd, n, 1);
    hvd__text_add(&text, " than on ");
    hvd__text_add_ranks(&text, NULL, odd, n, 0);
    return hvd__fail_text(HVD_ERR_INCONSISTENT, buffer);
}

/* Collective: of the variable whose mark is this on this rank, who has other
 * bits than most. */
static int name_ranks(const struct hvd__variable *v, uint64_t mark)
{
    int n = hvd_size(), status;
    uint64_t *marks = malloc((size_t)n * sizeof *marks);
    int *odd = malloc((size_t)n * sizeof *odd);

    status =
        hvd__agree(marks && odd ? HVD_OK : hvd__fail_memory((size_t)n * 12));
    if (status == HVD_OK && marks && odd) {
        status = hvd_allgather(&mark, marks, sizeof mark, HVD_UINT8);
        if (status >= 0)
            status = tell(v, marks, n, odd);
    }
    free(marks);
    free(odd);
    return status;
}

/* Collective. mine, theirs: of each variable, of this rank and of rank 0. */
static int compare(const struct hvd_strategy *s, uint64_t *mine,
                   uint64_t *theirs)
{
    int64_t n = s->nvariables, first = 0;

    for (int64_t i = 0; i < n; i++) {
        const struct hvd__variable *v = &s->variables[i];

        mine[i] =
            hvd__fingerprint(0, v->value, (size_t)v->count * sizeof *v->value);
    }
    memcpy(theirs, mine, (size_t)n * sizeof *mine);
    HVD_TRY(hvd_broadcast(theirs, n * (int64_t)sizeof *theirs, HVD_UINT8, 0));
    while (first < n && mine[first] == theirs[first])
        first++;
    HVD_TRY(hvd_allreduce(&first, &first, 1, HVD_INT64, HVD_MIN));
    return first == n ? HVD_OK : name_ranks(&s->variables[first], mine[first]);
}

int hvd_strategy_check(hvd_strategy *strategy)
{
    size_t bytes;
    uint64_t *marks;
    int status;

    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    if (!strategy->started)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "hvd_strategy_start has not been called");
    bytes = 2 * (size_t)strategy->nvariables * sizeof *marks;
    marks = malloc(bytes + 1);
    status = hvd__agree(marks ? HVD_OK : hvd__fail_memory(bytes));
    if (status == HVD_OK && marks)
        status = compare(strategy, marks, marks + strategy->nvariables);
    free(marks);
    return status;
}
