/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

float lines_x[ROWS][FEATURES], lines_y[ROWS];
static int32_t numbers[ROWS];
static const float weights[FEATURES] = {1, -2, 0.5F};
static char folder[256];

hvd_model lines_model;
hvd_estimator_options lines_options;

void lines_fill(void)
{
    for (int i = 0; i < ROWS; i++) {
        lines_y[i] = 0.25F;
        numbers[i] = i;
        for (int k = 0; k < FEATURES; k++) {
            lines_x[i][k] = (float)sin(i * 1.7 + k);
            lines_y[i] += weights[k] * lines_x[i][k];
        }
    }
}

hvd_dataset *lines_data(int rows, int ncomponents)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {FEATURES}},
                                        {"y", HVD_FLOAT32, 0, {0}},
                                        {"number", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {lines_x, lines_y, numbers};

    lines_fill();
    return hvd_dataset_memory(ncomponents, components, arrays, rows, NULL,
                              NULL);
}

static ipu_tensor line(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_reshape(g, hvd_dense(net, "line", in, 1, HVD_LINEAR), 1, flat);
}

static ipu_tensor squares(hvd_net *net, ipu_tensor out, void *context)
{
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_square(g, ipu_subtract(g, out, hvd_net_input(net, "y")));
}

void lines_set_options(void)
{
    hvd_model_init(&lines_model, sizeof lines_model);
    lines_model.build = line;
    lines_model.loss = squares;
    hvd_estimator_options_init(&lines_options, sizeof lines_options);
    lines_options.model = &lines_model;
    lines_options.optimizer = "sgd";
    lines_options.rate.rate = 0.1;
}

hvd_train_spec lines_steps(int64_t count)
{
    hvd_train_spec spec;

    hvd_train_spec_init(&spec, sizeof spec);
    spec.steps = count;
    return spec;
}

static double error_of(int row, const double *w, double b)
{
    double error = b - (double)lines_y[row];

    for (int k = 0; k < FEATURES; k++)
        error += w[k] * (double)lines_x[row][k];
    return error;
}

void lines_slopes(int batch, int step, const double *w, double b,
                  double *slopes)
{
    memset(slopes, 0, (FEATURES + 1) * sizeof *slopes);
    for (int i = 0; i < batch; i++) {
        int row = (step * batch + i) % ROWS;
        double error = error_of(row, w, b);

        for (int k = 0; k < FEATURES; k++)
            slopes[k] += 2 * error * (double)lines_x[row][k] / batch;
        slopes[FEATURES] += 2 * error / batch;
    }
}

void lines_descend(int batch, int first, int end, double rate, double *w,
                   double *b)
{
    for (int step = first; step < end; step++) {
        double slopes[FEATURES + 1];

        lines_slopes(batch, step, w, *b, slopes);
        for (int k = 0; k < FEATURES; k++)
            w[k] -= rate * slopes[k];
        *b -= rate * slopes[FEATURES];
    }
}

double lines_loss(int rows, const double *w, double b)
{
    double sum = 0;

    for (int i = 0; i < rows; i++)
        sum += error_of(i, w, b) * error_of(i, w, b);
    return sum / rows;
}

void lines_read(const hvd_estimator *e, double *w, double *b)
{
    float now[FEATURES];

    MUST(hvd_estimator_variable(e, "line/kernel", now, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        w[k] = (double)now[k];
    MUST(hvd_estimator_variable(e, "line/bias", now, 1));
    *b = (double)now[0];
}

const char *lines_folder(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/hvd-estimator.XXXXXX",
             tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

void lines_remove(void)
{
    DIR *open = opendir(folder);
    const struct dirent *entry;
    char path[600];

    while (open && (entry = readdir(open))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ck_assert_int_eq(unlink(path), 0);
    }
    if (open)
        closedir(open);
    ck_assert_int_eq(rmdir(folder), 0);
}

double lines_logged(const char *log_dir, const char *tag, int step)
{
    char path[300], line[1000], *rest, *field;
    double value = (double)NAN;
    int column = -1;
    FILE *f;

    snprintf(path, sizeof path, "%s/scalars.csv", log_dir);
    f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    rest = line;
    for (int i = 0; (field = strsep(&rest, ",\n")); i++)
        if (strcmp(field, tag) == 0)
            column = i;
    ck_assert_msg(column >= 0, "there is no column %s", tag);
    while (fgets(line, sizeof line, f)) {
        rest = line;
        for (int i = 0; atoi(line) == step && (field = strsep(&rest, ",\n"));
             i++)
            if (i == column && *field)
                value = strtod(field, NULL);
    }
    fclose(f);
    return value;
}
