/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - compares two profiles, figure by figure.
 *
 * Programs are compared with those of the same name or, if both profiles have
 * only one, with each other. If only one profile is a pipeline, its programs
 * are joined (compare_whole.c), and each program of the other one is compared
 * with that; if there are no programs of one name, those of both are joined.
 * Ops and steps are also compared by name: steps move when a program changes,
 * but keep the names of the tensors that they make. Several of one name count
 * as one. compare_print.c prints the comparison.
 */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis.h"
#include "report/json.h"
#include "report/page.h"
#include "report/totals.h"
#include "target/target.h"

double ipu__growth(const struct ipu__figure *figure)
{
    if (figure->before > 0)
        return 100 * (figure->after - figure->before) / figure->before;
    return figure->after > 0 ? 100 : 0;
}

const char *ipu__figure_unit_name(enum ipu__figure_unit unit)
{
    static const char *const names[] = {"cycles", "bytes", "nanoseconds",
                                        "operations"};

    return names[unit];
}

static void add_figure(struct ipu__pair *pair, enum ipu__figure_of of,
                       const char *name, enum ipu__figure_unit unit,
                       double before, double after)
{
    pair->figures[pair->nfigures++] =
        (struct ipu__figure){of, name, unit, before, after, false, false};
}

/* ----------------------------------------------------------- whole programs */

static double exchanged(const struct ipu__program *p)
{
    double bytes = 0;

    for (int32_t i = 0; i < p->nsteps; i++)
        bytes += (double)p->steps[i].exchange_bytes * p->steps[i].times;
    return bytes;
}

static void add_program(struct ipu__pair *pair)
{
    const struct ipu__program *a = pair->before, *b = pair->after;
    const enum ipu__figure_of of = IPU__OF_PROGRAM;
    /* The parts of all programs are no parts of the time of a run. */
    static const char *const phases[2][4] = {
        {"  compute", "  exchange", "  sync", "  host"},
        {"compute of all programs", "exchange of all programs",
         "sync of all programs", "host of all programs"}};
    const char *const *names = phases[pair->whole];

    add_figure(pair, of, "cycles of a run", IPU__CYCLES,
               (double)a->cycles.total, (double)b->cycles.total);
    add_figure(pair, of, names[0], IPU__CYCLES, (double)a->cycles.compute,
               (double)b->cycles.compute);
    add_figure(pair, of, names[1], IPU__CYCLES, (double)a->cycles.exchange,
               (double)b->cycles.exchange);
    add_figure(pair, of, names[2], IPU__CYCLES, (double)a->cycles.sync,
               (double)b->cycles.sync);
    add_figure(pair, of, names[3], IPU__CYCLES, (double)a->cycles.host,
               (double)b->cycles.host);
    add_figure(pair, of, "time of a run", IPU__NANOSECONDS,
               1e9 * a->cycles.seconds, 1e9 * b->cycles.seconds);
    add_figure(pair, of, "fullest tile", IPU__BYTES,
               (double)a->memory.fullest_tile_bytes,
               (double)b->memory.fullest_tile_bytes);
    add_figure(pair, of, "always live", IPU__BYTES,
               (double)a->memory.always_live_bytes,
               (double)b->memory.always_live_bytes);
    add_figure(pair, of, "tensors at the peak", IPU__BYTES,
               (double)a->memory.peak_bytes, (double)b->memory.peak_bytes);
    add_figure(pair, of, "exchanged", IPU__BYTES, exchanged(a), exchanged(b));
    add_figure(pair, of, "operations", IPU__FLOPS, a->cycles.flops,
               b->cycles.flops);
    if (a->measured && b->measured) {
        add_figure(pair, of, "measured, mean", IPU__NANOSECONDS,
                   (double)a->times.run_ns / (double)a->times.runs,
                   (double)b->times.run_ns / (double)b->times.runs);
        add_figure(pair, of, "measured, fastest", IPU__NANOSECONDS,
                   (double)a->times.fastest_ns, (double)b->times.fastest_ns);
    }
}

static void add_memory(struct ipu__pair *pair)
{
    int64_t before[IPU_NUM_CATEGORIES], after[IPU_NUM_CATEGORIES];

    ipu__sum_categories(pair->before, before);
    ipu__sum_categories(pair->after, after);
    for (ipu_category c = 0; c < IPU_NUM_CATEGORIES; c++)
        if (before[c] > 0 || after[c] > 0)
            add_figure(pair, IPU__OF_MEMORY, ipu_category_name(c), IPU__BYTES,
                       (double)before[c], (double)after[c]);
}

/* ------------------------------------------------------------ ops and steps */

static int by_name(const void *first, const void *second)
{
    const struct ipu__total *a = first, *b = second;

    return strcmp(a->name, b->name);
}

/* Merges two lists, both sorted by name, into figures that are in one of them
 * or in both. */
