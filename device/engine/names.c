/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - access by name: streams that the host connects, host calls that it
 * gives functions, variables that it writes and reads, and the host memory in
 * which streams and variables are to live. Streams and calls in the bodies of
 * loops are found, too.
 */
#include <string.h>

#include "base/error.h"
#include "engine/state.h"

/* ------------------------------------------------------ names of the host's */

static int check_given(const ipu_engine *engine, const char *name)
{
    if (!engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "the engine is NULL");
    if (!name)
        return ipu__fail(IPU_ERR_ARGUMENT, "the name is NULL");
    return IPU_OK;
}

static int check_bytes(const char *what, const char *name, size_t given,
                       size_t wanted)
{
    if (given == wanted)
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE, "%s '%s' takes %zu bytes, not %zu", what,
                     name, wanted, given);
}

int ipu_engine_connect(ipu_engine *engine, const char *name, void *data,
                       size_t bytes)
{
    IPU_TRY(check_given(engine, name));
    for (int32_t i = 0; i < engine->executable->nstreams; i++) {
        const struct ipu__stream *stream = &engine->executable->streams[i];

        if (strcmp(stream->name, name) != 0)
            continue;
        if (data)
            IPU_TRY(check_bytes("stream", name, bytes, stream->bytes));
        engine->host[i] = data;
        return IPU_OK;
    }
    for (int32_t i = 0; i < engine->executable->nloops; i++) {
        int status =
            ipu_engine_connect(engine->loops[i].body, name, data, bytes);

        if (status != IPU_ERR_NAME)
            return status;
    }
    return ipu__fail(IPU_ERR_NAME,
                     "there is no input, output or host call '%s'", name);
}

int ipu_engine_connect_call(ipu_engine *engine, const char *name,
                            ipu_host_fn fn, void *context)
{
    IPU_TRY(check_given(engine, name));
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: host call '%s' stays as it is",
                         name);
    for (int32_t i = 0; i < engine->executable->nloops; i++) {
        int status =
            ipu_engine_connect_call(engine->loops[i].body, name, fn, context);

        if (status != IPU_ERR_NAME)
            return status;
    }
    return ipu__calls_set(&engine->calls, name, fn, context);
}

static int name_variable(const ipu_engine *engine, const char *name)
{
    int32_t v = ipu__variable_named(engine->executable, name);

    return v >= 0 ? v
                  : ipu__fail(IPU_ERR_NAME, "there is no variable '%s'", name);
}

static int find_variable(const ipu_engine *engine, const char *name,
                         const void *data, size_t bytes)
{
    int v;

    IPU_TRY(check_given(engine, name));
    v = name_variable(engine, name);
    IPU_TRY(v);
    IPU_TRY(check_bytes("variable", name, bytes,
                        engine->executable->values[v].bytes));
    if (!data && bytes > 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "variable '%s': the host memory is NULL", name);
    return v;
}

int ipu_engine_write(ipu_engine *engine, const char *name, const void *data,
                     size_t bytes)
{
    int v = find_variable(engine, name, data, bytes);

    IPU_TRY(v);
    if (bytes > 0)
        memcpy(ipu__memory_of(&engine->memory, v), data, bytes);
    return IPU_OK;
}

int ipu_engine_read(ipu_engine *engine, const char *name, void *data,
                    size_t bytes)
{
    int v = find_variable(engine, name, data, bytes);

    IPU_TRY(v);
    if (bytes > 0)
        memcpy(data, ipu__memory_of(&engine->memory, v), bytes);
    return IPU_OK;
}

/* ----------------------------------------------------- in the host's memory */

static int32_t find_stream(const ipu_engine *engine, const char *name)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < x->nstreams; i++)
        if (strcmp(x->streams[i].name, name) == 0)
            return i;
    return -1;
}

static int place_stream(ipu_engine *engine, int32_t stream, void *data,
                        size_t bytes)
{
    const struct ipu_executable *x = engine->executable;
    const struct ipu__stream *s = &x->streams[stream];

    if (data)
        IPU_TRY(check_bytes("stream", s->name, bytes, s->bytes));
    if (s->value >= 0 && x->blocks[x->values[s->value].block].always)
        return ipu__fail(IPU_ERR_STATE,
                         "the tensor of stream '%s' lives in the place of a "
                         "variable or a constant: connect it instead",
                         s->name);
    engine->host[stream] = data;
    if (s->value >= 0)
        ipu__memory_place(&engine->memory, s->value, data);
    return IPU_OK;
}

static int place_variable(ipu_engine *engine, const char *name, void *data,
                          size_t bytes)
{
    int32_t v = name_variable(engine, name);
    const void *old;

    IPU_TRY(v);
    if (data)
        IPU_TRY(check_bytes("variable", name, bytes,
                            engine->executable->values[v].bytes));
    old = ipu__memory_of(&engine->memory, v);
    ipu__memory_place(&engine->memory, v, data);
    if (!data && engine->executable->values[v].bytes > 0)
        memmove(ipu__memory_of(&engine->memory, v), old,
                engine->executable->values[v].bytes);
    return IPU_OK;
}

int ipu_engine_place(ipu_engine *engine, const char *name, void *data,
                     size_t bytes)
{
    int32_t stream;

    IPU_TRY(check_given(engine, name));
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: place '%s' between two runs",
                         name);
    if ((uintptr_t)data % sizeof(float))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "'%s' cannot be placed at an address that is no "
                         "multiple of %d",
                         name, (int)sizeof(float));
    stream = find_stream(engine, name);
    return stream >= 0 ? place_stream(engine, stream, data, bytes)
                       : place_variable(engine, name, data, bytes);
}
