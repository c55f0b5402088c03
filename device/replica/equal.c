/* SPDX-License-Identifier: Apache-2.0 */
/*
 * equal.c - checks that all replicas have the same bits where they must.
 *
 * Variables that each replica has of its own were marked when the graph was
 * built (graph/own.c); compiled programs and files keep the mark.
 */
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "engine/engine.h"
#include "replica/replica.h"

static const char *const reasons[IPU__OWN_REASONS] = {
    [IPU__OWN_SUMS] = "sums that each replica makes until the next update",
    [IPU__OWN_PART] = "the part of the optimiser's state that a replica keeps",
    [IPU__OWN_STATISTICS] = "statistics of the data that a replica has seen",
    [IPU__OWN_CHOICE] = "the program has said that each replica has its own",
};

static const char *reason_of(const struct ipu__value *value)
{
    if (strcmp(value->name, IPU__REPLICA_INDEX) == 0)
        return "the number of the replica";
    return reasons[value->own];
}

/* Returns whether the value is a variable's last state. A loop or a store that
 * changes a variable in place makes another state of the same name, in the same
 * memory. */
static bool is_counted(const ipu_executable *e, int32_t v)
{
    if (e->values[v].kind != IPU__VARIABLE)
        return false;
    for (int32_t i = 0; i < v; i++)
        if (e->values[i].kind == IPU__VARIABLE &&
            strcmp(e->values[i].name, e->values[v].name) == 0)
            return false;
    return true;
}

static int compare_variable(const ipu_replicas *r, int32_t v)
{
    const struct ipu__value *value = &ipu__replicas_program(r)->values[v];
    const unsigned char *first =
        ipu__engine_value(ipu__replicas_engine(r, 0), v);
    size_t width = ipu__dtype_bytes(value->shape.dtype);

    for (int32_t i = 1; i < ipu_replicas_count(r); i++) {
        const unsigned char *other =
            ipu__engine_value(ipu__replicas_engine(r, i), v);
        size_t at = 0;

        while (at < value->bytes && first[at] == other[at])
            at++;
        if (at < value->bytes)
            return ipu__fail(IPU_ERR_DATA,
                             "replicas: element %zu of variable '%s' is not "
                             "the same in replicas 0 and %d",
                             at / width, value->name, (int)i);
    }
    return IPU_OK;
}

int ipu_replicas_check_equal(ipu_replicas *r)
{
    const ipu_executable *e;
    int passed_over = 0;

    IPU_TRY(ipu_replicas_count(r));
    e = ipu__replicas_program(r);
    for (int32_t v = 0; v < e->nvalues; v++) {
        if (!is_counted(e, v))
            continue;
        if (reason_of(&e->values[v]))
            passed_over++;
        else
            IPU_TRY(compare_variable(r, v));
    }
    return passed_over;
}

const char *ipu_replicas_own(const ipu_replicas *r, int32_t number,
                             const char **why)
{
    const ipu_executable *e = r ? ipu__replicas_program(r) : NULL;

    for (int32_t v = 0; e && number >= 0 && v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];

        if (!is_counted(e, v) || !reason_of(value) || number-- > 0)
            continue;
        if (why)
            *why = reason_of(value);
        return value->name;
    }
    return NULL;
}
