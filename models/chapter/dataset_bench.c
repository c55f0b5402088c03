/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_bench.c - ipu-dataset-bench: measures how fast a data set can be fed
 * to a device, as JSON. If a device waits for its data, this shows how fast the
 * data set alone is: --no-memcpy leaves out the device's queue, too.
 */
#include <hvd_model.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chapter/source.h"
#include "options/line.h"
#include "output/device_problem.h"

struct options {
    const char *data, *fields;
    int format;
    int64_t epochs, elements, batch, prefetch;
    bool no_memcpy;
};

static hvd_dataset *open_data(const struct options *o)
{
    struct stat info;

    if (!o->data || (stat(o->data, &info) == 0 && S_ISDIR(info.st_mode)))
        return source_digits(o->data, o->batch);
    return hvd_dataset_batch(source_file(o->data, o->format, o->fields),
                             o->batch, 1);
}

/* Measures the queue that the device takes its elements from. */
static int measure_queue(const struct options *o, char **json)
{
    const ipu_benchmark_options options = {.size = sizeof options,
                                           .epochs = (int32_t)o->epochs,
                                           .elements_per_epoch = o->elements};
    ipu_infeed_options queue;
    ipu_infeed *infeed;
    int status;

    ipu_infeed_options_init(&queue, sizeof queue);
    queue.name = "data";
    queue.prefetch_depth = (int32_t)o->prefetch;
    queue.repeat = 1;
    status = hvd_infeed_new(open_data(o), NULL, &queue, &infeed);
    if (status < 0)
        return status;
    status = device_status(ipu_infeed_benchmark(infeed, &options, json));
    ipu_infeed_free(infeed);
    return status;
}

static int measure_data(const struct options *o, char **json)
{
    hvd_dataset *d = hvd_dataset_prefetch(open_data(o), (int32_t)o->prefetch);
    int status =
        hvd_dataset_benchmark(d, (int32_t)o->epochs, o->elements, json);

    hvd_dataset_free(d);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.format = -1,
                        .epochs = 10,
                        .elements = 1000,
                        .batch = 32,
                        .prefetch = 3};
    const struct line_row rows[] = {
        {"data", 'd', "PATH",
         "directory of MNIST files, or a file (digits are drawn)",
         LINE_PATH(o.data)},
        {"format", 'f', "NAME",
         "format of the file: idx, csv, npy, npz, safetensors, tfrecord or "
         "text "
         "(as it is called)",
         LINE_NAME(o.format, source_formats)},
        {"fields", 0, "LIST",
         "components of a CSV file or of TFRecords, like "
         "pixels:float32:28x28,label:int32",
         LINE_PATH(o.fields)},
        {"epochs", 'e', "N", "how often to measure (10)",
         LINE_WHOLE(o.epochs, 1, 1000000)},
        {"elements", 'n', "N", "elements of an epoch (1000)",
         LINE_WHOLE(o.elements, 1, 1000000000)},
        {"batch-size", 'b', "N", "rows of an element (32)",
         LINE_WHOLE(o.batch, 1, 65536)},
        {"prefetch", 'p', "N", "elements read ahead, 1 to 255 (3)",
         LINE_WHOLE(o.prefetch, 1, 255)},
        {"no-memcpy", 'm', NULL, "do not copy elements to the device",
         LINE_FLAG(o.no_memcpy)},
        {0}};
    const struct line line = {
        .program = "ipu-dataset-bench",
        .doc = "Measure how fast a data set can be fed to a device, and print "
               "that as JSON: for each epoch bandwidth in GB/s, elements a "
               "second, elements, seconds and bytes.\v"
               "Exit status: 0 measured, 1 failed, 64 wrong command line.",
        .rows = rows};
    char *json = NULL;
    int status = line_parse(&line, argc, argv);

    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = o.no_memcpy ? measure_data(&o, &json) : measure_queue(&o, &json);
    if (status >= 0)
        puts(json);
    free(json);
    return line_end(&line, status);
}
