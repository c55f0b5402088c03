/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_bench.c - ipu-dataset-bench: how fast digits can be fed to a device,
 * as JSON: a person who sees that the device waits for its data finds out here
 * what the data set alone can do.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chapter/digits_source.h"
#include "chapter/number.h"
#include "common/problem.h"

enum { DRAWN = 4096 };

struct options {
    const char *data;
    int epochs, elements, batch, prefetch;
    int no_memcpy;
};

static const struct argp_option flags[] = {
    {"data", 'd', "DIR", 0, "MNIST files (digits are drawn)", 0},
    {"epochs", 'e', "N", 0, "how often to measure (10)", 0},
    {"elements", 'n', "N", 0, "elements of an epoch (1000)", 0},
    {"batch", 'b', "N", 0, "images of an element (32)", 0},
    {"prefetch", 'p', "N", 0, "elements read ahead, 1 to 255 (3)", 0},
    {"no-memcpy", 'm', NULL, 0, "do not copy elements to the device", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'd': o->data = text; return 0;
    case 'e': return chapter_number(state, "--epochs", text, &o->epochs);
    case 'n': return chapter_number(state, "--elements", text, &o->elements);
    case 'b': return chapter_number(state, "--batch", text, &o->batch);
    case 'p': return chapter_number(state, "--prefetch", text, &o->prefetch);
    case 'm': o->no_memcpy = 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse,
    .doc = "Measure how fast a data set of digits can be fed to a device, and "
           "print that as JSON: for each epoch bandwidth in GB/s, elements a "
           "second, elements, seconds and bytes.",
};

static int measure(const struct options *o, struct digits_source *source)
{
    const ipu_benchmark_options options = {.size = sizeof options,
                                           .epochs = o->epochs,
                                           .elements_per_epoch = o->elements,
                                           .no_memcpy = o->no_memcpy};
    ipu_infeed_options dataset = digits_source_options(source, "digits");
    char *json;

    dataset.prefetch_depth = o->prefetch;
    if (ipu_dataset_benchmark(&dataset, &options, &json) < 0)
        return problem_set("%s", ipu_last_error());
    puts(json);
    free(json);
    return fflush(stdout) == 0 ? 0 : problem_set("standard output is closed");
}

int main(int argc, char **argv)
{
    struct options o = {
        .epochs = 10, .elements = 1000, .batch = 32, .prefetch = 3};
    struct digits_source source;
    int status;

    if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
        return EXIT_FAILURE;
    status = digits_source_init(&source, o.data,
                                o.batch > DRAWN ? o.batch : DRAWN, o.batch);
    if (status == 0)
        status = measure(&o, &source);
    digits_source_fini(&source);
    if (status < 0)
        fprintf(stderr, "ipu-dataset-bench: %s\n", problem_text());
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
