/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - planned and hostile memory.
 *
 * The planned one is a single piece in which values lie where the compiler put
 * them, sharing space. If the plan is wrong, an op reads what another has
 * overwritten, and numbers are wrong somewhere.
 *
 * The hostile one finds out where. Every value has a piece of its own, with
 * canaries on both sides; when the plan says that a value is dead, it is filled
 * with NaN, and so is everything at the start of a run. Results must not
 * change.
 */
#include "engine/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "engine/sums.h"

enum { CANARY = 0xa5, NAN_BYTE = 0xff, HUGE_PAGE = 2 << 20 };

/* Memory of several huge pages asks for them: filling it takes a page fault for
 * each 2 MiB, and passes over large tensors fewer entries of the TLB. A kernel
 * without them leaves it in small ones. */
static void *allocate_bytes(size_t bytes)
{
    size_t unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : IPU__ALIGNMENT;
    size_t rounded = (bytes ? bytes + unit - 1 : unit) / unit * unit;
    void *memory = aligned_alloc(unit, rounded);

    if (memory && unit == HUGE_PAGE)
        madvise(memory, rounded, MADV_HUGEPAGE);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

static bool is_hostile(void)
{
    const char *text = getenv("IPU_POISON");

    return text && text[0] && strcmp(text, "0") != 0;
}

static int init_hostile(struct ipu__memory *m)
{
    const struct ipu_executable *x = m->executable;

    IPU_TRY(ipu__new_array(&m->own, (size_t)x->nvalues, sizeof *m->own));
    for (int32_t v = 0; v < x->nvalues; v++) {
        const struct ipu__value *value = &x->values[v];

        if (value->inner || value->bound)
            continue;
        m->own[v] = allocate_bytes(value->bytes + 2 * IPU__ALIGNMENT);
        if (!m->own[v])
            return ipu__fail_memory(value->bytes);
        memset(m->own[v], CANARY, value->bytes + 2 * IPU__ALIGNMENT);
        memset(m->own[v] + IPU__ALIGNMENT, 0, value->bytes);
    }
    return IPU_OK;
}

int ipu__memory_init(struct ipu__memory *m,
                     const struct ipu_executable *executable)
{
    m->executable = executable;
    IPU_TRY(ipu__new_array(&m->placed, (size_t)executable->nvalues,
                           sizeof *m->placed));
    IPU_TRY(ipu__new_array(&m->packed, (size_t)executable->nsteps,
                           sizeof *m->packed));
    IPU_TRY(ipu__sums_new(executable, &m->sums));
    m->scratch = allocate_bytes(executable->scratch_bytes);
    if (!m->scratch)
        return ipu__fail_memory(executable->scratch_bytes);
    if (is_hostile()) {
        IPU_TRY(init_hostile(m));
    } else {
        m->planned = allocate_bytes(executable->memory_bytes);
        if (!m->planned)
            return ipu__fail_memory(executable->memory_bytes);
    }
    for (int32_t v = 0; v < executable->nvalues; v++)
        if (executable->values[v].data)
            memcpy(ipu__memory_of(m, v), executable->values[v].data,
                   executable->values[v].bytes);
    return IPU_OK;
}

void ipu__memory_fini(struct ipu__memory *m)
{
    if (m->own)
        for (int32_t v = 0; v < m->executable->nvalues; v++)
            free(m->own[v]);
    if (m->packed)
        for (int32_t i = 0; i < m->executable->nsteps; i++)
            free(m->packed[i].data);
    free(m->packed);
    ipu__sums_free(m->sums);
    free(m->own);
    free(m->planned);
    free(m->scratch);
    free(m->placed);
}

void ipu__memory_place(struct ipu__memory *m, int32_t value, void *data)
{
    const struct ipu_executable *x = m->executable;

    for (int32_t v = 0; v < x->nvalues; v++)
        if (v == value ||
            (!m->own && x->values[v].block == x->values[value].block))
            m->placed[v] = data;
}

void *ipu__memory_of(const struct ipu__memory *m, int32_t value)
{
    const struct ipu_executable *x = m->executable;

    if (m->placed[value])
        return m->placed[value];
    if (m->own)
        return m->own[value] + IPU__ALIGNMENT;
    return m->planned + x->blocks[x->values[value].block].offset;
}

struct ipu__packed *ipu__memory_packed(const struct ipu__memory *m,
                                       const struct ipu__step *step)
{
    const struct ipu_executable *x = m->executable;
    struct ipu__step_op room;
    const struct ipu__step_op *first = ipu__part_of(x, step, 0, &room);
    int32_t v;

    if (!first->op->product || (step->kind == IPU__FUSED && !step->head))
        return NULL;
    v = first->inputs[1];
    if (x->values[v].kind != IPU__CONSTANT || x->values[v].bound ||
        m->placed[v])
        return NULL;
    return &m->packed[step - x->steps];
}

int64_t ipu__memory_packed_bytes(const struct ipu__memory *m)
{
    int64_t bytes = 0;

    for (int32_t i = 0; i < m->executable->nsteps; i++)
        bytes += (int64_t)m->packed[i].bytes;
    return bytes;
}

void ipu__memory_before(struct ipu__memory *m)
{
    const struct ipu_executable *x = m->executable;

    ipu__sums_begin(m->sums);
    if (!m->own)
        return;
    memset(m->scratch, NAN_BYTE, x->scratch_bytes);
    for (int32_t v = 0; v < x->nvalues; v++)
        if (x->values[v].kind != IPU__VARIABLE &&
            x->values[v].kind != IPU__CONSTANT && m->own[v])
            memset(m->own[v] + IPU__ALIGNMENT, NAN_BYTE, x->values[v].bytes);
}

static bool canaries_are_alive(const unsigned char *memory, size_t bytes)
{
    for (int i = 0; i < IPU__ALIGNMENT; i++)
        if (memory[i] != CANARY ||
            memory[IPU__ALIGNMENT + bytes + (size_t)i] != CANARY)
            return false;
    return true;
}

int ipu__memory_after(struct ipu__memory *m, int32_t step)
{
    const struct ipu_executable *x = m->executable;

    if (!m->own)
        return IPU_OK;
    memset(m->scratch, NAN_BYTE, x->scratch_bytes);
    for (int32_t v = 0; v < x->nvalues; v++) {
        const struct ipu__value *value = &x->values[v];

        if (value->inner || value->bound)
            continue;
        if (!canaries_are_alive(m->own[v], value->bytes))
            return ipu__fail(
                IPU_ERR_STATE, "IPU_POISON: step %d of %s wrote outside of %s",
                (int)step, x->values[x->steps[step].output].name, value->name);
        if (value->death == step)
            memset(m->own[v] + IPU__ALIGNMENT, NAN_BYTE, value->bytes);
    }
    return IPU_OK;
}
