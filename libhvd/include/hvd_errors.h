/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_errors.h - the statuses, and what they say: a part of hvd.h, which
 * includes it. Its functions may be called at any time, also before hvd_init.
 */
#ifndef HVD_ERRORS_H
#define HVD_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The statuses, grouped by what is no longer usable: the request, or the
 * world. */
enum {
    HVD_OK = 0,
    /* This request failed; the next one works. */
    HVD_ERR_ARGUMENT = -1,    /* an argument is out of its range */
    HVD_ERR_UNSUPPORTED = -2, /* this version cannot do that */
    HVD_ERR_DUPLICATE = -3,   /* a request of that name is still in flight */
    HVD_ERR_MISMATCH = -4,    /* the ranks submitted different things */
    HVD_ERR_PEER = -5,        /* another rank was refused what it submitted */
    HVD_ERR_HANDLE = -6,      /* unknown, or already waited for */
    HVD_ERR_MEMORY = -7,      /* out of memory */
    HVD_ERR_JOINED = -8,      /* only reductions work once a rank has joined */
    HVD_ERR_PROCESS_SET = -9, /* no such process set, or not a member of it */
    HVD_ERR_INCONSISTENT = -10, /* the ranks got different results */
    HVD_ERR_FILE = -11, /* a file cannot be read or written, or holds something
                           else */
    /* No request can succeed in this world. */
    HVD_ERR_NOT_INITIALIZED = -20,
    HVD_ERR_SHUTDOWN = -21, /* this or another rank has shut down */
    HVD_ERR_CONFIG = -22,   /* an environment variable or the description
                               of a cluster is malformed */
    HVD_ERR_LAUNCH = -23,   /* started as one of several, found alone */
    HVD_ERR_MPI = -24,      /* MPI reported an error */
    HVD_ERR_INTERNAL = -25, /* a fault of libhvd; please report it */
    HVD_ERR_LOST = -26,     /* a rank is dead or frozen */
    HVD_ERR_STALLED = -27   /* a rank never submitted what others wait for */
};

/* Returns a short text for a status, static, never NULL. */
const char *hvd_strerror(int status);

/*
 * Returns the calling thread's last failure in full: ranks, tensor, what
 * differed, what to do. It is one line; "" if nothing failed yet. Owned by the
 * library and valid until this thread's next failing call.
 */
const char *hvd_last_error(void);

/*
 * Makes text the calling thread's last failure, and returns status: for
 * libraries built on this one, whose failures are then reported in the same
 * way. text is copied, up to 4095 bytes; control characters become '?'. NULL is
 * "". May be called at any time, also before hvd_init.
 */
int hvd_set_last_error(int status, const char *text);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
