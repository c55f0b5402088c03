/* SPDX-License-Identifier: Apache-2.0 */
#include "common/command.h"

#include "common/options.h"
#include "common/problem.h"
#include "common/progress.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void command_complain(const char *program, int status, int rank, int size)
{
    char host[65] = "?";

    if (status == PROBLEM_ELSEWHERE || (status == PROBLEM_EVERYWHERE && rank))
        return;
    gethostname(host, sizeof host - 1);
    if (size > 1 && status == PROBLEM)
        fprintf(stderr, "%s: rank %d (%s): %s\n", program, rank, host,
                problem_text());
    else
        fprintf(stderr, "%s: %s\n", program, problem_text());
}

int command_settle(enum options_program program, int outcome)
{
    int rank = progress_launch_rank();

    if (outcome < 0 && rank > 0) {
        /* mpirun ends all ranks as soon as one fails; let rank 0 speak. */
        usleep(500000);
        return OPTIONS_EXIT_USAGE;
    }
    if (outcome < 0) {
        command_complain(options_name(program), PROBLEM, 0, 1);
        return OPTIONS_EXIT_USAGE;
    }
    if (rank > 0)
        return 0;
    if (outcome == OPTIONS_HELP)
        options_help(program, stdout);
    else
        printf("%s %s\n", options_name(program), HVD_VERSION_STRING);
    return fflush(stdout) != 0;
}

int command_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return problem_set("standard output: %s", strerror(errno));
}
