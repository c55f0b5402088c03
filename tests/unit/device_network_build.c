/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what the device's network takes and refuses: dtypes, names, networks,
 * recipes of bfloat16; what collectives cost; and that files and reports have
 * them. device_network.c runs them.
 */
#include "suite.h"

#include <math.h>

#include "folder.h"
#include "joined.h"

static struct device d;
static ipu_network network;

static void set_up(void)
{
    folder_enter();
    d = device_new();
    ipu_network_init(&network, sizeof network);
    network.processes = 4;
}

static void tear_down(void)
{
    joined_end();
    device_free(&d);
    folder_remove();
}

static ipu_tensor given(const char *name, ipu_dtype dtype, int64_t count)
{
    return ipu_input(d.graph, name, dtype, 1, &count);
}

/* ------------------------------------------------------------------- dtypes */

static ipu_tensor build(ipu_collective_kind kind, ipu_tensor x)
{
    if (kind == IPU_COLLECTIVE_REDUCE)
        return ipu_collective_mean(d.graph, &network, "c", x);
    if (kind == IPU_COLLECTIVE_BROADCAST)
        return ipu_collective_broadcast(d.graph, &network, "c", x, 3);
    return ipu_collective_gather(d.graph, &network, "c", x);
}

enum { NO, YES, ASKED }; /* asked for by a recipe */

static const struct {
    ipu_collective_kind kind;
    ipu_dtype dtype;
    int taken;
    const char *words;
} table[] = {
    {IPU_COLLECTIVE_REDUCE, IPU_FLOAT32, YES, ""},
    {IPU_COLLECTIVE_REDUCE, IPU_BFLOAT16, YES, ""},
    {IPU_COLLECTIVE_REDUCE, IPU_FLOAT16, NO,
     "collective reduce 'c': x is of float16: the network takes float32 and "
     "bfloat16; cast it first"},
    {IPU_COLLECTIVE_REDUCE, IPU_INT32, NO, "x is of int32"},
    {IPU_COLLECTIVE_BROADCAST, IPU_FLOAT32, YES, ""},
    {IPU_COLLECTIVE_BROADCAST, IPU_INT32, YES, ""},
    {IPU_COLLECTIVE_BROADCAST, IPU_BFLOAT16, ASKED,
     "collective broadcast 'c': x is of bfloat16: the network takes float32 "
     "and int32, and bfloat16 by a recipe that lists CollectiveBcastSend; give "
     "the network a recipe"},
    {IPU_COLLECTIVE_BROADCAST, IPU_FLOAT16, NO, "x is of float16"},
    {IPU_COLLECTIVE_GATHER, IPU_FLOAT32, YES, ""},
    {IPU_COLLECTIVE_GATHER, IPU_FLOAT16, YES, ""},
    {IPU_COLLECTIVE_GATHER, IPU_INT32, YES, ""},
    {IPU_COLLECTIVE_GATHER, IPU_BFLOAT16, ASKED,
     "by a recipe that lists CollectiveGather"},
};
enum { ENTRIES = sizeof table / sizeof *table };

LOOP_TEST(dtypes_are_those_of_the_table, 0, ENTRIES)
{
    ipu_tensor y = build(table[_i].kind, given("x", table[_i].dtype, 8));

    if (table[_i].taken == YES)
        MUST(ipu_output(d.graph, "y", y));
    else
        device_refused(&d, y, IPU_ERR_SHAPE, table[_i].words);
}

LOOP_TEST(a_recipe_allows_what_it_may, 0, ENTRIES)
{
    ipu_bf16_recipe *recipe;
    ipu_tensor y;

    MUST(ipu_bf16_recipe_new("full", &recipe));
    network.recipe = recipe;
    y = build(table[_i].kind, given("x", table[_i].dtype, 8));
    ipu_bf16_recipe_free(recipe);
    if (table[_i].taken == NO)
        device_refused(&d, y, IPU_ERR_SHAPE, table[_i].words);
    else
        MUST(ipu_output(d.graph, "y", y));
}

