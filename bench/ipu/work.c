/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - rows of computation on the whole chip: products by size and dtype,
 * convolutions of known networks, sums, and stencils.
 */
#include "ipu/rows.h"

#include <ipu.h>

/* Puts the row of a product, if the product fits on the chip. */
static int product(const ipu_system *system, const struct ipu_sink *sink,
                   struct ipu_row row, const ipu_product *p)
{
    ipu_target_peaks peaks = ipu_row_peaks(system);
    ipu_cycles cycles = {.size = sizeof cycles};
    ipu_plan plan = {.size = sizeof plan};
    int status = ipu_model_product(&system->ipu, p, &plan, &cycles);

    if (status == IPU_ERR_FULL)
        return 0;
    if (status < 0)
        return status;
    row.unit = "TFLOPS";
    row.with_room = (double)cycles.total / (double)plan.roomy_cycles;
    ipu_row_put(system, sink, row, &cycles, cycles.flops,
                p->element_bytes == 2 ? peaks.flops_float16
                                      : peaks.flops_float32);
    return 0;
}

int ipu_rows_matmul(const ipu_system *system, const struct ipu_sink *sink)
{
    static const int64_t sides[] = {64,   128,  256,  512,  1024, 1536,
                                    2048, 2944, 3584, 4096, 6144, 8192};
    int status = 0;

    for (int bytes = 4; bytes >= 2 && status >= 0; bytes -= 2)
        for (size_t i = 0; i < sizeof sides / sizeof *sides && status >= 0; i++)
            status = product(
                system, sink,
                (struct ipu_row){.group = "matmul",
                                 .what = bytes == 4 ? "float32" : "float16",
                                 .size = sides[i]},
                &(ipu_product){.size = sizeof(ipu_product),
                               .element_bytes = bytes,
                               .batch = 1,
                               .m = sides[i],
                               .k = sides[i],
                               .n = sides[i]});
    return status;
}

int ipu_rows_matvec(const ipu_system *system, const struct ipu_sink *sink)
{
    static const int64_t rows[] = {1000, 10000, 30000};
    ipu_target_peaks peaks = ipu_row_peaks(system);

    for (int i = 0; i < 3; i++) {
        ipu_cycles cycles = {.size = sizeof cycles};
        int status =
            ipu_model_matvec(&system->ipu, rows[i], 1000, 0, NULL, &cycles);

        if (status < 0)
            return status;
        ipu_row_put(system, sink,
                    (struct ipu_row){.group = "matvec",
                                     .what = "float32, 1000 columns",
                                     .size = rows[i],
                                     .unit = "TFLOPS"},
                    &cycles, cycles.flops, peaks.flops_float32);
    }
    return 0;
}

/* Puts rows of a layer of 256 channels in groups: 14 x 14 pixels of 4
 * images. */
static int grouped(const ipu_system *system, const struct ipu_sink *sink)
{
    static const struct {
        const char *what;
        int32_t channels;
    } groups[] = {{"float16, 3 x 3, groups of 1", 1},
                  {"float16, 3 x 3, groups of 4", 4},
                  {"float16, 3 x 3, groups of 16", 16}};
    int status = 0;

    for (int i = 0; i < 3 && status >= 0; i++)
        status = product(system, sink,
                         (struct ipu_row){.group = "convolution",
                                          .what = groups[i].what,
                                          .size = 14},
                         &(ipu_product){.size = sizeof(ipu_product),
                                        .element_bytes = 2,
                                        .batch = 256 / groups[i].channels,
                                        .m = (int64_t)4 * 14 * 14,
                                        .k = groups[i].channels,
                                        .n = groups[i].channels,
                                        .kernel = {3, 3},
                                        .stride = {1, 1},
                                        .grouped = 1});
    return status;
}

/* The names of a layer in both dtypes. */
#define BOTH(text)                                                             \
    {                                                                          \
        "float32, " text, "float16, " text                                     \
    }

