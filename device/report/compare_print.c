/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_print.c - prints a comparison as text and as JSON.
 *
 * Each pair of programs has one table of figures per kind; ops and steps show
 * only the rows that changed most. output.c calls these functions.
 */
#include <math.h>
#include <stdio.h>

#include "report/compare.h"

enum { MOST_ROWS = 15 };

static const char *const titles[] = {
    [IPU__OF_PROGRAM] = "in all",
    [IPU__OF_MEMORY] = "bytes of all tiles, each when it is fullest",
    [IPU__OF_OP] = "cycles by op, the most changed first",
    [IPU__OF_STEP] = "cycles by step, the most changed first",
};

static struct ipu__number value_text(const struct ipu__figure *f, double value)
{
    switch (f->unit) {
    case IPU__BYTES: return ipu__bytes_text(value);
    case IPU__NANOSECONDS: return ipu__seconds_text(value / 1e9);
    case IPU__FLOPS: return ipu__scaled_text(value, "");
    default: return ipu__count_text((int64_t)value);
    }
}

static void print_figure(const struct ipu__figure *f, struct ipu__text *text)
{
    ipu__text_put(text, "  ");
    ipu__text_put_name(text, f->name, 32);
    ipu__text_put(text, " %14s %14s ",
                  f->come ? "-" : value_text(f, f->before).text,
                  f->gone ? "-" : value_text(f, f->after).text);
    if (f->come || f->gone)
        ipu__text_put(text, "%9s\n", f->come ? "new" : "gone");
    else if (f->before == f->after)
        ipu__text_put(text, "%9s\n", "=");
    else
        ipu__text_put(text, "%+8.2f%%\n", ipu__growth(f));
}

static bool is_changed(const struct ipu__figure *f)
{
    return f->come || f->gone || f->before != f->after;
}

static bool has(const struct ipu__pair *pair, enum ipu__figure_of of)
{
    for (int32_t i = 0; i < pair->nfigures; i++)
        if (pair->figures[i].of == of)
            return true;
    return false;
}

/* Prints the figures of one kind. Ops and steps that have not changed are only
 * counted. */
static void print_sort(const struct ipu__pair *pair, enum ipu__figure_of of,
                       struct ipu__text *text)
{
    int32_t shown = 0, more = 0, same = 0;

    if (!has(pair, of))
        return;
    ipu__text_put(text, "\n%s\n", titles[of]);
    for (int32_t i = 0; i < pair->nfigures; i++) {
        const struct ipu__figure *f = &pair->figures[i];

        if (f->of != of)
            continue;
        if (of >= IPU__OF_OP && !is_changed(f)) {
            same++;
        } else if (of >= IPU__OF_OP && shown >= MOST_ROWS) {
            more++;
        } else {
            print_figure(f, text);
            shown++;
        }
    }
    if (more > 0)
        ipu__text_put(text, "  and %d more that changed\n", (int)more);
    if (same > 0)
        ipu__text_put(text, "  %d as before\n", (int)same);
}

static void print_words(const struct ipu__comparison *c,
                        const struct ipu__pair *pair, struct ipu__text *text)
{
    char sentences[IPU__WHOLE_SENTENCES][IPU__WHOLE_TEXT];

    ipu__say_whole(c, pair, sentences);
    ipu__text_put(text, "\n");
    for (int i = 0; i < IPU__WHOLE_SENTENCES; i++)
        ipu__text_put_wrapped(text, "* ", 2, sentences[i]);
}

static void print_pair(const struct ipu__pair *pair, struct ipu__text *text)
{
    const struct ipu__program *a = pair->before, *b = pair->after;

    ipu__text_put(text, "\n");
    ipu__text_put_name(text, a->name, 34);
    ipu__text_put(text, " %14s %14s %9s\n", "before", "after", "change");
    if (a->target.clock_hz != b->target.clock_hz ||
        a->target.tiles != b->target.tiles || a->ipus != b->ipus)
        ipu__text_put(text, "the chips differ: %d x '%s' and %d x '%s'\n",
                      (int)a->ipus, ipu__shorten(a->target.name, 20).text,
                      (int)b->ipus, ipu__shorten(b->target.name, 20).text);
    for (enum ipu__figure_of of = IPU__OF_PROGRAM; of <= IPU__OF_STEP; of++)
        print_sort(pair, of, text);
}

