/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - starts the training programs with posix_spawn and reads their
 * results.
 *
 * The programs' standard output is thrown away; their stderr is kept. Results
 * come from the files that --summary and --profile write into a scratch
 * directory, which train_place_fini removes. train-bench's main.c and peer.c
 * call these functions; one run at a time, but for TRAIN_PAIR.
 */
#include "train/run.h"

#include <cblas.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* There are few images because drawing them takes longer than training. There
 * are enough epochs for all steps, and next to no evaluation. */
#define DIGITS                                                                 \
    "--epochs 100000 --train-images 8192 --test-images 64 --eval-every 0"

const struct train_network train_networks[] = {
    {"cnn", "convolution, 347,146 parameters, Adam, batch 64", "mnist",
     DIGITS " --model cnn --optimizer adam --batch-size 64", "images",
     "images_per_second", false, 64, 250},
    {"mlp", "784-128-10, SGD, batch 32", "mnist",
     DIGITS " --model mlp --optimizer sgd --batch-size 32", "images",
     "images_per_second", false, 32, 8000},
    {"gpt", "4 layers, 128 wide, 16 x 128 characters, AdamW", "char_gpt",
     "--sample 0 --eval-every 0 --eval-windows 1", "tokens",
     "tokens_per_second", true, 2048, 20},
    {0},
};

enum { MOST_WORDS = 48 };

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "train-bench: %s: %s\n", what, why);
    return -1;
}

/* ------------------------------------------------------------------- places */

static int find_launcher(struct train_place *p)
{
    static const char *const places[] = {"/", "/../../", "/../../../"};

    for (int i = 0; i < 3; i++) {
        int length = snprintf(p->launcher, sizeof p->launcher, "%.4000s%s%s",
                              p->programs, places[i], "mpi-launch.sh");

        if (length < (int)sizeof p->launcher && access(p->launcher, X_OK) == 0)
            return 0;
    }
    return complain("mpi-launch.sh", "it is neither beside this program nor at "
                                     "the root of its tree");
}

int train_place_init(struct train_place *p)
{
    const char *parent = getenv("TMPDIR");
    ssize_t length =
        readlink("/proc/self/exe", p->programs, sizeof p->programs - 1);
    char *slash;

    if (length < 0)
        return complain("/proc/self/exe", strerror(errno));
    p->programs[length] = '\0';
    slash = strrchr(p->programs, '/');
    if (slash)
        *slash = '\0';
    if (find_launcher(p) < 0)
        return -1;
    if (!parent || !*parent || strlen(parent) > 40)
        parent = "/tmp";
    snprintf(p->scratch, sizeof p->scratch, "%s/train-bench.XXXXXX", parent);
    if (!mkdtemp(p->scratch)) {
        p->scratch[0] = '\0';
        return complain(parent, strerror(errno));
    }
    return 0;
}

/* Writes the path of a file in the scratch directory. */
static void path_of(const struct train_place *p, const char *name, char *path,
                    size_t bytes)
{
    snprintf(path, bytes, "%s/%s", p->scratch, name);
}

void train_place_fini(struct train_place *p)
{
    static const char *const names[] = {"a", "b", "torch", "profile.json",
                                        "report.html"};
    char path[160];

    if (!p->scratch[0])
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(p, names[i], path, sizeof path);
        unlink(path);
    }
    rmdir(p->scratch);
}

/* ------------------------------------------------------------------ running */

int train_steps(const struct train_place *place,
                const struct train_network *network)
{
    return place->steps > 0 ? place->steps : network->steps;
}

/* The words of a command line, copied into memory. */
struct command {
    char *words[MOST_WORDS + 1];
    int count;
    char memory[32768];
    size_t used;
};

/* Adds a word. A word that finds no room is left out: paths are far shorter
 * than the memory. */
static void add_word(struct command *c, const char *word)
{
    size_t bytes = strlen(word) + 1;

    if (c->count == MOST_WORDS || bytes > sizeof c->memory - c->used)
        return;
    c->words[c->count++] = memcpy(c->memory + c->used, word, bytes);
    c->words[c->count] = NULL;
    c->used += bytes;
}

