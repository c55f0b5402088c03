/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has chosen the locale of its user: starts, reduces, prints
 * one half, and the metrics to the file that is its argument. */
#include <hvd.h>
#include <locale.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static char text[1 << 16];
    float x = 1;
    FILE *file;

    if (argc != 2 || !setlocale(LC_ALL, "") || !(file = fopen(argv[1], "w")))
        return 2;
    if (hvd_init() < 0 || hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM) < 0 ||
        hvd_metrics_text(text, sizeof text) < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 1;
    }
    fputs(text, file);
    printf("%.1f\n", 0.5);
    return fclose(file) != 0 || hvd_shutdown() < 0;
}
