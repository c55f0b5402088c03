/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - a sample is written by an evaluation with a batch of one piece.
 * The input has the characters so far, or the last of them, from the left; the
 * network is causal, so the places to their right do not matter. The logits in
 * the row of the last character give the next. Nothing is kept from character
 * to character, because every place moves once the context is full.
 */
#include "gpt/sample.h"

#include "data/random.h"
#include "model/weights.h"
#include "networks/transformer.h"
#include "output/problem.h"
#include "trainer/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    struct hvd_model *network; /* owned, as the model */
    struct model *model;
    struct evaluation evaluation; /* the input has the characters so far */
    double *weights;              /* owned, [characters] */
    int context;
    int count; /* characters so far, at most context */
};

static void writer_fini(struct writer *w)
{
    evaluation_fini(&w->evaluation);
    model_free(w->model);
    transformer_free(w->network);
    free(w->weights);
}

static int writer_init(struct writer *w, const struct options *options,
                       const struct text *text, const struct model *trained,
                       float *const *values)
{
    int chips = options->partition.stages > 0 ? options->partition.stages : 1;

    *w = (struct writer){.network =
                             transformer_new(&options->gpt, text->characters),
                         .context = options->gpt.context};
    if (!w->network || transformer_model(w->network, 1, &w->model) < 0)
        return PROBLEM;
    if (!weights_match(w->model, trained))
        return problem_set("--sample: the network of --graphs is not that of "
                           "--layers %d, --width %d and --context %d, which "
                           "writes the sample: give --sample 0",
                           options->gpt.layers, options->gpt.width,
                           options->gpt.context);
    if (evaluation_init(&w->evaluation, w->model, chips, false, 0, NULL) < 0)
        return PROBLEM;
    w->weights = calloc((size_t)text->characters, sizeof *w->weights);
    if (!w->weights)
        return problem_set("no memory for a sample");
    return evaluation_place(&w->evaluation, values);
}

static int32_t *input_of(const struct writer *w)
{
    return w->evaluation.inputs[0];
}

/* Appends a character; the oldest one goes when the context is full. */
static void append_character(struct writer *w, int number)
{
    if (w->count == w->context) {
        memmove(input_of(w), input_of(w) + 1,
                (size_t)(w->count - 1) * sizeof(int32_t));
        w->count--;
    }
    input_of(w)[w->count++] = number;
}

/* Draws the next character from the logits of the last. */
static int draw_character(struct writer *w, double temperature,
                          struct random *r)
{
    int n = (int)w->model->outputs[0].shape[1];
    const float *logits = w->evaluation.outputs[0];
    double most = -HUGE_VAL, sum = 0, place;

    logits += (int64_t)(w->count - 1) * n;
    for (int i = 0; i < n; i++)
        most = fmax(most, (double)logits[i]);
    for (int i = 0; i < n; i++)
        sum += w->weights[i] = exp(((double)logits[i] - most) / temperature);
    place = random_range(r, 0, sum);
    for (int i = 0; i < n - 1; i++) {
        if (place < w->weights[i])
            return i;
        place -= w->weights[i];
    }
    return n - 1;
}

static void read_prompt(struct writer *w, const struct text *text,
                        const char *prompt)
{
    if (!prompt) {
        append_character(w, text->numbers[0]);
        return;
    }
    const char *at = prompt, *end = prompt + strlen(prompt);

    while (at < end)
        append_character(w, text_find(text, (uint32_t)text_decode(&at, end)));
}

int sample_write(const struct options *options, const struct text *text,
                 const struct model *trained, float *const *values, FILE *out)
{
    struct random r;
    struct writer w;
    int status = writer_init(&w, options, text, trained, values);

    random_seed(&r, options->seed, 99);
    if (status == 0)
        read_prompt(&w, text, options->prompt);
    for (int64_t i = 0; i < options->sample && status == 0; i++) {
        status = evaluation_run(&w.evaluation);
        if (status < 0)
            break;
        append_character(&w, draw_character(&w, options->temperature, &r));
        text_write(text, input_of(&w)[w.count - 1], out);
    }
    writer_fini(&w);
    return status;
}

int sample_check(const struct options *options, const struct text *text)
{
    if (!options->prompt)
        return 0;
    const char *at = options->prompt, *end = at + strlen(at);
    if (at == end)
        return problem_set("--prompt: '' has no character to go on from");
    while (at < end) {
        const char *start = at;
        int64_t point = text_decode(&at, end);

        if (point < 0)
            return problem_set("--prompt: '%s' is no UTF-8", options->prompt);
        if (text_find(text, (uint32_t)point) < 0)
            return problem_set("--prompt: the text to learn has no '%.*s'",
                               (int)(at - start), start);
    }
    return 0;
}
