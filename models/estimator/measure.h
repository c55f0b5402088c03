/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - the metrics of an evaluation. */
#ifndef MODELS_ESTIMATOR_MEASURE_H
#define MODELS_ESTIMATOR_MEASURE_H

#include "trainer/trainer.h"

#include <hvd_estimator.h>

/* Where a metric finds what it counts. */
struct measure {
    hvd_metric *metric; /* borrowed */
    int output;         /* -1: the losses */
    int labels;         /* an input of the network; -1: none */
    int weights;        /* likewise */
    int64_t rows;       /* labels of a row of the data */
    int64_t columns;    /* numbers of a prediction */
    bool shares;        /* the labels of a row have one weight */
    bool is_int;        /* labels are int32 */
};

struct measures {
    struct measure list[HVD_EVAL_MOST_METRICS];
    hvd_metric *metrics[HVD_EVAL_MOST_METRICS]; /* borrowed */
    int32_t count;
    int64_t capacity; /* rows of a batch */
    float *numbers;   /* owned; a batch of labels as float32, or of weights */
};

/* Finds everything for the metrics of a spec, and makes them forget their rows.
 * measures_fini in any case. HVD_ERR_ARGUMENT: one does not go with the
 * network. */
int measures_init(struct measures *measures, const hvd_eval_spec *spec,
                  const struct model *model, int64_t capacity);
void measures_fini(struct measures *measures);

/* Counts rows of the data, of a batch that has been evaluated. */
int measures_add(struct measures *measures, const struct trainer_results *r,
                 int64_t rows);

/* Collective: each metric gets the rows of all ranks. */
int measures_merge(struct measures *measures);

/* Writes the name of a metric into name, of size bytes. Returns it. */
const char *measure_name(const hvd_eval_metric *metric, char *name,
                         size_t size);

#endif
