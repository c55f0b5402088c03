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
#include "output/problem.h"
#include "trainer/agree.h"

/* A part of the training lasts until the next evaluation. */
static void plan_steps(struct training_run *run)
{
    const struct options *o = run->options;
    struct training_plan *plan = &run->plan;
    const struct text *text = &((struct gpt *)run->own)->text;

    run->outcome.examples = text->train;
    run->outcome.per_step =
        (int64_t)o->batch_size * o->gpt.context * o->replicas;
    plan->steps = o->steps;
    plan->part = o->eval_every > 0 ? o->eval_every : o->steps;
    plan->evaluate_every = 1;
    plan->interval = 10;
}

/* The training has pieces of the first nine tenths of the text, from each
 * place, in another order in each epoch; the validation has those of the rest,
 * one behind the other. */
static int cut_text(struct training_run *run)
{
    const struct options *o = run->options;
    const struct text *text = &((struct gpt *)run->own)->text;
    const int64_t context = o->gpt.context, rest = text->count - text->train;
    hvd_dataset *train, *tests;

    if (text->train <= context || rest <= context)
        return problem_set("the text is too short for --context %d: of its "
                           "%lld characters a tenth, %lld, is for validation, "
                           "and each part must have more than %d",
                           o->gpt.context, (long long)text->count,
                           (long long)rest, o->gpt.context);
    train =
        hvd_dataset_windows(text->numbers, text->train, context, 1, NULL, NULL);
    tests = hvd_dataset_windows(text->numbers + text->train, rest, context,
                                context, NULL, NULL);
    if (o->eval_windows > 0)
        tests = hvd_dataset_take(tests, o->eval_windows);
    run->plan.examples = hvd_dataset_count(train);
    run->plan.data_mark = text->hash;
    run->outcome.evaluated = hvd_dataset_count(tests) * context;
    run->plan.train = hvd_dataset_batch(hvd_dataset_shuffle(train, o->seed, 0),
                                        o->batch_size, 1);
    run->plan.tests = hvd_dataset_batch(tests, o->batch_size, 0);
    return 0;
}

static int load_text(struct training_run *run)
{
    struct text *text = &((struct gpt *)run->own)->text;
    const struct options *o = run->options;

    int status = agree(text_load(o->text, text));
    if (!status)
        status = agree_same("the text to learn", text->hash);
    if (!status)
        status = agree(cut_text(run));
    if (!status && o->sample > 0)
        status = agree(sample_check(o, text));
    plan_steps(run);
    return status;
}

static int look_at_text(struct training_run *run)
{
    return text_load(run->options->text, &((struct gpt *)run->own)->text);
}

static const struct hvd_model *get_network(struct training_run *run)
{
    struct gpt *gpt = run->own;

    if (!gpt->network)
        gpt->network =
            transformer_new(&run->options->gpt, gpt->text.characters);
    return gpt->network;
}

static void make_model(struct training_run *run, struct model **model)
{
    const struct hvd_model *network = get_network(run);

    if (network)
        transformer_model(network, run->options->batch_size, model);
}

static int print_sample(struct training_run *run)
{
    int status;

    if (run->options->sample == 0)
        return 0;
    printf("\n");
    status =
        sample_write(run->options, &((struct gpt *)run->own)->text,
                     trainer_model(run->trainer), training_values(run), stdout);
    printf("\n");
    return status;
}

static void free_data(struct training_run *run)
{
    struct gpt *gpt = run->own;

    transformer_free(gpt->network);
    gpt->network = NULL;
    text_fini(&gpt->text);
}

static const struct training_functions functions = {
    .program = OPTIONS_CHAR_GPT,
    .unit = "characters",
    .examples = "pieces of the text",
    .speed = "tokens",
    .source = "--text",
    .load = load_text,
    .look = look_at_text,
    .network = get_network,
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
    struct gpt gpt = {.network = NULL};

    return training_main(&functions, &gpt, argc, argv);
}
