/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests checkpoints. Another engine gets the saved variables; a variable that
 * is missing, unknown, or of another shape is named and nothing changes.
 */
#include "device_file.h"
#include "suite.h"

#include <sys/stat.h>

static struct device d;

struct variable {
    const char *name;
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[2];
};

static const struct variable usual[] = {
    {"weights", IPU_FLOAT32, 2, {3, 2}},
    {"count", IPU_INT32, 0, {0}},
    {"half", IPU_BFLOAT16, 1, {5}},
    {"none", IPU_FLOAT32, 1, {0}},
};

static struct device device_of(const struct variable *v, int count)
{
    struct device made = device_new();

    for (int i = 0; i < count; i++)
        ipu_variable(made.graph, v[i].name, v[i].dtype, v[i].ndim, v[i].shape);
    device_load(&made);
    return made;
}

static const float weights[6] = {1, -2, 3.5f, 4, 1e-40f, 6};
static const int32_t count = -7;
static const uint16_t half[5] = {1, 2, 3, 4, 0xffff};

static void set_up(void)
{
    folder_make();
    d = device_of(usual, 4);
    MUST(ipu_engine_write(d.engine, "weights", weights, sizeof weights));
    MUST(ipu_engine_write(d.engine, "count", &count, sizeof count));
    MUST(ipu_engine_write(d.engine, "half", half, sizeof half));
    MUST(ipu_engine_save_variables(d.engine, in_folder("saved")));
}

static void tear_down(void)
{
    device_free(&d);
    folder_remove();
}

TEST(another_engine_gets_the_same)
{
    struct device e = device_of(usual, 4);
    float w[6];
    int32_t c;
    uint16_t h[5];

    MUST(ipu_engine_load_variables(e.engine, in_folder("saved"), 0));
    MUST(ipu_engine_read(e.engine, "weights", w, sizeof w));
    MUST(ipu_engine_read(e.engine, "count", &c, sizeof c));
    MUST(ipu_engine_read(e.engine, "half", h, sizeof h));
    ck_assert_mem_eq(w, weights, sizeof w);
    ck_assert_int_eq(c, count);
    ck_assert_mem_eq(h, half, sizeof h);
    MUST(ipu_engine_save_variables(e.engine, in_folder("again")));
    files_equal(in_folder("saved"), in_folder("again"));
    device_free(&e);
}

/* "weights" is written only if all is well. */
static void check_untouched(struct device *e)
{
    float w[6], zero[6] = {0};

    MUST(ipu_engine_read(e->engine, "weights", w, sizeof w));
    ck_assert_mem_eq(w, zero, sizeof w);
}

TEST(other_variables_are_named)
{
    const struct variable others[] = {
        usual[0], usual[1], usual[3], {"new", IPU_FLOAT32, 1, {1}}};
    struct device e = device_of(others, 4);
    float w[6];

    MUST_FAIL(ipu_engine_load_variables(e.engine, in_folder("saved"), 0),
              IPU_ERR_NAME,
              "saved: other variables: it has no 'new'; the engine has no "
              "'half'");
    MUST_FAIL(ipu_engine_load_variables(e.engine, in_folder("saved"),
                                        IPU_LOAD_MISSING),
              IPU_ERR_NAME, "other variables: the engine has no 'half'");
    MUST_FAIL(
        ipu_engine_load_variables(e.engine, in_folder("saved"), IPU_LOAD_EXTRA),
        IPU_ERR_NAME, "other variables: it has no 'new'");
    check_untouched(&e);
    MUST(ipu_engine_load_variables(e.engine, in_folder("saved"),
                                   IPU_LOAD_MISSING | IPU_LOAD_EXTRA));
    MUST(ipu_engine_read(e.engine, "weights", w, sizeof w));
    ck_assert_mem_eq(w, weights, sizeof w);
    device_free(&e);
}

