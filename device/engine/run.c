/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - runs a program.
 *
 * A run copies the inputs in, goes through the steps, and copies the outputs
 * out. A host call happens when its step comes: the tensor is copied to the
 * host memory connected to it, or shown where it is, while the steps after it
 * have yet to run.
 *
 * A run that fails (a host call, a label out of range) leaves the variables as
 * they were: the compiler puts all that can fail before the first step that
 * writes one. The next run starts anew.
 *
 * Before a loop, the engine of its body gets the addresses of the memory that
 * its values are bound to. An iteration is a run of it, so a loop that fails
 * leaves variables as the iteration before has left them.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/state.h"
#include "engine/streams.h"
#include "engine/sums.h"
#include "kernels/subnormals.h"
#include "ops/half.h"

/* Unless a tensor lives where it is copied from, in the host's memory. */
static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != from)
        memcpy(to, from, bytes);
}

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
        copy_bytes(ipu__memory_of(&engine->memory, s->value), engine->host[i],
                   s->bytes);
    }
    return IPU_OK;
}

/* Returns whether steps that look at the gate run this time. */
static bool is_due(const ipu_engine *engine, int32_t gate)
{
    if (gate < 0)
        return true;
    return *(const int32_t *)ipu__memory_of(&engine->memory, gate) != 0;
}

bool ipu__engine_is_due(const ipu_engine *engine, int32_t step)
{
    return is_due(engine, engine->executable->steps[step].gate);
}

static void stream_out(ipu_engine *engine)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < x->nstreams; i++) {
        const struct ipu__stream *s = &x->streams[i];

        if (s->kind == IPU__STREAM_OUT && engine->host[i] &&
            is_due(engine, s->gate))
            copy_bytes(engine->host[i],
                       ipu__memory_of(&engine->memory, s->value), s->bytes);
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
        copy_bytes(engine->host[step->stream], data, s->bytes);
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

static int run_op(ipu_engine *engine, const struct ipu__step *step)
{
    struct ipu__attributes received;
    struct ipu__call call;

    ipu__step_call(engine->executable, step, &call);
    if (step->op == &ipu__host_receive) {
        received = ipu__calls_attributes(&engine->calls, step);
        call.attributes = &received;
    }
    for (int i = 0; i < call.op->ninputs; i++)
        call.inputs[i].data = ipu__memory_of(&engine->memory, step->inputs[i]);
    call.output.data = ipu__memory_of(&engine->memory, step->output);
    call.scratch = engine->memory.scratch;
    call.packed = ipu__memory_packed(&engine->memory, step);
    call.sums = ipu__sums_of(engine->memory.sums, &engine->memory, step);
    call.callback_status = &engine->callback_status;
    if (call.op->network)
        return ipu__network_run(engine->network, &call);
    return ipu__run_wide(&call);
}

/* Returns whether the step calls a function that is not the device's. */
static bool calls_out(const struct ipu__step *step)
{
    return step->kind != IPU__FUSED &&
           (step->op == &ipu__host_receive || step->op->network);
}

static int compute_step(ipu_engine *engine, const struct ipu__step *step)
{
    unsigned mode;
    int status;

    if (calls_out(step))
        return run_op(engine, step);
    mode = hvd__subnormals_flush();
    status = step->kind == IPU__FUSED ? ipu__run_fused(&engine->memory, step)
                                      : run_op(engine, step);
    hvd__subnormals_restore(mode);
    return status;
}

/* A program within a step: one run of it. */
static int run_inner(ipu_engine *engine)
{
    int status = ipu__engine_begin(engine);

    if (status >= 0)
        status = ipu__engine_advance(engine, engine->executable->nsteps);
    return ipu__engine_end(engine, status);
}

static void bind_values(const ipu_engine *engine,
                        const struct ipu__inner *inner, ipu_engine *to)
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
                       const struct ipu__loop_engines *loop)
{
    const struct ipu_executable *x = engine->executable;

    for (int32_t i = 0; i < code->ncarried; i++) {
        void *to = ipu__memory_of(&engine->memory, code->outputs[i]);
        const void *from = ipu__memory_of(&engine->memory, code->initial[i]);

        if (to != from)
            memcpy(to, from, x->values[code->outputs[i]].bytes);
    }
    bind_values(engine, &code->body, loop->body);
    if (loop->condition)
        bind_values(engine, &code->condition, loop->condition);
}

/* Returns whether there is another iteration. */
static int goes_on(const struct ipu__loop_code *code,
                   const struct ipu__loop_engines *loop, int64_t done)
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
    const struct ipu__loop_engines *loop = &engine->loops[step->loop];
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
    default: return compute_step(engine, step);
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
                             step->op == &ipu__host_receive ||
                             step->op->network == IPU__ARRIVES);
    return ipu__memory_after(&engine->memory, i);
}

/* Sets the meeting in a loop's body or condition, and in the loops within. */
static void meet_within(ipu_engine *inner, ipu__meet_fn meet, void *context)
{
    if (!inner)
        return;
    inner->meet = meet;
    inner->meet_context = context;
    ipu__engine_meet(inner, meet, context);
}

void ipu__engine_meet(ipu_engine *engine, ipu__meet_fn meet, void *context)
{
    for (int32_t i = 0; i < engine->executable->nloops; i++) {
        meet_within(engine->loops[i].body, meet, context);
        meet_within(engine->loops[i].condition, meet, context);
    }
}

int ipu__engine_begin(ipu_engine *engine)
{
    engine->running = true;
    engine->callback_status = 0;
    engine->next_step = 0;
    ipu__memory_before(&engine->memory);
    if (engine->counts)
        ipu__counts_begin(engine->counts);
    IPU_TRY(ipu__calls_check(&engine->calls));
    IPU_TRY(ipu__network_check_run(engine->network, engine->executable));
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
        return ipu__fail(IPU_ERR_ARGUMENT, "run: the engine is NULL");
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: a host call cannot run it");
    ipu__engine_begin_queues(engine);
    status = run_inner(engine);
    if (status < 0)
        ipu__network_abandon(engine->network);
    ipu__engine_end_queues(engine, status);
    return status;
}