/* ------------------------------------------------------------------ recipes */

/* Returns the bytes that a device sends for a mean of 1000 floats of that
 * name. */
static int64_t bytes_of(const char *recipe_text, const char *name)
{
    struct device one = device_new();
    const bool word = recipe_text[0] != '{';
    ipu_bf16_recipe *recipe;
    ipu_tensor x = device_floats(&one, "x", 1, SHAPE(1000));
    int64_t bytes;

    if (!word)
        file_write_text("recipe.json", recipe_text);
    MUST(ipu_bf16_recipe_new(word ? recipe_text : "recipe.json", &recipe));
    network.recipe = recipe;
    MUST(ipu_output(one.graph, "y",
                    ipu_collective_mean(one.graph, &network, name, x)));
    ipu_bf16_recipe_free(recipe);
    MUST(ipu_compile(one.graph, NULL, &one.executable));
    bytes = device_cycles(&one).network_bytes;
    device_free(&one);
    return bytes;
}

static const struct {
    const char *text;
    int converts, converts_kept; /* of "c", and of "keep/c" */
} recipes[] = {
    {"0", 0, 0},
    {"", 0, 0},
    {"false", 0, 0},
    {"basic", 0, 0},
    {"1", 1, 1},
    {"true", 1, 1},
    {"full", 1, 1},
    {"{}", 0, 0},
    {"{\"allowlist\": [\"MatMul\", \"CollectiveReduce\"]}", 1, 1},
    {"{\"allowlist\": [\"HpuCollectiveReduceV2\"]}", 1, 1},
    {"{\"allowlist\": [\"CollectiveReduceV4\", \"CollectiveGather\"]}", 0, 0},
    {"{\"allow_list\": [\"CollectiveReduce\"]}", 1, 1},
    {"{\"conditional_list\": [\"CollectiveReduce\"]}", 0, 0},
    {"{\"conditional_list\": [\"CollectiveReduceV2\", \"CollectiveReduceV3\"], "
     "\"allowlist\": [\"Conv2D\", \"Conv2DBackpropFilter\"], "
     "\"strict_conditional_list\": [\"AddN\"], "
     "\"non_convertible_exceptions\": [[\".*keep.*\", \"\"]]}",
     1, 0},
    {"{\"conditional_list\": [\"CollectiveGather\"], \"allowlist\": "
     "[\"MatMul\"]}",
     0, 0},
    {"{\"strict_conditional_list\": [\"CollectiveReduce\"], "
     "\"allowlist\": [\"MatMul\"]}",
     0, 0},
    {"{\"allowlist\": [\"CollectiveReduce\"], \"non_convertible_exceptions\": "
     "[[\"^keep/\", \"\"]]}",
     1, 0},
    {"{\"allowlist\": [\"CollectiveReduce\"], \"non_convertible_exceptions\": "
     "[[\"^keep/\", \"CollectiveGather\"], [\"c\", \"MatMul\"]]}",
     1, 1},
    {"{\"convertible_exceptions\": [[\"keep\", \"CollectiveReduceV3\"]]}", 0,
     1},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

LOOP_TEST(a_recipe_halves_what_it_converts, 0, RECIPES)
{
    const int64_t whole = 2 * 3 * 4000 / 4;

    ck_assert_int_eq(bytes_of(recipes[_i].text, "c"),
                     recipes[_i].converts ? whole / 2 : whole);
    ck_assert_int_eq(bytes_of(recipes[_i].text, "keep/c"),
                     recipes[_i].converts_kept ? whole / 2 : whole);
}

static const char *const faults[][2] = {
    {"[]", "recipe.json: a recipe is one object"},
    {"{\"allowlist\": [}", "recipe.json, line 1: the recipe of bfloat16: "},
    {"{\"allowlist\": 1}", "'allowlist' must be a list of types of ops"},
    {"{\"allowlist\": [\"A\", 1]}", "'allowlist', number 2: a type of ops"},
    {"{\"whitelist\": []}", "a recipe has no 'whitelist': allowlist, "},
    {"{\"allowlist\": [], \"allow_list\": []}", "are one: give all types"},
    {"{\"allowlist\": [], \"allowlist\": []}", "duplicate"},
    {"{\"convertible_exceptions\": {}}", "must be a list of pairs"},
    {"{\"convertible_exceptions\": [[\"a\"]]}", "number 1: an exception is a"},
    {"{\"convertible_exceptions\": [[\"(\", \"\"]]}", "expression '('"},
};

LOOP_TEST(wrong_recipes_are_refused, 0, sizeof faults / sizeof *faults)
{
    ipu_bf16_recipe *recipe = NULL;

    file_write_text("recipe.json", faults[_i][0]);
    MUST_FAIL(ipu_bf16_recipe_new("recipe.json", &recipe), IPU_ERR_DATA,
              faults[_i][1]);
    ck_assert_ptr_null(recipe);
    MUST_FAIL(ipu_bf16_recipe_new("none.json", &recipe), IPU_ERR_DATA,
              "none.json: cannot be read");
    MUST_FAIL(ipu_bf16_recipe_new(NULL, &recipe), IPU_ERR_ARGUMENT,
              "the setting is NULL");
    MUST_FAIL(ipu_bf16_recipe_new("1", NULL), IPU_ERR_ARGUMENT,
              "the place for it is NULL");
}

/* What a recipe converts is rounded to bfloat16 before and after, no more. */
TEST(converted_means_are_rounded)
{
    enum { COUNT = 300 };
    float x[4][COUNT], y[4][COUNT];
    ipu_bf16_recipe *recipe;

    MUST(ipu_bf16_recipe_new("full", &recipe));
    network.recipe = recipe;
    MUST(ipu_output(d.graph, "y",
                    ipu_collective_mean(d.graph, &network, "c",
                                        given("x", IPU_FLOAT32, COUNT))));
    ipu_bf16_recipe_free(recipe);
    joined_load_all(&d, 4);
    joined_connect("x", x, sizeof x[0]);
    joined_connect("y", y, sizeof y[0]);
    for (int r = 0; r < 4; r++)
        device_fill(x[r], COUNT, (uint64_t)r + 5);
    joined_run();
    for (int k = 0; k < COUNT; k++) {
        float sum = 0, expected;
        uint16_t half;

        for (int r = 0; r < 4; r++) {
            joined_store(IPU_BFLOAT16, &half, 0, x[r][k]);
            sum += joined_load(IPU_BFLOAT16, &half, 0);
        }
        joined_store(IPU_BFLOAT16, &half, 0, sum / 4);
        expected = joined_load(IPU_BFLOAT16, &half, 0);
        for (int r = 0; r < 4; r++)
            ck_assert_float_eq(y[r][k], expected);
    }
}

/* ----------------------------------------------------------------- refusals */

TEST(collectives_need_a_name_and_a_network)
{
    static const struct {
        int32_t processes, root;
        const char *name, *words;
    } wrong[] = {{4, 4, "c", "there is no process 4: there are 0 to 3"},
                 {4, -1, "c", "there is no process -1"},
                 {0, 0, "c", "network: processes is 0; it may be 1 to 65536"},
                 {4, 0, "", "the name is empty"},
                 {4, 0, NULL, "the name is NULL"}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct device one = device_new();

        network.processes = wrong[i].processes;
        device_refused(&one,
                       ipu_collective_broadcast(
                           one.graph, &network, wrong[i].name,
                           device_floats(&one, "x", 0, NULL), wrong[i].root),
                       IPU_ERR_ARGUMENT, wrong[i].words);
        device_free(&one);
    }
    device_refused(
        &d, ipu_collective_sum(d.graph, NULL, "c", given("x", IPU_FLOAT32, 1)),
        IPU_ERR_ARGUMENT, "the network is NULL");
}

TEST(names_are_unique)
{
    ipu_tensor x = given("x", IPU_FLOAT32, 1);

    ipu_collective_sum(d.graph, &network, "c", x);
    device_refused(&d, ipu_collective_gather(d.graph, &network, "c", x),
                   IPU_ERR_NAME,
                   "collective gather 'c': another collective of this program "
                   "has that name");
}

TEST(there_is_no_all_to_all)
{
    device_refused(&d,
                   ipu_collective_all_to_all(d.graph, &network, "c",
                                             given("x", IPU_FLOAT32, 4)),
                   IPU_ERR_ARGUMENT,
                   "collective all-to-all 'c': the device's network has none: "
                   "gather the tensor and slice it");
}

TEST(gradients_are_checked)
{
    ipu_tensor x = given("x", IPU_INT32, 4), y;

    MUST_FAIL(ipu_collective_gradients(NULL, &network, 1, &x, &y),
              IPU_ERR_ARGUMENT, "collective gradients: the graph is NULL");
    MUST_FAIL(ipu_collective_gradients(d.graph, &network, 1, &x, &y),
              IPU_ERR_SHAPE, "collective reduce 'gradients/0': x is of int32");
}

TEST(engines_need_the_right_network)
{
    float value = 0;
    ipu_network_functions none = joined_functions;
    ipu_replicas_options options;
    ipu_replicas *replicas = NULL;

    MUST(ipu_output(d.graph, "y",
                    ipu_collective_sum(d.graph, &network, "c",
                                       given("x", IPU_FLOAT32, 1))));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "x", &value, 4));
    MUST_FAIL(
        ipu_engine_run(d.engine), IPU_ERR_STATE,
        "collective 'c' is of 4 processes, and the engine has no network");
    MUST_FAIL(ipu_engine_network(d.engine, &joined_functions, NULL, 3),
              IPU_ERR_ARGUMENT,
              "collective 'c' is of 4 processes, and the network has 3");
    MUST_FAIL(ipu_engine_network(d.engine, &joined_functions, NULL, 0),
              IPU_ERR_ARGUMENT, "0 processes");
    MUST_FAIL(ipu_engine_network(NULL, &joined_functions, NULL, 4),
              IPU_ERR_ARGUMENT, "the engine is NULL");
    none.abandon = NULL;
    MUST_FAIL(ipu_engine_network(d.engine, &none, NULL, 4), IPU_ERR_ARGUMENT,
              "abandon is NULL");
    MUST(ipu_engine_network(d.engine, &joined_functions, NULL, 4));
    MUST(ipu_engine_network(d.engine, NULL, NULL, 0));
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_STATE, "no network");
    ipu_replicas_options_init(&options, sizeof options);
    MUST(ipu_replicas_new(d.executable, &options, &replicas));
    MUST(ipu_replicas_connect_shared(replicas, "x", &value, 4));
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_STATE,
              "or ipu_replicas_network; pipelines have none");
    ipu_replicas_free(replicas);
}

