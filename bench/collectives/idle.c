/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.c - hvd-bench idle: measures the processor time and the wake-ups of an
 * initialised program that does nothing.
 *
 * Each rank sleeps for --seconds, right after hvd_init and again after 1000
 * allreduces, and reads its own usage before and after. The table shows the
 * busiest rank. Only background threads of hvd and MPI can cause usage here.
 */
#include "collectives/subcommands.h"

#include "collectives/session.h"
#include "hvd.h"
#include "tables/table.h"

#include <mpi.h>
#include <sys/resource.h>
#include <time.h>

struct idle_options {
    struct command_line line;
    double seconds;
    int format;
};

/* The processor time that this process has used. */
struct usage {
    double cpu;   /* seconds */
    double wakes; /* times that one of its threads slept */
};

static struct usage usage_now(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return (struct usage){
        .cpu = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
               1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec),
        .wakes = (double)r.ru_nvcsw};
}

/* Measures the usage over some seconds of sleep, and prints a row.
 * Collective. */
static void measure_state(struct table *table, const struct session *s,
                          const char *state, double seconds)
{
    struct timespec pause = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    double start = MPI_Wtime(), all[2];
    struct usage before = usage_now(), after;

    while (nanosleep(&pause, &pause) != 0)
        ;
    after = usage_now();
    seconds = MPI_Wtime() - start;
    MPI_Allreduce((double[]){(after.cpu - before.cpu) / seconds,
                             (after.wakes - before.wakes) / seconds},
                  all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (s->rank == 0) {
        table_text(table, state);
        table_number(table, seconds);
        table_number(table, 100 * all[0]);
        table_number(table, all[1]);
    }
}

static int run_idle(struct session *s, void *options)
{
    static const struct table_column columns[] = {{"state", -18, 0},
                                                  {"seconds", 8, 2},
                                                  {"cpu_percent", 12, 3},
                                                  {"wakes_per_s", 12, 1}};
    const struct idle_options *o = options;
    struct table table = {0};
    float value = 1;
    int status = 0;

    if (s->rank == 0)
        table_begin(&table, stdout, (enum table_format)o->format,
                    "an initialised process that does nothing (the busiest "
                    "rank; 100 % is one core)",
                    columns, sizeof columns / sizeof *columns);
    measure_state(&table, s, "after hvd_init", o->seconds);
    for (int i = 0; i < 1000 && status >= 0; i++)
        status = hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_MAX);
    status = session_settle(s, status >= 0, hvd_last_error());
    if (!status)
        measure_state(&table, s, "after allreduces", o->seconds);
    if (s->rank == 0)
        table_end(&table);
    return status ? status : session_flush(s);
}

enum { KEY_FORMAT = 256 };

static const struct argp_option flags[] = {
    {"seconds", 's', "S", 0, "how long to do nothing (2)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct idle_options *o = state->input;
    error_t failed;

    switch (key) {
    case 's':
        failed = command_real(&o->line, "-s", text, &o->seconds);
        if (!failed && (o->seconds < 0.01 || o->seconds > 3600))
            failed = command_refuse(
                &o->line, "-s: '%s' is not between 0.01 and 3600", text);
        return failed;
    case KEY_FORMAT:
        return command_choice(&o->line, "--format", text, table_formats,
                              &o->format);
    default: return command_key(&o->line, flags, key, state);
    }
}

int idle_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Measure what an initialised program costs that does nothing: "
               "right after hvd_init, and after it has made allreduces.",
    };
    struct idle_options options = {.seconds = 2};

    return session_main(argc, argv, "hvd-bench idle", &parser, &options,
                        run_idle);
}