/* Prints the names of programs that only one profile has. */
static void print_alone(const struct ipu__comparison *c,
                        const struct ipu_profile *profile,
                        struct ipu__text *text)
{
    for (int32_t i = 0; i < profile->nprograms; i++) {
        const struct ipu__program *p = &profile->programs[i];
        bool paired = false;

        for (int32_t k = 0; k < c->npairs; k++)
            paired =
                paired || c->pairs[k].before == p || c->pairs[k].after == p;
        if (!paired)
            ipu__text_put(text, "\nonly %s has the program '%s'\n",
                          profile == c->before ? "the first" : "the second",
                          ipu__shorten(p->name, 40).text);
    }
}

void ipu__print_comparison(const struct ipu__comparison *comparison,
                           struct ipu__text *text)
{
    ipu__text_put(text, "%s, compared with %s\n",
                  ipu__shorten(comparison->after->name, 30).text,
                  ipu__shorten(comparison->before->name, 30).text);
    for (int32_t i = 0; i < comparison->npairs; i++) {
        if (comparison->pairs[i].whole)
            print_words(comparison, &comparison->pairs[i], text);
        print_pair(&comparison->pairs[i], text);
    }
    if (comparison->npairs > 0 && comparison->pairs[0].whole)
        return;
    print_alone(comparison, comparison->before, text);
    print_alone(comparison, comparison->after, text);
}

/* --------------------------------------------------------------------- JSON */

static json_t *pack_value(double value, bool missing)
{
    return missing ? json_null() : json_real(value);
}

static json_t *pack_sort(const struct ipu__pair *pair, enum ipu__figure_of of)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < pair->nfigures; i++) {
        const struct ipu__figure *f = &pair->figures[i];
        const char *name = f->name;

        while (*name == ' ')
            name++;
        if (f->of == of)
            json_array_append_new(
                array, json_pack("{s:s, s:s, s:o, s:o, s:f}", "name", name,
                                 "unit", ipu__figure_unit_name(f->unit),
                                 "before", pack_value(f->before, f->come),
                                 "after", pack_value(f->after, f->gone),
                                 "percent", ipu__growth(f)));
    }
    return array;
}

static json_t *pack_pair(const struct ipu__pair *pair)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "name", pair->before->name,
        "after_name", pair->after->name, "before_target",
        pair->before->target.name, "after_target", pair->after->target.name,
        "in_all", pack_sort(pair, IPU__OF_PROGRAM), "memory",
        pack_sort(pair, IPU__OF_MEMORY), "ops", pack_sort(pair, IPU__OF_OP),
        "steps", pack_sort(pair, IPU__OF_STEP));
}

/* Packs how often a run executes each program of a profile, for the one of a
 * pair, or for all of them. */
static json_t *pack_executions(const struct ipu_profile *profile,
                               const struct ipu__program *of, bool whole)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < profile->nprograms; i++) {
        const struct ipu__program *p = &profile->programs[i];

        json_array_append_new(
            array, json_integer(whole ? ipu__executions(profile, p) : p == of));
    }
    return array;
}

/* Adds to a pair what it consists of. */
static void pack_whole(const struct ipu__comparison *c,
                       const struct ipu__pair *of, json_t *pair)
{
    char sentences[IPU__WHOLE_SENTENCES][IPU__WHOLE_TEXT];
    json_t *words = json_array();

    ipu__say_whole(c, of, sentences);
    for (int i = 0; i < IPU__WHOLE_SENTENCES; i++)
        json_array_append_new(words, json_string(sentences[i]));
    json_object_set_new(pair, "sentences", words);
    json_object_set_new(
        pair, "executions",
        json_pack(
            "{s:o, s:o}", "before",
            pack_executions(c->before, of->before, of->before == &c->wholes[0]),
            "after",
            pack_executions(c->after, of->after, of->after == &c->wholes[1])));
}

json_t *ipu__pack_comparison(const struct ipu__comparison *comparison)
{
    json_t *programs = json_array();

    for (int32_t i = 0; i < comparison->npairs; i++) {
        json_t *pair = pack_pair(&comparison->pairs[i]);

        if (comparison->pairs[i].whole)
            pack_whole(comparison, &comparison->pairs[i], pair);
        json_array_append_new(programs, pair);
    }
    return json_pack("{s:s, s:i, s:s, s:s, s:o}", "format",
                     "ipu-profile-comparison", "version", IPU__PROFILE_VERSION,
                     "before", comparison->before->name, "after",
                     comparison->after->name, "programs", programs);
}