/* -------------------------------------------------------------------- costs */

TEST(the_model_is_a_ring_of_all_ports)
{
    const double width = 10 * 12.5e9 * 0.98;
    double seconds;
    int64_t bytes;

    MUST(ipu_model_collective(&network, IPU_COLLECTIVE_REDUCE, 1 << 20,
                              &seconds, &bytes));
    ck_assert_int_eq(bytes, 3 << 19);
    ck_assert_double_le(fabs(seconds - (6 * 2e-6 + (3 << 19) / width)), 1e-15);
    MUST(ipu_model_collective(&network, IPU_COLLECTIVE_GATHER, 1 << 20,
                              &seconds, &bytes));
    ck_assert_int_eq(bytes, 3 << 20);
    ck_assert_double_le(fabs(seconds - (3 * 2e-6 + (3 << 20) / width)), 1e-15);
    MUST(ipu_model_collective(&network, IPU_COLLECTIVE_BROADCAST, 1 << 20,
                              &seconds, &bytes));
    ck_assert_int_eq(bytes, 3 << 18);
    ck_assert_double_le(fabs(seconds - (3 * 2e-6 + (1 << 20) / width)), 1e-15);
    network.processes = 1;
    for (int kind = 0; kind < 3; kind++) {
        MUST(ipu_model_collective(&network, kind, 1 << 20, &seconds, &bytes));
        ck_assert_int_eq(bytes, 0);
        ck_assert_double_le(seconds, 0);
    }
    MUST_FAIL(ipu_model_collective(&network, 3, 1, NULL, NULL),
              IPU_ERR_ARGUMENT, "3 is no collective");
    MUST_FAIL(ipu_model_collective(&network, 0, -1, NULL, NULL),
              IPU_ERR_ARGUMENT, "-1 bytes");
}

