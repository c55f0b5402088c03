/* SPDX-License-Identifier: Apache-2.0 */
#include "log/sink.h"

#include "output/problem.h"

int log_no_memory(void)
{
    return problem_fail(HVD_ERR_MEMORY, "a log: out of memory");
}
