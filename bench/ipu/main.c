/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - ipu-bench: prints the figures that microbenchmarks and whole
 * networks would measure on a modelled chip.
 *
 * The groups of rows (rows.h) put their rows into one table; networks
 * (net_table.h) is a table by itself. All figures come from the device's model,
 * through its public headers; nothing is timed.
 */
#include "command/command.h"
#include "ipu/net_table.h"
#include "ipu/rows.h"
#include "tables/table.h"

#include <ipu.h>
#include <stdbool.h>
#include <string.h>

struct ipu_options {
    struct command_line line;
    const char *system; /* NULL: an M2000 */
    const char *target; /* name or file; NULL: the system's */
    int format;
    unsigned groups; /* one bit per named group; 0: all */
    bool networks;
};

enum { KEY_FORMAT = 256, MAX_REASONS = 8 };

static const struct argp_option flags[] = {
    {"system", 's', "NAME", 0,
     "C2, M2000, Pod16, Pod64, Pod128, Pod256, Bow-2000, Bow-Pod16, "
     "Bow-Pod64, Bow-Pod128, Bow-Pod256 or model (M2000)",
     0},
    {"target", 't', "CHIP", 0,
     "the chip, instead of the system's: mk1, mk2, bow, c600, or a JSON file",
     0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t choose_group(struct ipu_options *o, const char *name)
{
    if (strcmp(name, "networks") == 0) {
        o->networks = true;
        return 0;
    }
    for (int i = 0; ipu_groups[i].name; i++)
        if (strcmp(ipu_groups[i].name, name) == 0) {
            o->groups |= 1u << i;
            return 0;
        }
    return command_refuse(&o->line,
                          "'%s' is not a group: memory, exchange, links, host, "
                          "matmul, matvec, convolution, reduction, broadcast "
                          "or stencil; networks by itself",
                          name);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct ipu_options *o = state->input;

    switch (key) {
    case 's': o->system = text; return 0;
    case 't': o->target = text; return 0;
    case KEY_FORMAT:
        return command_choice(&o->line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_ARG: return choose_group(o, text);
    default: return command_key(&o->line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "[GROUP...]",
    .doc = "Print the figures that microbenchmarks would measure on a chip, as "
           "the model of the software IPU computes them.\v"
           "Groups: memory, exchange, links, host, matmul, matvec, "
           "convolution, reduction, broadcast, stencil; all, if none is "
           "named. A row marked ~ is an estimate; the reasons stand below "
           "the table. By itself: networks, a table of whole networks, each "
           "on the system that it was published for.",
};

/* ------------------------------------------------------------------ output */

struct output {
    struct table table;
    const char *reasons[MAX_REASONS]; /* each once */
    int nreasons;
    bool limited; /* memory limits the plan of a row */
};

/* A plan that is nearly as good as with unlimited memory is not
 * marked. */
static const double LIMITED = 1.01;

static void note_reason(struct output *out, const char *reason)
{
    for (int i = 0; i < out->nreasons; i++)
        if (strcmp(out->reasons[i], reason) == 0)
            return;
    if (out->nreasons < MAX_REASONS)
        out->reasons[out->nreasons++] = reason;
}

static void put_row(void *context, const struct ipu_row *row)
{
    struct output *out = context;
    struct table *t = &out->table;

    table_text(t, row->group);
    table_text(t, row->what);
    table_number(t, (double)row->size);
    table_number(t, (double)row->cycles);
    table_number(t, row->ns);
    table_number_if(t, row->rate > 0, row->rate);
    table_text(t, row->rate > 0 ? row->unit : "ns");
    table_number_if(t, row->share > 0, 100 * row->share);
    table_text(t, row->estimate ? "~" : "");
    table_number_if(t, row->with_room >= LIMITED, row->with_room);
    if (row->with_room >= LIMITED)
        out->limited = true;
    if (row->estimate)
        note_reason(out, row->estimate);
}

static int print_groups(const struct ipu_options *o, const ipu_system *system)
{
    static const struct table_column columns[] = {
        {"group", -11, 0},  {"what", -27, 0},  {"size", 10, 0},
        {"cycles", 10, 0},  {"ns", 12, 1},     {"rate", 9, 2},
        {"unit", -6, 0},    {"percent", 7, 1}, {"estimate", -8, 0},
        {"with_room", 9, 2}};
    struct output out = {.nreasons = 0};
    const struct ipu_sink sink = {put_row, &out};
    char title[160];
    int status = 0;

    snprintf(title, sizeof title,
             "%s (%d x %s): modelled; percent of the peak, of stencils of "
             "their roofline",
             system->name, (int)system->ipus, system->ipu.name);
    table_begin(&out.table, stdout, (enum table_format)o->format, title,
                columns, sizeof columns / sizeof *columns);
    for (int i = 0; ipu_groups[i].name && status >= 0; i++)
        if (!o->groups || o->groups & 1u << i)
            status = ipu_groups[i].rows(system, &sink);
    for (int i = 0; i < out.nreasons; i++) {
        char note[256];

        snprintf(note, sizeof note, "~ %s", out.reasons[i]);
        table_note(&out.table, note);
    }
    if (out.limited)
        table_note(&out.table, "with_room: memory limits the plan of this "
                               "product; with enough of it, it would be so "
                               "many times as fast");
    table_end(&out.table);
    return status;
}

/* ------------------------------------------------------------------ program */

/* Returns 0, or the exit status after an error message. */
static int refuse_mixture(const struct ipu_options *o)
{
    if (!o->networks || (!o->groups && !o->target && !o->system))
        return 0;
    fprintf(stderr,
            "ipu-bench: networks is a table by itself, each network on "
            "a system of its own: without %s\n",
            o->groups   ? "other groups"
            : o->target ? "--target"
                        : "--system");
    return 2;
}

static int find_target(const struct ipu_options *o, ipu_system *system)
{
    int status = ipu_system_find(o->system ? o->system : "M2000", system);

    if (status < 0 || !o->target)
        return status;
    if (strchr(o->target, '.') || strchr(o->target, '/'))
        return ipu_target_load(o->target, &system->ipu);
    return ipu_target_find(o->target, &system->ipu);
}

int main(int argc, char **argv)
{
    struct ipu_options options = {.format = TABLE_TEXT};
    ipu_system system = {.size = sizeof system};

    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP: command_help(&parser, "ipu-bench", stdout); return 0;
    case OPTIONS_VERSION:
        printf("ipu-bench %s\n", HVD_VERSION_STRING);
        return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "ipu-bench: %s\n", options.line.error);
        return 2;
    default: break;
    }
    if (refuse_mixture(&options) != 0)
        return 2;
    if (find_target(&options, &system) < 0) {
        fprintf(stderr, "ipu-bench: %s\n", ipu_last_error());
        return 2;
    }
    if ((options.networks ? net_table((enum table_format)options.format)
                          : print_groups(&options, &system)) < 0) {
        fprintf(stderr, "ipu-bench: %s\n", ipu_last_error());
        return 1;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "ipu-bench: the table could not be written\n");
        return 1;
    }
    return 0;
}
