/* SPDX-License-Identifier: Apache-2.0 */
/* The program as text, for people and for comparing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "compiler/program.h"
#include "graph/error.h"

struct text {
    char *data;
    int64_t size;
    int64_t used; /* may pass size: what would be needed */
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text,
                                                      const char *format, ...)
{
    int64_t left = text->size > text->used ? text->size - text->used : 0;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(left ? text->data + text->used : NULL, (size_t)left, format,
                  arguments);
    va_end(arguments);
    text->used += n > 0 ? n : 0;
}

/* Bytes of all blocks alive during a step. */
static int64_t alive(const struct ipu_executable *e, int32_t step)
{
    int64_t bytes = 0;

    for (int32_t b = 0; b < e->nblocks; b++)
        if (!e->blocks[b].remote && e->blocks[b].birth <= step &&
            step <= e->blocks[b].death)
            bytes += (int64_t)e->blocks[b].bytes;
    return bytes;
}

static void add_step(struct text *text, const struct ipu_executable *e,
                     int32_t i)
{
    const struct ipu__step *step = &e->steps[i];
    const struct ipu__value *output = &e->values[step->output];
    char shape[IPU__SHAPE_TEXT];

    add(text, "%4d  ", (int)i);
    if (step->kind == IPU__HOST_CALL)
        add(text, "host_call '%s' %s", e->streams[step->stream].name,
            output->name);
    else {
        add(text, "%s%s (",
            step->op == &ipu__assign_step    ? "assign "
            : step->op == &ipu__remote_store ? "store "
                                             : "",
            output->name);
        for (int k = 0; k < step->op->ninputs; k++)
            add(text, "%s%s", k ? ", " : "", e->values[step->inputs[k]].name);
        add(text, ")");
    }
    add(text, "  %s @%zu  alive %" PRId64,
        ipu__shape_print(&output->shape, shape),
        e->blocks[output->block].offset, alive(e, i));
    if (step->count > 1)
        add(text, "  every %d runs", (int)step->count);
    add(text, "\n");
}

int64_t ipu_executable_print(const ipu_executable *executable, char *text,
                             int64_t size)
{
    struct text out = {.data = text, .size = text ? size : 0};

    if (!executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "print: the executable is NULL");
    for (int32_t i = 0; i < executable->nsteps; i++)
        add_step(&out, executable, i);
    return out.used;
}
