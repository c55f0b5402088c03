/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - a device with an executable loaded: runs.
 *
 * A run copies the inputs in, goes through the steps, and copies the outputs
 * out. A host call happens when its step comes: the tensor is copied to the
 * host memory connected to it, or shown where it is, while the steps after it
 * have yet to run.
 *
 * A run that fails (a host call, a label out of range) leaves the variables
 * as they were: the compiler puts all that can fail before the first step that
 * writes one. The next run starts anew.
 *
 * The body of a loop is a program with an engine of its own, which is told
 * before each loop where the memory is that its values are bound to. An
 * iteration is a run of it, so that a loop that fails leaves variables as the
 * iteration before has left them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calls.h"
#include "engine/counts.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/streams.h"
#include "graph/error.h"
#include "ops/half.h"
#include "target/target.h"

/* Engines of a loop. */
struct loop {
    ipu_engine *body, *condition; /* owned; NULL: there is none */
};

struct ipu_engine {
    const struct ipu_executable *executable; /* borrowed until free */
    struct ipu__memory memory;
    void **host; /* owned, [streams]: borrowed memory of the host, or NULL */
    struct ipu__counts *counts; /* owned; NULL: it does not count */
    struct ipu__calls calls;
    struct loop *loops; /* owned, [loops] */
    int32_t nqueues;    /* that it is attached to */
    int32_t replica, replicas;
    int callback_status;
    int32_t next_step; /* of a run that goes on */
    ipu__meet_fn meet; /* of a loop's body; NULL: nobody to meet */
    void *meet_context;
    bool running;
};

static int init_loops(ipu_engine *e)
{
    const struct ipu_executable *x = e->executable;

    e->loops = calloc((size_t)x->nloops + 1, sizeof *e->loops);
    if (!e->loops)
        return ipu__fail_memory((size_t)x->nloops * sizeof *e->loops);
    for (int32_t i = 0; i < x->nloops; i++) {
        IPU_TRY(ipu__engine_new_replica(x->loops[i].body.program, e->replica,
                                        e->replicas, &e->loops[i].body));
        if (x->loops[i].condition.program)
            IPU_TRY(ipu_engine_new(x->loops[i].condition.program,
                                   &e->loops[i].condition));
    }
    return IPU_OK;
}

static int init(ipu_engine *e, const ipu_executable *executable)
{
    size_t nstreams = (size_t)executable->nstreams + 1;

    e->executable = executable;
    e->host = calloc(nstreams, sizeof *e->host);
    if (!e->host)
        return ipu__fail_memory(nstreams * sizeof *e->host);
    IPU_TRY(ipu__calls_init(&e->calls, executable));
    IPU_TRY(ipu__memory_init(&e->memory, executable));
    e->nqueues = ipu__streams_attach(executable, e->replicas);
    IPU_TRY(e->nqueues);
    return init_loops(e);
}

int ipu_engine_new(const ipu_executable *executable, ipu_engine **engine)
{
    return ipu__engine_new_replica(executable, 0, 1, engine);
}

int ipu__engine_new_replica(const ipu_executable *executable, int32_t replica,
                            int32_t replicas, ipu_engine **engine)
{
    struct ipu_engine *e;
    int status;

    if (!executable || !engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "engine: %s is NULL",
                         executable ? "the place for an engine"
                                    : "the executable");
    e = calloc(1, sizeof *e);
    if (!e)
        return ipu__fail_memory(sizeof *e);
    e->replica = replica;
    e->replicas = replicas;
    status = init(e, executable);
    if (status < 0) {
        ipu_engine_free(e);
        return status;
    }
    ipu__threads_apply();
    *engine = e;
    return IPU_OK;
}

void ipu_engine_free(ipu_engine *engine)
{
    if (!engine)
        return;
    for (int32_t i = 0; engine->loops && i < engine->executable->nloops; i++) {
        ipu_engine_free(engine->loops[i].body);
        ipu_engine_free(engine->loops[i].condition);
    }
    free(engine->loops);
    if (engine->nqueues > 0)
        ipu__streams_detach(engine->executable, engine->nqueues);
    ipu__memory_fini(&engine->memory);
    ipu__counts_free(engine->counts);
    free(engine->host);
    ipu__calls_fini(&engine->calls);
    free(engine);
}

