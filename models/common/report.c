/* SPDX-License-Identifier: Apache-2.0 */
#include "common/report.h"

#include "common/network.h"

#include <hvd_strategy.h>
#include <inttypes.h>

void report_head(struct progress *progress, const struct summary *summary)
{
    const struct options *o = summary->options;
    int size = summary->world_size;

    progress_line(progress,
                  "%s: %d rank%s, %d images per rank and step (%lld in all), "
                  "%s, learning rate %g%s, compression %s",
                  summary->program, size, size > 1 ? "s" : "", o->batch_size,
                  (long long)o->batch_size * size,
                  optimizer_name(o->optimizer.optimizer), o->learning_rate,
                  o->serial ? ", serial" : "",
                  hvd_compression_name(o->compression));
    progress_line(progress, "data: %lld training and %lld test digits, %s%s",
                  (long long)summary->train_images,
                  (long long)summary->test_images, o->data ? "from " : "drawn",
                  o->data ? o->data : "");
    progress_line(progress, "network: %s, %lld parameters",
                  network_name((enum network)o->network),
                  (long long)summary->parameters);
}

void report_results(struct progress *progress, const struct summary *summary)
{
    const struct summary *s = summary;

    progress_line(progress, "test accuracy  %.2f %% (%lld of %lld), loss %.4f",
                  100 * s->test_accuracy, (long long)s->test_correct,
                  (long long)s->test_images, s->test_loss);
    progress_line(
        progress, "speed          %.0f images/s, %lld images in %.2f s",
        summary_images_per_second(s), (long long)s->images, s->seconds);
    progress_line(progress,
                  "time           compute %.1f %%, waiting for communication "
                  "%.1f %%, update %.1f %%, data %.1f %%",
                  100 * summary_fraction(s, s->compute),
                  100 * summary_fraction(s, s->wait),
                  100 * summary_fraction(s, s->update),
                  100 * summary_fraction(s, s->data));
    progress_line(progress,
                  "weights        equal on all ranks, checksum %016" PRIx64,
                  s->weights_hash);
}
