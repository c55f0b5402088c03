/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - the functions of UCX, found in libucp when they are first needed.
 *
 * libhvd is built with UCX's headers and not linked with its libraries: it also
 * runs where they are missing, and programs that do not use UCX are left alone
 * by it (libucs installs handlers of signals when it is loaded).
 */
#ifndef HVD_TRANSPORT_UCX_LIBRARY_H
#define HVD_TRANSPORT_UCX_LIBRARY_H

#include <stdbool.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#define HVD__UCX_FUNCTIONS(X)                                                  \
    X(ucp_cleanup)                                                             \
    X(ucp_config_modify)                                                       \
    X(ucp_config_read)                                                         \
    X(ucp_config_release)                                                      \
    X(ucp_ep_close_nbx)                                                        \
    X(ucp_ep_create)                                                           \
    X(ucp_get_version)                                                         \
    X(ucp_get_version_string)                                                  \
    X(ucp_init_version)                                                        \
    X(ucp_request_cancel)                                                      \
    X(ucp_request_check_status)                                                \
    X(ucp_request_free)                                                        \
    X(ucp_tag_msg_recv_nbx)                                                    \
    X(ucp_tag_probe_nb)                                                        \
    X(ucp_tag_recv_nbx)                                                        \
    X(ucp_tag_send_nbx)                                                        \
    X(ucp_worker_create)                                                       \
    X(ucp_worker_destroy)                                                      \
    X(ucp_worker_get_address)                                                  \
    X(ucp_worker_progress)                                                     \
    X(ucp_worker_release_address)                                              \
    X(ucs_log_push_handler)                                                    \
    X(ucs_status_string)

struct hvd__ucx_library {
#define X(function) __typeof__(&function) function;
    HVD__UCX_FUNCTIONS(X)
#undef X
};

/* Returns the functions, or NULL with the last error set. Belongs to whoever
 * has the lock of hvd_init. */
const struct hvd__ucx_library *hvd__ucx_load(void);

/* Makes UCX quiet while a transport is open (1), or no longer (-1): what it
 * reports of peers that died is no news to a user, whom the watch tells more.
 * It goes to the log at the level debug; UCX_LOG_LEVEL switches this off. */
void hvd__ucx_hush(int change);

#endif
