/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.h - the modules (ipu_module) of tensors and of values, which are the
 * last section of a file since version 3: their names, each once; then, if
 * there are any, the number of one for each tensor or value, those of loops
 * after those of the graph or program around them (-1: none).
 */
#ifndef IPU_FILE_MODULES_H
#define IPU_FILE_MODULES_H

#include "compiler/program.h"
#include "file/pack.h"

void ipu__put_graph_modules(struct ipu__writer *writer, const ipu_graph *graph);
int ipu__get_graph_modules(struct ipu__reader *reader, ipu_graph *graph);

void ipu__put_program_modules(struct ipu__writer *writer,
                              const ipu_executable *executable);
int ipu__get_program_modules(struct ipu__reader *reader,
                             ipu_executable *executable);

#endif
