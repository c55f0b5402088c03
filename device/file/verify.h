/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - is a program that was read one that can run?
 */
#ifndef IPU_FILE_VERIFY_H
#define IPU_FILE_VERIFY_H

#include "compiler/program.h"
#include "file/pack.h"

/* IPU_ERR_DATA says what cannot be. */
int ipu__verify(const struct ipu__reader *reader,
                const struct ipu_executable *executable);

#endif