/* A product that needs nothing of the network hides what it takes. */
static void compile_sum(struct device *one, int products)
{
    ipu_tensor x = device_floats(one, "x", 2, SHAPE(256, 256)), y = x;

    for (int i = 0; i < products; i++)
        y = ipu_matmul(one->graph, y, y);
    MUST(ipu_output(one->graph, "y",
                    ipu_add(one->graph, y,
                            ipu_collective_sum(one->graph, &network, "c", x))));
    MUST(ipu_compile(one->graph, NULL, &one->executable));
}

TEST(work_hides_the_network)
{
    struct device one = device_new(), many = device_new();
    ipu_program_cycles alone, beside;

    compile_sum(&one, 0);
    compile_sum(&d, 1);
    compile_sum(&many, 30);
    alone = device_cycles(&one);
    ck_assert_int_eq(alone.network, alone.network_busy);
    ck_assert_int_ge(alone.exchange, alone.network);
    ck_assert_int_gt(alone.network, 0);
    beside = device_cycles(&d);
    ck_assert_int_eq(beside.network_busy, alone.network_busy);
    ck_assert_int_eq(beside.network_bytes, 2 * 3 * (1 << 18) / 4);
    ck_assert_int_lt(beside.network, alone.network);
    ck_assert_int_gt(beside.network, 0);
    ck_assert_int_eq(device_cycles(&many).network, 0);
    device_free(&one);
    device_free(&many);
}

