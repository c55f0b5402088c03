/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests networks that come from files: the graph of a step that was written and
 * read again trains as the one that the model's pieces build, with the host
 * calls of an exchange connected by name, and another file is refused in one
 * line.
 */
#include "trainer/program.h"

#include "model/weights.h"
#include "networks/digit_networks.h"
#include "output/problem.h"
#include "safetensors_file.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 3, MOST = 8 };
static const struct optimizer_settings optimizer = {
    .optimizer = OPTIMIZER_MOMENTUM, .accumulate = 1};

struct step {
    ipu_executable *program;
    ipu_engine *engine;
    float loss, rate;
    float pixels[ROWS * 784];
    int32_t labels[ROWS];
};

/* An exchange with one other rank, whose gradients are all 1. */
static float averages[MOST][784 * 128];
static int arrived;

static int take_gradient(void *context, const char *name, void *data,
                         int64_t count)
{
    float *average = averages[*(const int *)context];

    (void)name;
    for (int64_t i = 0; i < count; i++)
        average[i] = (((const float *)data)[i] + 1) / 2;
    arrived++;
    return 0;
}

static int give_average(void *context, const char *name, void *data,
                        int64_t count)
{
    (void)name;
    memcpy(data, averages[*(const int *)context],
           (size_t)count * sizeof(float));
    return 0;
}

static struct model *mlp(void)
{
    struct model *model = NULL;

    ck_assert_int_eq(network_model(NETWORK_MLP, ROWS, &model), 0);
    return model;
}

static void start(struct step *step, const struct model *model,
                  const struct program_exchange *exchange, float *const *values)
{
    ck_assert_int_eq(
        program_training(model,
                         &(struct program_settings){.optimizer = &optimizer,
                                                    .seed = 7,
                                                    .replicas = 1,
                                                    .exchange = exchange},
                         0, NULL, &step->program),
        0);
    ck_assert_int_eq(ipu_engine_new(step->program, &step->engine), 0);
    ck_assert_int_eq(
        ipu_engine_connect(step->engine, "loss", &step->loss, sizeof(float)),
        0);
    ck_assert_int_eq(
        ipu_engine_connect(step->engine, "rate", &step->rate, sizeof(float)),
        0);
    ck_assert_int_eq(ipu_engine_connect(step->engine, "images", step->pixels,
                                        sizeof step->pixels),
                     0);
    ck_assert_int_eq(ipu_engine_connect(step->engine, "labels", step->labels,
                                        sizeof step->labels),
                     0);
    for (int i = 0; i < model->nvariables; i++)
        ck_assert_int_eq(
            ipu_engine_write(step->engine, model->variables[i].name, values[i],
                             (size_t)model->variables[i].count * sizeof(float)),
            0);
}

static void make_step(struct step *step, int number)
{
    for (int i = 0; i < ROWS * 784; i++)
        step->pixels[i] = (float)((i * 7 + number * 13) % 29) / 29;
    for (int i = 0; i < ROWS; i++)
        step->labels[i] = (i + number) % 10;
    step->rate = 0.1F;
    ck_assert_int_eq(ipu_engine_run(step->engine), 0);
}

static void end(struct step *step)
{
    ipu_engine_free(step->engine);
    ipu_executable_free(step->program);
    free(step);
}

TEST(a_graph_of_a_file_trains_as_the_pieces_do)
{
    struct step *here = calloc(1, sizeof *here);
    struct step *there = calloc(1, sizeof *there);
    struct model *model = mlp(), *loaded = mlp();
    float **values = model_values(model);
    int numbers[MOST];
    void *contexts[MOST];
    const struct program_exchange exchange = {take_gradient, give_average,
                                              contexts};

    for (int i = 0; i < MOST; i++) {
        numbers[i] = i;
        contexts[i] = &numbers[i];
    }
    model_initialize(model, 5, values);
    ck_assert_int_eq(program_save_training(model, &optimizer, 7, true, "."), 0);
    start(here, model, &exchange, values);
    loaded->graphs = ".";
    start(there, loaded, NULL, values);
    /* Without its calls, it has nobody to give gradients to. */
    ck_assert_int_eq(ipu_engine_run(there->engine), IPU_ERR_STATE);
    for (int i = 0; i < model->nvariables; i++) {
        char name[80];

        program_average_name(&model->variables[i], name, sizeof name);
        ck_assert_int_eq(ipu_engine_connect_call(there->engine,
                                                 model->variables[i].stream,
                                                 take_gradient, contexts[i]),
                         0);
        ck_assert_int_eq(ipu_engine_connect_call(there->engine, name,
                                                 give_average, contexts[i]),
                         0);
    }
    for (int number = 0; number < 5; number++) {
        make_step(here, number);
        make_step(there, number);
        ck_assert_mem_eq(&here->loss, &there->loss, sizeof(float));
    }
    ck_assert_int_eq(arrived, 2 * 5 * model->nvariables);
    end(here);
    end(there);
    model_values_free(model, values);
    model_free(model);
    model_free(loaded);
}

