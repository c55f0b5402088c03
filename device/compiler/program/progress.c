/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/progress.h"

#include <string.h>

#include "base/error.h"

int ipu__progress(struct ipu__progress *p, const char *phase, int64_t done,
                  int64_t total)
{
    int status;

    if (!p || !p->fn)
        return IPU_OK;
    if (p->phase && strcmp(p->phase, phase) == 0 && done < p->next &&
        done < total)
        return IPU_OK;
    p->phase = phase;
    p->next = done + (total + 99) / 100;
    status = p->fn(p->context, phase, done, total);
    if (status == 0)
        return IPU_OK;
    return ipu__fail(IPU_ERR_CALLBACK,
                     "compile: stopped during '%s' by the progress function, "
                     "which returned %d",
                     phase, status);
}