int ipu_rows_convolution(const ipu_system *system, const struct ipu_sink *sink)
{
    /* Layers of ResNet-50: images of side x side, in batches of 4. */
    static const struct {
        const char *what[2];
        int32_t side, kernel, stride, in, out;
    } layers[] = {
        {BOTH("7 x 7 /2, 3 to 64"), 112, 7, 2, 3, 64},
        {BOTH("1 x 1, 64 to 256"), 56, 1, 1, 64, 256},
        {BOTH("3 x 3, 64 to 64"), 56, 3, 1, 64, 64},
        {BOTH("3 x 3, 128 to 128"), 28, 3, 1, 128, 128},
        {BOTH("3 x 3, 256 to 256"), 14, 3, 1, 256, 256},
        {BOTH("3 x 3, 512 to 512"), 7, 3, 1, 512, 512},
    };
    int status = 0;

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int half = 0; half < 2 && status >= 0; half++)
            status =
                product(system, sink,
                        (struct ipu_row){.group = "convolution",
                                         .what = layers[i].what[half],
                                         .size = layers[i].side},
                        &(ipu_product){
                            .size = sizeof(ipu_product),
                            .element_bytes = half ? 2 : 4,
                            .batch = 1,
                            .m = (int64_t)4 * layers[i].side * layers[i].side,
                            .k = layers[i].in,
                            .n = layers[i].out,
                            .kernel = {layers[i].kernel, layers[i].kernel},
                            .stride = {layers[i].stride, layers[i].stride}});
    return status < 0 ? status : grouped(system, sink);
}

int ipu_rows_reduction(const ipu_system *system, const struct ipu_sink *sink)
{
    for (int64_t count = 1 << 10; count <= 1 << 24; count *= 16) {
        ipu_cycles cycles = {.size = sizeof cycles};
        int status = ipu_model_reduce(&system->ipu, count, 1, 4, &cycles);

        if (status < 0)
            return status;
        ipu_row_put(system, sink,
                    (struct ipu_row){.group = "reduction",
                                     .what = "float32, to one sum",
                                     .size = count,
                                     .unit = "GB/s"},
                    &cycles, 4.0 * (double)count, 0);
    }
    return 0;
}

/* Returns the operations per second that a stencil could reach. Each point that
 * it reads and the cell that it writes are accesses to local memory at its
 * bandwidth, because there is no cache; but it cannot exceed the arithmetic of
 * vectors, one multiplication and one addition per element and cycle. */
static double roofline(const ipu_system *system, int32_t points)
{
    ipu_target_peaks peaks = ipu_row_peaks(system);
    double flops = points + 1.0; /* the count of ipu_model_stencil */
    double bytes = 4 * (points + 1.0);
    double memory = peaks.memory_bytes_per_second * flops / bytes;
    double vectors = 2.0 * system->ipu.vector_bytes / 4 * system->ipu.tiles *
                     system->ipu.clock_hz;

    return memory < vectors ? memory : vectors;
}

static int stencil(const ipu_system *system, const struct ipu_sink *sink,
                   int32_t dims, int32_t points, int64_t side, int32_t tuned,
                   const char *what)
{
    ipu_cycles cycles = {.size = sizeof cycles};
    int status =
        ipu_model_stencil(&system->ipu, dims, side, points, tuned, &cycles);

    if (status == IPU_ERR_FULL)
        return 0;
    if (status < 0)
        return status;
    ipu_row_put(
        system, sink,
        (struct ipu_row){
            .group = "stencil", .what = what, .size = side, .unit = "TFLOPS"},
        &cycles, cycles.flops, roofline(system, points));
    return 0;
}

int ipu_rows_stencil(const ipu_system *system, const struct ipu_sink *sink)
{
    static const struct {
        const char *what[2];
        int32_t dims, points;
        int64_t sides[3];
    } kinds[] = {
        {{"5 points, compiled", "5 points, by hand"}, 2, 5, {512, 2048, 6000}},
        {{"9 points, compiled", "9 points, by hand"}, 2, 9, {512, 2048, 6000}},
        {{"7 points, compiled", "7 points, by hand"}, 3, 7, {64, 200, 360}},
    };
    int status = 0;

    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            for (int tuned = 0; tuned < 2 && status >= 0; tuned++)
                status =
                    stencil(system, sink, kinds[k].dims, kinds[k].points,
                            kinds[k].sides[i], tuned, kinds[k].what[tuned]);
    return status;
}
