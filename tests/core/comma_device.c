/* SPDX-License-Identifier: Apache-2.0 */
/* The same of the device: configures it from the file that is its argument,
 * prints one half and how fast an empty data set is. */
#include <ipu.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static int next(void *context, void *const *buffers)
{
    (void)context;
    *(float *)buffers[0] = 1;
    return 1;
}

int main(int argc, char **argv)
{
    const ipu_feed_tensor x = {.name = "x", .dtype = IPU_FLOAT32};
    const ipu_benchmark_options options = {
        .size = sizeof options, .epochs = 1, .elements_per_epoch = 3};
    ipu_target target = {.size = sizeof target};
    ipu_infeed_options data;
    char *json = NULL;

    if (argc != 2 || !setlocale(LC_ALL, ""))
        return 2;
    ipu_infeed_options_init(&data, sizeof data);
    data.name = "data";
    data.ntensors = 1;
    data.tensors = &x;
    data.source.next = next;
    if (ipu_target_load(argv[1], &target) < 0 ||
        ipu_dataset_benchmark(&data, &options, &json) < 0) {
        fprintf(stderr, "%s\n", ipu_last_error());
        return 1;
    }
    printf("%.1f %d\n%s\n", 0.5, target.clock_hz == 1.5e9, json);
    free(json);
    return 0;
}
