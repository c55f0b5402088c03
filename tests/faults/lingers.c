/* SPDX-License-Identifier: Apache-2.0 */
/* lingers SECONDS - the last rank runs for SECONDS after hvd_shutdown; the
 * others wait for it in the MPI_Finalize of their exit. */
#include <hvd.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int is_last;

    if (argc != 2 || hvd_init() < 0)
        return 1;
    is_last = hvd_rank() == hvd_size() - 1;
    if (hvd_shutdown() < 0)
        return 1;
    if (is_last)
        sleep((unsigned)atoi(argv[1]));
    return 0;
}
