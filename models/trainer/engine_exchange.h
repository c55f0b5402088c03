/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_exchange.h - connects a program of the device to an exchange: each
 * gradient leaves by a host call as soon as it is computed, and its average is
 * received before the optimiser needs it.
 */
#ifndef MODELS_ENGINE_EXCHANGE_H
#define MODELS_ENGINE_EXCHANGE_H

#include "model/model.h"
#include "trainer/exchange.h"
#include "trainer/program.h"

struct engine_exchange {
    struct exchange *exchange; /* borrowed until fini */
    struct arrival *arrivals;  /* owned, [variables], as the next */
    void **contexts;
    bool averaged;   /* true once this run has its averages */
    double asked_at; /* clock_seconds when this run first asked for averages */
};

/* Returns PROBLEM without memory; fini is accepted then, too. */
int engine_exchange_init(struct engine_exchange *e, const struct model *model,
                         struct exchange *exchange);
void engine_exchange_fini(struct engine_exchange *e);

/* Returns the host's functions for a program (program.h). They use e. */
struct program_exchange engine_exchange_calls(const struct engine_exchange *e);

/* Has the engine compute gradients in the exchange's memory, after the start of
 * the exchange. */
int engine_exchange_place(const struct engine_exchange *e,
                          const struct model *model, ipu_engine *engine);

/* Prepares for a run of the program that begins at now. */
void engine_exchange_begin(struct engine_exchange *e, double now);

#endif
