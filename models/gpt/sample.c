/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of its own with a batch of one piece: the characters so far, or the
 * last of them, from the left; what is to the right of them is not looked at.
 * The row of the last one tells the next. Nothing is kept from character to
 * character: once the context is full, every place moves.
 */
#include "gpt/sample.h"

#include "common/model.h"
#include "common/problem.h"
#include "common/program.h"
#include "common/random.h"
#include "gpt/transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    struct model *model;
    ipu_executable *executable;
    ipu_engine *engine;
    int context;
    int32_t *characters; /* owned, [context]: the last of them so far */
    int32_t *labels;     /* owned, zeros: nobody asks for the loss */
    float *logits;       /* owned, [context, characters] */
    double *weights;     /* owned, [characters] */
    int count;           /* of characters so far, at most context */
};

static void writer_fini(struct writer *w)
{
    ipu_engine_free(w->engine);
    ipu_executable_free(w->executable);
    model_free(w->model);
    free(w->characters);
    free(w->labels);
    free(w->logits);
    free(w->weights);
}

static int connect(struct writer *w, float *const *values)
{
    size_t row = (size_t)w->context * sizeof(int32_t);
    int status =
        ipu_engine_connect(w->engine, w->model->input_name, w->characters, row);

    if (status >= 0)
        status =
            ipu_engine_connect(w->engine, w->model->label_name, w->labels, row);
    if (status >= 0)
        status = ipu_engine_connect(w->engine, "logits", w->logits,
                                    row * (size_t)w->model->classes);
    for (int i = 0; i < w->model->nvariables && status >= 0; i++) {
        const struct model_variable *v = &w->model->variables[i];
        status = ipu_engine_place(w->engine, v->name, values[i],
                                  (size_t)v->count * sizeof(float));
    }
    return status < 0 ? program_device_problem() : 0;
}

static int writer_init(struct writer *w, const struct options *options,
                       const struct text *text, float *const *values)
{
    size_t n = (size_t)options->gpt.context;
    size_t classes = (size_t)text->characters;

    *w = (struct writer){.context = options->gpt.context};
    if (transformer_model(&options->gpt, 1, text->characters, &w->model) < 0 ||
        program_evaluation(w->model, NULL, &w->executable) < 0)
        return PROBLEM;
    if (ipu_engine_new(w->executable, &w->engine) < 0)
        return program_device_problem();
    w->characters = calloc(n, sizeof *w->characters);
    w->labels = calloc(n, sizeof *w->labels);
    w->logits = calloc(n * classes, sizeof *w->logits);
    w->weights = calloc(classes, sizeof *w->weights);
    if (!w->characters || !w->labels || !w->logits || !w->weights)
        return problem_set("no memory for a sample");
    return connect(w, values);
}

/* One more character; the oldest goes when the context is full. */
static void append(struct writer *w, int number)
{
    if (w->count == w->context) {
        memmove(w->characters, w->characters + 1,
                (size_t)(w->count - 1) * sizeof *w->characters);
        w->count--;
    }
    w->characters[w->count++] = number;
}

/* Draw from the logits of the last character. */
static int draw(struct writer *w, double temperature, struct random *r)
{
    int n = (int)w->model->classes;
    const float *logits = w->logits + (int64_t)(w->count - 1) * n;
    double most = -HUGE_VAL, sum = 0, place;

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
        append(w, text->numbers[0]);
        return;
    }
    const char *at = prompt, *end = prompt + strlen(prompt);

    while (at < end)
        append(w, text_find(text, (uint32_t)text_decode(&at, end)));
}

int sample_write(const struct options *options, const struct text *text,
                 float *const *values, FILE *out)
{
    struct random r;
    struct writer w;
    int status = writer_init(&w, options, text, values);

    random_seed(&r, options->seed, 99);
    if (status == 0)
        read_prompt(&w, text, options->prompt);
    for (int64_t i = 0; i < options->sample && status == 0; i++) {
        if (ipu_engine_run(w.engine) < 0) {
            status = program_device_problem();
            break;
        }
        append(&w, draw(&w, options->temperature, &r));
        text_write(text, w.characters[w.count - 1], out);
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
