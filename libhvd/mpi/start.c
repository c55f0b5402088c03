/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - the beginning and the end: after MPI_Init, and when MPI_Finalize
 * deletes the attributes of MPI_COMM_SELF, which it does first.
 *
 * Ranks decide together whether they use libhvd: if all want to. Otherwise
 * every call goes to MPI.
 *
 * Open MPI copies and splits a communicator with nonblocking collectives on it.
 * From the first one on, it looks for others whenever it looks for messages,
 * until the communicator is freed, and the program pays for that. So libhvd,
 * which copies what it gets, gets a communicator that is freed then. It is made
 * by MPI_Comm_create_group, which needs no such collective.
 *
 * MPI programs may wait for hours, may be stopped in a debugger, and end when
 * mpirun ends them. So what libhvd does about ranks that seem to be lost is
 * switched off, for the time of its start, by the variables that it reads then.
 * This library has a copy of libhvd of its own: a program that uses libhvd
 * itself has another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/own_sets.h"
#include "hvd_mpi.h"
#include "mpi/accelerate.h"

struct hvd__accel hvd__accel;

/* ------------------------------------------------------------- environment */

struct variable {
    const char *name, *value;
    bool yields; /* to a value of the user's */
};

static const struct variable variables[] = {
    {"HVD_HEARTBEAT_TIME", "0", false},
    {"HVD_START_TIME", "0", false},
    {"HVD_STALL_CHECK_TIME", "0", false},
    {"HVD_STALL_SHUTDOWN_TIME", "0", false},
    {"HVD_EXIT_GRACE_TIME", "0", false},
    {"HVD_ELASTIC", "0", false},
    {"HVD_ELASTIC_MIN", "", false},
    {"HVD_SPARES", "0", false},
    {"HVD_TRANSPORT", "auto", true}, /* UCX, or no collectives across hosts */
    {"HVD_SHM_SMALL", "32K", true},
    /* libhvd warns if MPI was initialised below MPI_THREAD_MULTIPLE. Most
     * programs of MPI do that. */
    {"HVD_LOG", "error", true}};

enum { NVARIABLES = sizeof variables / sizeof *variables };

/* Saves the values of the variables, [NVARIABLES], and sets ours. */
static void set_variables(char **saved)
{
    for (int i = 0; i < NVARIABLES; i++) {
        const char *value = getenv(variables[i].name);

        saved[i] = value ? strdup(value) : NULL;
        if (!value || !variables[i].yields)
            setenv(variables[i].name, variables[i].value, 1);
    }
}

static void restore_variables(char **saved)
{
    for (int i = 0; i < NVARIABLES; i++) {
        if (saved[i])
            setenv(variables[i].name, saved[i], 1);
        else
            unsetenv(variables[i].name);
        free(saved[i]);
    }
}

/* Returns true unless the variable is set to 0. */
static bool is_wanted(const char *name, bool usually)
{
    const char *value = getenv(name);

    return value && *value ? strcmp(value, "0") != 0 : usually;
}

static bool takes_all(void)
{
    const char *value = getenv("HVD_MPI");

    return value && strcmp(value, "all") == 0;
}

/* --------------------------------------------------------------------- end */

static int end(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    if (atomic_exchange(&hvd__accel.is_on, false)) {
        hvd__accel_drain();
        hvd__accel_thread.inside++;
        hvd_shutdown();
        hvd__accel_thread.inside--;
    }
    if (hvd__accel.wants_summary)
        hvd__accel_summary_print();
    return MPI_SUCCESS;
}

static bool watch_end(void)
{
    int key;

    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, NULL) ==
               MPI_SUCCESS &&
           PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS;
}

/* ------------------------------------------------------------------- start */

static void say(const char *what, const char *why)
{
    if (hvd__accel.rank == 0)
        fprintf(stderr, "libhvd-mpi: all collectives are left to MPI: %s%s\n",
                what, why);
}

/* Makes a communicator of all ranks. */
static MPI_Comm comm_new(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group group;

    if (PMPI_Comm_group(MPI_COMM_WORLD, &group) != MPI_SUCCESS)
        return comm;
    PMPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm);
    PMPI_Group_free(&group);
    return comm;
}

static bool start_libhvd(void)
{
    MPI_Comm comm = comm_new();
    char *saved[NVARIABLES];
    int status, worst;

    set_variables(saved);
    hvd__accel_thread.inside++;
    status = hvd_init_mpi(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD);
    hvd__accel.is_over_ucx = status == HVD_OK && hvd__own_is_over_ucx();
    hvd__accel_thread.inside--;
    restore_variables(saved);
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_free(&comm);
    PMPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (worst < 0)
        say("libhvd does not start: ",
            status < 0 ? hvd_last_error() : hvd_strerror(worst));
    return worst >= 0;
}

/* What each rank has; the least of all ranks holds. */
struct offer {
    int wanted, all, hooked, unthreaded, summary;
};

static void start_accelerating(void)
{
    struct offer mine, all;
    int level = MPI_THREAD_SINGLE;

    PMPI_Comm_rank(MPI_COMM_WORLD, &hvd__accel.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &hvd__accel.size);
    PMPI_Query_thread(&level);
    mine = (struct offer){.wanted = is_wanted("HVD_MPI", true) &&
                                    hvd__accel_comm_init() == MPI_SUCCESS,
                          .all = takes_all(),
                          .hooked = hvd__accel_can_hook(),
                          .unthreaded = level < MPI_THREAD_MULTIPLE,
                          .summary = is_wanted("HVD_MPI_SUMMARY", false)};
    if (PMPI_Allreduce(&mine, &all, sizeof mine / sizeof(int), MPI_INT, MPI_MIN,
                       MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    hvd__accel.wants_summary = all.summary != 0;
    hvd__accel.takes_all = all.all != 0;
    hvd__accel.may_start = all.hooked != 0;
    hvd__accel.is_threaded = all.unthreaded == 0;
    if (all.wanted && hvd__accel.size > 1) {
        hvd__accel_types_init();
        if (start_libhvd())
            atomic_store(&hvd__accel.is_on, true);
    }
    /* libhvd has an attribute of the same kind; the last one goes first. */
    if (!watch_end() && atomic_exchange(&hvd__accel.is_on, false))
        hvd_shutdown();
}

int MPI_Init(int *argc, char ***argv)
{
    int code = PMPI_Init(argc, argv);

    if (code == MPI_SUCCESS)
        start_accelerating();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);

    if (code == MPI_SUCCESS)
        start_accelerating();
    return code;
}
