/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_run.c - ipu-run: runs an ONNX model on the software IPU, or the test
 * folders that come with ONNX, and trains a model on ranks of libhvd.
 */
/* By its place, as models/command has a header of that name, too. */
#include "../libhvd/command/command.h"

#include "model/optimizer.h"
#include "run/run_bench.h"
#include "run/run_fit.h"
#include "run/run_model.h"
#include "run/run_ranks.h"
#include "run/run_save.h"
#include "run/run_tensor.h"
#include "run/run_test.h"
#include "run/run_train.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_GIVEN = 64 };

struct run_options {
    struct command_line line;
    const char **paths; /* as many as there are words at most */
    int npaths;
    const char *inputs[MOST_GIVEN]; /* NAME=FILE, or FILE */
    int ninputs;
    const char *dims[MOST_GIVEN]; /* NAME=N */
    int ndims;
    const char *frozen[MOST_GIVEN]; /* patterns of names */
    int batch;                      /* 0: not given */
    int seed;
    const char *folder; /* of outputs; NULL: none */
    struct run_tolerance tolerance;
    const char *target;  /* name or file of the chip */
    const char *profile; /* folder; NULL: none */
    const char *save;    /* file of the model; NULL: none */
    struct run_training training;
    int bench; /* runs; 0: not given */
    int ipus;  /* of --fit */
    bool fit;
    bool list;
};

enum {
    KEY_INPUT = 256,
    KEY_BATCH,
    KEY_DIM,
    KEY_SEED,
    KEY_OUTPUT,
    KEY_RTOL,
    KEY_ATOL,
    KEY_FIT,
    KEY_BENCH,
    KEY_PROFILE,
    KEY_TARGET,
    KEY_SAVE,
    KEY_TRAIN,
    KEY_LOSS,
    KEY_LABELS,
    KEY_RATE,
    KEY_MOMENTUM,
    KEY_OPTIMIZER,
    KEY_DECAY,
    KEY_DATA,
    KEY_FREEZE,
    KEY_EPOCHS,
    KEY_EVERY,
    KEY_DIVISOR,
    KEY_IN_ORDER,
    KEY_IPUS,
    KEY_LIST
};

static const struct argp_option flags[] = {
    {"input", KEY_INPUT, "NAME=FILE", 0,
     "read an input from a .npy or .pb (random); without a name, the next one",
     0},
    {"batch", KEY_BATCH, "N", 0, "set open first dimensions of inputs", 0},
    {"dim", KEY_DIM, "NAME=N", 0, "set the open dimensions of this name", 0},
    {"seed", KEY_SEED, "N", 0, "seed of random inputs (1)", 0},
    {"output", KEY_OUTPUT, "DIR", 0, "write outputs to DIR/NAME.npy", 0},
    {"rtol", KEY_RTOL, "X", 0, "relative tolerance of tests (0.001)", 0},
    {"atol", KEY_ATOL, "X", 0, "absolute tolerance of tests (1e-07)", 0},
    {"fit", KEY_FIT, NULL, 0,
     "say whether the model, or with --train its training, fits on the chip, "
     "and what would make it fit",
     0},
    {"ipus", KEY_IPUS, "N", 0, "fit it on so many chips (1)", 0},
    {"bench", KEY_BENCH, "N", 0,
     "run N times more, and print the time beside that of the chip", 0},
    {"profile", KEY_PROFILE, "DIR", 0,
     "write profile.json and report.html to DIR", 0},
    {"target", KEY_TARGET, "CHIP", 0,
     "the chip: mk1, mk2, bow, c600, or a JSON file (mk2)", 0},
    {"train", KEY_TRAIN, "STEPS", 0,
     "train the initialisers on the inputs and --labels, or on --data", 0},
    {"freeze", KEY_FREEZE, "PATTERN", 0,
     "do not train initialisers with such names, as '*bn*'; may be repeated",
     0},
    {"epochs", KEY_EPOCHS, "N", 0, "train so many times on all of --data", 0},
    {"labels", KEY_LABELS, "FILE", 0,
     "what the first output should be: a .npy or .pb", 0},
    {"data", KEY_DATA, "FILE", 0,
     "train on batches of a .npz, .safetensors, .npy or IDX file, or of a "
     "folder of ONNX",
     0},
    {"divisor", KEY_DIVISOR, "X", 0,
     "divide integers of --data that are floats in the model (1)", 0},
    {"in-order", KEY_IN_ORDER, NULL, 0, "do not shuffle --data", 0},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0,
     "sgd, momentum, nesterov, adam, adamw, lamb, lion, rmsprop, adagrad, "
     "adadelta or lars (sgd)",
     0},
    {"weight-decay", KEY_DECAY, "X", 0, "weight decay (0)", 0},
    {"every", KEY_EVERY, "N", 0, "print the loss of every N-th step (1)", 0},
    {"loss", KEY_LOSS, "LOSS", 0,
     "mse, or cross-entropy of logits and classes (mse)", 0},
    {"rate", KEY_RATE, "X", 0, "learning rate (0.01)", 0},
    {"momentum", KEY_MOMENTUM, "X", 0, "momentum of SGD (0)", 0},
    {"save", KEY_SAVE, "FILE", 0,
     "write the model, with what was trained; or what was trained alone, to a "
     ".safetensors",
     0},
    {"list-operators", KEY_LIST, NULL, 0,
     "list the operators of ONNX: which are supported, and why not", 0},
    COMMAND_FLAGS,
};

