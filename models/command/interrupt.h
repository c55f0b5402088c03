/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP end the program at once, with
 * nothing left behind: no half-written file, no broken line on the terminal.
 * The process dies by the signal, so that a shell sees 128 + its number.
 */
#ifndef MODELS_INTERRUPT_H
#define MODELS_INTERRUPT_H

void interrupt_install(void);

#endif