TEST(many_names_are_cut_off)
{
    struct variable others[60];
    char names[60][48];
    struct device e;

    for (int i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "a/rather/long/name/of/number/%d",
                 i);
        others[i] = (struct variable){names[i], IPU_FLOAT32, 0, {0}};
    }
    e = device_of(others, 60);
    MUST_FAIL(ipu_engine_load_variables(e.engine, in_folder("saved"), 0),
              IPU_ERR_NAME, ", ..; the engine has no 'weights', 'count'");
    device_free(&e);
}

TEST(another_shape_or_dtype_is_refused)
{
    struct variable others[4];
    struct device e;

    memcpy(others, usual, sizeof others);
    others[2].shape[0] = 6;
    e = device_of(others, 4);
    MUST_FAIL(ipu_engine_load_variables(e.engine, in_folder("saved"), 0),
              IPU_ERR_SHAPE, "'half' is bfloat16 [5] there, and bfloat16 [6]");
    check_untouched(&e);
    device_free(&e);
    others[2].shape[0] = 5;
    others[2].dtype = IPU_FLOAT16;
    e = device_of(others, 4);
    MUST_FAIL(ipu_engine_load_variables(e.engine, in_folder("saved"), 3),
              IPU_ERR_SHAPE, "'half' is bfloat16 [5] there, and float16 [5]");
    check_untouched(&e);
    device_free(&e);
}

TEST(misuse_is_refused)
{
    struct stat info;

    MUST_FAIL(ipu_engine_save_variables(NULL, "x"), IPU_ERR_ARGUMENT,
              "the engine is NULL");
    MUST_FAIL(ipu_engine_save_variables(d.engine, NULL), IPU_ERR_ARGUMENT,
              "the file's name is NULL");
    MUST_FAIL(ipu_engine_load_variables(NULL, "x", 0), IPU_ERR_ARGUMENT,
              "the engine is NULL");
    MUST_FAIL(ipu_engine_load_variables(d.engine, NULL, 0), IPU_ERR_ARGUMENT,
              "the file's name is NULL");
    MUST_FAIL(ipu_engine_load_variables(d.engine, "x", 4), IPU_ERR_ARGUMENT,
              "flags 4 have an unknown one");
    MUST_FAIL(ipu_engine_load_variables(d.engine, in_folder("no"), 0),
              IPU_ERR_DATA, "cannot be read");
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    MUST_FAIL(ipu_engine_load_variables(d.engine, in_folder("graph"), 0),
              IPU_ERR_DATA, "graph: holds a graph, not variables");
    ck_assert_int_eq(stat(in_folder("graph"), &info), 0);
}

/* --------------------------------------------------------- while it runs */

static struct {
    ipu_engine *engine;
    int saved, loaded, connected;
} during;

static int on_call(void *context, const char *name, void *data, int64_t n)
{
    (void)context, (void)data, (void)n;
    during.saved = ipu_engine_save_variables(during.engine, in_folder("no"));
    during.loaded =
        ipu_engine_load_variables(during.engine, in_folder("saved"), 0);
    during.connected =
        ipu_engine_connect_call(during.engine, name, on_call, NULL);
    return 0;
}

TEST(not_while_the_engine_runs)
{
    struct device e = device_new();
    ipu_tensor v = ipu_variable(e.graph, "v", IPU_FLOAT32, 1, SHAPE(2));

    MUST(ipu_host_call(e.graph, "call", ipu_abs(e.graph, v), on_call, NULL));
    device_load(&e);
    during.engine = e.engine;
    MUST(ipu_engine_run(e.engine));
    ck_assert_int_eq(during.saved, IPU_ERR_STATE);
    ck_assert_int_eq(during.loaded, IPU_ERR_STATE);
    ck_assert_int_eq(during.connected, IPU_ERR_STATE);
    device_free(&e);
}

TEST_MAIN("device_file_variables", .set_up = set_up, .tear_down = tear_down)
