/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - ipu_executable_print: a program as text, for people and for
 * comparing. The same program always gives the same text.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "compiler/program.h"
#include "streams/streams.h"
#include "target/cost.h"

struct text {
    char *data;
    int64_t size;
    int64_t used; /* bytes needed so far; may exceed size */
    int depth;    /* of loops */
};

__attribute__((format(printf, 2, 3))) static void add_text(struct text *text,
                                                           const char *format,
                                                           ...)
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

/* Returns the bytes of all blocks alive during each step, [steps]; NULL: there
 * is no memory. */
static int64_t *find_alive(const struct ipu_executable *e)
{
    int64_t *alive = calloc((size_t)e->nsteps + 2, sizeof *alive), bytes = 0;

    for (int32_t b = 0; alive && b < e->nblocks; b++) {
        const struct ipu__block *block = &e->blocks[b];

        if (block->remote || block->death < 0)
            continue;
        alive[block->birth < 0 ? 0 : block->birth] += (int64_t)block->bytes;
        alive[block->death + 1] -= (int64_t)block->bytes;
    }
    for (int32_t i = 0; alive && i < e->nsteps; i++) {
        bytes += alive[i];
        alive[i] = bytes;
    }
    return alive;
}

/* Returns whether one of the parts before the k-th makes a value, or reads it.
 */
static bool seen_before(const struct ipu_executable *e,
                        const struct ipu__step *step, int32_t k, int32_t v)
{
    struct ipu__step_op place;

    for (int32_t p = 0; p < k; p++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, p, &place);

        if (part->output == v)
            return true;
        for (int i = 0; i < part->op->ninputs; i++)
            if (part->inputs[i] == v)
                return true;
    }
    return false;
}

/* Adds what a step makes, of what: "conv2d:0 + bias_add:1 (x, kernel, bias)".
 */
static void add_ops(struct text *text, const struct ipu_executable *e,
                    const struct ipu__step *step)
{
    struct ipu__step_op place;
    int n = 0;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        add_text(text, "%s%s%s", k ? " + " : "",
                 part->op == &ipu__assign_step    ? "assign "
                 : part->op == &ipu__remote_store ? "store "
                                                  : "",
                 e->values[part->output].name);
    }
    add_text(text, " (");
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        for (int i = 0; i < part->op->ninputs; i++)
            if (step->kind != IPU__FUSED ||
                !seen_before(e, step, k, part->inputs[i]))
                add_text(text, "%s%s", n++ ? ", " : "",
                         e->values[part->inputs[i]].name);
    }
    add_text(text, ")");
}

/* Adds what a loop's step begins with, and how often it goes round. */
static void add_loop(struct text *text, const struct ipu_executable *e,
                     const struct ipu__step *step)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);

    add_text(text, "%s ", loop->name);
    if (loop->count > 0 || !loop->condition.program)
        add_text(text, "%s%" PRId64 " times ",
                 loop->condition.program ? "at most " : "", loop->count);
    add_text(text, "(");
    for (int32_t k = 0; k < loop->ncarried; k++)
        add_text(text, "%s%s from %s", k ? ", " : "",
                 e->values[loop->outputs[k]].name,
                 e->values[loop->initial[k]].name);
    add_text(text, ")");
}

static void add_step(struct text *text, const struct ipu_executable *e,
                     int32_t i, int64_t alive)
{
    const struct ipu__step *step = &e->steps[i];
    const struct ipu__value *output = &e->values[step->output];

    add_text(text, "%*s%4d  ", 4 * text->depth, "", (int)i);
    if (step->kind == IPU__LOOP)
        add_loop(text, e, step);
    else if (step->kind == IPU__HOST_CALL)
        add_text(text, "host_call '%s' %s", e->streams[step->stream].name,
                 output->name);
    else
        add_ops(text, e, step);
    add_text(text, "  %s @%zu  alive %" PRId64,
             ipu__shape_print(&output->shape).text,
             e->blocks[output->block].offset, alive);
    if (step->count > 1)
        add_text(text, "  every %d runs", (int)step->count);
    if (step->body >= 0)
        add_text(text, "  code of step %d", (int)step->body);
    else if (step->calls > 1)
        add_text(text, "  code shared by %d steps", (int)step->calls);
    if (step->proportion > 0 && step->proportion != ipu__proportion_of(0))
        add_text(text, "  of %g of a tile", step->proportion);
    add_text(text, "\n");
}

/* Adds the elements of queues that come before the steps, or after them. */
static void add_feeds(struct text *text, const struct ipu_executable *e,
                      bool in)
{
    for (int32_t i = 0; i < e->nfeeds; i++) {
        const struct ipu__feed_code *f = &e->feeds[i];

        if (in == (f->infeed != NULL))
            add_text(text, "%*s      %s '%s'\n", 4 * text->depth, "",
                     in ? "dequeue" : "enqueue",
                     in ? ipu__infeed_name(f->infeed)
                        : ipu__outfeed_name(f->outfeed));
    }
}

static int add_program(struct text *text, const struct ipu_executable *e)
{
    int64_t *alive = find_alive(e);
    int status = IPU_OK;

    if (!alive)
        return ipu__fail_memory((size_t)e->nsteps * sizeof *alive);
    add_feeds(text, e, true);
    for (int32_t i = 0; status >= 0 && i < e->nsteps; i++) {
        const struct ipu__loop_code *loop = ipu__loop_of(e, &e->steps[i]);

        add_step(text, e, i, alive[i]);
        if (!loop)
            continue;
        text->depth++;
        if (loop->condition.program)
            status = add_program(text, loop->condition.program);
        if (status >= 0)
            status = add_program(text, loop->body.program);
        text->depth--;
    }
    add_feeds(text, e, false);
    free(alive);
    return status;
}

int64_t ipu_executable_print(const ipu_executable *executable, char *text,
                             int64_t size)
{
    struct text out = {.data = text, .size = text ? size : 0};

    if (!executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "print: the executable is NULL");
    IPU_TRY(add_program(&out, executable));
    return out.used;
}
