/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - a device with an executable loaded: made, freed, queried.
 *
 * The body of a loop is a program with an engine of its own, which the engine
 * of the program around it owns.
 */
#include "engine/state.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/streams.h"

static int init_loops(ipu_engine *e)
{
    const struct ipu_executable *x = e->executable;

    IPU_TRY(ipu__new_array(&e->loops, (size_t)x->nloops, sizeof *e->loops));
    for (int32_t i = 0; i < x->nloops; i++) {
        IPU_TRY(ipu__engine_new_replica(x->loops[i].body.program, e->replica,
                                        e->replicas, &e->loops[i].body));
        if (x->loops[i].condition.program)
            IPU_TRY(ipu__engine_new_replica(x->loops[i].condition.program,
                                            e->replica, e->replicas,
                                            &e->loops[i].condition));
    }
    return IPU_OK;
}

static int engine_init(ipu_engine *e, const ipu_executable *executable)
{
    size_t nstreams = (size_t)executable->nstreams + 1;

    e->executable = executable;
    IPU_TRY(ipu__new_array(&e->host, nstreams, sizeof *e->host));
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
    IPU_TRY(ipu__kernels_check());
    IPU_TRY(ipu__new(&e, sizeof *e));
    e->replica = replica;
    e->replicas = replicas;
    status = engine_init(e, executable);
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

int64_t ipu_engine_packed_bytes(const ipu_engine *engine)
{
    int64_t bytes = 0;

    if (!engine)
        return 0;
    for (int32_t i = 0; i < engine->executable->nloops; i++)
        bytes += ipu_engine_packed_bytes(engine->loops[i].body) +
                 ipu_engine_packed_bytes(engine->loops[i].condition);
    return bytes + ipu__memory_packed_bytes(&engine->memory);
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

const ipu_engine *ipu__engine_body(const ipu_engine *engine, int32_t step)
{
    const struct ipu__step *s = &engine->executable->steps[step];

    return s->kind == IPU__LOOP ? engine->loops[s->loop].body : NULL;
}
