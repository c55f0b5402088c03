/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - the host's functions that a run calls: one for each host call of
 * the program, and one for each step that receives from the host.
 *
 * Each entry is the graph's function until ipu_engine_connect_call replaces it;
 * NULL brings the graph's back. Functions and contexts are borrowed as long as
 * the engine runs. run.c looks them up by step, names.c sets them.
 */
#include "engine/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool receives(const struct ipu__step *step)
{
    return step->kind == IPU__COMPUTE && step->op == &ipu__host_receive;
}

static bool is_call(const struct ipu__stream *stream)
{
    return stream->kind == IPU__STREAM_CALL;
}

/* Sets the function; fn NULL means that of the graph. A loaded graph has
 * none. */
static void set_function(struct ipu__host_function *function, ipu_host_fn fn,
                         void *context, ipu_host_fn graphs,
                         void *graphs_context)
{
    *function = fn ? (struct ipu__host_function){fn, context}
                   : (struct ipu__host_function){graphs, graphs_context};
    if (function->fn == ipu__no_call)
        function->fn = NULL;
}

static void set_stream(struct ipu__calls *c, int32_t i, ipu_host_fn fn,
                       void *context)
{
    const struct ipu__stream *s = &c->executable->streams[i];

    set_function(&c->streams[i], fn, context, s->fn, s->context);
}

static void set_step(struct ipu__calls *c, int32_t i, ipu_host_fn fn,
                     void *context)
{
    const struct ipu__attributes *a = &c->executable->steps[i].attributes;

    set_function(&c->steps[i], fn, context, a->fn, a->context);
}

int ipu__calls_init(struct ipu__calls *c,
                    const struct ipu_executable *executable)
{
    c->executable = executable;
    IPU_TRY(ipu__new_array(&c->streams, (size_t)executable->nstreams,
                           sizeof *c->streams));
    IPU_TRY(ipu__new_array(&c->steps, (size_t)executable->nsteps,
                           sizeof *c->steps));
    for (int32_t i = 0; i < executable->nstreams; i++)
        set_stream(c, i, NULL, NULL);
    for (int32_t i = 0; i < executable->nsteps; i++)
        set_step(c, i, NULL, NULL);
    return IPU_OK;
}

void ipu__calls_fini(struct ipu__calls *c)
{
    free(c->streams);
    free(c->steps);
}

static const char *name_of(const struct ipu_executable *x, int32_t step)
{
    return x->values[x->steps[step].output].name;
}

int ipu__calls_set(struct ipu__calls *c, const char *name, ipu_host_fn fn,
                   void *context)
{
    const struct ipu_executable *x = c->executable;
    bool found = false;

    for (int32_t i = 0; i < x->nstreams; i++)
        if (is_call(&x->streams[i]) && strcmp(x->streams[i].name, name) == 0) {
            set_stream(c, i, fn, context);
            found = true;
        }
    for (int32_t i = 0; i < x->nsteps; i++)
        if (receives(&x->steps[i]) && strcmp(name_of(x, i), name) == 0) {
            set_step(c, i, fn, context);
            found = true;
        }
    return found
               ? IPU_OK
               : ipu__fail(IPU_ERR_NAME,
                           "there is no host call or host receive '%s'", name);
}

static int missing(const char *what, const char *name)
{
    return ipu__fail(IPU_ERR_STATE,
                     "%s '%s' has no function: ipu_engine_connect_call it "
                     "first",
                     what, name);
}

int ipu__calls_check(const struct ipu__calls *c)
{
    const struct ipu_executable *x = c->executable;

    for (int32_t i = 0; i < x->nstreams; i++)
        if (is_call(&x->streams[i]) && !c->streams[i].fn)
            return missing("host call", x->streams[i].name);
    for (int32_t i = 0; i < x->nsteps; i++)
        if (receives(&x->steps[i]) && !c->steps[i].fn)
            return missing("host receive", name_of(x, i));
    return IPU_OK;
}

struct ipu__attributes ipu__calls_attributes(const struct ipu__calls *c,
                                             const struct ipu__step *step)
{
    const struct ipu__host_function *f = &c->steps[step - c->executable->steps];
    struct ipu__attributes attributes = step->attributes;

    attributes.fn = f->fn;
    attributes.context = f->context;
    return attributes;
}