/* ------------------------------------------------------- names of the host's
 */

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
    const struct ipu_executable *x = engine->executable;

    for (int32_t v = 0; v < x->nvalues; v++)
        if (x->values[v].kind == IPU__VARIABLE &&
            strcmp(x->values[v].name, name) == 0)
            return v;
    return ipu__fail(IPU_ERR_NAME, "there is no variable '%s'", name);
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

/* -------------------------------------------------------- in the host's memory
 */

/* Unless a tensor lives where it is copied from, in the host's memory. */
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != from)
        memcpy(to, from, bytes);
}

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
    if (!data)
        copy(ipu__memory_of(&engine->memory, v), old,
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

int ipu__engine_bind(ipu_engine *engine, const char *name, void *data,
                     size_t bytes)
{
    IPU_TRY(check_given(engine, name));
    return place_variable(engine, name, data, bytes);
}

/* ------------------------------------------------------------------ running */

static int stream_in(ipu_engine *engine)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < x->nstreams; i++) {
        const struct ipu__stream *s = &x->streams[i];

        if (s->kind != IPU__STREAM_IN || s->value < 0)
            continue;
        if (!engine->host[i] && s->bytes > 0)
            return ipu__fail(IPU_ERR_STATE,
                             "input '%s' is not connected: "
                             "ipu_engine_connect it first",
                             s->name);
        copy(ipu__memory_of(&engine->memory, s->value), engine->host[i],
             s->bytes);
    }
    return IPU_OK;
}

/* Whether what looks at a gate runs, this time. */
static bool is_due(const ipu_engine *engine, int32_t gate)
{
    if (!gate)
        return true;
    return *(const int32_t *)ipu__memory_of(&engine->memory, gate - 1) != 0;
}

static void stream_out(ipu_engine *engine)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < x->nstreams; i++) {
        const struct ipu__stream *s = &x->streams[i];

        if (s->kind == IPU__STREAM_OUT && engine->host[i] &&
            is_due(engine, s->gate))
            copy(engine->host[i], ipu__memory_of(&engine->memory, s->value),
                 s->bytes);
    }
}

static int call_host(ipu_engine *engine, const struct ipu__step *step)
{
    const struct ipu__stream *s = &engine->executable->streams[step->stream];
    const struct ipu__value *value = &engine->executable->values[step->output];
    const struct ipu__host_function *call =
        &engine->calls.streams[step->stream];
    void *data = ipu__memory_of(&engine->memory, step->output);
    int status;

    if (engine->host[step->stream]) {
        copy(engine->host[step->stream], data, s->bytes);
        data = engine->host[step->stream];
    }
    status =
        call->fn(call->context, s->name, data, ipu__shape_count(&value->shape));
    if (status >= 0)
        return IPU_OK;
    engine->callback_status = status;
    return ipu__fail(IPU_ERR_CALLBACK, "host call '%s' returned %d", s->name,
                     status);
}

static int compute(ipu_engine *engine, const struct ipu__step *step)
{
    struct ipu__attributes received;
    struct ipu__call call;

    if (step->kind == IPU__FUSED)
        return ipu__run_fused(&engine->memory, step);
    ipu__step_call(engine->executable, step, &call);
    if (step->op == &ipu__host_receive) {
        received = ipu__calls_attributes(&engine->calls, step);
        call.attributes = &received;
    }
    for (int i = 0; i < call.op->ninputs; i++)
        call.inputs[i].data = ipu__memory_of(&engine->memory, step->inputs[i]);
    call.output.data = ipu__memory_of(&engine->memory, step->output);
    call.scratch = engine->memory.scratch;
    call.callback_status = &engine->callback_status;
    return ipu__run_wide(&call);
}

/* A program within a step: one run of it. */
static int run_inner(ipu_engine *engine)
{
    int status = ipu__engine_begin(engine);

    if (status >= 0)
        status = ipu__engine_advance(engine, engine->executable->nsteps);
    return ipu__engine_end(engine, status);
}

