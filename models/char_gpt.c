/* SPDX-License-Identifier: Apache-2.0 */
/*
 * char_gpt - trains a small transformer to write like a text, on every rank,
 * and then writes a sample. Each rank has its own software IPU and its own
 * pieces of the text; gradients are averaged while the backward pass runs.
 */
#include "command/training_run.h"
#include "gpt/report.h"
#include "gpt/sample.h"
#include "networks/transformer.h"
#include "trainer/agree.h"

/* A part of the training lasts until the next evaluation. */
static void plan_steps(struct training_run *run, struct gpt_data *data)
{
    const struct options *o = run->options;

    run->outcome.examples = data->text.train;
    run->outcome.evaluated = data->pieces.evaluated * data->pieces.context;
    run->outcome.per_step =
        (int64_t)o->batch_size * o->gpt.context * o->replicas;
    run->plan = (struct training_plan){.steps = o->steps,
                                       .part = o->eval_every > 0 ? o->eval_every
                                                                 : o->steps,
                                       .evaluate_every = 1,
                                       .interval = 10,
                                       .fill = pieces_fill,
                                       .fill_test = pieces_fill_test,
                                       .data = &data->pieces};
}

static int load_text(struct training_run *run)
{
    struct gpt_data *data = run->own;
    const struct options *o = run->options;

    int status = agree(text_load(o->text, &data->text));
    if (!status)
        status = agree_same("the text to learn", data->text.hash);
    if (!status)
        status = agree(pieces_init(
            &data->pieces, &data->text, o->gpt.context, o->batch_size,
            run->command->rank, run->command->size, o->seed, o->eval_windows));
    data->pieces.replicas = o->replicas;
    if (!status && o->sample > 0)
        status = agree(sample_check(o, &data->text));
    plan_steps(run, data);
    return status;
}

static int look_at_text(struct training_run *run)
{
    struct gpt_data *data = run->own;

    return text_load(run->options->text, &data->text);
}

static void make_model(struct training_run *run, struct model **model)
{
    struct gpt_data *data = run->own;

    transformer_model(&run->options->gpt, run->options->batch_size,
                      data->text.characters, model);
}

static int print_sample(struct training_run *run)
{
    struct gpt_data *data = run->own;
    int status;

    if (run->options->sample == 0)
        return 0;
    printf("\n");
    status =
        sample_write(run->options, &data->text, trainer_model(run->trainer),
                     trainer_values(run->trainer), stdout);
    printf("\n");
    return status;
}

static void free_data(struct training_run *run)
{
    text_fini(&((struct gpt_data *)run->own)->text);
}

static const struct training_functions functions = {
    .program = OPTIONS_CHAR_GPT,
    .unit = "characters",
    .speed = "tokens",
    .source = "--text",
    .load = load_text,
    .look = look_at_text,
    .make_model = make_model,
    .report_head = gpt_report_head,
    .place = gpt_place,
    .evaluation = gpt_evaluation,
    .tests = "validation",
    .report_results = gpt_report_results,
    .settings = gpt_settings,
    .results = gpt_results,
    .write_more = print_sample,
    .fini = free_data,
};

int main(int argc, char **argv)
{
    struct gpt_data data = {.text = {0}};

    return training_main(&functions, &data, argc, argv);
}