static void merge_totals(struct ipu__pair *pair, enum ipu__figure_of of,
                         const struct ipu__total *a, int na,
                         const struct ipu__total *b, int nb)
{
    int i = 0, k = 0;

    while (i < na || k < nb) {
        int order = i == na ? 1 : k == nb ? -1 : strcmp(a[i].name, b[k].name);
        struct ipu__figure *f = &pair->figures[pair->nfigures];

        add_figure(pair, of, order <= 0 ? a[i].name : b[k].name, IPU__CYCLES,
                   order <= 0 ? (double)a[i].cycles : 0,
                   order >= 0 ? (double)b[k].cycles : 0);
        f->gone = order < 0;
        f->come = order > 0;
        i += order <= 0;
        k += order >= 0;
    }
}

static int add_totals(struct ipu__pair *pair, enum ipu__figure_of of,
                      enum ipu__total_by by)
{
    struct ipu__total *a = NULL, *b = NULL;
    int na = ipu__totals(pair->before, by, &a);
    int nb = na < 0 ? na : ipu__totals(pair->after, by, &b);

    if (nb >= 0) {
        qsort(a, (size_t)na, sizeof *a, by_name);
        qsort(b, (size_t)nb, sizeof *b, by_name);
        merge_totals(pair, of, a, na, b, nb);
    }
    free(a);
    free(b);
    return nb;
}

/* Orders figures of one kind by the size of their change, largest first.
 * Figures of the program, and of memory, keep their order. */
static int by_change(const void *first, const void *second)
{
    const struct ipu__figure *a = first, *b = second;
    double x = fabs(a->after - a->before), y = fabs(b->after - b->before);

    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int compare_pair(const struct ipu__program *before,
                        const struct ipu__program *after, bool whole,
                        struct ipu__pair *pair)
{
    size_t most = 16 + IPU_NUM_CATEGORIES +
                  2 * ((size_t)before->nsteps + (size_t)after->nsteps);
    int32_t fixed;

    *pair =
        (struct ipu__pair){.before = before, .after = after, .whole = whole};
    IPU_TRY(ipu__new_array(&pair->figures, most, sizeof *pair->figures));
    add_program(pair);
    if (!whole)
        add_memory(pair);
    fixed = pair->nfigures;
    IPU_TRY(add_totals(pair, IPU__OF_OP, IPU__BY_OP));
    IPU_TRY(add_totals(pair, IPU__OF_STEP, IPU__BY_TENSOR));
    qsort(pair->figures + fixed, (size_t)(pair->nfigures - fixed),
          sizeof *pair->figures, by_change);
    return IPU_OK;
}

/* ------------------------------------------------------------- the profiles */

static const struct ipu__program *find_program(
    const struct ipu_profile *profile, const char *name)
{
    for (int32_t i = 0; i < profile->nprograms; i++)
        if (strcmp(profile->programs[i].name, name) == 0)
            return &profile->programs[i];
    return NULL;
}

static const struct ipu__program *partner(const struct ipu_profile *before,
                                          const struct ipu_profile *after,
                                          int32_t i)
{
    if (before->nprograms == 1 && after->nprograms == 1)
        return &after->programs[0];
    return find_program(after, before->programs[i].name);
}

/* Returns whether programs of one name are not enough to compare. */
static bool differ_in_kind(const struct ipu_profile *before,
                           const struct ipu_profile *after)
{
    if ((before->run.nstages > 0) != (after->run.nstages > 0))
        return true;
    for (int32_t i = 0; i < before->nprograms; i++)
        if (partner(before, after, i))
            return false;
    return before->run.nstages == 0;
}

static int add_whole(struct ipu__comparison *c,
                     const struct ipu__program *before,
                     const struct ipu__program *after)
{
    c->nruns++;
    return compare_pair(before, after, true, &c->pairs[c->npairs++]);
}

/* Adds the pairs of which one is all programs of a profile. */
static int compare_wholes(struct ipu__comparison *c)
{
    bool first = c->before->run.nstages > 0, second = c->after->run.nstages > 0;
    const struct ipu_profile *other = first ? c->after : c->before;

    IPU_TRY(ipu__join_programs(c->before, &c->wholes[0]));
    IPU_TRY(ipu__join_programs(c->after, &c->wholes[1]));
    if (first == second)
        return add_whole(c, &c->wholes[0], &c->wholes[1]);
    for (int32_t i = 0; i < other->nprograms; i++) {
        const struct ipu__program *p = &other->programs[i];

        if (!p->parent)
            IPU_TRY(add_whole(c, first ? &c->wholes[0] : p,
                              first ? p : &c->wholes[1]));
    }
    return IPU_OK;
}

static void free_comparison(struct ipu__comparison *comparison)
{
    for (int32_t i = 0; i < comparison->npairs; i++)
        free(comparison->pairs[i].figures);
    free(comparison->pairs);
    free(comparison->wholes[0].steps);
    free(comparison->wholes[1].steps);
    *comparison = (struct ipu__comparison){0};
}

/* Compares two profiles. The comparison must not be moved afterwards. */
static int compare_profiles(const struct ipu_profile *before,
                            const struct ipu_profile *after,
                            struct ipu__comparison *comparison)
{
    struct ipu__comparison *c = comparison;
    int status = IPU_OK;

    *c = (struct ipu__comparison){.before = before, .after = after};
    c->pairs = calloc((size_t)before->nprograms + (size_t)after->nprograms + 2,
                      sizeof *c->pairs);
    if (!c->pairs)
        return ipu__fail_memory(sizeof *c->pairs);
    status = ipu__compare_runs(c, &c->pairs[0]);
    if (status > 0)
        c->npairs = c->nruns = status;
    else if (status == 0 && differ_in_kind(before, after))
        status = compare_wholes(c);
    for (int32_t i = 0; i < before->nprograms && status >= 0; i++) {
        const struct ipu__program *other = partner(before, after, i);

        if (other)
            status = compare_pair(&before->programs[i], other, false,
                                  &c->pairs[c->npairs++]);
    }
    if (status < 0)
        free_comparison(c);
    return status;
}

static int check_both(const ipu_profile *before, const ipu_profile *after,
                      const void *result)
{
    if (before && after && result)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "compare: %s is NULL",
                     result ? "a profile" : "the place for the result");
}

