/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - which status and text a rank must get for a request of the
 * script.
 */
#include <string.h>

#include "hvd.h"
#include "use.h"

/* The first text that a rank got for a request that failed, by request. */
static struct {
    uint64_t what;
    int rank;
    char text[512];
} texts[SCRIPT_OPS];

/* Returns whether the rank that leaves early is a member and has not submitted
 * the request. */
static bool leaver_lacks(const struct context *c)
{
    const struct script_phase *phase = &script.phases[c->phase];

    if (script.leaver < 0 || !script_has_rank(c->op->set, script.leaver) ||
        c->phase < script.leaves_in)
        return false;
    if (c->phase > script.leaves_in)
        return true;
    for (int i = 0; i < script.leaves_after; i++)
        if (phase->orders[script.leaver][i] == c->op->unit)
            return false;
    return true;
}

static int expected_status(const struct context *c)
{
    if (c->op->fault == DIFFERS)
        return HVD_ERR_MISMATCH;
    if (c->op->fault == REFUSED)
        return c->rank == c->op->faulty ? HVD_ERR_ARGUMENT : HVD_ERR_PEER;
    return HVD_OK;
}

/* All ranks must get the same text, which names the request. */
static void check_text(const struct context *c, const char *text, bool named)
{
    uint64_t what = outcome_salt(c);
    char name[32];

    snprintf(name, sizeof name, "'t%d'", c->op->unit);
    if (texts[c->number].what != what) {
        texts[c->number].what = what;
        texts[c->number].rank = c->rank;
        snprintf(texts[c->number].text, sizeof texts[c->number].text, "%s",
                 text);
    }
    if (strncmp(texts[c->number].text, text,
                sizeof texts[c->number].text - 1) != 0)
        sim_fail("phase %d op %d: rank %d is told '%s', rank %d '%s'", c->phase,
                 c->number, texts[c->number].rank, texts[c->number].text,
                 c->rank, text);
    if (named && !strstr(text, name))
        sim_fail("phase %d op %d on rank %d: no name %s in '%s'", c->phase,
                 c->number, c->rank, name, text);
}

void status_check(const struct context *c, int status, const char *text)
{
    const struct script_unit *unit =
        &script.phases[c->phase].units[c->op->unit];
    int want = expected_status(c);
    bool lacks = leaver_lacks(c);

    sim_note((uint64_t)status + outcome_salt(c));
    if (status < 0)
        sim_say("phase %d op %d: %s: %s", c->phase, c->number,
                hvd_strerror(status), text);
    if (script.victim >= 0 &&
        (status == HVD_ERR_LOST ||
         (c->op->set >= 0 && status == HVD_ERR_PROCESS_SET)))
        return;
    if (lacks && status == HVD_ERR_SHUTDOWN)
        return;
    if ((lacks && want == HVD_OK) || status != want) {
        sim_fail("phase %d repeat %d op %d (%s) on rank %d: %s (%s), not %s",
                 c->phase, c->repeat, c->number, hvd_kind_name(c->op->kind),
                 c->rank, hvd_strerror(status), status < 0 ? text : "",
                 hvd_strerror(lacks ? HVD_ERR_SHUTDOWN : want));
        return;
    }
    if (status == HVD_OK)
        use_check(c);
    else if (!lacks && status != HVD_ERR_ARGUMENT && script.victim < 0)
        check_text(c, text, unit->is_named && !unit->is_group);
}

bool status_may_end(const struct context *c, int status)
{
    return (status == HVD_ERR_LOST && script.victim >= 0) ||
           (status == HVD_ERR_SHUTDOWN && leaver_lacks(c));
}

void status_forget(void)
{
    memset(texts, 0, sizeof texts);
}
