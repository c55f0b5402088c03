/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_world.c - the life of MPI in this process. core/world/init_mpi.c starts
 * it and registers a function that is called before it ends.
 *
 * MPI can be initialised once and finalised once in a process. If the program
 * initialised it, this file only looks at the thread level that the program
 * got. Otherwise this file initialises MPI, and finalises it when the process
 * exits and not in hvd_shutdown, so that hvd_init works again afterwards.
 *
 * With MPI_THREAD_MULTIPLE any thread may call MPI. With a lower level, a
 * thread of the library could meet a thread of the program inside MPI, unless
 * the program never calls MPI itself. That is known only if the library
 * initialised MPI. Then MPI_THREAD_SERIALIZED is enough, since one thread at a
 * time drives. Over UCX, which needs MPI only at the start and at the end, a
 * thread of the library is allowed with any level.
 *
 * The library must stop before MPI ends, whoever ends MPI, or the library's
 * thread would call a finalised MPI. When the program finalises MPI, MPI first
 * deletes the attributes of MPI_COMM_SELF (MPI-3.1, section 8.7.1), and the
 * library has set one whose deletion calls it. When the process exits, an exit
 * handler of the library is called.
 */
#include "transport/transport.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static bool finalise_at_exit; /* set once, before atexit */
static pid_t owner;           /* set once, before atexit: no forked child */
static _Atomic(void (*)(void)) before_end;
/* Set once, in hvd__mpi_around_end, before a world of several ranks; loaded by
 * the handlers below when MPI ends. */
static _Atomic(void (*)(bool)) enter_end;
static _Atomic(void (*)(void)) leave_end;

bool hvd__mpi_is_live(void)
{
    int initialised = 0, finalised = 0;

    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    return initialised && !finalised;
}

const char *hvd__mpi_library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;

    MPI_Get_library_version(text, &length);
    /* MPI's text is "Open MPI v4.1.4, package: Debian Open MPI, ident: …". */
    text[strcspn(text, ",\n")] = '\0';
    return text;
}

static void stop_library(void)
{
    void (*fn)(void) = atomic_exchange(&before_end, NULL);

    if (fn)
        fn();
}

static void begin_end(bool is_last)
{
    void (*fn)(bool) = atomic_load(&enter_end);

    if (fn)
        fn(is_last);
}

static int attribute_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    stop_library();
    begin_end(false);
    return MPI_SUCCESS;
}

static void end_end(void)
{
    void (*fn)(void) = atomic_load(&leave_end);

    if (fn)
        fn();
}

/* Runs when the process exits in an orderly way. If the library could not stop
 * in agreement with the other ranks, fn leaves MPI alone by setting the handler
 * again: mpirun then sees a rank that ended without MPI_Finalize and ends the
 * job, which is right. */
static void process_exits(void)
{
    if (getpid() != owner)
        return;
    stop_library();
    if (finalise_at_exit && !atomic_load(&before_end) && hvd__mpi_is_live()) {
        begin_end(true);
        MPI_Finalize();
        end_end();
    } else if (!finalise_at_exit) {
        end_end();
    }
}

void hvd__mpi_before_end(void (*fn)(void))
{
    atomic_store(&before_end, fn);
}

void hvd__mpi_around_end(void (*enter)(bool is_last), void (*leave)(void))
{
    atomic_store(&enter_end, enter);
    atomic_store(&leave_end, leave);
}

int hvd__watch_exit(void)
{
    static bool is_watching; /* guarded by the lock of hvd_init */

    if (is_watching)
        return HVD_OK;
    owner = getpid();
    if (atexit(process_exits) != 0)
        return hvd__fail(HVD_ERR_MEMORY, "atexit has no room");
    is_watching = true;
    return HVD_OK;
}

/* Makes the end of MPI safe, once in a process: waits for Open MPI's thread
 * (mpi_events.c), and installs the handlers that run before the end. */
static int watch(void)
{
    static bool watching; /* guarded by the lock of hvd_init */
    int key;

    if (watching)
        return HVD_OK;
    watching = true;
    hvd__mpi_settle();
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, attribute_deleted, &key,
                               NULL) != MPI_SUCCESS ||
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) != MPI_SUCCESS)
        return hvd__fail(HVD_ERR_MPI, "MPI refused an attribute of "
                                      "MPI_COMM_SELF");
    return hvd__watch_exit();
}

static int initialise(int *level)
{
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, level);

    if (code != MPI_SUCCESS)
        return hvd__fail(HVD_ERR_MPI, "MPI_Init_thread failed with code %d",
                         code);
    finalise_at_exit = true;
    return HVD_OK;
}

int hvd__mpi_start(bool *threads, const char **note)
{
    int initialised = 0, finalised = 0, level = MPI_THREAD_SINGLE;

    *note = NULL;
    MPI_Finalized(&finalised);
    if (finalised)
        return hvd__fail(HVD_ERR_MPI, "MPI is finalised and cannot start "
                                      "again in this process: call hvd_init "
                                      "before MPI_Finalize");
    MPI_Initialized(&initialised);
    if (!initialised)
        HVD_TRY(initialise(&level));
    else if (MPI_Query_thread(&level) != MPI_SUCCESS)
        return hvd__fail(HVD_ERR_MPI, "MPI_Query_thread failed");

    HVD_TRY(watch());
    *threads = level == MPI_THREAD_MULTIPLE ||
               (level == MPI_THREAD_SERIALIZED && finalise_at_exit);
    if (!*threads)
        *note = "MPI was initialised below MPI_THREAD_MULTIPLE: nothing "
                "moves between calls of the library, and only the thread "
                "that may call MPI can wait";
    return HVD_OK;
}

int hvd__mpi_members(const void *comm, int **ranks, int *n)
{
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int *own = NULL, code;

    *ranks = NULL;
    *n = 0;
    code =
        MPI_Comm_group(comm ? *(const MPI_Comm *)comm : MPI_COMM_WORLD, &group);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Group_size(group, n);
    if (code == MPI_SUCCESS) {
        own = calloc((size_t)*n, sizeof *own);
        *ranks = calloc((size_t)*n, sizeof **ranks);
    }
    for (int i = 0; own && i < *n; i++)
        own[i] = i;
    if (own && *ranks)
        code = MPI_Group_translate_ranks(group, *n, own, world, *ranks);
    free(own);
    if (group != MPI_GROUP_NULL)
        MPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    if (code == MPI_SUCCESS && *ranks)
        return HVD_OK;
    free(*ranks);
    *ranks = NULL;
    return hvd__fail(HVD_ERR_MPI, "MPI does not tell who is who");
}