static void note_worst(double *worst, double percent, bool first)
{
    if (first || percent > *worst)
        *worst = percent;
}

int ipu_profile_compare(const ipu_profile *before, const ipu_profile *after,
                        ipu_profile_change *change)
{
    struct ipu__comparison c;
    ipu_profile_change worst = {0};
    bool timed = false;

    IPU_TRY(check_both(before, after, change));
    IPU_TRY(ipu__check_size("change", change->size, sizeof *change));
    IPU_TRY(compare_profiles(before, after, &c));
    worst.size = change->size;
    worst.programs = c.npairs - c.nruns;
    for (int32_t i = 0; i < c.npairs; i++)
        for (int32_t k = 0; k < c.pairs[i].nfigures; k++) {
            const struct ipu__figure *f = &c.pairs[i].figures[k];

            if (strcmp(f->name, "cycles of a run") == 0)
                note_worst(&worst.cycles_percent, ipu__growth(f), i == 0);
            if (strcmp(f->name, "fullest tile") == 0)
                note_worst(&worst.memory_percent, ipu__growth(f), i == 0);
            if (strcmp(f->name, "measured, fastest") == 0) {
                note_worst(&worst.ns_percent, ipu__growth(f), !timed);
                timed = true;
            }
        }
    free_comparison(&c);
    *change = worst;
    return IPU_OK;
}

/* Adds both profiles to a document, for a page that draws them side by side. */
static int add_profiles(const struct ipu__comparison *c, json_t *document)
{
    json_t *both = json_array(), *profile = NULL;

    if (json_object_set_new(document, "profiles", both) < 0)
        return ipu__fail_memory(sizeof *c);
    IPU_TRY(ipu__profile_pack(c->before, &profile));
    json_array_append_new(both, profile);
    IPU_TRY(ipu__profile_pack(c->after, &profile));
    json_array_append_new(both, profile);
    return IPU_OK;
}

static int put_comparison(const struct ipu__comparison *c,
                          ipu_profile_format format, struct ipu__text *text)
{
    json_t *document;
    int status = IPU_OK;

    if (format == IPU_PROFILE_TEXT) {
        ipu__print_comparison(c, text);
        return IPU_OK;
    }
    document = ipu__pack_comparison(c);
    if (!document)
        return ipu__fail_memory(sizeof *c);
    if (format == IPU_PROFILE_JSON)
        ipu__text_put_json(text, document);
    else
        status = add_profiles(c, document);
    if (format == IPU_PROFILE_HTML && status >= 0)
        ipu__text_put_page(text, document);
    json_decref(document);
    return status;
}

int ipu_profile_compare_print(const ipu_profile *before,
                              const ipu_profile *after,
                              ipu_profile_format format, char **text)
{
    struct ipu__comparison c;
    struct ipu__text grown = {0};
    int status;

    IPU_TRY(check_both(before, after, text));
    if (format < IPU_PROFILE_TEXT || format > IPU_PROFILE_HTML)
        return ipu__fail(IPU_ERR_ARGUMENT, "compare: there is no format %d",
                         (int)format);
    IPU_TRY(compare_profiles(before, after, &c));
    status = put_comparison(&c, format, &grown);
    free_comparison(&c);
    if (status < 0) {
        ipu__text_free(&grown);
        return status;
    }
    return ipu__text_take(&grown, text);
}
