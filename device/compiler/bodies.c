/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies.c - compiles the bodies and conditions of loops to separate programs.
 *
 * compile.c calls this before the passes over the outer graph, and this calls
 * compile.c for each body: the passes are the same. A body by itself need not
 * fit; only the whole program must.
 */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/compiler.h"
#include "compiler/passes.h"

/* Finds the value of the program that each import and carried value is. */
static int find_inner(const struct ipu__block_graph *from, int32_t ncarried,
                      struct ipu__inner *to)
{
    const ipu_graph *g = from->graph;
    size_t n = (size_t)g->nimports + (size_t)ncarried + 1;
    const int32_t *value_of = to->program->value_of;

    to->inner = calloc(n, sizeof *to->inner);
    to->outer = calloc(n, sizeof *to->outer);
    if (!to->inner || !to->outer)
        return ipu__fail_memory(n * sizeof *to->inner);
    for (int32_t i = 0; i < ncarried; i++)
        to->inner[to->nbound++] = value_of[from->carried[i]];
    for (int32_t i = 0; i < g->nimports; i++)
        if (g->tensors[g->imports[i].inner].kind == IPU__VARIABLE)
            to->inner[to->nbound++] = value_of[g->imports[i].inner];
    return IPU_OK;
}

static int compile_inner(const struct ipu__block_graph *from, int32_t ncarried,
                         const ipu_compile_options *options,
                         const struct ipu__setting *setting,
                         struct ipu__inner *to)
{
    if (!from->graph)
        return IPU_OK;
    IPU_TRY(ipu__compile(from->graph, options, setting, &to->program));
    return find_inner(from, ncarried, to);
}

int ipu__compile_bodies(const ipu_graph *g, const ipu_compile_options *options,
                        int64_t reserved_bytes, struct ipu_executable *e)
{
    if (g->nloops == 0)
        return IPU_OK;
    IPU_TRY(ipu__new_array(&e->loops, (size_t)g->nloops, sizeof *e->loops));
    for (int32_t i = 0; i < g->nloops; i++) {
        const struct ipu__loop *loop = &g->loops[i];
        struct ipu__loop_code *code = &e->loops[e->nloops++];
        const struct ipu__setting setting = {e->plans, reserved_bytes,
                                             e->automatic};
        size_t n = (size_t)loop->ncarried + 1;

        code->name = loop->condition.graph ? "while" : "repeat";
        code->count = loop->count;
        code->ncarried = loop->ncarried;
        code->initial = calloc(n, sizeof *code->initial);
        code->outputs = calloc(n, sizeof *code->outputs);
        if (!code->initial || !code->outputs)
            return ipu__fail_memory(n * sizeof *code->initial);
        IPU_TRY(compile_inner(&loop->body, loop->ncarried, options, &setting,
                              &code->body));
        IPU_TRY(compile_inner(&loop->condition, loop->ncarried, options,
                              &setting, &code->condition));
    }
    return IPU_OK;
}