/* In the order of run_train.h. */
static const char *const losses[] = {"mse", "cross-entropy", NULL};

static error_t keep(struct run_options *o, const char **list, int *count,
                    const char *flag, const char *text)
{
    if (*count == MOST_GIVEN)
        return command_refuse(&o->line, "%s: more than %d", flag, MOST_GIVEN);
    list[(*count)++] = text;
    return 0;
}

static bool trains(const struct run_options *o)
{
    return !o->fit && (o->training.steps > 0 || o->training.epochs > 0);
}

static error_t check_end(struct run_options *o)
{
    if (o->line.outcome != OPTIONS_RUN || o->list)
        return 0;
    if (o->ipus > 1 && !o->fit)
        return command_refuse(&o->line, "--ipus needs --fit");
    if (trains(o) && !o->training.labels && !o->training.data.path &&
        o->training.steps > 0)
        return command_refuse(&o->line, "--train needs --labels or --data");
    if (!trains(o) && o->save && run_saves_variables(o->save))
        return command_refuse(&o->line,
                              "--save %s: a .safetensors is for "
                              "what --train has trained",
                              o->save);
    if (o->training.nfrozen && o->training.steps == 0 &&
        o->training.epochs == 0)
        return command_refuse(&o->line, "--freeze is for --train, or --epochs");
    if (o->training.epochs > 0 && !o->training.data.path)
        return command_refuse(&o->line, "--epochs needs --data");
    if (o->npaths > 0)
        return 0;
    return command_refuse(&o->line, "which model? Give a .onnx file, or test "
                                    "folders");
}

