/* SPDX-License-Identifier: Apache-2.0 */
#include "mnist/report.h"

#include "model/digit_networks.h"

void report_head(struct progress *progress, const struct summary *summary)
{
    const struct options *o = summary->outcome.options;

    outcome_report_head(progress, &summary->outcome, o->batch_size, "images");
    progress_line(progress, "data: %lld training and %lld test digits, %s%s",
                  (long long)summary->train_images,
                  (long long)summary->test_images, o->data ? "from " : "drawn",
                  o->data ? o->data : "");
    progress_line(progress, "network: %s, %lld parameters",
                  network_name((enum network)o->network),
                  (long long)summary->outcome.parameters);
}

void report_results(struct progress *progress, const struct summary *summary)
{
    const struct summary *s = summary;

    progress_line(progress, "test accuracy  %.2f %% (%lld of %lld), loss %.4f",
                  100 * s->test_accuracy, (long long)s->test_correct,
                  (long long)s->test_images, s->test_loss);
    progress_line(progress,
                  "speed          %.0f images/s, %lld images in %.2f s",
                  summary_images_per_second(s), (long long)s->images,
                  s->outcome.times.training);
    outcome_report_times(progress, &s->outcome);
    outcome_report_weights(progress, &s->outcome);
}
