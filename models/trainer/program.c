/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - builds two graphs from one forward pass. Training ends with the
 * loss of the batch, its gradients on their way to the host and back, and the
 * optimiser; the forward pass itself changes statistics. Evaluation ends with
 * the loss and result of every row, so that the host can leave out the blank
 * rows of a last batch.
 *
 * The graphs can be written to files, and a model can have its programs from
 * such files: then whoever trains it need not know its pieces.
 */
#include "trainer/program.h"

#include "output/problem.h"
#include "trainer/compiling.h"
#include "trainer/update.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A graph under construction. */
struct building {
    const struct model *model;
    ipu_graph *graph;
    ipu_tensor inputs[MODEL_MOST_INPUTS];
    ipu_tensor *variables; /* [variables], as the next two */
    ipu_tensor *gradients;
    ipu_tensor *averages;
};

/* The files of a network in its folder, beside PROGRAM_WEIGHTS. */
static const char training_file[] = "training.ipu";
static const char evaluation_file[] = "evaluation.ipu";

void program_average_name(const struct model_variable *variable, char *name,
                          size_t size)
{
    snprintf(name, size, "average/%s", variable->name);
}

int program_device_problem(void)
{
    return problem_set("device: %s", ipu_last_error());
}

/* Builds variables, inputs and the forward pass. Returns its result, and the
 * losses of the rows. */
static ipu_tensor build_forward(struct building *b, struct model_pass *pass,
                                ipu_tensor *losses)
{
    const struct model *m = b->model;

    pass->inputs = b->inputs;
    for (int i = 0; i < m->ninputs; i++)
        b->inputs[i] =
            pass->predicts && !model_predicts_from(m, i)
                ? (ipu_tensor){-1}
                : ipu_input(b->graph, m->inputs[i].name, m->inputs[i].dtype,
                            m->inputs[i].ndim, m->inputs[i].shape);
    for (int i = 0; i < m->nvariables; i++)
        b->variables[i] =
            ipu_variable(b->graph, m->variables[i].name, IPU_FLOAT32,
                         m->variables[i].ndim, m->variables[i].shape);
    ipu_tensor y = model_forward(m, b->graph, b->variables, pass);
    if (!pass->predicts)
        *losses = model_losses(m, b->graph, y, pass);
    return y;
}

/* Builds the gradients of the loss. A scale keeps small ones from becoming zero
 * in float16. */
static int build_gradients(struct building *b, bool scaled, ipu_tensor loss)
{
    const int count = b->model->trained;
    ipu_tensor scale, inverse;
    int status;

    if (!scaled)
        return ipu_gradients(b->graph, loss, count, b->variables, b->gradients);
    scale = ipu_input(b->graph, "scale", IPU_FLOAT32, 0, NULL);
    inverse = ipu_divide(b->graph, ipu_fill(b->graph, IPU_FLOAT32, 0, NULL, 1),
                         scale);
    status = ipu_gradients(b->graph, ipu_multiply(b->graph, loss, scale), count,
                           b->variables, b->gradients);
    for (int i = 0; i < count && status >= 0; i++)
        b->gradients[i] = ipu_multiply(b->graph, b->gradients[i], inverse);
    return status;
}

/*
 * Has the update, from here to ipu_update_end, be skipped if an average is not
 * finite, which it is on all ranks alike. own is the first gradient of this
 * device that is not. step becomes the number of updates that were made.
 */
static int build_guard(struct building *b, int32_t count, ipu_tensor own,
                       ipu_tensor *step)
{
    ipu_tensor found =
        ipu_find_nonfinite(b->graph, b->model->trained, b->averages);
    int status = ipu_output(b->graph, "nonfinite", found);

    if (status >= 0)
        status = ipu_output(b->graph, "nonfinite_here", own);
    if (status >= 0 && count > 1)
        status = ipu_update_end(b->graph);
    if (status >= 0)
        status = ipu_update_begin_if(
            b->graph, count,
            ipu_less(b->graph, found,
                     ipu_fill(b->graph, IPU_INT32, 0, NULL, 0)));
    *step = ipu_counter(b->graph, "updates");
    return status;
}

/*
 * Accumulates: from here to ipu_update_end, only every count-th run exchanges
 * gradients and updates, with the mean of the gradients of all runs since the
 * last time.
 */
static int build_accumulation(struct building *b, int32_t count)
{
    const ipu_accumulation_options mean = {.size = sizeof mean,
                                           .reduction = IPU_REDUCTION_MEAN};
    int status = ipu_update_begin(b->graph, count);

    for (int i = 0; i < b->model->trained && status >= 0; i++)
        b->gradients[i] = ipu_accumulate(b->graph, b->variables[i],
                                         b->gradients[i], count, &mean);
    return status;
}

