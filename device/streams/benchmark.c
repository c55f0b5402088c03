/* SPDX-License-Identifier: Apache-2.0 */
/*
 * benchmark.c - measures how fast a data set is if nothing but the copy to the
 * device is in its way: the queue's thread reads ahead, and the caller's thread
 * takes.
 */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/clock.h"
#include "streams/streams.h"

enum { EPOCH_TEXT = 320 };

/* Texts of epochs, one after the other. */
struct report {
    char *text; /* owned */
    size_t used, room;
};

static int check_options(const ipu_benchmark_options *o)
{
    IPU_TRY(ipu__check_size("benchmark options", o->size, sizeof *o));
    if (o->epochs < 1 || o->elements_per_epoch < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "benchmark: %d epochs of %" PRId64
                         " elements: both must be 1 or more",
                         (int)o->epochs, o->elements_per_epoch);
    return IPU_OK;
}

static int append_text(struct report *report, const char *text)
{
    size_t length = strlen(text);

    if (report->used + length + 1 > report->room) {
        size_t room = 2 * (report->used + length + 1);
        char *grown = realloc(report->text, room);

        if (!grown)
            return ipu__fail_memory(room);
        report->text = grown;
        report->room = room;
    }
    memcpy(report->text + report->used, text, length + 1);
    report->used += length;
    return IPU_OK;
}

/* Keys in the order of the alphabet, single-precision numbers, with a point
 * whatever locale the program has chosen. */
static void print_epoch(char *text, double elements, double bytes,
                        double seconds)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(plain);

    snprintf(text, EPOCH_TEXT,
             "{\"bandwidth\":%.17g,\"elements_per_second\":%.17g,"
             "\"elements_processed\":%.17g,\"time_elapsed\":%.17g,"
             "\"total_bytes_processed\":%.17g}",
             (double)(float)(bytes / (1e9 * seconds)),
             (double)(float)(elements / seconds), (double)(float)elements,
             (double)(float)seconds, (double)(float)bytes);
    uselocale(before);
    if (plain)
        freelocale(plain);
}

/* The elements of one epoch, into buffers. Replicas take them in turn; first:
 * how many were taken before, or as many but for whole turns. */
static int take_epoch(ipu_infeed *infeed, const ipu_benchmark_options *o,
                      int64_t first, void *const *buffers, char *text)
{
    double begun = ipu__seconds(), seconds;
    double bytes =
        (double)ipu__infeed_bytes(infeed) * (double)o->elements_per_epoch;
    int32_t replicas = ipu__infeed_replicas(infeed);

    for (int64_t i = 0; i < o->elements_per_epoch; i++)
        IPU_TRY(ipu__infeed_take(infeed,
                                 (int32_t)((first % replicas + i) % replicas),
                                 buffers, NULL));
    seconds = ipu__seconds() - begun;
    print_epoch(text, (double)o->elements_per_epoch, bytes,
                seconds > 0 ? seconds : 1e-9);
    return IPU_OK;
}

static int take_epochs(ipu_infeed *infeed, const ipu_benchmark_options *o,
                       void *const *buffers, struct report *report)
{
    int64_t replicas = ipu__infeed_replicas(infeed);
    char text[EPOCH_TEXT];

    IPU_TRY(append_text(report, "{\"epochs\":["));
    for (int32_t i = 0; i < o->epochs; i++) {
        IPU_TRY(take_epoch(infeed, o, i * (o->elements_per_epoch % replicas),
                           buffers, text));
        if (o->print)
            o->print(o->context, i, text);
        IPU_TRY(append_text(report, i ? "," : ""));
        IPU_TRY(append_text(report, text));
    }
    return append_text(report, "]}");
}

/* Makes the buffers to which elements are copied, as to the device. If all are
 * NULL, nothing is copied. */
static int make_buffers(const ipu_infeed *infeed,
                        const ipu_benchmark_options *o, void **buffers,
                        void **memory)
{
    const ipu_feed_tensor *tensors;
    int32_t n = ipu_infeed_tensors(infeed, &tensors);
    unsigned char *at;

    for (int32_t i = 0; i < n; i++)
        buffers[i] = NULL;
    *memory = NULL;
    if (o->no_memcpy)
        return IPU_OK;
    *memory = at = malloc(ipu__infeed_bytes(infeed));
    if (!at)
        return ipu__fail_memory(ipu__infeed_bytes(infeed));
    for (int32_t i = 0; i < n; i++) {
        struct ipu__shape shape;

        IPU_TRY(ipu__shape_make(tensors[i].name, tensors[i].dtype,
                                tensors[i].ndim, tensors[i].shape, &shape));
        buffers[i] = at;
        at += ipu__shape_bytes(&shape);
    }
    return IPU_OK;
}

int ipu_infeed_benchmark(ipu_infeed *infeed,
                         const ipu_benchmark_options *options, char **json)
{
    void *buffers[IPU_MAX_FEED_TENSORS], *memory = NULL;
    struct report report = {0};
    int status;

    if (!infeed || !options || !json)
        return ipu__fail(IPU_ERR_ARGUMENT, "benchmark: %s is NULL",
                         !infeed    ? "the infeed"
                         : !options ? "options"
                                    : "the place for the text");
    IPU_TRY(check_options(options));
    IPU_TRY(ipu_infeed_start(infeed));
    status = make_buffers(infeed, options, buffers, &memory);
    if (status == IPU_OK)
        status = take_epochs(infeed, options, buffers, &report);
    ipu_infeed_stop(infeed);
    free(memory);
    if (status < 0) {
        free(report.text);
        return status;
    }
    *json = report.text;
    return IPU_OK;
}

int ipu_dataset_benchmark(const ipu_infeed_options *dataset,
                          const ipu_benchmark_options *options, char **json)
{
    ipu_infeed_options named;
    ipu_infeed *infeed;
    int status;

    if (!dataset)
        return ipu__fail(IPU_ERR_ARGUMENT, "benchmark: the data set is NULL");
    IPU_TRY(ipu__check_size("infeed options", dataset->size, sizeof *dataset));
    named = *dataset;
    named.source.close = NULL; /* it is still the caller's */
    if (!named.name)
        named.name = "benchmark";
    IPU_TRY(ipu_infeed_new(&named, &infeed));
    status = ipu_infeed_benchmark(infeed, options, json);
    ipu_infeed_free(infeed);
    return status;
}
