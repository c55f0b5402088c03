/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of an estimator, by the names that their fields have
 * in hvd_estimator.h; of the schedule of its learning rate, with rate_ before.
 */
#include <string.h>

#include "estimator.h"

#define OPTION(name, kind)                                                     \
    {                                                                          \
#name, offsetof(hvd_estimator_options, name), kind                     \
    }
#define RATE(text, name, kind)                                                 \
    {                                                                          \
        text,                                                                  \
            offsetof(hvd_estimator_options, rate) +                            \
                offsetof(hvd_schedule, name),                                  \
            kind                                                               \
    }

static const struct field option_fields[] = {
    OPTION(model_dir, 's'),
    OPTION(optimizer, 's'),
    OPTION(weight_decay, 'd'),
    OPTION(ema_decay, 'd'),
    OPTION(ema_warmup, 'i'),
    OPTION(clip_norm, 'd'),
    OPTION(skip_nonfinite, 'i'),
    OPTION(loss_scale_steps, 'i'),
    OPTION(loss_scale, 'd'),
    OPTION(accumulate, 'i'),
    OPTION(replicas, 'i'),
    OPTION(device_collective, 'i'),
    OPTION(synchronised, 'i'),
    OPTION(threads, 'i'),
    OPTION(stages, 'i'),
    OPTION(schedule, 'i'),
    OPTION(recompute, 'i'),
    OPTION(servers, 'i'),
    OPTION(server_mode, 'i'),
    OPTION(variables_on_host, 'i'),
    OPTION(seed, 'q'),
    OPTION(save_checkpoints_steps, 'q'),
    OPTION(save_checkpoints_secs, 'd'),
    OPTION(keep_checkpoint_max, 'i'),
    OPTION(log_step_count_steps, 'q'),
    OPTION(log_dir, 's'),
    OPTION(elastic, 'i'),
    OPTION(elastic_steps, 'i'),
    OPTION(elastic_log, 's'),
    RATE("learning_rate", rate, 'd'),
    RATE("rate_schedule", kind, 'i'),
    RATE("rate_steps", steps, 'q'),
    RATE("rate_warmup", warmup, 'q'),
    RATE("rate_every", every, 'q'),
    RATE("rate_factor", factor, 'd'),
    RATE("rate_final", final, 'd'),
    {NULL, 0, 0}};

bool option_set(hvd_estimator_options *options, PyObject *key, PyObject *value)
{
    const struct field *f = option_fields;
    const char *name;

    if (!get_text(key, "the option", &name))
        return false;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    void *at = (char *)options + f->offset;

    switch (f->kind) {
    case 's': return get_text(value, name, at);
    case 'd': return get_double(value, name, at);
    case 'i': return get_int32(value, name, at);
    case 'q': return get_int(value, name, INT64_MIN, INT64_MAX, at);
    default: break;
    }
    PyErr_Format(PyExc_TypeError, "there is no option '%s'", name);
    return false;
}
