/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "transport/transport.h"

#define LIBUCP "libucp.so.0"

static struct hvd__ucx_library library;
static bool is_loaded;

/* The signals that libucs wants when it is loaded. They stay with the program.
 * If Open MPI has loaded it before, nothing changes here. */
static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};
enum { NSIGNALS = sizeof signals / sizeof *signals };

/* Loads libucp, which is never unloaded: it has threads and handlers. */
static void *load(void)
{
    struct sigaction actions[NSIGNALS];
    void *handle;

    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], NULL, &actions[i]);
    handle = dlopen(LIBUCP, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], &actions[i], NULL);
    return handle;
}

/* Writes the address of a function to *function, of any type. */
static bool find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);

    memcpy(function, &address, sizeof address);
    return address;
}

/* The number of open transports; hear loads it on any thread. */
static atomic_int hushed;

/* Gets each message of UCX. */
static ucs_log_func_rc_t hear(const char *file, unsigned line,
                              const char *function, ucs_log_level_t level,
                              const ucs_log_component_config_t *component,
                              const char *format, va_list arguments)
{
    char text[512];

    (void)file, (void)line, (void)function, (void)component;
    if (level == UCS_LOG_LEVEL_FATAL || atomic_load(&hushed) == 0)
        return UCS_LOG_FUNC_RC_CONTINUE;
    vsnprintf(text, sizeof text, format, arguments);
    hvd__log(HVD__LOG_DEBUG, "UCX: %s", text);
    return UCS_LOG_FUNC_RC_STOP;
}

void hvd__ucx_hush(int change)
{
    atomic_fetch_add(&hushed, change);
}

const struct hvd__ucx_library *hvd__ucx_load(void)
{
    void *handle;

    if (is_loaded)
        return &library;
    handle = load();
    if (!handle) {
        hvd__fail(HVD_ERR_UNSUPPORTED,
                  "UCX cannot be loaded (Debian's package is libucx0): %s",
                  dlerror());
        return NULL;
    }
#define X(function)                                                            \
    if (!find(handle, #function, &library.function)) {                         \
        hvd__fail(HVD_ERR_UNSUPPORTED, LIBUCP " has no %s: it is too old",     \
                  #function);                                                  \
        return NULL;                                                           \
    }
    HVD__UCX_FUNCTIONS(X)
#undef X
    if (!getenv("UCX_LOG_LEVEL"))
        library.ucs_log_push_handler(hear);
    is_loaded = true;
    return &library;
}

const char *hvd__ucx_version(void)
{
    const struct hvd__ucx_library *ucx = hvd__ucx_load();

    return ucx ? ucx->ucp_get_version_string() : NULL;
}
