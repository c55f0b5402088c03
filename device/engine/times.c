/* SPDX-License-Identifier: Apache-2.0 */
/* The times that an engine reports: of runs, of steps. */
#include "base/error.h"
#include "engine/state.h"

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
    IPU_TRY(ipu__check_step(engine->executable, step));
    return engine->counts->step_ns[step];
}
