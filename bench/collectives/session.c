/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - starts libhvd and MPI, lets the ranks agree on errors, and ends.
 *
 * libhvd needs no MPI for a single process; then MPI is started here, to
 * compare with. Tables go to standard output, and rank 0 alone prints.
 */
#include "collectives/session.h"

#include "collectives/agree.h"
#include "hvd.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Returns the rank of this process, even before MPI is started, and even if a
 * launcher of another MPI has started it and it finds itself alone. */
static int launch_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return (int)strtol(rank, NULL, 10);
    }
    return 0;
}

/* Copies argv, because parsing may reorder it. */
static void init_session(struct session *s, int argc, char **argv)
{
    *s = (struct session){
        .argc = argc, .start_time = time(NULL), .launch_rank = launch_rank()};
    s->argv = calloc((size_t)argc + 1, sizeof *s->argv);
    if (s->argv)
        memcpy(s->argv, argv, (size_t)argc * sizeof *s->argv);
}

/* Ends a run that needs no MPI: help, version, or a wrong command line. */
static int settle_alone(const struct session *s,
                        const struct command_line *line,
                        const struct argp *parser, const char *name)
{
    if (line->outcome == OPTIONS_ERROR || *line->error) {
        /* mpirun ends all ranks as soon as one fails, so the others let rank 0
         * print first. */
        if (s->launch_rank > 0)
            usleep(500000);
        else
            fprintf(stderr, "hvd-bench: %s\n", line->error);
        return STATUS_USAGE;
    }
    if (s->launch_rank == 0 && line->outcome == OPTIONS_HELP)
        command_help(parser, name, stdout);
    else if (s->launch_rank == 0)
        puts("hvd-bench " HVD_VERSION_STRING);
    return fflush(stdout) == 0 ? 0 : STATUS_ERROR;
}

int session_fail(struct session *s)
{
    agree_text(s->error, sizeof s->error);
    if (s->launch_rank == 0) {
        fflush(stdout);
        fprintf(stderr, "hvd-bench: %s\n", s->error);
    }
    return STATUS_ERROR;
}

int session_settle(struct session *s, int well, const char *error)
{
    if (!well)
        snprintf(s->error, sizeof s->error, "%s", error);
    return agree_well(well) ? 0 : session_fail(s);
}

int session_flush(struct session *s)
{
    int well = fflush(stdout) == 0 && !ferror(stdout);

    return session_settle(s, well, "standard output cannot be written");
}

int session_note_hvd(struct session *s)
{
    snprintf(s->error, sizeof s->error, "%s", hvd_last_error());
    return -1;
}

int session_note_mpi(struct session *s, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Error_string(code, text, &length);
    snprintf(s->error, sizeof s->error, "raw MPI: %s", text);
    return -1;
}

/* Hashes the command line. mpirun can start ranks with different command lines;
 * such ranks would wait for each other for ever. */
static uint64_t hash_of(int argc, char **argv)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
            if (!*c)
                break;
        }
    return hash;
}

static int start_libraries(struct session *s)
{
    int status = hvd_init();
    int initialised;

    MPI_Initialized(&initialised);
    s->owns_mpi = !initialised;
    if (s->owns_mpi)
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &initialised);
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->nranks);
    if (session_settle(s, status >= 0, hvd_last_error()) ||
        session_settle(s, s->argv != NULL, "out of memory"))
        return STATUS_ERROR;
    return session_settle(s, agree_same(hash_of(s->argc, s->argv)),
                          "the ranks were started with different arguments");
}

int session_main(int argc, char **argv, const char *name,
                 const struct argp *parser, void *options,
                 int (*run)(struct session *session, void *options))
{
    struct session s;
    int status;

    init_session(&s, argc, argv);
    if (command_parse(parser, argc, argv, options) != OPTIONS_RUN) {
        status = settle_alone(&s, options, parser, name);
        free(s.argv);
        return status;
    }
    status = start_libraries(&s);
    if (!status)
        status = run(&s, options);
    free(s.argv);
    hvd_shutdown();
    if (s.owns_mpi)
        MPI_Finalize();
    return status;
}