static void bind(const ipu_engine *engine, const struct ipu__inner *inner,
                 ipu_engine *to)
{
    for (int32_t i = 0; i < inner->nbound; i++) {
        void *place = ipu__memory_of(&engine->memory, inner->outer[i]);

        if (to->memory.placed[inner->inner[i]] != place)
            ipu__memory_place(&to->memory, inner->inner[i], place);
    }
}

/* Carried values as they begin; and where the body finds what it is bound to.
 */
static void begin_loop(ipu_engine *engine, const struct ipu__loop_code *code,
                       const struct loop *loop)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < code->ncarried; i++) {
        void *to = ipu__memory_of(&engine->memory, code->outputs[i]);
        const void *from = ipu__memory_of(&engine->memory, code->initial[i]);

        if (to != from)
            memcpy(to, from, x->values[code->outputs[i]].bytes);
    }
    bind(engine, &code->body, loop->body);
    if (loop->condition)
        bind(engine, &code->condition, loop->condition);
}

/* Whether there is another iteration. */
static int goes_on(const struct ipu__loop_code *code, const struct loop *loop,
                   int64_t done)
{
    ipu_engine *condition = loop->condition;

    if (!condition || (code->count > 0 && done == code->count))
        return done < code->count;
    IPU_TRY(run_inner(condition));
    return *(const int32_t *)ipu__memory_of(
               &condition->memory, condition->executable->streams[0].value) !=
           0;
}

static int run_loop(ipu_engine *engine, const struct ipu__step *step)
{
    const struct ipu__loop_code *code = ipu__loop_of(engine->executable, step);
    const struct loop *loop = &engine->loops[step->loop];
    int64_t done = 0;
    int status;

    begin_loop(engine, code, loop);
    while ((status = goes_on(code, loop, done)) > 0) {
        status = run_inner(loop->body);
        if (status < 0)
            break;
        done++;
    }
    if (status >= 0)
        return IPU_OK;
    engine->callback_status = loop->body->callback_status;
    return ipu__fail(status, "%s: iteration %" PRId64 ": %s", code->name, done,
                     ipu_last_error());
}

static int run_step(ipu_engine *engine, const struct ipu__step *step)
{
    if (!is_due(engine, step->gate))
        return IPU_OK;
    switch (step->kind) {
    case IPU__HOST_CALL: return call_host(engine, step);
    case IPU__LOOP: return run_loop(engine, step);
    default: return compute(engine, step);
    }
}

static int run_step_and_look(ipu_engine *engine, int32_t i)
{
    const struct ipu__step *step = &engine->executable->steps[i];

    IPU_TRY(run_step(engine, step));
    if (engine->meet && step->kind == IPU__COMPUTE && step->op->collective &&
        is_due(engine, step->gate))
        IPU_TRY(engine->meet(engine->meet_context, engine->replica, step,
                             &engine->executable->values[step->output].shape,
                             ipu__memory_of(&engine->memory, step->output)));
    if (engine->counts)
        ipu__counts_step(engine->counts, i,
                         step->kind == IPU__HOST_CALL ||
                             step->op == &ipu__host_receive);
    return ipu__memory_after(&engine->memory, i);
}

void ipu__engine_meet(ipu_engine *engine, ipu__meet_fn meet, void *context)
{
    for (int32_t i = 0; i < engine->executable->nloops; i++) {
        ipu_engine *body = engine->loops[i].body;

        body->meet = meet;
        body->meet_context = context;
        ipu__engine_meet(body, meet, context);
    }
}

int ipu__engine_begin(ipu_engine *engine)
{
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: a host call cannot run it");
    engine->running = true;
    engine->callback_status = 0;
    engine->next_step = 0;
    ipu__memory_before(&engine->memory);
    if (engine->counts)
        ipu__counts_begin(engine->counts);
    IPU_TRY(ipu__calls_check(&engine->calls));
    IPU_TRY(stream_in(engine));
    IPU_TRY(ipu__streams_take(&engine->memory, engine->replica,
                              &engine->callback_status));
    if (engine->counts)
        ipu__counts_input(engine->counts);
    return IPU_OK;
}

int ipu__engine_advance(ipu_engine *engine, int32_t until)
{
    while (engine->next_step < until)
        IPU_TRY(run_step_and_look(engine, engine->next_step++));
    return IPU_OK;
}

