/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP end the program, with nothing left
 * behind: no half-written file, no broken line on the terminal. The process
 * dies by the signal, so that a shell sees 128 + its number.
 *
 * It dies at once, unless there is something to finish, such as a log: this is
 * done by a thread that waits for the signal, while the program goes on. A
 * second signal does not wait for that.
 */
#ifndef MODELS_INTERRUPT_H
#define MODELS_INTERRUPT_H

void interrupt_install(void);

/*
 * Has finish(context) be called, by another thread, before a signal ends the
 * process, and at a SIGCONT, by which mpirun announces one: several times,
 * then. NULL: nothing any more. context is borrowed until then. Returns 0, or
 * PROBLEM with the text kept: there is no thread.
 */
int interrupt_finish_by(void (*finish)(void *context), void *context);

/* Between the two finish is not called: for what it uses, too. Hold it for no
 * longer than a file takes to be written: a signal waits. */
void interrupt_hold(void);
void interrupt_release(void);

/* If a signal has come, waits for the end of the process: for a thread that is
 * about to report a failure, which the signal has caused elsewhere. */
void interrupt_wait(void);

#endif