static void add_words(struct command *c, const char *words)
{
    char copy[512], *rest = NULL;

    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        add_word(c, word);
}

static void make_command(struct command *c, const struct train_place *place,
                         const struct train_network *n, enum train_way way,
                         const char *option, const char *value)
{
    char program[4200], steps[16];

    c->count = 0;
    c->used = 0;
    if (way == TRAIN_RANKS) {
        add_word(c, place->launcher);
        add_words(c, "-np 2");
    }
    snprintf(program, sizeof program, "%s/%s", place->programs, n->program);
    snprintf(steps, sizeof steps, "%d", train_steps(place, n));
    add_word(c, program);
    add_words(c, n->options);
    add_word(c, "--steps");
    add_word(c, steps);
    add_word(c, option);
    add_word(c, value);
    if (place->data && strcmp(n->program, "mnist") == 0) {
        add_word(c, "--data");
        add_word(c, place->data);
    }
    if (place->text && strcmp(n->program, "char_gpt") == 0) {
        add_word(c, "--text");
        add_word(c, place->text);
    }
}

static int start_process(const struct command *c, pid_t *process)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed)
        return complain(c->words[0], strerror(failed));
    failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO,
                                              "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn(process, c->words[0], &actions, NULL, c->words,
                             environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? complain(c->words[0], strerror(failed)) : 0;
}

/* Waits until the process has ended. If it failed, it has said itself why. */
static int wait_for_process(const char *name, pid_t process)
{
    int status;

    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return complain(name, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return complain(name, WIFEXITED(status) ? "it failed" : "it was killed");
}

/* Reads a number, which must be above 0, as all numbers that are asked for
 * are. */
static int read_number(const char *path, const char *field, double *number)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    char why[80];

    *number = json_number_value(json_object_get(root, field));
    json_decref(root);
    if (*number > 0)
        return 0;
    snprintf(why, sizeof why, "there is no %.40s in it", field);
    return complain(path, why);
}

int train_summary_number(const struct train_place *place, const char *field,
                         double *value)
{
    char path[160];

    path_of(place, "a", path, sizeof path);
    return read_number(path, field, value);
}

int train_run(const struct train_place *place,
              const struct train_network *network, enum train_way way,
              double *rate)
{
    int count = way == TRAIN_PAIR ? 2 : 1, started = 0, status = 0;
    char files[2][160];
    pid_t processes[2];

    for (; started < count && status == 0; started++) {
        struct command c;

        path_of(place, started ? "b" : "a", files[started],
                sizeof files[started]);
        make_command(&c, place, network, way, "--summary", files[started]);
        status = start_process(&c, &processes[started]);
        if (status < 0)
            break;
    }
    for (int i = 0; i < started; i++)
        if (wait_for_process(network->program, processes[i]) < 0)
            status = -1;
    *rate = 0;
    for (int i = 0; i < count && status == 0; i++) {
        double one;

        status = read_number(files[i], network->rate, &one);
        *rate += one;
    }
    return status;
}

/* ------------------------------------------------------------------ PyTorch */

static void read_text(const char *path, const char *field, char *text,
                      size_t bytes)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    const char *found = json_string_value(json_object_get(root, field));

    snprintf(text, bytes, "%s", found ? found : "unknown");
    json_decref(root);
}

int train_run_torch(const struct train_place *place,
                    const struct train_network *network,
                    struct train_torch *torch)
{
    char program[4200], path[160], words[128];
    struct command c = {.count = 0};
    pid_t process;

