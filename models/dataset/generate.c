/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - the source of elements that a program makes. */
#include "dataset/stage.h"

#include "output/problem.h"

static int64_t count_unknown(const hvd_dataset *set, const struct share *share)
{
    (void)set;
    (void)share;
    return -1;
}

/* Adds the place to a failure of the program's. */
static int explain(const struct stage *stage, int status)
{
    const char *why = hvd_last_error();

    return problem_fail(status,
                        "data set: generator, element %lld of epoch %lld: %s",
                        (long long)stage->position, (long long)stage->epoch,
                        *why ? why : hvd_strerror(status));
}

static int begin_generator(struct stage *stage, int64_t epoch)
{
    const hvd_generator *g = stage->set->parameters;

    if (!g->rewind)
        return epoch == 0
                   ? 0
                   : problem_fail(HVD_ERR_UNSUPPORTED,
                                  "data set: the generator cannot rewind: give "
                                  "it a function for that, or cache it");
    hvd_set_last_error(0, "");
    int status = g->rewind(g->context, epoch);
    return status < 0 ? explain(stage, status) : 0;
}

static int next_generated(struct stage *stage, void *const *out)
{
    const hvd_generator *g = stage->set->parameters;

    hvd_set_last_error(0, "");
    int status = g->next(g->context, out);
    if (status < 0)
        return explain(stage, status);
    return status > 0 ? HVD_END_OF_DATA : 0;
}

static void free_generator(hvd_dataset *set)
{
    const hvd_generator *g = set->parameters;

    if (g->release)
        g->release(g->context);
}

static const struct kind generator_kind = {.name = "generator",
                                           .count = count_unknown,
                                           .begin = begin_generator,
                                           .next = next_generated,
                                           .free = free_generator};

hvd_dataset *hvd_dataset_generate(int32_t ncomponents,
                                  const hvd_component *components,
                                  const hvd_generator *generator)
{
    if (!generator || !generator->next)
        return node_fail(NULL, HVD_ERR_ARGUMENT,
                         "data set: a generator needs the function next");
    hvd_dataset *set = node_make(&generator_kind, 0, NULL, sizeof *generator);
    if (set)
        *(hvd_generator *)set->parameters = *generator;
    return node_components(set, ncomponents, components);
}
