/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - stands for the rest of this folder in a libhvd that was built
 * without UCX's headers. */
#include "base/status.h"
#include "transport/transport.h"

int hvd__ucx_open(struct hvd__transport *below, int64_t grace_ns,
                  struct hvd__transport **transport)
{
    (void)below, (void)grace_ns, (void)transport;
    return hvd__fail(HVD_ERR_UNSUPPORTED,
                     "this libhvd was built without UCX: install libucx-dev "
                     "and build it again");
}

struct hvd__transport *hvd__ucx_drop(struct hvd__transport *transport)
{
    return transport;
}

const char *hvd__ucx_version(void)
{
    hvd__fail(HVD_ERR_UNSUPPORTED, "this libhvd was built without UCX");
    return NULL;
}