TEST(the_variables_are_those_of_the_file)
{
    struct model *model = mlp(), *adopted = NULL;
    float **values = model_values(model);

    ck_assert_int_eq(network_model(NETWORK_CNN, ROWS, &adopted), 0);
    ck_assert(!weights_match(model, adopted));
    ck_assert_int_eq(weights_save(PROGRAM_WEIGHTS, model, values), 0);
    ck_assert_int_eq(weights_adopt(PROGRAM_WEIGHTS, adopted), 0);
    ck_assert(weights_match(model, adopted));
    ck_assert_str_eq(adopted->variables[3].stream, model->variables[3].stream);
    model_values_free(model, values);
    model_free(model);
    model_free(adopted);
}

TEST(statistics_are_those_of_the_file)
{
    struct model *model = NULL, *adopted = mlp();
    float **values;

    ck_assert_int_eq(network_model(NETWORK_CNN_BN, ROWS, &model), 0);
    ck_assert_int_eq(model_statistics(model), 2);
    values = model_values(model);
    ck_assert_int_eq(weights_save(PROGRAM_WEIGHTS, model, values), 0);
    ck_assert_int_eq(weights_adopt(PROGRAM_WEIGHTS, adopted), 0);
    ck_assert(weights_match(model, adopted));
    ck_assert_int_eq(model_statistics(adopted), 2);
    ck_assert_int_eq(model_parameters(adopted), model_parameters(model));
    model_values_free(model, values);
    model_free(model);
    model_free(adopted);
}

static void refuse(const char *header, const char *text)
{
    struct model *model = mlp();

    safetensors_write("bad", strlen(header), header, 8);
    ck_assert_int_eq(weights_adopt("bad", model), PROBLEM);
    ck_assert_str_eq(problem_text(), text);
    model_free(model);
}

TEST(what_is_no_variable_is_refused)
{
    static const char no_number[] =
        "--graphs: bad: its metadata has statistics that are not the number of "
        "some of its variables";

    refuse("{\"__metadata__\":{}}",
           "--graphs: bad: it has more bytes than its header says");
    refuse("{\"v\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
           "--graphs: bad: 'v' is of dtype F64, not F32");
    refuse("{\"__metadata__\":{\"statistics\":\"1\"},\"v\":{\"dtype\":\"F32\","
           "\"shape\":[2],\"data_offsets\":[0,8]}}",
           no_number);
    refuse("{\"__metadata__\":{\"statistics\":\"-1\"},\"v\":{\"dtype\":\"F32\","
           "\"shape\":[2],\"data_offsets\":[0,8]}}",
           no_number);
    refuse("{\"v\":{\"dtype\":\"F32\",\"shape\":[2,0],"
           "\"data_offsets\":[0,8]}}",
           "--graphs: bad: 'v' does not lie where its header says; is the file "
           "truncated?");
    refuse("{\"v\":{\"dtype\":\"F32\",\"shape\":[1099511627776,1099511627776],"
           "\"data_offsets\":[0,8]}}",
           "--graphs: bad: 'v' has a shape that is none");
    refuse("{\"v\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],"
           "\"data_offsets\":[0,8]}}",
           "--graphs: bad: 'v' is no variable: it needs a name of at most 47 "
           "bytes and a shape of at most 4 dimensions, none of them 0");
    refuse("{\"v\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
           "--graphs: bad: 'v' does not lie where its header says; is the file "
           "truncated?");
    refuse("{\"v\":7}", "--graphs: bad: 'v' is of dtype null, which is none of "
                        "the format");
}

TEST(files_that_are_not_there_are_named)
{
    struct model *model = mlp();
    ipu_executable *program = NULL;

    model->graphs = "nowhere";
    ck_assert_int_eq(
        program_training(model,
                         &(struct program_settings){.optimizer = &optimizer,
                                                    .seed = 7,
                                                    .replicas = 1,
                                                    .exchange = NULL},
                         0, NULL, &program),
        PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "nowhere/training.ipu"));
    ck_assert_int_eq(program_evaluation(model, 1, false, 0, NULL, &program),
                     PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "nowhere/evaluation.ipu"));
    model_free(model);
}

TEST_MAIN("models_graphs", .set_up = folder_enter, .tear_down = folder_remove,
          .seconds = 60)
