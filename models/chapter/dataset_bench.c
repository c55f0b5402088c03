/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_bench.c - ipu-dataset-bench: measures how fast digits can be fed to a
 * device, as JSON. If a device waits for its data, this shows how fast the data
 * set alone is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chapter/digits_source.h"
#include "options/line.h"
#include "options/values.h"
#include "output/device_problem.h"

struct options {
    const char *data;
    int64_t epochs, elements, batch, prefetch;
    int no_memcpy;
};

static const struct argp_option table[] = {
    {"data", 'd', "DIR", 0, "directory of MNIST files (digits are drawn)", 0},
    {"epochs", 'e', "N", 0, "how often to measure (10)", 0},
    {"elements", 'n', "N", 0, "elements of an epoch (1000)", 0},
    {"batch-size", 'b', "N", 0, "images of an element (32)", 0},
    {"prefetch", 'p', "N", 0, "elements read ahead, 1 to 255 (3)", 0},
    {"no-memcpy", 'm', NULL, 0, "do not copy elements to the device", 0},
    LINE_ROWS,
    {0}};

static int take_option(void *context, int key, const char *value)
{
    struct options *o = context;

    switch (key) {
    case 'd': return value_path("--data", value, &o->data);
    case 'e': return value_whole("--epochs", value, 1, 1000000, &o->epochs);
    case 'n':
        return value_whole("--elements", value, 1, 1000000000, &o->elements);
    case 'b': return value_whole("--batch-size", value, 1, 65536, &o->batch);
    case 'p': return value_whole("--prefetch", value, 1, 255, &o->prefetch);
    default: o->no_memcpy = 1; return 0;
    }
}

static int measure_epochs(const struct options *o, struct digits_source *source)
{
    const ipu_benchmark_options options = {.size = sizeof options,
                                           .epochs = (int32_t)o->epochs,
                                           .elements_per_epoch = o->elements,
                                           .no_memcpy = o->no_memcpy};
    ipu_infeed_options dataset = digits_source_options(source, "digits");
    char *json;

    dataset.prefetch_depth = (int32_t)o->prefetch;
    if (ipu_dataset_benchmark(&dataset, &options, &json) < 0)
        return device_problem();
    puts(json);
    free(json);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {
        .epochs = 10, .elements = 1000, .batch = 32, .prefetch = 3};
    const struct line line = {
        "ipu-dataset-bench",
        "Measure how fast a data set of digits can be fed to a device, and "
        "print that as JSON: for each epoch bandwidth in GB/s, elements a "
        "second, elements, seconds and bytes.\v"
        "Exit status: 0 measured, 1 failed, 64 wrong command line.",
        table,
        take_option,
        &o,
        NULL,
        NULL};
    struct digits_source source = {0};
    int status = line_parse(&line, argc, argv);

    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = digits_source_init(&source, o.data, (int)o.batch);
    if (status == 0)
        status = measure_epochs(&o, &source);
    digits_source_fini(&source);
    return line_end(&line, status);
}
