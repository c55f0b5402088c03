/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - loops as steps of a program.
 *
 * A loop is one step. Its body is a separate program (bodies.c), which the
 * engine runs count times. Values of the body that are imported or carried have
 * no memory in it: they are bound to values of the outer program.
 */
#include "base/error.h"
#include "compiler/program.h"

const struct ipu__loop_code *ipu__loop_of(const struct ipu_executable *e,
                                          const struct ipu__step *step)
{
    return step->kind == IPU__LOOP ? &e->loops[step->loop] : NULL;
}

int32_t ipu__loop_read(const struct ipu_executable *e,
                       const struct ipu__step *step, int32_t i)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);

    if (!loop)
        return -1;
    if (i < loop->ncarried)
        return loop->initial[i];
    i -= loop->ncarried;
    if (i < loop->body.nbound)
        return loop->body.outer[i];
    i -= loop->body.nbound;
    return i < loop->condition.nbound ? loop->condition.outer[i] : -1;
}

int32_t ipu__loop_makes(const struct ipu_executable *e,
                        const struct ipu__step *step, int32_t i)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);

    return loop && i < loop->ncarried ? loop->outputs[i] : -1;
}

int64_t ipu__loop_times(const struct ipu__loop_code *loop)
{
    return loop->condition.program && loop->count == 0 ? 1 : loop->count;
}

int ipu_executable_body(const ipu_executable *executable, int32_t step,
                        const ipu_executable **body, int64_t *count)
{
    const struct ipu__loop_code *loop;

    if (!executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "body: the executable is NULL");
    IPU_TRY(ipu__check_step(executable, step));
    loop = ipu__loop_of(executable, &executable->steps[step]);
    if (body)
        *body = loop ? loop->body.program : NULL;
    if (count)
        *count = loop ? ipu__loop_times(loop) : 1;
    return loop != NULL;
}