static void *context_of(const struct program_exchange *exchange, int variable)
{
    return exchange->contexts ? exchange->contexts[variable] : NULL;
}

/* Sends gradients out and receives averages; without an exchange, the gradients
 * are the averages. */
static int build_exchange(struct building *b,
                          const struct program_exchange *exchange)
{
    int status = IPU_OK;

    if (!exchange) {
        memcpy(b->averages, b->gradients,
               (size_t)b->model->trained * sizeof *b->averages);
        return status;
    }
    for (int i = 0; i < b->model->trained && status >= 0; i++)
        status = ipu_host_call(b->graph, b->model->variables[i].stream,
                               b->gradients[i], exchange->ready,
                               context_of(exchange, i));
    for (int i = 0; i < b->model->trained; i++) {
        char name[72];

        program_average_name(&b->model->variables[i], name, sizeof name);
        b->averages[i] =
            ipu_host_receive(b->graph, name, b->gradients[i], exchange->average,
                             context_of(exchange, i));
    }
    return status;
}

/* Makes what came back the values of the variables. */
static int assign_values(struct building *b)
{
    int status = IPU_OK;

    for (int i = 0; i < b->model->trained && status >= 0; i++)
        status = ipu_assign(b->graph, b->variables[i], b->averages[i]);
    return status;
}

/* Returns the number of a replica's mini-batch among those of all replicas:
 * other numbers draw other random ones. */
static ipu_tensor batch_number(struct building *b, ipu_tensor step,
                               int replicas)
{
    if (replicas == 1 || !b->model->draws)
        return step;
    return ipu_add(
        b->graph,
        ipu_multiply(b->graph, step,
                     ipu_fill(b->graph, IPU_INT32, 0, NULL, replicas)),
        ipu_replica_index(b->graph));
}

static int build_training(struct building *b, const struct program_settings *s)
{
    const struct model *m = b->model;
    ipu_tensor step = ipu_counter(b->graph, "step");
    struct model_pass pass = {.training = true,
                              .step = batch_number(b, step, s->replicas),
                              .seed = s->seed,
                              .synchronised = s->synchronised &&
                                              (s->replicas > 1 || s->network),
                              .network = s->network};
    struct update_inputs inputs = {
        .rate = ipu_input(b->graph, "rate", IPU_FLOAT32, 0, NULL)};
    const int32_t count =
        s->optimizer->accumulate > 1 ? s->optimizer->accumulate : 1;
    const bool guarded = s->optimizer->guarded && !s->assigns;
    ipu_tensor losses, own = {-1};

    if (s->optimizer->cycled)
        inputs.momentum = ipu_input(b->graph, "momentum", IPU_FLOAT32, 0, NULL);
    build_forward(b, &pass, &losses);
    ipu_tensor loss = ipu_reduce_sum(b->graph, losses, 1.0 / (double)m->rows);
    int status = ipu_output(b->graph, "loss", loss);
    if (status >= 0)
        status = build_gradients(b, s->optimizer->scaled, loss);
    if (status >= 0 && count > 1)
        status = build_accumulation(b, count);
    if (guarded)
        own = ipu_find_nonfinite(b->graph, m->trained, b->gradients);
    if (status >= 0 && s->replicas > 1)
        status = ipu_cross_replica_gradients(b->graph, m->trained, b->gradients,
                                             b->gradients);
    if (status >= 0 && s->network && !s->exchange)
        status = ipu_collective_gradients(b->graph, s->network, m->trained,
                                          b->gradients, b->gradients);
    if (status >= 0)
        status = build_exchange(b, s->exchange);
    if (status >= 0 && guarded)
        status = build_guard(b, count, own, &step);
    else if (count > 1)
        step = ipu_counter(b->graph, "updates");
    inputs.step = step;
    if (status >= 0)
        status = s->assigns ? assign_values(b)
                            : update_build(b->graph, s->optimizer, m->trained,
                                           b->variables, b->averages, &inputs);
    if (status >= 0 && (count > 1 || guarded))
        status = ipu_update_end(b->graph);
    return status;
}

static int build_evaluation(struct building *b, int chips, bool predicts)
{
    const struct model *m = b->model;
    ipu_tensor losses = {-1}, outputs[MODEL_MOST_OUTPUTS];
    struct model_pass pass = {
        .step = {-1}, .outputs = outputs, .predicts = predicts};
    int status = IPU_OK;

    for (int i = 1; i < m->noutputs; i++)
        outputs[i] = (ipu_tensor){-1};
    outputs[0] = build_forward(b, &pass, &losses);
    for (int i = 0; i < m->noutputs && status >= 0; i++)
        status = ipu_output(b->graph, m->outputs[i].name, outputs[i]);
    if (status >= 0 && !predicts)
        status = ipu_output(b->graph, "losses", losses);
    if (status >= 0 && chips > 1)
        status = ipu_shard_automatically(b->graph, chips);
    return status;
}

