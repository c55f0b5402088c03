/* SPDX-License-Identifier: Apache-2.0 */
#include "file/modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/shared.h"

/* A walk over all tensors of a graph, or all values of a program, in the order
 * of the file: the function `one` reads or sets the module of each. */
struct visit {
    int (*one)(struct visit *v, const char **module);
    struct ipu__texts texts; /* of a file that is written */
    struct ipu__writer *writer;
    struct ipu__reader *reader;
    char **names; /* of a file that is read */
    int32_t nnames;
    bool copies; /* each module is a copy of its own */
};

static int visit_graph(struct visit *v, ipu_graph *g)
{
    if (!g)
        return IPU_OK;
    for (int32_t i = 0; i < g->ntensors; i++)
        IPU_TRY(v->one(v, &g->tensors[i].source.module));
    for (int32_t i = 0; i < g->nloops; i++) {
        IPU_TRY(visit_graph(v, g->loops[i].body.graph));
        IPU_TRY(visit_graph(v, g->loops[i].condition.graph));
    }
    return IPU_OK;
}

static int visit_program(struct visit *v, ipu_executable *e)
{
    if (!e)
        return IPU_OK;
    for (int32_t i = 0; i < e->nvalues; i++) {
        const char *module = e->values[i].module;

        IPU_TRY(v->one(v, &module));
        if (module != e->values[i].module)
            memcpy(&e->values[i].module, &module, sizeof module);
    }
    for (int32_t i = 0; i < e->nloops; i++) {
        IPU_TRY(visit_program(v, e->loops[i].body.program));
        IPU_TRY(visit_program(v, e->loops[i].condition.program));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------ writing */

static int find_name(struct visit *v, const char **module)
{
    int number = ipu__text_number(&v->texts, *module);

    return number < -1 ? number : IPU_OK;
}

static int put_number(struct visit *v, const char **module)
{
    ipu__put_int(v->writer, ipu__text_number(&v->texts, *module));
    return IPU_OK;
}

void ipu__put_graph_modules(struct ipu__writer *writer, const ipu_graph *graph)
{
    struct visit v = {.one = find_name, .writer = writer};
    ipu_graph *g;

    /* Nothing is changed: the visits only read. */
    memcpy(&g, &graph, sizeof g);
    writer->failed |= visit_graph(&v, g) < 0;
    ipu__put_texts(writer, &v.texts);
    v.one = put_number;
    if (v.texts.count > 0)
        visit_graph(&v, g);
    free(v.texts.texts);
}

void ipu__put_program_modules(struct ipu__writer *writer,
                              const ipu_executable *executable)
{
    struct visit v = {.one = find_name, .writer = writer};
    ipu_executable *e;

    memcpy(&e, &executable, sizeof e);
    writer->failed |= visit_program(&v, e) < 0;
    ipu__put_texts(writer, &v.texts);
    v.one = put_number;
    if (v.texts.count > 0)
        visit_program(&v, e);
    free(v.texts.texts);
}

/* ------------------------------------------------------------------ reading */

static int get_number(struct visit *v, const char **module)
{
    int32_t number;

    IPU_TRY(ipu__get_index(v->reader, "a module", -1, v->nnames - 1, &number));
    if (number < 0)
        return IPU_OK;
    *module = v->copies ? strdup(v->names[number]) : v->names[number];
    return *module ? IPU_OK : ipu__fail_memory(strlen(v->names[number]) + 1);
}

/* Hands names over to a graph, which owns them from then on. */
static int keep_names(ipu_graph *g, struct visit *v)
{
    size_t n = (size_t)g->ntexts + (size_t)v->nnames;
    char **texts = realloc(g->texts, (n + 1) * sizeof *texts);

    if (!texts)
        return ipu__fail_memory(n * sizeof *texts);
    memcpy(texts + g->ntexts, v->names, (size_t)v->nnames * sizeof *texts);
    g->texts = texts;
    g->ntexts = (int32_t)n;
    return IPU_OK;
}

static void free_names(struct visit *v, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        free(v->names[i]);
    free(v->names);
}

int ipu__get_graph_modules(struct ipu__reader *reader, ipu_graph *graph)
{
    struct visit v = {.one = get_number, .reader = reader};
    int status = ipu__get_texts(reader, "modules", &v.names, &v.nnames);

    if (status == IPU_OK)
        status = keep_names(graph, &v);
    if (status < 0) {
        free_names(&v, v.nnames);
        return status;
    }
    if (v.nnames > 0)
        status = visit_graph(&v, graph);
    free(v.names);
    return status;
}

int ipu__get_program_modules(struct ipu__reader *reader,
                             ipu_executable *executable)
{
    struct visit v = {.one = get_number, .reader = reader, .copies = true};
    int status = ipu__get_texts(reader, "modules", &v.names, &v.nnames);

    if (status == IPU_OK && v.nnames > 0)
        status = visit_program(&v, executable);
    free_names(&v, v.nnames);
    return status;
}