static error_t parse_training(struct run_options *o, int key, char *text)
{
    struct run_training *t = &o->training;

    switch (key) {
    case KEY_TRAIN:
        return command_number(&o->line, "--train", text, 1, 1 << 30, &t->steps);
    case KEY_LOSS:
        return command_choice(&o->line, "--loss", text, losses, &t->loss);
    case KEY_RATE: return command_real(&o->line, "--rate", text, &t->rate);
    case KEY_MOMENTUM:
        return command_real(&o->line, "--momentum", text, &t->momentum);
    case KEY_OPTIMIZER:
        return command_choice(&o->line, "--optimizer", text, optimizer_names,
                              &t->optimizer);
    case KEY_DECAY:
        return command_real(&o->line, "--weight-decay", text, &t->weight_decay);
    case KEY_EPOCHS:
        return command_number(&o->line, "--epochs", text, 1, 1 << 20,
                              &t->epochs);
    case KEY_EVERY:
        return command_number(&o->line, "--every", text, 1, 1 << 30, &t->every);
    case KEY_DIVISOR:
        return command_real(&o->line, "--divisor", text, &t->data.divisor);
    case KEY_DATA: t->data.path = text; return 0;
    case KEY_IN_ORDER: t->data.in_order = true; return 0;
    default: t->labels = text; return 0;
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct run_options *o = state->input;

    switch (key) {
    case KEY_INPUT: return keep(o, o->inputs, &o->ninputs, "--input", text);
    case KEY_DIM: return keep(o, o->dims, &o->ndims, "--dim", text);
    case KEY_BATCH:
        return command_number(&o->line, "--batch", text, 1, 1 << 30, &o->batch);
    case KEY_SEED:
        return command_number(&o->line, "--seed", text, 0, 1 << 30, &o->seed);
    case KEY_OUTPUT: o->folder = text; return 0;
    case KEY_RTOL:
        return command_real(&o->line, "--rtol", text, &o->tolerance.relative);
    case KEY_ATOL:
        return command_real(&o->line, "--atol", text, &o->tolerance.absolute);
    case KEY_TRAIN:
    case KEY_LABELS:
    case KEY_LOSS:
    case KEY_RATE:
    case KEY_OPTIMIZER:
    case KEY_DECAY:
    case KEY_DATA:
    case KEY_EPOCHS:
    case KEY_EVERY:
    case KEY_DIVISOR:
    case KEY_IN_ORDER:
    case KEY_MOMENTUM: return parse_training(o, key, text);
    case KEY_FREEZE:
        return keep(o, o->frozen, &o->training.nfrozen, "--freeze", text);
    case KEY_SAVE: o->save = text; return 0;
    case KEY_BENCH:
        return command_number(&o->line, "--bench", text, 1, 1 << 20, &o->bench);
    case KEY_FIT: o->fit = true; return 0;
    case KEY_IPUS:
        return command_number(&o->line, "--ipus", text, 1, 256, &o->ipus);
    case KEY_PROFILE: o->profile = text; return 0;
    case KEY_TARGET: o->target = text; return 0;
    case KEY_LIST: o->list = true; return 0;
    case ARGP_KEY_ARG: o->paths[o->npaths++] = text; return 0;
    case ARGP_KEY_END: return check_end(o);
    default: return command_key(&o->line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "MODEL.onnx | FOLDER...",
    .doc = "Run an ONNX model on the software IPU.\v"
           "A model runs once, on the inputs that are given and random ones, "
           "and the shapes of its outputs are printed. A folder is one of "
           "ONNX's tests: model.onnx with test_data_set_0 and so on; its "
           "outputs are compared. Exit status: 0; 1 for a model that cannot be "
           "run or, with --fit, does not fit, or a test that fails; 2 for a "
           "wrong command line.",
};

/* ---------------------------------------------------------------- operators */

static int list_operators(void)
{
    ipu_onnx_operator op = {.size = sizeof op};
    int mapped = 0, refused = 0;

    for (int32_t i = 0; ipu_onnx_operator_at(i, &op) > 0; i++) {
        if (op.first == 0)
            printf("%-26s refused  %s\n", op.name, op.limits);
        else
            printf("%-26s %-7d  %s\n", op.name,
                   op.first < IPU_ONNX_OPSET_MIN ? IPU_ONNX_OPSET_MIN
                                                 : op.first,
                   op.limits ? op.limits : "");
        *(op.first ? &mapped : &refused) += 1;
    }
    printf("%d operators are supported, from the opset given on to %d; %d are "
           "not\n",
           mapped, IPU_ONNX_OPSET_MAX, refused);
    return 0;
}

/* ------------------------------------------------------------------- inputs */

static int complain_last(void)
{
    run_complain("%s", ipu_last_error());
    return 1;
}

/* The batch of a data set is divided among the ranks first. */
static int set_dims(const struct run_options *o, struct run_model *run)
{
    if (o->batch > 0 && !(trains(o) && o->training.data.path) &&
        ipu_onnx_set_dim(run->model, NULL, o->batch) < 0)
        return complain_last();
    for (int i = 0; i < o->ndims; i++) {
        const char *equals = strrchr(o->dims[i], '=');
        char symbol[256], *end = NULL;
        long long extent = equals ? strtoll(equals + 1, &end, 10) : -1;

        if (!equals || !equals[1] || *end || extent < 0 ||
            (size_t)(equals - o->dims[i]) >= sizeof symbol)
            return -run_complain("--dim '%s' is not NAME=N", o->dims[i]);
        snprintf(symbol, sizeof symbol, "%.*s", (int)(equals - o->dims[i]),
                 o->dims[i]);
        if (ipu_onnx_set_dim(run->model, symbol, extent) < 0)
            return complain_last();
    }
    return 0;
}

/* Finds the input that a text names, "NAME=FILE". Names may contain "=", so the
 * longest one counts. */
static int32_t named_input(const struct run_model *run, const char *text,
                           const char **path)
{
    ipu_onnx_value value = {.size = sizeof value};
    int32_t found = -1;
    size_t longest = 0;

    for (int32_t i = 0; i < run->ninputs; i++) {
        size_t n;

        ipu_onnx_input(run->model, i, &value);
        n = strlen(value.name);
        if (!strncmp(text, value.name, n) && text[n] == '=' &&
            (found < 0 || n > longest)) {
            found = i;
            longest = n;
            *path = text + n + 1;
        }
    }
    return found;
}

/* Finds the first input that has no tensor. */
static int32_t next_input(const struct run_model *run)
{
    for (int32_t i = 0; i < run->ninputs; i++)
        if (!run->inputs[i].data)
            return i;
    return -1;
}

static int read_input(struct run_model *run, const char *text)
{
    const char *path = text;
    int32_t i = named_input(run, text, &path);
    ipu_onnx_tensor tensor;

    if (i < 0 && strchr(text, '='))
        return -run_complain("--input '%s': the model has no such input", text);
    if (i < 0)
        i = next_input(run);
    if (i < 0 || run->inputs[i].data)
        return -run_complain("--input '%s': the model has no further input",
                             text);
    if (run_read_tensor(path, &tensor) < 0)
        return 1;
    return run_offer(run, i, &tensor) < 0 ? complain_last() : 0;
}

static const char *symbol_of(const ipu_onnx_value *value, int32_t d)
{
    return value->symbols[d] ? value->symbols[d] : "";
}

/* Makes inputs that were not given, but for --fit, which needs their shapes
 * alone. They are not offered: a model that needs their elements to be built
 * has to be given them. */
static int draw_inputs(const struct run_options *o, struct run_model *run)
{
    uint64_t state = (uint64_t)o->seed;

    for (int32_t i = 0; i < run->ninputs; i++) {
        ipu_onnx_value value = {.size = sizeof value};

        ipu_onnx_input(run->model, i, &value);
        if (run->inputs[i].data)
            continue;
        if (value.ndim < 0 || ipu_onnx_type_bytes(value.type) == 0)
            return -run_complain("input '%s' has no shape, or a type that the "
                                 "device does not have: give it with --input",
                                 value.name);
        for (int32_t d = 0; d < value.ndim; d++)
            if (value.extents[d] < 0)
                return -run_complain("input '%s' leaves dimension %d ('%s') "
                                     "open: give it with --batch or --dim",
                                     value.name, (int)d, symbol_of(&value, d));
        if (!o->fit && run_random_tensor(&value, &state, &run->inputs[i]) < 0)
            return 1;
    }
    return 0;
}

static int give_inputs(const struct run_options *o, struct run_model *run)
{
    int status = set_dims(o, run);

    for (int i = 0; i < o->ninputs && !status; i++)
        status = read_input(run, o->inputs[i]);
    return status || (trains(o) && o->training.data.path) ? status
                                                          : draw_inputs(o, run);
}

/* ------------------------------------------------------------------ running */

/* A few bytes of a file can ask for any memory. */
static int check_memory(const struct run_model *run)
{
    ipu_memory_info info = {.size = sizeof info};
    int64_t have = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE);

    if (ipu_executable_memory(run->executable, &info) < 0)
        return complain_last();
    if (info.planned_bytes > have)
        return -run_complain("the model takes %" PRId64 " bytes, and this "
                             "machine has %" PRId64,
                             info.planned_bytes, have);
    return 0;
}

/* Writes an output; a name is not a path. */
static int write_output(const char *folder, const char *name,
                        const ipu_onnx_tensor *tensor)
{
    char path[4096], file[256];

    snprintf(file, sizeof file, "%s", name);
    for (char *c = file; *c; c++)
        if (*c == '/')
            *c = '_';
    snprintf(path, sizeof path, "%s/%s.npy", folder, file);
    return run_write_npy(path, tensor) < 0;
}

static int put_outputs(const struct run_options *o, const struct run_model *run)
{
    int status = 0;

    if (o->folder)
        mkdir(o->folder, 0777);
    if (o->save && run_save(run, o->save))
        return 1;
    for (int32_t i = 0; i < run->noutputs && !status; i++) {
        const ipu_onnx_tensor *t = &run->outputs[i];
        ipu_onnx_value value = {.size = sizeof value};

        ipu_onnx_output(run->model, i, &value);
        printf("output %s  %s\n", value.name,
               run_shape(t->type, t->ndim, t->extents).text);
        if (o->folder)
            status = write_output(o->folder, value.name, t);
    }
    return status;
}

static void list_inputs(const struct run_model *run)
{
    for (int32_t i = 0; i < run->ninputs; i++) {
        const ipu_onnx_tensor *t = &run->inputs[i];
        ipu_onnx_value value = {.size = sizeof value};

        ipu_onnx_input(run->model, i, &value);
        printf("input  %s  %s\n", value.name,
               run_shape(t->type, t->ndim, t->extents).text);
    }
}

/* Trains the model, and writes what it makes. */
static int train_opened(const struct run_options *o, struct run_model *run,
                        const ipu_target *target)
{
    struct run_training how = o->training;
    int status;

    how.data.batch = o->batch;
    how.data.seed = o->seed;
    how.data.labels = how.labels;
    how.data.classes = how.loss == RUN_CROSS_ENTROPY;
    status = run_train(run, &how, target);
    if (!status && run_rank() == 0 && o->profile &&
        run_write_profile(run, o->profile) < 0)
        status = complain_last();
    if (!status && run_rank() == 0)
        status = put_outputs(o, run);
    if (!status && o->bench && run_ranks() > 1)
        status = -run_complain("--bench is for one process");
    if (!status && o->bench && run_print_bench(run, target, o->bench) < 0)
        return complain_last();
    return status;
}

static int run_opened(const struct run_options *o, struct run_model *run)
{
    int status = give_inputs(o, run), fits = 0;
    ipu_target target;

    if (status)
        return status;
    if (run_find_target(o->target, &target) < 0)
        return complain_last();
    if (trains(o))
        return train_opened(o, run, &target);
    if (o->training.steps > 0 || o->training.epochs > 0)
        status = run_train_build(run, &o->training, &target, o->ipus);
    else if (run_build(run, &target, o->ipus) < 0)
        status = complain_last();
    if (status)
        return status;
    if (o->profile && run_write_profile(run, o->profile) < 0)
        return complain_last();
    if (o->fit)
        return run_print_fit(run, &target, &fits) < 0 ? complain_last() : !fits;
    status = check_memory(run);
    if (status)
        return status;
    list_inputs(run);
    if (run_once(run) < 0)
        return complain_last();
    status = put_outputs(o, run);
    if (!status && o->bench && run_print_bench(run, &target, o->bench) < 0)
        return complain_last();
    return status;
}

static int run_file(const struct run_options *o)
{
    struct run_model run = {.model = NULL};
    int status = trains(o) ? run_ranks_start() : 0;

    if (!status)
        status = run_open(&run, o->paths[0]) < 0 ? complain_last()
                                                 : run_opened(o, &run);
    run_close(&run);
    return trains(o) ? run_ranks_end(status) : status;
}

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Returns an option that was given for a model; NULL: there is none. */
static const char *model_option(const struct run_options *o)
{
    return o->fit         ? "--fit"
           : o->bench > 0 ? "--bench"
           : o->profile   ? "--profile"
           : trains(o)    ? "--train"
           : o->save      ? "--save"
                          : NULL;
}

static int run(const void *options)
{
    const struct run_options *o = options;
    int status;

    if (o->list)
        status = list_operators();
    else if (is_folder(o->paths[0]) && model_option(o))
        status = -run_complain("%s takes a model, and '%s' is a folder",
                               model_option(o), o->paths[0]);
    else if (is_folder(o->paths[0]))
        status = run_tests(o->paths, o->npaths, &o->tolerance);
    else if (o->npaths > 1)
        status = -run_complain("more than one model: give one");
    else
        status = run_file(o);
    if (fflush(stdout) != 0 || ferror(stdout))
        return -run_complain("the results could not be written");
    return status;
}

int main(int argc, char **argv)
{
    struct run_options options = {
        .seed = 1,
        .target = "mk2",
        .ipus = 1,
        .tolerance = {1e-3, 1e-7},
        .training = {.rate = 0.01, .every = 1, .data = {.divisor = 1}}};
    int status;

    options.training.frozen = options.frozen;
    options.paths = calloc((size_t)argc + 1, sizeof *options.paths);
    if (!options.paths)
        return -run_complain("there is too little memory");
    status = command_main(&parser, "ipu-run", argc, argv, &options, run);
    free(options.paths);
    return status;
}
