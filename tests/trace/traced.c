/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traced [start FILE] [many] [die] - runs some requests of every kind, with
 * names that are hard to write as JSON; with start, it starts a timeline half
 * way; with many, it runs many more; with die, it is killed at the end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hvd.h"

static void requests(const char *prefix)
{
    static const char *const names[] = {"plain", "q\"uote", "back\\slash",
                                        "\xff broken", "umlaut \xc3\xa4"};
    static float data[5][1000];
    hvd_handle handles[5];
    char name[64];

    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, names[i]);
        hvd_allreduce_async(name, data[i], data[i], 1000 - 7 * i, HVD_FLOAT32,
                            HVD_SUM, &handles[i]);
    }
    for (int i = 0; i < 5; i++)
        hvd_wait(handles[i]);
    hvd_allreduce(NULL, NULL, -1, HVD_FLOAT32, HVD_SUM); /* refused */
    hvd_barrier();
}

/* Returns whether the world can still be used, and stopped. */
static int goes_on(void)
{
    return hvd_barrier() == HVD_OK && hvd_shutdown() == HVD_OK;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    hvd_metrics metrics = {.size = sizeof metrics};
    int length;

    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 9;
    }
    requests("first/");
    for (int i = 0; argc > 1 && strcmp(argv[1], "many") == 0 && i < 60; i++)
        requests("many/");
    if (argc > 2 && strcmp(argv[1], "start") == 0) {
        int status = hvd_start_timeline(argv[2]);

        if (status < 0 && status != HVD_ERR_FILE)
            return 3;
        if (status < 0) {
            fprintf(stderr, "%s\n", hvd_last_error());
            return goes_on() ? 8 : 4;
        }
        if (hvd_start_timeline(argv[2]) != HVD_ERR_ARGUMENT)
            return 7; /* one at a time */
        requests("second/");
        hvd_stop_timeline();
        requests("third/");
    }
    length = hvd_metrics_text(text, sizeof text);
    if (length <= 0 || length >= (int)sizeof text)
        return 6;
    if (hvd_rank() == 0)
        fputs(text, stdout);
    hvd_get_metrics(&metrics);
    if (metrics.kinds[HVD_ALLREDUCE].completed < 5 ||
        metrics.kinds[HVD_ALLREDUCE].submitted <
            metrics.kinds[HVD_ALLREDUCE].completed ||
        metrics.refused < 1 || metrics.batches < 1 || metrics.blocked_ns < 0)
        return 5;
    fflush(stdout);
    if (argc > 1 && strcmp(argv[argc - 1], "die") == 0) {
        sleep(2); /* the timeline's writer wakes twice a second */
        raise(SIGKILL);
    }
    return hvd_shutdown() < 0;
}
