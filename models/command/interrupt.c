/* SPDX-License-Identifier: Apache-2.0 */
#include "command/interrupt.h"

#include "output/outfile.h"

#include <hvd_progress.h>
#include <signal.h>
#include <stddef.h>

/* Makes async-signal-safe calls only. The default action is already back
 * (SA_RESETHAND), and the raised signal arrives when the handler returns. */
static void end_by_signal(int number)
{
    outfile_remove_pending();
    hvd_progress_interrupt();
    raise(number);
}

void interrupt_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        struct sigaction action = {.sa_handler = end_by_signal,
                                   .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        /* A signal that nohup or a shell had ignored stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}
