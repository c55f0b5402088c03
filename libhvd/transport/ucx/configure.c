/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configure.c - sets what UCX's environment (UCX_*) leaves open, for the
 * context of this transport alone. The environment itself is not changed.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/ucx/ucx.h"

/* The settings of UCX that differ from its own defaults.
 *
 * TLS: shared memory cannot report that a peer died.
 * RNDV_THRESH: a rendezvous costs a round trip, and without RDMA saves no copy;
 * UCX wants one from 8 KiB on where it does not know the speed of an interface.
 * A bound remains because UCX stores what comes before its receive.
 * TCP_RX_SEG_SIZE: UCX sends a long message in segments of this size. A segment
 * of 64 KiB and its head are 400 bytes more than a packet of the kernel's
 * holds. The small packet that follows is acknowledged late, and BBR takes it
 * for the speed of the connection. 48 KiB fit, and no power of two leaves a
 * small rest. UCX refuses a smaller size than that of TCP_TX_SEG_SIZE.
 * KEEPALIVE_*, TCP_KEEPIDLE: the watch decides who is dead.
 * TCP_CONN_NB: otherwise the driver waits while a host does not answer.
 * TCP_MAX_POLL: of several events that UCX 1.13 takes at once, one may close
 * the connection of another, which then fails an assertion of UCX's. */
static const struct {
    const char *variable, *value;
    bool without_rdma;  /* only if this host has no RDMA */
    const char *unless; /* only if this variable is not set, either; or NULL */
} settings[] = {
    {"UCX_TLS", "^sm", false, NULL},
    {"UCX_RNDV_THRESH", "1M", true, NULL},
    {"UCX_TCP_RX_SEG_SIZE", "48K", false, "UCX_TCP_TX_SEG_SIZE"},
    {"UCX_KEEPALIVE_INTERVAL", "inf", false, NULL},
    {"UCX_TCP_KEEPIDLE", "inf", false, NULL},
    {"UCX_TCP_CONN_NB", "y", false, NULL},
    {"UCX_TCP_MAX_POLL", "1", false, NULL},
};

enum { NSETTINGS = sizeof settings / sizeof *settings };

/* Returns what ucp_config_modify calls a variable. Before UCX 1.17 it knows
 * those of a transport without the transport's name. */
static const char *key_of(const struct hvd__ucx *ucx, const char *variable)
{
    const char *key = variable + strlen("UCX_");
    unsigned major, minor, release;

    ucx->library->ucp_get_version(&major, &minor, &release);
    if (major == 1 && minor < 17 && strncmp(key, "TCP_", 4) == 0)
        return key + strlen("TCP_");
    return key;
}

static bool has_rdma(void)
{
    DIR *devices = opendir("/sys/class/infiniband");
    struct dirent *entry;
    bool has = false;

    while (devices && (entry = readdir(devices)))
        has |= entry->d_name[0] != '.';
    if (devices)
        closedir(devices);
    return has;
}

/* Sets what the environment leaves open. */
static int set(const struct hvd__ucx *ucx, ucp_config_t *config,
               const char *variable, const char *value)
{
    ucs_status_t status = UCS_OK;

    if (!getenv(variable))
        status = ucx->library->ucp_config_modify(config, key_of(ucx, variable),
                                                 value);
    return status == UCS_OK ? HVD_OK : hvd__ucx_fail(ucx, variable, status);
}

int hvd__ucx_configure(const struct hvd__ucx *ucx, ucp_config_t *config)
{
    char devices[1024];

    for (int i = 0; i < NSETTINGS; i++)
        if ((!settings[i].without_rdma || !has_rdma()) &&
            !(settings[i].unless && getenv(settings[i].unless)))
            HVD_TRY(set(ucx, config, settings[i].variable, settings[i].value));
    if (!hvd__ucx_devices(devices, sizeof devices))
        return HVD_OK;
    return set(ucx, config, "UCX_NET_DEVICES", devices);
}
