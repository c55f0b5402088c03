/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variables.c - finds the variables of each IPU.
 *
 * All programs of an IPU share the variables of the same name: the update
 * writes a weight, and both directions of a stage read it. If two stages have a
 * variable of the same name, both must be on the same IPU and give it the same
 * shape. The number of the replica is an exception: it does not change, and
 * each IPU has it. Each IPU also has its own copy of the variables that only
 * updates make, such as steps and momenta.
 */
#include <stdio.h>
#include <string.h>

#include "compiler/program.h"
#include "pipeline/pipeline.h"

void ipu__accumulator_name(const char *variable, char *name)
{
    snprintf(name, IPU__NAME_MAX, "%.480s/accumulator", variable);
}

bool ipu__is_accumulator(const char *name)
{
    const char *last = strrchr(name, '/');

    return last && strcmp(last, "/accumulator") == 0;
}

struct ipu__variable *ipu__chip_variable(const struct ipu__chip *chip,
                                         const char *name)
{
    for (int32_t i = 0; i < chip->nvariables; i++)
        if (strcmp(chip->variables[i].name, name) == 0)
            return &chip->variables[i];
    return NULL;
}

static int add_variable(struct ipu__chip *chip, const struct ipu__value *value,
                        int32_t part)
{
    struct ipu__variable made = {.shape = value->shape,
                                 .bytes = value->bytes,
                                 .share_of = IPU__NONE,
                                 .part = part};

    IPU_TRY(ipu__reserve((void **)&chip->variables, chip->nvariables,
                         &chip->variable_capacity, sizeof *chip->variables));
    made.name = strdup(value->name);
    if (!made.name)
        return ipu__fail_memory(strlen(value->name));
    chip->variables[chip->nvariables++] = made;
    return IPU_OK;
}

/* Collects the variables of one program. part: the program's part, or -1: the
 * update. */
static int collect_variables(struct ipu_pipeline *p, struct ipu__chip *chip,
                             const ipu_executable *e, int32_t part)
{
    for (int32_t v = 0; e && v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];
        struct ipu__variable *known;

        if (value->kind != IPU__VARIABLE)
            continue;
        known = ipu__chip_variable(chip, value->name);
        /* The update has only a share of a shared variable. */
        if (known && part < 0 && known->trained &&
            ipu__share_elements(p, &known->shape) > 0)
            continue;
        if (!known) {
            IPU_TRY(add_variable(chip, value, part));
            known = &chip->variables[chip->nvariables - 1];
        }
        if (!ipu__shape_equal(&known->shape, &value->shape))
            return ipu__fail(
                IPU_ERR_NAME,
                "pipeline: the variable '%s' is %s in %s%s and %s in %s%s",
                value->name, ipu__shape_print(&known->shape).text,
                known->part < 0 ? "the update" : "stage ",
                known->part < 0 ? "" : p->parts[known->part].name,
                ipu__shape_print(&value->shape).text,
                part < 0 ? "the update" : "stage ",
                part < 0 ? "" : p->parts[part].name);
        known->resident |= part >= 0;
    }
    return IPU_OK;
}

static int mark_roles(struct ipu__chip *chip,
                      const struct ipu__stage_part *part)
{
    const ipu_graph *g = part->joint;

    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].kind == IPU__VARIABLE) {
            struct ipu__variable *v =
                ipu__chip_variable(chip, g->tensors[t].name);

            v->staged = true;
            v->advanced |=
                g->tensors[t].renews >= 0; /* a loop or a store assigns it */
        }
    for (int32_t i = 0; i < g->nassigns; i++)
        ipu__chip_variable(chip, g->tensors[g->assigns[i].variable].name)
            ->advanced = true;
    for (int32_t i = 0; i < part->ntrained; i++)
        if (part->trained[i].gradient.id >= 0)
            ipu__chip_variable(chip, part->trained[i].name)->trained = true;
    return IPU_OK;
}

/* Marks which variable a share belongs to. */
static void mark_shares(struct ipu__chip *chip)
{
    for (int32_t i = 0; i < chip->nstates; i++) {
        struct ipu__variable *state =
            ipu__chip_variable(chip, chip->states[i].name);
        const struct ipu__variable *of =
            ipu__chip_variable(chip, chip->states[i].of);

        if (state)
            state->share_of = (int32_t)(of - chip->variables);
    }
}

static int check_shared(const struct ipu_pipeline *p, const struct ipu__chip *a,
                        const struct ipu__chip *b)
{
    for (int32_t i = 0; i < a->nvariables; i++) {
        const struct ipu__variable *one = &a->variables[i], *other;

        other = one->staged ? ipu__chip_variable(b, one->name) : NULL;
        if (other && other->staged &&
            strcmp(one->name, IPU__REPLICA_INDEX) != 0)
            return ipu__fail(IPU_ERR_NAME,
                             "pipeline: the variable '%s' is used by stage %s "
                             "on IPU %d and by stage %s on IPU %d: stages that "
                             "share a variable must be on the same IPU",
                             one->name, p->parts[one->part].name, (int)a->ipu,
                             p->parts[other->part].name, (int)b->ipu);
    }
    return IPU_OK;
}

/* Returns true if the update can fail after it has begun on some IPU. */
static bool may_fail(const ipu_executable *e)
{
    for (int32_t i = 0; e && i < e->nsteps; i++)
        if (e->steps[i].kind == IPU__HOST_CALL ||
            (e->steps[i].kind == IPU__COMPUTE && e->steps[i].op->checks))
            return true; /* fused steps do not fail */
    for (int32_t i = 0; e && i < e->nloops; i++)
        if (may_fail(e->loops[i].body.program) ||
            may_fail(e->loops[i].condition.program))
            return true;
    return e && e->nfeeds > 0;
}

/* Returns true if a chip before this one has a variable of the same name. */
static bool is_before(const struct ipu_pipeline *p, int32_t chip,
                      const struct ipu__variable *v)
{
    for (int32_t c = 0; c < chip; c++)
        if (ipu__chip_variable(&p->chips[c], v->name))
            return true;
    return false;
}

int ipu__pipeline_variables(struct ipu_pipeline *p)
{
    bool fragile = false;

    for (int32_t c = 0; c < p->nchips; c++) {
        struct ipu__chip *chip = &p->chips[c];

        for (int32_t i = 0; i < p->nparts; i++) {
            struct ipu__stage_part *part = &p->parts[i];

            if (part->ipu != chip->ipu)
                continue;
            IPU_TRY(collect_variables(p, chip, part->forward, i));
            IPU_TRY(collect_variables(p, chip, part->backward, i));
            IPU_TRY(mark_roles(chip, part));
        }
        IPU_TRY(collect_variables(p, chip, chip->update, -1));
        mark_shares(chip);
        fragile |= may_fail(chip->update);
        for (int32_t b = 0; b < c; b++)
            IPU_TRY(check_shared(p, &p->chips[b], chip));
    }
    for (int32_t c = 0; c < p->nchips; c++)
        for (int32_t i = 0; i < p->chips[c].nvariables; i++) {
            struct ipu__variable *v = &p->chips[c].variables[i];

            v->saved = fragile || v->advanced;
            v->first = !ipu__is_accumulator(v->name) && !is_before(p, c, v);
        }
    return IPU_OK;
}