static int building_init(struct building *b, const struct model *model)
{
    size_t count = (size_t)model->nvariables;

    *b = (struct building){.model = model};
    b->variables = malloc((3 * count + 1) * sizeof *b->variables);
    if (!b->variables)
        return problem_set("no memory for the network's graph");
    b->gradients = b->variables + count;
    b->averages = b->gradients + count;
    if (ipu_graph_new(&b->graph) < 0)
        return program_device_problem();
    return 0;
}

/* Compiles the graph, if status says that it was built, and frees it. */
static int building_finish(struct building *b, int status, double proportion,
                           bool on_host, hvd_progress *progress,
                           ipu_executable **executable)
{
    if (status >= 0)
        status =
            compiling_run(b->graph, proportion, on_host, progress, executable);
    if (status < 0)
        program_device_problem();
    ipu_graph_free(b->graph);
    free(b->variables);
    return status < 0 ? PROBLEM : 0;
}

static int building_abandon(struct building *b)
{
    ipu_graph_free(b->graph);
    free(b->variables);
    return PROBLEM;
}

/* ------------------------------------------------------------- from files */

static int set_path(const char *folder, const char *file, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, file) >= PATH_MAX)
        return problem_set("%s: the path is too long", folder);
    return 0;
}

/* Compiles a graph that another process has built. */
static int load_program(const struct model *model, const char *file,
                        double proportion, hvd_progress *progress,
                        ipu_executable **executable)
{
    char path[PATH_MAX];
    ipu_graph *graph = NULL;
    int status = set_path(model->graphs, file, path);

    if (status < 0)
        return status;
    status = ipu_graph_load(path, &graph);
    if (status >= 0)
        status = compiling_run(graph, proportion, false, progress, executable);
    if (status < 0)
        program_device_problem();
    ipu_graph_free(graph);
    return status < 0 ? PROBLEM : 0;
}

/* Saves the graph, if status says that it was built, and frees it. */
static int building_save(struct building *b, int status, const char *folder,
                         const char *file)
{
    char path[PATH_MAX];

    if (status < 0)
        program_device_problem();
    else
        status = set_path(folder, file, path);
    if (status >= 0 && ipu_graph_save(b->graph, path) < 0)
        status = program_device_problem();
    building_abandon(b);
    return status < 0 ? PROBLEM : 0;
}

/* Stands for the functions of an exchange, which are not saved. */
static int refuse_call(void *context, const char *name, void *data,
                       int64_t count)
{
    (void)context, (void)name, (void)data, (void)count;
    return -1;
}

int program_save_training(const struct model *model,
                          const struct optimizer_settings *optimizer,
                          uint64_t seed, bool exchanges, const char *folder)
{
    const struct program_exchange calls = {refuse_call, refuse_call, NULL};
    const struct program_settings settings = {.optimizer = optimizer,
                                              .seed = seed,
                                              .replicas = 1,
                                              .exchange =
                                                  exchanges ? &calls : NULL};
    struct building b;

    if (building_init(&b, model) < 0)
        return building_abandon(&b);
    return building_save(&b, build_training(&b, &settings), folder,
                         training_file);
}

int program_save_evaluation(const struct model *model, const char *folder)
{
    struct building b;

    if (building_init(&b, model) < 0)
        return building_abandon(&b);
    return building_save(&b, build_evaluation(&b, 1, false), folder,
                         evaluation_file);
}

/* ------------------------------------------------------------ the programs */

int program_training(const struct model *model,
                     const struct program_settings *settings, double proportion,
                     hvd_progress *progress, ipu_executable **executable)
{
    struct building b;

    if (model->graphs)
        return load_program(model, training_file, proportion, progress,
                            executable);
    if (building_init(&b, model) < 0)
        return building_abandon(&b);
    return building_finish(&b, build_training(&b, settings), proportion, false,
                           progress, executable);
}

int program_evaluation(const struct model *model, int chips, bool predicts,
                       double proportion, hvd_progress *progress,
                       ipu_executable **executable)
{
    struct building b;

    if (model->graphs)
        return load_program(model, evaluation_file, proportion, progress,
                            executable);
    if (building_init(&b, model) < 0)
        return building_abandon(&b);
    return building_finish(&b, build_evaluation(&b, chips, predicts),
                           proportion, chips == 0, progress, executable);
}
