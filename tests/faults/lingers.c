/* SPDX-License-Identifier: Apache-2.0 */
/* lingers SECONDS WHERE - the last rank runs for SECONDS
 *
 *     before    after hvd_shutdown, while the others wait for it in the
 *               MPI_Finalize of their exit
 *     within    in MPI_Finalize, which the others have left
 *     behind    in an exit handler of its own, when MPI_Finalize is over
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hvd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int MPI_Finalize(void);

static int is_last;
static unsigned seconds;
static const char *where;

static void linger(const char *here)
{
    if (is_last && strcmp(where, here) == 0)
        sleep(seconds);
}

/* libhvd calls this one. */
int MPI_Finalize(void)
{
    int (*finalize)(void) = (int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize");
    int code = finalize ? finalize() : 1;

    linger("within");
    return code;
}

/* This exit handler is registered before that of libhvd. Handlers are called in
 * the opposite order, so MPI_Finalize is over when this one runs. */
static void exits(void)
{
    linger("behind");
}

int main(int argc, char **argv)
{
    if (argc != 3 || atexit(exits) != 0 || hvd_init() < 0)
        return 1;
    seconds = (unsigned)atoi(argv[1]);
    where = argv[2];
    is_last = hvd_rank() == hvd_size() - 1;
    if (hvd_shutdown() < 0)
        return 1;
    linger("before");
    return 0;
}
