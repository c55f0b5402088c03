/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - what other rooms may know of an engine: the door of this room.
 */
#ifndef IPU_ENGINE_ENGINE_H
#define IPU_ENGINE_ENGINE_H

#include "compiler/program.h"

/* What it runs; borrowed. */
const ipu_executable *ipu__engine_executable(const ipu_engine *engine);

/* Within ipu_engine_run. */
bool ipu__engine_is_running(const ipu_engine *engine);

/*
 * Let a variable live in memory that several engines share, borrowed until the
 * engine is freed. Its elements are those of that memory. Only one of the
 * engines may run at a time if one of them assigns it.
 */
int ipu__engine_bind(ipu_engine *engine, const char *name, void *data,
                     size_t bytes);

#endif