    path_of(place, "torch", path, sizeof path);
    snprintf(program, sizeof program, "%s/train-bench-torch", place->programs);
    snprintf(words, sizeof words, "%s --steps %d", network->name, torch->steps);
    add_word(&c, program);
    add_words(&c, words);
    if (torch->vocabulary > 0) {
        snprintf(words, sizeof words, "--vocabulary %.0f", torch->vocabulary);
        add_words(&c, words);
    }
    add_word(&c, "--result");
    add_word(&c, path);
    if (start_process(&c, &process) < 0 ||
        wait_for_process("train-bench-torch", process) < 0 ||
        read_number(path, "per_second", &torch->rate) < 0 ||
        read_number(path, "parameters", &torch->parameters) < 0)
        return -1;
    read_text(path, "torch", torch->version, sizeof torch->version);
    read_text(path, "blas", torch->blas, sizeof torch->blas);
    return 0;
}

/* ---------------------------------------------------------------- profiling */

static int is_product(const char *op)
{
    return strstr(op, "matmul") || strstr(op, "conv2d") ||
           strncmp(op, "attention", 9) == 0;
}

static struct train_op *op_of(struct train_profile *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->ops[i].name, name) == 0)
            return &p->ops[i];
    if (p->count == TRAIN_MOST_OPS)
        return &p->ops[TRAIN_MOST_OPS - 1];
    snprintf(p->ops[p->count].name, sizeof p->ops[0].name, "%s", name);
    return &p->ops[p->count++];
}

static int slower_first(const void *a, const void *b)
{
    double x = ((const struct train_op *)a)->seconds;
    double y = ((const struct train_op *)b)->seconds;

    return (x < y) - (x > y);
}

/* Reads the step times of one program in profile.json. */
static int read_program(const json_t *program, struct train_profile *p)
{
    const json_t *measured = json_object_get(program, "measured");
    const json_t *steps = json_object_get(program, "steps");
    double runs = json_number_value(json_object_get(measured, "runs"));

    if (!(runs > 0))
        return complain("profile.json", "no run was measured");
    p->seconds =
        json_number_value(json_object_get(measured, "run_ns")) / runs * 1e-9;
    p->fastest =
        json_number_value(json_object_get(measured, "fastest_ns")) * 1e-9;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *name = json_string_value(json_object_get(step, "op"));
        struct train_op *op;

        if (!name)
            return complain("profile.json", "a step has no op");
        op = op_of(p, name);
        op->seconds +=
            json_number_value(json_object_get(step, "ns")) / runs * 1e-9;
        if (is_product(name)) {
            double flops = json_number_value(json_object_get(step, "flops"));

            op->flops += flops;
            p->product_flops += flops;
        }
    }
    qsort(p->ops, (size_t)p->count, sizeof *p->ops, slower_first);
    return 0;
}

int train_profile(const struct train_place *place,
                  const struct train_network *network,
                  struct train_profile *profile)
{
    char path[160];
    struct command c;
    json_error_t error;
    pid_t process;

    memset(profile, 0, sizeof *profile);
    make_command(&c, place, network, TRAIN_ALONE, "--profile", place->scratch);
    if (start_process(&c, &process) < 0 ||
        wait_for_process(network->program, process) < 0)
        return -1;
    path_of(place, "profile.json", path, sizeof path);
    json_t *root = json_load_file(path, 0, &error);
    if (!root)
        return complain(path, error.text);
    /* The first program is the training. */
    int status = read_program(
        json_array_get(json_object_get(root, "programs"), 0), profile);
    json_decref(root);
    return status;
}

/* ---------------------------------------------------------------- yardstick */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int train_sgemm(double flops, double *rate)
{
    enum { N = 512 };
    const double one = 2.0 * N * N * N;
    int count = flops > 2 * one ? (int)(flops / one) : 2;
    float *m = aligned_alloc(64, 3 * sizeof(float) * N * N);
    double start;

    if (!m)
        return complain("sgemm", strerror(ENOMEM));
    for (int i = 0; i < 3 * N * N; i++)
        m[i] = (float)(i % 17) / 16;
    openblas_set_num_threads(1);
    start = now();
    for (int i = 0; i < count; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, m, N,
                    m + N * N, N, 0, m + 2 * N * N, N);
    *rate = count * one / (now() - start);
    free(m);
    return 0;
}

const char *train_kernels(void)
{
    return openblas_get_corename();
}
