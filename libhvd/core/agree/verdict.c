/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/proposal.h"

/* Describes a variant. For a group it describes the first member that differs.
 */
static const char *describe_variant(const struct hvd__proposal *p,
                                    const struct hvd__statement *v, char *text,
                                    size_t size)
{
    const struct hvd__statement *first = &p->variants[0].what;
    struct hvd__text out = hvd__text_at(text, size);
    char signature[256];
    int other = 0;

    if (v->nsignatures == 1)
        return hvd__signature_print(&v->signatures[0], text, size);
    /* The first member in which any two variants differ. */
    for (int k = 1; k < p->nvariants; k++) {
        int same = 0;
        while (same < first->nsignatures &&
               same < p->variants[k].what.nsignatures &&
               hvd__signature_equal(&first->signatures[same],
                                    &p->variants[k].what.signatures[same]))
            same++;
        if (k == 1 || same < other)
            other = same;
    }
    hvd__text_add(&out, "a group of %d", v->nsignatures);
    if (other < v->nsignatures)
        hvd__text_add(&out, ", whose number %d is %s", other,
                      hvd__signature_print(&v->signatures[other], signature,
                                           sizeof signature));
    return text;
}

void hvd__verdict_differing(struct hvd__text *out,
                            const struct hvd__proposal *p, const int *world,
                            int nranks, bool refused)
{
    char variant[320];

    hvd__text_add(out, refused ? " was refused on " : " differs: ");
    for (int i = 0, first = 1; i < p->nvariants; i++) {
        const struct hvd__statement *v = &p->variants[i].what;

        if (refused && v->status == HVD_OK)
            continue;
        hvd__text_add(out, first ? "" : "; ");
        first = 0;
        hvd__text_add_ranks(out, world, p->of, nranks, i + 1);
        hvd__text_add(out, ": %s",
                      refused
                          ? v->text
                          : describe_variant(p, v, variant, sizeof variant));
    }
    if (!refused)
        hvd__text_add(out, "; all ranks must submit the same");
}

void hvd__verdict_missing(struct hvd__text *out, const int *world,
                          const int *missing, int nranks, const char *why)
{
    hvd__text_add(out, " cannot complete: ");
    hvd__text_add_ranks(out, world, missing, nranks, 1);
    hvd__text_add(out, " %s", why);
}
