/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - statuses, and the text of this thread's last failure.
 *
 * The function that first decides which error it is calls hvd__fail; its
 * callers pass the number on (HVD_TRY).
 */
#ifndef HVD_BASE_STATUS_H
#define HVD_BASE_STATUS_H

#include <stddef.h>

#include "hvd.h"

/* X(constant, text): the one list of statuses. */
#define HVD__STATUSES(X)                                                       \
    X(HVD_OK, "success")                                                       \
    X(HVD_ERR_ARGUMENT, "invalid argument")                                    \
    X(HVD_ERR_UNSUPPORTED, "not supported by this version")                    \
    X(HVD_ERR_DUPLICATE, "a request of that name is still in flight")          \
    X(HVD_ERR_MISMATCH, "the ranks submitted different requests")              \
    X(HVD_ERR_PEER, "another rank's request was refused")                      \
    X(HVD_ERR_HANDLE, "no such handle, or already waited for")                 \
    X(HVD_ERR_MEMORY, "out of memory")                                         \
    X(HVD_ERR_JOINED, "a rank has joined: only reductions work")               \
    X(HVD_ERR_PROCESS_SET, "no such process set, or not a member of it")       \
    X(HVD_ERR_INCONSISTENT, "the ranks got different results")                 \
    X(HVD_ERR_FILE, "a file cannot be used")                                   \
    X(HVD_ERR_NOT_INITIALIZED, "hvd_init has not been called")                 \
    X(HVD_ERR_SHUTDOWN, "a rank has shut down")                                \
    X(HVD_ERR_CONFIG, "malformed environment variable or cluster")             \
    X(HVD_ERR_LAUNCH, "started as one of several processes, found alone")      \
    X(HVD_ERR_MPI, "MPI failed")                                               \
    X(HVD_ERR_INTERNAL, "internal error of libhvd")                            \
    X(HVD_ERR_LOST, "a rank is dead or frozen")                                \
    X(HVD_ERR_STALLED, "a rank never submitted what others wait for")

/* The size of a message with its NUL, and of one that another library sets;
 * longer ones are cut. */
enum { HVD__MESSAGE_MAX = 1024, HVD__SET_MESSAGE_MAX = 4096 };

/* Returns a negative status of expr from the calling function. */
#define HVD_TRY(expr)                                                          \
    do {                                                                       \
        int hvd_try_status_ = (expr);                                          \
        if (hvd_try_status_ < 0)                                               \
            return hvd_try_status_;                                            \
    } while (0)

/* Sets this thread's last error and returns status. Control characters, which
 * may come with a name, are replaced: an error is one line. */
__attribute__((format(printf, 2, 3))) int hvd__fail(int status,
                                                    const char *format, ...);

/* Does the same with a finished text. */
int hvd__fail_text(int status, const char *text);

/* Does the same with HVD_ERR_MEMORY and a text that says how much was
 * wanted. */
int hvd__fail_memory(size_t bytes);

/* Sets a pointer of any type, whose address is given, to n zeroed elements of
 * each bytes, which the caller frees; to NULL if it fails, as
 * hvd__fail_memory. */
int hvd__allocate(void *pointer, size_t n, size_t each);

#endif
