/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kind.h"

#include <string.h>

#include "base/status.h"

static const char *const names[HVD_NUM_KINDS] = {
#define X(constant, text, what) [constant] = (text),
    HVD__KINDS(X)
#undef X
};

const uint8_t hvd__kind_what[HVD_NUM_KINDS] = {
#define X(constant, text, what) [constant] = (what),
    HVD__KINDS(X)
#undef X
};

const char *hvd_kind_name(hvd_kind kind)
{
    return kind >= 0 && kind < HVD_NUM_KINDS ? names[kind] : NULL;
}

int hvd_kind_from_name(const char *name)
{
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of a kind is NULL");
    for (int kind = 0; kind < HVD_NUM_KINDS; kind++)
        if (names[kind] && strcmp(name, names[kind]) == 0)
            return kind;
    return hvd__fail(HVD_ERR_ARGUMENT, "there is no kind of request '%s'",
                     name);
}
