/* SPDX-License-Identifier: Apache-2.0 */
#include "report/totals.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *first, const void *second)
{
    const struct ipu__total *a = first, *b = second;

    return strcmp(a->name, b->name);
}

static int by_cycles(const void *first, const void *second)
{
    const struct ipu__total *a = first, *b = second;

    if (a->cycles != b->cycles)
        return a->cycles < b->cycles ? 1 : -1;
    return strcmp(a->name, b->name);
}

static struct ipu__total of_step(const struct ipu__profile_step *s,
                                 enum ipu__total_by by)
{
    return (struct ipu__total){
        .name = by == IPU__BY_OP ? s->op : s->tensor,
        .steps = 1,
        .compute = s->compute * s->times,
        .exchange = s->exchange * s->times,
        .sync = s->sync * s->times,
        .host = s->host * s->times,
        .cycles = s->total * s->times,
        .exchange_bytes = s->exchange_bytes * s->times,
        .flops = s->flops * s->times,
        .ns = s->ns,
        .estimated = s->estimate != NULL,
    };
}

static void add_total(struct ipu__total *sum, const struct ipu__total *t)
{
    sum->steps += t->steps;
    sum->compute += t->compute;
    sum->exchange += t->exchange;
    sum->sync += t->sync;
    sum->host += t->host;
    sum->cycles += t->cycles;
    sum->exchange_bytes += t->exchange_bytes;
    sum->flops += t->flops;
    sum->ns = sum->ns < 0 || t->ns < 0 ? -1 : sum->ns + t->ns;
    sum->estimated = sum->estimated || t->estimated;
}

int ipu__totals(const struct ipu__program *program, enum ipu__total_by by,
                struct ipu__total **totals)
{
    size_t count = (size_t)program->nsteps;
    struct ipu__total *list;
    int n = 0;

    IPU_TRY(ipu__new_array(&list, count, sizeof *list));
    for (size_t i = 0; i < count; i++)
        list[i] = of_step(&program->steps[i], by);
    qsort(list, count, sizeof *list, by_name);
    for (size_t i = 0; i < count; i++)
        if (n > 0 && strcmp(list[n - 1].name, list[i].name) == 0)
            add_total(&list[n - 1], &list[i]);
        else
            list[n++] = list[i];
    qsort(list, (size_t)n, sizeof *list, by_cycles);
    *totals = list;
    return n;
}
