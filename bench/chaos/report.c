/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int report_status(const struct run_result *result)
{
    if (result->hung)
        return REPORT_HUNG;
    if (result->status != 0)
        return result->status;
    if (result->record.ndone == 0)
        return REPORT_NOTHING;
    return result->nleft > 0 ? REPORT_LEFT : 0;
}

/* ---------------------------------------------------------------- sentences */

/* The last fault that was done; NULL: there is none. */
static const struct chaos_fault *last_fault(const struct chaos_record *record)
{
    for (int i = record->n; i-- > 0;)
        if (!*record->faults[i].error)
            return &record->faults[i];
    return NULL;
}

static void say_faults(const struct chaos_settings *settings,
                       const struct chaos_record *record)
{
    static const char *const done[CHAOS_KINDS] = {"killed", "stopped", "slowed",
                                                  "cut off"};
    char text[256] = "";

    for (int kind = 0; kind < CHAOS_KINDS; kind++) {
        size_t used = strlen(text);
        int n = 0;

        for (int i = 0; i < record->n; i++)
            n += record->faults[i].kind == (enum chaos_kind)kind &&
                 !*record->faults[i].error;
        if (n == 0)
            continue;
        snprintf(text + used, sizeof text - used, "%s%s %d", used ? ", " : "",
                 done[kind], n);
        used = strlen(text);
        if (settings->lasts[kind] > 0)
            snprintf(text + used, sizeof text - used, " for %g s each",
                     settings->lasts[kind]);
    }
    chaos_say("seed %llu: %d rank%s at most; %s",
              (unsigned long long)settings->seed, record->most_ranks,
              record->most_ranks == 1 ? "" : "s",
              *text ? text : "nothing was done to them");
    if (record->nheld > 0)
        chaos_say("%d time%s no rank could be hurt (--min-left, --spare-rank0, "
                  "or all others were hurt already)",
                  record->nheld, record->nheld == 1 ? "" : "s");
}

static void say_end(const struct chaos_settings *settings,
                    const struct run_result *result)
{
    const struct chaos_fault *last = last_fault(&result->record);
    char when[128] = "";

    if (last)
        snprintf(
            when, sizeof when, ", %.2f s after the last fault (%s rank %s)",
            result->seconds - last->at, chaos_names[last->kind], last->rank);
    if (result->hung)
        chaos_say("the command had not ended after %g s%s, and was ended",
                  settings->limit, when);
    else if (result->status > 128)
        chaos_say("the command was ended by signal %d (%s) after %.2f s%s",
                  result->status - 128, strsignal(result->status - 128),
                  result->seconds, when);
    else
        chaos_say("the command ended by itself with status %d after %.2f s%s",
                  result->status, result->seconds, when);
}

static void say_left(const struct run_result *result)
{
    for (int i = 0; i < result->nleft; i++)
        chaos_say("left behind, and removed: %s", result->left[i]);
    if (result->nleft == 0)
        chaos_say("nothing is left: no process, no shared memory, no file");
}

/* Why no fault was done. */
static const char *reason(const struct chaos_record *record)
{
    if (record->n > 0)
        return record->faults[record->n - 1].error;
    if (record->most_ranks == 0)
        return "no process of the command is a rank: none has "
               "OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, HOROVOD_RANK, "
               "SLURM_PROCID or TF_CONFIG in its environment";
    if (record->from == 0)
        return "the command ended before all its ranks were there";
    if (record->nheld > 0)
        return "no rank could be hurt (--min-left, --spare-rank0)";
    return "the command ended before the first fault was due (--every)";
}

void report_text(const struct chaos_settings *settings,
                 const struct run_result *result)
{
    say_faults(settings, &result->record);
    say_end(settings, result);
    say_left(result);
    if (result->record.ndone == 0)
        chaos_say("there was nothing to survive: %s", reason(&result->record));
    else
        chaos_say("%s",
                  report_status(result) == 0 ? "survived" : "not survived");
}

/* --------------------------------------------------------------------- JSON */

static json_t *describe_fault(const struct chaos_settings *settings,
                              const struct chaos_fault *fault)
{
    json_t *object = json_pack(
        "{s:f, s:s, s:s, s:i, s:s, s:b}", "seconds", fault->at, "kind",
        chaos_names[fault->kind], "rank", fault->rank, "process",
        (int)fault->pid, "program", fault->program, "done", !*fault->error);

    if (settings->lasts[fault->kind] > 0)
        json_object_set_new(object, "lasts_seconds",
                            json_real(settings->lasts[fault->kind]));
    if (*fault->error)
        json_object_set_new(object, "error", json_string(fault->error));
    return object;
}

static json_t *describe_run(const struct chaos_settings *settings, char **words,
                            const struct run_result *result)
{
    json_t *command = json_array(), *faults = json_array(),
           *left = json_array();

    for (char **word = words; *word; word++)
        json_array_append_new(command, json_string(*word));
    for (int i = 0; i < result->record.n; i++)
        json_array_append_new(
            faults, describe_fault(settings, &result->record.faults[i]));
    for (int i = 0; i < result->nleft; i++)
        json_array_append_new(left, json_string(result->left[i]));
    return json_pack(
        "{s:I, s:o, s:i, s:f, s:o, s:i, s:b, s:b, s:f, s:i, s:o, s:b}", "seed",
        (json_int_t)settings->seed, "command", command, "ranks",
        result->record.most_ranks, "ranks_there_seconds", result->record.from,
        "faults", faults, "held_back", result->record.nheld, "hung",
        result->hung, "interrupted", result->interrupted, "seconds",
        result->seconds, "status", result->status, "left", left, "survived",
        report_status(result) == 0);
}

int report_json(const struct chaos_settings *settings, char **words,
                const struct run_result *result, FILE *out)
{
    json_t *document = describe_run(settings, words, result);
    int status = document && json_dumpf(document, out, JSON_INDENT(2)) == 0 &&
                         fputc('\n', out) != EOF && fflush(out) == 0
                     ? 0
                     : -1;

    if (fclose(out) != 0)
        status = -1;
    json_decref(document);
    return status;
}
