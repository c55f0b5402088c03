/* SPDX-License-Identifier: Apache-2.0 */
#include "ipu/rows.h"

#include <stddef.h>

const struct ipu_group ipu_groups[] = {
    {"memory", ipu_rows_memory},
    {"exchange", ipu_rows_exchange},
    {"links", ipu_rows_links},
    {"host", ipu_rows_host},
    {"matmul", ipu_rows_matmul},
    {"matvec", ipu_rows_matvec},
    {"convolution", ipu_rows_convolution},
    {"reduction", ipu_rows_reduction},
    {"broadcast", ipu_rows_broadcast},
    {"stencil", ipu_rows_stencil},
    {NULL, NULL},
};

void ipu_row_put(const ipu_system *system, const struct ipu_sink *sink,
                 struct ipu_row row, const ipu_cycles *cycles, double amount,
                 double peak)
{
    double seconds = ipu_model_seconds(&system->ipu, cycles->total);

    row.cycles = cycles->total;
    row.ns = 1e9 * seconds;
    row.estimate = cycles->estimate;
    if (!row.unit)
        row.unit = "";
    if (amount > 0 && seconds > 0) {
        double scale = row.unit[0] == 'T' ? 1e12 : 1e9;

        row.rate = amount / seconds / scale;
        row.share = peak > 0 ? amount / seconds / peak : 0;
    }
    sink->put(sink->context, &row);
}

ipu_target_peaks ipu_row_peaks(const ipu_system *system)
{
    ipu_target_peaks peaks = {.size = sizeof peaks};

    ipu_target_get_peaks(&system->ipu, &peaks);
    return peaks;
}
