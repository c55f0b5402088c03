/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_metric.h - numbers that say how good predictions are, over any number of
 * batches and ranks.
 *
 *     hvd_metric_options o;
 *     hvd_metric *accuracy;
 *
 *     hvd_metric_options_init(&o, sizeof o, HVD_METRIC_ACCURACY);
 *     hvd_metric_new(&o, &accuracy);
 *     for each batch:
 *         hvd_metric_update_classes(accuracy, scores, labels, NULL, rows, 10);
 *     hvd_metric_merge_ranks(&accuracy, 1, 0);
 *     printf("%g\n", hvd_metric_result(accuracy));
 *
 * A metric keeps sums: of what counts, and of the weights of all rows. Adding
 * up the sums of several ranks gives exactly what one of them would have, that
 * had seen all rows, but for rounding: it does not matter how rows are shared
 * out. (A mean of the ranks' results would be wrong where shares differ.)
 *
 * Functions return 0 or a negative HVD_ERR_*, and hvd_last_error() says what
 * was wrong; then nothing has changed. Each metric is for one thread at a time.
 */
#ifndef HVD_METRIC_H
#define HVD_METRIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hvd_metric hvd_metric;

typedef int32_t hvd_metric_kind;
enum {
    HVD_METRIC_MEAN = 0,            /* of values, such as losses */
    HVD_METRIC_PERPLEXITY = 1,      /* exp of the mean of cross entropies */
    HVD_METRIC_ACCURACY = 2,        /* the label has the highest score; of equal
                                       scores the first counts */
    HVD_METRIC_TOP_K = 3,           /* fewer than k scores are higher than the
                                       label's, which is finite */
    HVD_METRIC_BINARY_ACCURACY = 4, /* of elements: p > threshold as the target
                                       has it */
    HVD_METRIC_PRECISION = 5,       /* true positives / positives; 0 / 0 is 0 */
    HVD_METRIC_RECALL = 6,          /* true positives / targets */
    HVD_METRIC_AUC = 7,    /* area under the curve of true by false positives,
                              at thresholds that are evenly apart in [0, 1] and
                              just outside of it, by trapezoids (Keras's) */
    HVD_METRIC_AUC_PR = 8, /* of precision by recall, interpolated as by Davis &
                              Goadrich 2006 (Keras's) */
    HVD_METRIC_MEAN_SQUARED_ERROR = 9, /* of elements */
    HVD_METRIC_MEAN_ABSOLUTE_ERROR = 10,
    HVD_METRIC_KINDS = 11
};

typedef struct hvd_metric_options {
    uint32_t size;        /* of the struct */
    hvd_metric_kind kind; /* as hvd_metric_options_init got it */
    int32_t k;            /* TOP_K: 1 or more; 5 */
    int32_t thresholds;   /* of both AUC: from 2 to 1,000,000; 200 */
    double threshold;     /* of BINARY_ACCURACY, PRECISION and RECALL; 0.5 */
} hvd_metric_options;

void hvd_metric_options_init(hvd_metric_options *options, size_t size,
                             hvd_metric_kind kind);

/* Makes a metric of no rows; the options are copied. HVD_ERR_ARGUMENT,
 * HVD_ERR_MEMORY. */
int hvd_metric_new(const hvd_metric_options *options, hvd_metric **metric);
/* Accepts NULL. */
void hvd_metric_free(hvd_metric *metric);

/* Returns "mean", "perplexity", "accuracy", "top_k", "binary_accuracy",
 * "precision", "recall", "auc", "auc_pr", "mean_squared_error" or
 * "mean_absolute_error"; NULL: there is none. */
const char *hvd_metric_name(hvd_metric_kind kind);

/*
 * Counts rows of ACCURACY and TOP_K. scores: [rows, classes], logits or
 * probabilities; labels: [rows], each less than classes; weights: [rows], or
 * NULL for 1. HVD_ERR_ARGUMENT: a label is out of range, a weight negative or
 * not finite, or the metric is of another kind.
 */
int hvd_metric_update_classes(hvd_metric *metric, const float *scores,
                              const int32_t *labels, const float *weights,
                              int64_t rows, int64_t classes);

/*
 * Counts rows of the other kinds. predictions, targets: [rows, columns];
 * targets of MEAN and PERPLEXITY are NULL, and those of classifications are
 * true above 0.5. Each element has the weight of its row. Predictions of both
 * AUC are in [0, 1], else HVD_ERR_ARGUMENT.
 */
int hvd_metric_update(hvd_metric *metric, const float *predictions,
                      const float *targets, const float *weights, int64_t rows,
                      int64_t columns);

/* Returns the metric of all rows that were counted, 0 of none (PERPLEXITY: 1);
 * NaN for NULL. */
double hvd_metric_result(const hvd_metric *metric);

/* Forgets all rows. */
void hvd_metric_reset(hvd_metric *metric);

/* Returns the sums, [*count], in memory of the metric, for programs that add
 * them up over ranks or keep them themselves. */
double *hvd_metric_sums(hvd_metric *metric, int64_t *count);

/* Adds the rows of another metric, which has the same options. */
int hvd_metric_merge(hvd_metric *metric, const hvd_metric *other);

/*
 * Adds up the rows of all ranks of a process set (0: of the world), of several
 * metrics in one allreduce: afterwards every rank has the results of all rows,
 * with the same bits. Reset the metrics before more rows are counted, or they
 * would count twice. Collective, blocking; all ranks give metrics with the same
 * options in the same order, else HVD_ERR_MISMATCH on all of them. Needs
 * hvd_init.
 */
int hvd_metric_merge_ranks(hvd_metric *const *metrics, int32_t count,
                           int32_t process_set);

#ifdef __cplusplus
}
#endif

#endif
