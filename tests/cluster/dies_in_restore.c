/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dies_in_restore - a library for LD_PRELOAD: the process is killed a second
 * after all have gone back to the commit in its first hvd_restore
 * (join_training.bats).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hvd.h>
#include <hvd_elastic.h>
#include <signal.h>
#include <unistd.h>

int hvd_restore(void)
{
    int (*own)(void);
    int status;

    *(void **)&own = dlsym(RTLD_NEXT, "hvd_restore");
    status = own();
    sleep(1);
    raise(SIGKILL);
    return status;
}
