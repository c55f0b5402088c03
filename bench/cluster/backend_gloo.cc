/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_gloo.cc - sums by Gloo over TCP on the loopback interface, at its
 * best: everything that it can prepare is prepared before the clock runs.
 *
 * The ring and the bcube are Gloo's present interface, which wakes a waiting
 * thread; halving and doubling is its former one, which can also poll.
 */
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

extern "C" {
#include "cluster/backend.h"
}

namespace
{

struct State {
    int variant;
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::unique_ptr<gloo::AllreduceOptions> options;
    std::unique_ptr<gloo::Algorithm> algorithm;
    float *values = nullptr;

    ~State()
    {
        std::free(values);
    }
};

bool has_algorithm(int variant)
{
    return variant == BACKEND_GLOO_HALVING || variant == BACKEND_GLOO_POLLING;
}

/* Calls work; writes what it throws. */
template <typename Work> bool attempt(char *error, size_t room, Work work)
{
    try {
        work();
        return true;
    } catch (const std::exception &problem) {
        std::snprintf(error, room, "Gloo: %s", problem.what());
        return false;
    }
}

void *open_gloo(const struct backend *backend,
                const struct backend_place *place, char *error, size_t room)
{
    std::unique_ptr<State> state(new State);
    bool well = attempt(error, room, [&] {
        auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
        gloo::rendezvous::FileStore store(place->directory);

        state->variant = backend->variant;
        state->context = std::make_shared<gloo::rendezvous::Context>(
            place->rank, place->nranks);
        state->context->connectFullMesh(store, device);
        for (int i = 0; i < place->nranks; i++)
            if (backend->variant == BACKEND_GLOO_POLLING && i != place->rank)
                state->context->getPair(i)->setSync(true, true);
    });
    return well ? state.release() : nullptr;
}

float *memory_of_gloo(void *context, size_t bytes)
{
    State *state = static_cast<State *>(context);
    void *memory = nullptr;

    if (posix_memalign(&memory, 64, bytes) == 0)
        state->values = static_cast<float *>(memory);
    return state->values;
}

void choose_options(State *state, size_t count)
{
    using Function = void (*)(void *, const void *, const void *, size_t);

    state->options.reset(new gloo::AllreduceOptions(state->context));
    state->options->setAlgorithm(
        state->variant == BACKEND_GLOO_RING
            ? gloo::AllreduceOptions::Algorithm::RING
            : gloo::AllreduceOptions::Algorithm::BCUBE);
    state->options->setReduceFunction(static_cast<Function>(&gloo::sum<float>));
    state->options->setOutput(state->values, count);
}

int prepare_gloo(void *context, size_t count, char *error, size_t room)
{
    State *state = static_cast<State *>(context);
    bool well = attempt(error, room, [&] {
        /* The one before is closed before its successor opens. */
        state->algorithm.reset();
        if (has_algorithm(state->variant))
            state->algorithm.reset(new gloo::AllreduceHalvingDoubling<float>(
                state->context, std::vector<float *>{state->values},
                static_cast<int>(count)));
        else
            choose_options(state, count);
    });
    return well ? 0 : -1;
}

int run_gloo(void *context, char *error, size_t room)
{
    State *state = static_cast<State *>(context);
    bool well = attempt(error, room, [&] {
        if (state->algorithm)
            state->algorithm->run();
        else
            gloo::allreduce(*state->options);
    });
    return well ? 0 : -1;
}

void close_gloo(void *context)
{
    delete static_cast<State *>(context);
}

} // namespace

extern "C" bool gloo_backend(int variant, struct backend *backend)
{
    static const char *const names[GLOO_BACKENDS][2] = {
        {"gloo_ring_us", "gloo_ring_us: Gloo's ring"},
        {"gloo_bcube_us", "gloo_bcube_us: Gloo's bcube"},
        {"gloo_halving_us", "gloo_halving_us: Gloo's halving and doubling"},
        {"gloo_polling_us", "gloo_polling_us: the same, polling"},
    };

    *backend = {};
    backend->name = names[variant][0];
    backend->text = names[variant][1];
    backend->variant = variant;
    backend->open = open_gloo;
    backend->memory = memory_of_gloo;
    backend->prepare = prepare_gloo;
    backend->run = run_gloo;
    backend->close = close_gloo;
    return true;
}