TEST(files_and_reports_have_collectives)
{
    float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, y[4][2];
    struct device loaded = {0};
    ipu_profile *profile;
    char *text;

    MUST(ipu_output(d.graph, "y",
                    ipu_collective_mean(d.graph, &network, "c",
                                        given("x", IPU_FLOAT32, 2))));
    MUST(ipu_graph_save(d.graph, "graph"));
    MUST(ipu_graph_load("graph", &loaded.graph));
    MUST(ipu_compile(loaded.graph, NULL, &loaded.executable));
    MUST(ipu_executable_save(loaded.executable, "program"));
    MUST(ipu_executable_load("program", &d.executable));
    ck_assert_int_eq(device_cycles(&d).network_bytes, 12);
    ck_assert_int_gt(device_cycles(&d).network, 0);
    joined_load_all(&d, 4);
    joined_connect("x", x, sizeof x[0]);
    joined_connect("y", y, sizeof y[0]);
    joined_run();
    for (int r = 0; r < 4; r++) {
        ck_assert_float_eq(y[r][0], 4);
        ck_assert_float_eq(y[r][1], 5);
    }
    MUST(ipu_profile_new("test", &profile));
    MUST(ipu_profile_add(profile, "mean", 0, d.executable, NULL));
    MUST(ipu_profile_write(profile, "report"));
    ipu_profile_free(profile);
    MUST(ipu_profile_read("report", &profile));
    MUST(ipu_profile_print(profile, IPU_PROFILE_TEXT, &text));
    ck_assert_msg(
        strstr(
            text,
            "The network sends 12 B in 12 us, and the program waits 12 us") !=
            NULL,
        "%s", text);
    free(text);
    ipu_profile_free(profile);
    device_free(&loaded);
}

TEST_MAIN("device_network_build", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
