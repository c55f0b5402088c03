/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - queries on a compiled program's memory layout: blocks, categories,
 * tenants. Programs and reports call them; compile.c and file/ fill in tenants.
 */
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "target/target.h"

const char *ipu_category_name(ipu_category category)
{
    static const char *const names[IPU_NUM_CATEGORIES] = {
        [IPU_CATEGORY_VARIABLES] = "variables",
        [IPU_CATEGORY_CONSTANTS] = "constants",
        [IPU_CATEGORY_INPUTS] = "inputs",
        [IPU_CATEGORY_RESULTS] = "results",
        [IPU_CATEGORY_TEMPORARY] = "temporary",
        [IPU_CATEGORY_CODE] = "code",
        [IPU_CATEGORY_EXCHANGE_CODE] = "exchange_code",
        [IPU_CATEGORY_STATE] = "state",
    };

    return category >= 0 && category < IPU_NUM_CATEGORIES ? names[category]
                                                          : NULL;
}

int ipu__find_tenants(struct ipu_executable *e)
{
    IPU_TRY(
        ipu__new_array(&e->tenants, (size_t)e->nblocks, sizeof *e->tenants));
    for (int32_t b = 0; b < e->nblocks; b++)
        e->tenants[b].first = -1;
    for (int32_t v = 0; v < e->nvalues; v++) {
        struct ipu__tenants *tenants = &e->tenants[e->values[v].block];

        tenants->count++;
        if (e->values[v].opens)
            tenants->first = v;
    }
    return IPU_OK;
}

int ipu_executable_blocks(const ipu_executable *executable)
{
    if (!executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "blocks: the executable is NULL");
    return executable->nblocks;
}

static int check_block(const ipu_executable *e, int32_t block)
{
    if (!e)
        return ipu__fail(IPU_ERR_ARGUMENT, "block: the executable is NULL");
    if (block < 0 || block >= e->nblocks)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "there is no block %d: the program has 0 to %d",
                         (int)block, (int)e->nblocks - 1);
    return IPU_OK;
}

static ipu_category category_of(const struct ipu__value *value)
{
    switch (value->kind) {
    case IPU__VARIABLE: return IPU_CATEGORY_VARIABLES;
    case IPU__CONSTANT: return IPU_CATEGORY_CONSTANTS;
    case IPU__INPUT: return IPU_CATEGORY_INPUTS;
    default: return IPU_CATEGORY_RESULTS;
    }
}

static const char *maker_of(const ipu_executable *e,
                            const struct ipu__value *value)
{
    if (value->kind != IPU__RESULT || value->birth < 0)
        return NULL;
    return ipu__step_name(&e->steps[value->birth]);
}

static void tell_value(const ipu_executable *e, const struct ipu__value *v,
                       ipu_block_info *info)
{
    info->category = category_of(v);
    info->tensor = v->name;
    info->op = maker_of(e, v);
    info->file = v->file;
    info->line = v->line;
    info->module = v->module;
    info->dtype = v->shape.dtype;
    info->ndim = v->shape.ndim;
    memcpy(info->shape, v->shape.extents,
           (size_t)v->shape.ndim * sizeof *info->shape);
}

int ipu_executable_block(const ipu_executable *executable, int32_t block,
                         ipu_block_info *info)
{
    const struct ipu__block *b;
    const struct ipu__tenants *tenants;
    uint32_t size;

    IPU_TRY(check_block(executable, block));
    if (!info)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "block: the place for the info is NULL");
    IPU_TRY(ipu__check_size("block info", info->size, sizeof *info));
    b = &executable->blocks[block];
    size = info->size;
    *info = (ipu_block_info){.size = size,
                             .bytes = (int64_t)b->bytes,
                             .birth = b->birth,
                             .death = b->death,
                             .always_live = b->always};
    tenants = &executable->tenants[block];
    info->tensors = tenants->count;
    if (tenants->first >= 0)
        tell_value(executable, &executable->values[tenants->first], info);
    return IPU_OK;
}

int64_t ipu_executable_block_on_tile(const ipu_executable *executable,
                                     int32_t block, int32_t tile)
{
    IPU_TRY(check_block(executable, block));
    IPU_TRY(ipu__check_tile(executable, tile));
    return ipu__bytes_on_tile(executable, &executable->blocks[block], tile);
}
