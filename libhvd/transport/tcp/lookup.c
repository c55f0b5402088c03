/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.c - getaddrinfo on a thread of its own, which may outlive whoever
 * asked: nothing can end such a call. The thread and the one that asked each
 * hold a reference, and the last one frees.
 */
#include "transport/tcp/lookup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "transport/tcp/address.h"
#include "transport/tcp/hosts_file.h"

enum { ADDRESS_BYTES = 128 }; /* of one from the file of hosts, with a port */

struct hvd__lookup {
    int64_t since_ns;
    atomic_int nowners;  /* 2 while the thread runs. The decrement to 0 acquires
                            what the other owner did before its own */
    atomic_bool is_done; /* stored (released) by the thread after found and
                            problem; loaded (acquired) in hvd__lookup_poll */
    struct addrinfo *found; /* owned, until it is given away */
    const char *problem;    /* static */
    char address[];         /* with its NUL */
};

static void let_go(struct hvd__lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->nowners, 1) > 1)
        return;
    if (lookup->found)
        freeaddrinfo(lookup->found);
    free(lookup);
}

static void *look_up(void *argument)
{
    struct hvd__lookup *lookup = argument;

    lookup->problem = hvd__address_find(lookup->address, false, &lookup->found);
    atomic_store(&lookup->is_done, true);
    let_go(lookup);
    return NULL;
}

static int start_thread(struct hvd__lookup *lookup)
{
    pthread_t thread;

    atomic_store(&lookup->nowners, 2);
    if (hvd__thread_start(&thread, "hvd-lookup", look_up, lookup) < 0) {
        atomic_store(&lookup->nowners, 1);
        return HVD_ERR_MEMORY;
    }
    pthread_detach(thread);
    return HVD_OK;
}

struct hvd__lookup *hvd__lookup_start(const char *name)
{
    char found[ADDRESS_BYTES];
    const char *address = hvd__hosts_file_find(name, found, sizeof found);
    size_t bytes = strlen(address) + 1;
    struct hvd__lookup *lookup = calloc(1, sizeof *lookup + bytes);

    if (!lookup) {
        hvd__fail_memory(sizeof *lookup + bytes);
        return NULL;
    }
    lookup->since_ns = hvd__now_ns();
    memcpy(lookup->address, address, bytes);
    atomic_store(&lookup->nowners, 1);
    lookup->problem = hvd__address_find(address, true, &lookup->found);
    if (!lookup->problem)
        atomic_store(&lookup->is_done, true);
    else if (start_thread(lookup) < 0) {
        let_go(lookup);
        return NULL;
    }
    return lookup;
}

int hvd__lookup_poll(struct hvd__lookup *lookup, struct addrinfo **found,
                     const char **problem)
{
    if (!atomic_load(&lookup->is_done)) {
        *found = NULL;
        *problem = "its name was not found within 10 s";
        return hvd__now_ns() - lookup->since_ns > HVD__LOOKUP_LIMIT_NS;
    }
    *found = lookup->found;
    *problem = lookup->problem;
    lookup->found = NULL;
    return 1;
}

const char *hvd__lookup_wait(const char *address, struct addrinfo **found)
{
    struct hvd__lookup *lookup = hvd__lookup_start(address);
    const char *problem;

    *found = NULL;
    if (!lookup)
        return "there is no memory for looking it up";
    while (!hvd__lookup_poll(lookup, found, &problem))
        usleep(1000);
    hvd__lookup_free(lookup);
    return *found ? NULL : problem;
}

void hvd__lookup_free(struct hvd__lookup *lookup)
{
    if (lookup)
        let_go(lookup);
}
