/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - checks whether the variables are still the same on all ranks, bit
 * by bit.
 *
 * Averages have the same bits everywhere, and so have updates. Ranks drift
 * apart for other reasons: a learning rate that one rank changed, a variable
 * written by the program, memory that loses bits.
 *
 * Each variable becomes a fingerprint. If the smallest and the largest
 * fingerprint of all ranks are equal, the variable is the same everywhere. Of
 * the first variable that is not, the fingerprints of all ranks show which
 * ranks have other bits than most. The cost is one allreduce of 16 bytes a
 * variable; if one differs, another of 16 bytes a rank.
 *
 * Allreduces go on without ranks that have joined (hvd_strategy_join), whose
 * variables are older than the others' and are not compared.
 */
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "base/text.h"
#include "strategy/strategy.h"

/* One rank's fingerprint of a variable, if it takes part. */
struct opinion {
    int64_t present; /* 1; 0: it has joined */
    uint64_t mark;
};

/* Returns the fingerprint that most ranks have; of several, that of the
 * lowest. */
static uint64_t most_common(const struct opinion *all, int n)
{
    int best = 0, most = 0;

    for (int i = 0; i < n; i++) {
        int same = 0;

        for (int k = 0; k < n; k++)
            same += all[k].present && all[k].mark == all[i].mark;
        if (all[i].present && same > most) {
            most = same;
            best = i;
        }
    }
    return all[best].mark;
}

/* Reports which ranks differ. groups: room for as many numbers as there are
 * ranks. */
static int tell(const struct hvd__variable *v, const struct opinion *all, int n,
                int *groups)
{
    enum { ABSENT, COMMON, ODD };
    char buffer[HVD__MESSAGE_MAX];
    struct hvd__text text = hvd__text_at(buffer, sizeof buffer);
    uint64_t common = most_common(all, n);

    for (int rank = 0; rank < n; rank++)
        groups[rank] = !all[rank].present         ? ABSENT
                       : all[rank].mark == common ? COMMON
                                                  : ODD;
    hvd__text_add(&text,
                  "variable '%s' is not the same on all ranks: other bits on ",
                  v->name);
    hvd__text_add_ranks(&text, NULL, groups, n, ODD);
    hvd__text_add(&text, " than on ");
    hvd__text_add_ranks(&text, NULL, groups, n, COMMON);
    return hvd__fail_text(HVD_ERR_INCONSISTENT, buffer);
}

/* Collective. Reports which ranks have other bits than most in the variable
 * that has this fingerprint on this rank. */
static int name_ranks(const struct hvd__variable *v, int32_t group,
                      uint64_t mark)
{
    int n = hvd_size(), status;
    struct opinion *all = calloc((size_t)n, sizeof *all);
    int *groups = malloc((size_t)n * sizeof *groups);

    status = hvd__agree(group, all && groups
                                   ? HVD_OK
                                   : hvd__fail_memory((size_t)n * sizeof *all));
    if (status == HVD_OK && all && groups) {
        all[hvd_rank()] = (struct opinion){1, mark};
        /* Each rank has its own place, and all others have zeros there. */
        status =
            hvd__allreduce_on(group, all, 2 * (int64_t)n, HVD_INT64, HVD_SUM);
        if (status >= 0)
            status = tell(v, all, n, groups);
    }
    free(all);
    free(groups);
    return status;
}

static uint64_t fingerprint(const struct hvd__variable *v)
{
    return hvd__fingerprint(0, v->value, (size_t)v->count * sizeof *v->value);
}

/* Collective. least, greatest: [nvariables], one after the other in memory. The
 * smallest of the complements is the complement of the largest. */
static int compare(const struct hvd_strategy *s, uint64_t *least,
                   uint64_t *greatest)
{
    int64_t n = s->nvariables, first = 0;
    const struct hvd__variable *v;

    for (int64_t i = 0; i < n; i++) {
        least[i] = fingerprint(&s->variables[i]);
        greatest[i] = ~least[i];
    }
    HVD_TRY(hvd__allreduce_on(s->group, least, 2 * n, HVD_INT64, HVD_MIN));
    while (first < n && least[first] == ~greatest[first])
        first++;
    if (first == n)
        return HVD_OK;
    v = &s->variables[first];
    return name_ranks(v, s->group, fingerprint(v));
}

int hvd_strategy_check(hvd_strategy *strategy)
{
    size_t bytes;
    uint64_t *marks;
    int status;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    if (!hvd__strategy_is_alike(strategy))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "the workers' variables may differ in this mode of "
                         "the parameter servers: there is nothing to check");
    bytes = 2 * (size_t)strategy->nvariables * sizeof *marks;
    marks = malloc(bytes + 1);
    status =
        hvd__agree(strategy->group, marks ? HVD_OK : hvd__fail_memory(bytes));
    if (status == HVD_OK && marks)
        status = compare(strategy, marks, marks + strategy->nvariables);
    free(marks);
    return status;
}