int ipu__engine_end(ipu_engine *engine, int status)
{
    if (status >= 0) {
        stream_out(engine);
        status = ipu__streams_give(&engine->memory, engine->replica);
    }
    if (engine->counts)
        ipu__counts_end(engine->counts, status >= 0);
    engine->running = false;
    return status;
}

void ipu__engine_begin_queues(const ipu_engine *engine)
{
    ipu__streams_begin(engine->executable);
    for (int32_t i = 0; i < engine->executable->nloops; i++)
        ipu__engine_begin_queues(engine->loops[i].body);
}

void ipu__engine_end_queues(const ipu_engine *engine, int status)
{
    for (int32_t i = 0; i < engine->executable->nloops; i++)
        ipu__engine_end_queues(engine->loops[i].body, status);
    ipu__streams_end(engine->executable, status);
}

int ipu_engine_run(ipu_engine *engine)
{
    int status;

    if (!engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "the engine is NULL");
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: a host call cannot run it");
    ipu__engine_begin_queues(engine);
    status = run_inner(engine);
    ipu__engine_end_queues(engine, status);
    return status;
}

bool ipu__engine_is_due(const ipu_engine *engine, int32_t step)
{
    return is_due(engine, engine->executable->steps[step].gate);
}

void *ipu__engine_value(ipu_engine *engine, int32_t value)
{
    return ipu__memory_of(&engine->memory, value);
}

const ipu_executable *ipu__engine_executable(const ipu_engine *engine)
{
    return engine->executable;
}

bool ipu__engine_is_running(const ipu_engine *engine)
{
    return engine->running;
}

int ipu_engine_callback_status(const ipu_engine *engine)
{
    return engine ? engine->callback_status : 0;
}

/* ----------------------------------------------------------------- counting
 */

const ipu_engine *ipu__engine_body(const ipu_engine *engine, int32_t step)
{
    const struct ipu__step *s = &engine->executable->steps[step];

    return s->kind == IPU__LOOP ? engine->loops[s->loop].body : NULL;
}

/* The bodies of loops, too. */
static int profile_loops(const ipu_engine *engine, int32_t on)
{
    for (int32_t i = 0; i < engine->executable->nloops; i++)
        IPU_TRY(ipu_engine_profile(engine->loops[i].body, on));
    return IPU_OK;
}

int ipu_engine_profile(ipu_engine *engine, int32_t on)
{
    struct ipu__counts *counts = NULL;

    if (!engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "the engine is NULL");
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE, "the engine is running: whether it "
                                        "counts is decided between runs");
    IPU_TRY(profile_loops(engine, on));
    if (on) {
        counts = ipu__counts_new(engine->executable->nsteps);
        if (!counts)
            return ipu__fail_memory(sizeof *counts);
    }
    ipu__counts_free(engine->counts);
    engine->counts = counts;
    return IPU_OK;
}

static int check_counts(const ipu_engine *engine)
{
    if (!engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "the engine is NULL");
    if (engine->counts)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE, "the engine does not count: "
                                    "ipu_engine_profile starts that");
}

int ipu_engine_get_times(const ipu_engine *engine, ipu_engine_times *times)
{
    const struct ipu__counts *c;

    IPU_TRY(check_counts(engine));
    if (!times)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for times is NULL");
    IPU_TRY(ipu__check_size("times", times->size, sizeof *times));
    c = engine->counts;
    *times = (ipu_engine_times){.size = times->size,
                                .runs = c->runs,
                                .run_ns = c->run_ns,
                                .fastest_ns = c->fastest_ns,
                                .input_ns = c->input_ns,
                                .output_ns = c->output_ns,
                                .call_ns = c->call_ns,
                                .between_ns = ipu__counts_between(c)};
    return IPU_OK;
}

int64_t ipu_engine_step_ns(const ipu_engine *engine, int32_t step)
{
    IPU_TRY(check_counts(engine));
    if (step < 0 || step >= engine->counts->nsteps)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "there is no step %d: the program has 0 to %d",
                         (int)step, (int)engine->counts->nsteps - 1);
    return engine->counts->step_ns[step];
}
