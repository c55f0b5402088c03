/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests graphs and executables in files. A loaded program computes the same
 * bits as the saved one, and saves to the same bytes. Lists that files depend
 * on are complete.
 */
#include "device_file.h"
#include "suite.h"

#include <errno.h>
#include <sys/stat.h>

#include "compiler/program.h"
#include "file/members.h"

static void set_up(void)
{
    folder_make();
}

static void tear_down(void)
{
    folder_remove();
}

/* ------------------------------------------------------------------ runs */

struct result {
    float loss, turned[16], gradient[4], kernel[72], mean[4];
    int32_t top[4], step;
    char program[1 << 16];
};

static int keep_gradient(void *context, const char *name, void *data,
                         int64_t count)
{
    ck_assert_str_eq(name, "gradient");
    ck_assert_int_eq(count, 4);
    memcpy(context, data, 4 * sizeof(float));
    return 0;
}

/* Three steps from the same beginning. */
static void run(const ipu_executable *x, struct result *r)
{
    float images[4 * 6 * 6 * 4], kernel[72], scale[4];
    int32_t labels[4] = {0, 9, 3, 3};
    uint16_t dense[36 * 5];
    ipu_engine *e = NULL;

    memset(r, 0, sizeof *r);
    device_fill(images, 576, 1);
    device_fill(kernel, 72, 2);
    device_fill(scale, 4, 3);
    for (int i = 0; i < 36 * 5; i++)
        dense[i] = (uint16_t)(0x3000 + 37 * i % 1024);
    MUST(ipu_engine_new(x, &e));
    MUST(ipu_engine_connect(e, "x", images, sizeof images));
    MUST(ipu_engine_connect(e, "labels", labels, sizeof labels));
    MUST(ipu_engine_connect(e, "loss", &r->loss, sizeof r->loss));
    MUST(ipu_engine_connect(e, "top", r->top, sizeof r->top));
    MUST(ipu_engine_connect(e, "turned", r->turned, sizeof r->turned));
    MUST(ipu_engine_connect_call(e, "gradient", keep_gradient, r->gradient));
    MUST(ipu_engine_write(e, "kernel", kernel, sizeof kernel));
    MUST(ipu_engine_write(e, "scale", scale, sizeof scale));
    MUST(ipu_engine_write(e, "dense", dense, sizeof dense));
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(e));
    MUST(ipu_engine_read(e, "kernel", r->kernel, sizeof r->kernel));
    MUST(ipu_engine_read(e, "mean", r->mean, sizeof r->mean));
    MUST(ipu_engine_read(e, "step", &r->step, sizeof r->step));
    ck_assert_int_lt(ipu_executable_print(x, r->program, sizeof r->program),
                     sizeof r->program);
    ipu_engine_free(e);
}

static void check_same(const ipu_executable *a, const ipu_executable *b)
{
    struct result *first = malloc(sizeof *first);
    struct result *second = malloc(sizeof *second);

    run(a, first);
    run(b, second);
    ck_assert_int_eq(first->step, 3);
    ck_assert(first->loss != 0);
    ck_assert_mem_eq(first, second, sizeof *first);
    free(first);
    free(second);
}

static ipu_graph *build(void)
{
    ipu_graph *g = NULL;

    MUST(ipu_graph_new(&g));
    file_build(g);
    return g;
}

TEST(a_loaded_graph_computes_the_same)
{
    ipu_graph *g = build(), *loaded = NULL;
    ipu_executable *a = NULL, *b = NULL;

    MUST(ipu_graph_save(g, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    file_compile(g, &a);
    file_compile(loaded, &b);
    check_same(a, b);
    ipu_executable_free(a);
    ipu_executable_free(b);
    ipu_graph_free(g);
    ipu_graph_free(loaded);
}

/* A loaded graph still knows the source of each derivative, which remedies
 * need, and the tiles that the program chose for its tensors. */
TEST(a_loaded_graph_can_be_changed_as_well)
{
    const ipu_compile_options options = {.size = sizeof options};
    ipu_graph *g = build(), *loaded = NULL;
    ipu_remedy a = {.size = sizeof a}, b = a;
    ipu_tensor kept;

    MUST(ipu_shard(g, 3));
    kept = ipu_variable(g, "kept", IPU_FLOAT32, 1, (const int64_t[]){64});
    MUST(ipu_offload_variable(g, kept, IPU_OFFLOAD_ON));
    MUST(ipu_graph_save(g, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    MUST(ipu_remedy_try(g, &options, IPU_REMEDY_SHARD, 2, &a));
    MUST(ipu_remedy_try(loaded, &options, IPU_REMEDY_SHARD, 2, &b));
    ck_assert_mem_eq(&a, &b, sizeof a);
    ck_assert_int_ge(a.remote_bytes, 256);
    MUST(ipu_graph_find(loaded, "kept", &kept));
    ck_assert_int_eq(ipu_tensor_shard(loaded, kept), 3);
    ipu_graph_free(g);
    ipu_graph_free(loaded);
}

TEST(a_loaded_executable_computes_the_same)
{
    ipu_graph *g = build();
    ipu_executable *a = NULL, *b = NULL;

    file_compile(g, &a);
    ipu_graph_free(g);
    MUST(ipu_executable_save(a, in_folder("program")));
    MUST(ipu_executable_load(in_folder("program"), &b));
    check_same(a, b);
    ipu_executable_free(a);
    ipu_executable_free(b);
}

static void check_infos(const ipu_executable *a, const ipu_executable *b)
{
    ipu_memory_info first = {.size = sizeof first}, second = first;
    ipu_program_cycles c = {.size = sizeof c}, d = c;

    MUST(ipu_executable_memory(a, &first));
    MUST(ipu_executable_memory(b, &second));
    ck_assert_mem_eq(&first, &second, sizeof first);
    MUST(ipu_executable_cycles(a, &c));
    MUST(ipu_executable_cycles(b, &d));
    ck_assert_mem_eq(&c, &d, sizeof c);
    for (int32_t i = 0; i < first.steps; i++) {
        ipu_step_info s = {.size = sizeof s}, t = s;

        MUST(ipu_executable_step(a, i, &s));
        MUST(ipu_executable_step(b, i, &t));
        ck_assert_str_eq(s.op, t.op);
        ck_assert_str_eq(s.tensor, t.tensor);
        ck_assert_int_eq(s.estimate != NULL, t.estimate != NULL);
        if (s.estimate)
            ck_assert_str_eq(s.estimate, t.estimate);
        s.op = t.op;
        s.tensor = t.tensor;
        s.estimate = t.estimate;
        ck_assert_int_eq(s.parts != NULL, t.parts != NULL);
        if (s.parts)
            ck_assert_str_eq(s.parts, t.parts);
        s.parts = t.parts;
        ck_assert_mem_eq(&s, &t, sizeof s);
    }
    for (int32_t i = 0; i < 3; i++) {
        ipu_tile_info s = {.size = sizeof s}, t = s;

        MUST(ipu_executable_tile(a, i, &s));
        MUST(ipu_executable_tile(b, i, &t));
        ck_assert_mem_eq(&s, &t, sizeof s);
    }
}

TEST(a_loaded_executable_knows_its_cost)
{
    ipu_graph *g = build();
    ipu_executable *a = NULL, *b = NULL;

    file_compile(g, &a);
    MUST(ipu_executable_save(a, in_folder("program")));
    MUST(ipu_executable_load(in_folder("program"), &b));
    check_infos(a, b);
    ipu_executable_free(a);
    ipu_executable_free(b);
    ipu_graph_free(g);
}

/* ----------------------------------------------------------------- bytes */

TEST(the_same_graph_gives_the_same_file)
{
    ipu_graph *loaded = NULL;
    ipu_executable *a[3] = {NULL};

    for (int i = 0; i < 2; i++) {
        ipu_graph *g = build();

        MUST(ipu_graph_save(g, in_folder(i ? "g1" : "g0")));
        file_compile(g, &a[i]);
        MUST(ipu_executable_save(a[i], in_folder(i ? "x1" : "x0")));
        ipu_graph_free(g);
    }
    files_equal(in_folder("g0"), in_folder("g1"));
    files_equal(in_folder("x0"), in_folder("x1"));

    MUST(ipu_graph_load(in_folder("g0"), &loaded));
    MUST(ipu_graph_save(loaded, in_folder("g2")));
    files_equal(in_folder("g0"), in_folder("g2"));
    file_compile(loaded, &a[2]);
    MUST(ipu_executable_save(a[2], in_folder("x2")));
    files_equal(in_folder("x0"), in_folder("x2"));
    ipu_executable_free(a[2]);
    MUST(ipu_executable_load(in_folder("x0"), &a[2]));
    MUST(ipu_executable_save(a[2], in_folder("x2")));
    files_equal(in_folder("x0"), in_folder("x2"));

    for (int i = 0; i < 3; i++)
        ipu_executable_free(a[i]);
    ipu_graph_free(loaded);
}

TEST(an_empty_graph_is_one)
{
    struct device e = device_new();
    ipu_graph *loaded = NULL;
    ipu_executable *x = NULL, *again = NULL;

    MUST(ipu_graph_save(e.graph, in_folder("empty")));
    MUST(ipu_graph_load(in_folder("empty"), &loaded));
    file_compile(loaded, &x);
    MUST(ipu_executable_save(x, in_folder("empty")));
    MUST(ipu_executable_load(in_folder("empty"), &again));
    ipu_executable_free(x);
    ipu_executable_free(again);
    ipu_graph_free(loaded);
    device_free(&e);
}

/* ------------------------------------------------------------ loaded graphs */

TEST(tensors_of_a_loaded_graph_are_found)
{
    ipu_graph *g = build(), *loaded = NULL;
    ipu_tensor loss, kernel, gradient;
    const char *name;
    ipu_dtype dtype;
    int64_t shape[IPU_MAX_DIMS];

    MUST(ipu_graph_save(g, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    MUST(ipu_graph_find(loaded, "loss", &loss));
    ck_assert_int_eq(ipu_tensor_info(loaded, loss, NULL, NULL, NULL), 0);
    MUST(ipu_graph_find(loaded, "kernel", &kernel));
    ck_assert_int_eq(ipu_tensor_info(loaded, kernel, &dtype, shape, &name), 4);
    ck_assert_int_eq(dtype, IPU_FLOAT32);
    ck_assert_int_eq(shape[2], 2);
    ck_assert_str_eq(name, "kernel");
    /* The loaded graph can be built on. */
    MUST(ipu_gradients(loaded, loss, 1, &kernel, &gradient));
    MUST(ipu_output(loaded, "again", gradient));
    MUST_FAIL(ipu_graph_find(loaded, "nobody", &loss), IPU_ERR_NAME,
              "no tensor 'nobody'");
    MUST_FAIL(ipu_graph_find(loaded, NULL, &loss), IPU_ERR_ARGUMENT,
              "the name is NULL");
    MUST_FAIL(ipu_graph_find(NULL, "loss", &loss), IPU_ERR_ARGUMENT,
              "the graph is NULL");
    MUST_FAIL(ipu_graph_find(g, "loss", NULL), IPU_ERR_ARGUMENT,
              "the place for a tensor is NULL");
    ipu_graph_free(g);
    ipu_graph_free(loaded);
}

TEST(what_was_found_has_the_name_that_was_given)
{
    struct device e = device_new();
    ipu_tensor x, y, found;

    x = device_floats(&e, "relu:0", 1, SHAPE(2));
    y = ipu_relu(e.graph, x);
    MUST(ipu_graph_find(e.graph, "relu:0", &found));
    ck_assert_int_eq(found.id, x.id);
    MUST(ipu_output(e.graph, "out", y));
    MUST(ipu_graph_find(e.graph, "out", &found));
    ck_assert_int_eq(found.id, y.id);
    y = ipu_abs(e.graph, y);
    MUST(ipu_graph_find(e.graph, "abs:1", &found));
    ck_assert_int_eq(found.id, y.id);
    device_free(&e);
}

/* A failure in a loaded graph still names the place where the graph was
 * built. */
TEST(sources_are_kept)
{
    struct device e = device_new();
    ipu_graph *loaded = NULL;
    ipu_executable *x = NULL;
    ipu_tensor big;
    ipu_target small = file_target();

    small.bytes_per_tile = 1000;
    ipu_at(e.graph, "users.c", 123);
    big = (ipu_input)(e.graph, "big", IPU_FLOAT32, 1, SHAPE(100000));
    MUST((ipu_output)(e.graph, "out", (ipu_relu)(e.graph, big)));
    MUST(ipu_graph_save(e.graph, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    device_free(&e);
    MUST_FAIL(ipu_compile(loaded, &small, &x), IPU_ERR_FULL, "(users.c:123)");
    ipu_graph_free(loaded);
}

TEST(a_host_call_needs_a_function)
{
    ipu_graph *g = build(), *loaded = NULL;
    ipu_executable *x = NULL;
    ipu_engine *e = NULL;
    float gradient[4], images[576] = {0};
    int32_t labels[4] = {0};

    MUST(ipu_graph_save(g, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    file_compile(loaded, &x);
    MUST(ipu_engine_new(x, &e));
    MUST(ipu_engine_connect(e, "x", images, sizeof images));
    MUST(ipu_engine_connect(e, "labels", labels, sizeof labels));
    MUST_FAIL(ipu_engine_run(e), IPU_ERR_STATE,
              "host call 'gradient' has no function");
    MUST(ipu_engine_connect_call(e, "gradient", keep_gradient, gradient));
    MUST(ipu_engine_run(e));
    MUST(ipu_engine_connect_call(e, "gradient", NULL, NULL));
    MUST_FAIL(ipu_engine_run(e), IPU_ERR_STATE, "has no function");
    MUST_FAIL(ipu_engine_connect_call(e, "loss", keep_gradient, NULL),
              IPU_ERR_NAME, "no host call or host receive 'loss'");
    MUST_FAIL(ipu_engine_connect_call(NULL, "loss", NULL, NULL),
              IPU_ERR_ARGUMENT, "the engine is NULL");
    ipu_engine_free(e);
    ipu_executable_free(x);
    ipu_graph_free(g);
    ipu_graph_free(loaded);
}

static int give(void *context, const char *name, void *data, int64_t count)
{
    ck_assert_str_eq(name, "given");
    for (int64_t i = 0; i < count; i++)
        ((float *)data)[i] = *(float *)context;
    return 0;
}

/* A tensor that the host gives needs a function, too. */
TEST(a_host_receive_needs_a_function)
{
    struct device e = device_new();
    ipu_tensor v = ipu_variable(e.graph, "v", IPU_FLOAT32, 1, SHAPE(2));
    float seven = 7, eight = 8, out[2];
    ipu_graph *loaded = NULL;

    MUST(ipu_output(e.graph, "y",
                    ipu_host_receive(e.graph, "given", v, give, &seven)));
    MUST(ipu_graph_save(e.graph, in_folder("graph")));
    device_load(&e);
    MUST(ipu_engine_connect(e.engine, "y", out, sizeof out));
    MUST(ipu_engine_run(e.engine));
    ck_assert_float_eq(out[1], 7);
    MUST(ipu_engine_connect_call(e.engine, "given", give, &eight));
    MUST(ipu_engine_run(e.engine));
    ck_assert_float_eq(out[1], 8);
    device_free(&e);
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    e = (struct device){.graph = loaded};
    device_load(&e);
    MUST(ipu_engine_connect(e.engine, "y", out, sizeof out));
    MUST_FAIL(ipu_engine_run(e.engine), IPU_ERR_STATE,
              "host receive 'given' has no function");
    MUST(ipu_engine_connect_call(e.engine, "given", give, &eight));
    MUST(ipu_engine_run(e.engine));
    device_free(&e);
}

/* ------------------------------------------------------------------ refused */

TEST(a_graph_with_a_failure_is_not_saved)
{
    struct device e = device_new();
    struct stat info;

    ipu_relu(e.graph, (ipu_tensor){-1});
    MUST_FAIL(ipu_graph_save(e.graph, in_folder("graph")), IPU_ERR_ARGUMENT,
              "relu");
    ck_assert_int_ne(stat(in_folder("graph"), &info), 0);
    device_free(&e);
}

TEST(what_is_missing_is_named)
{
    ipu_graph *g = NULL;
    ipu_executable *x = NULL;

    MUST_FAIL(ipu_graph_save(NULL, "x"), IPU_ERR_ARGUMENT, "the graph is NULL");
    MUST_FAIL(ipu_graph_load(NULL, &g), IPU_ERR_ARGUMENT,
              "the file's name is NULL");
    MUST_FAIL(ipu_graph_load("x", NULL), IPU_ERR_ARGUMENT, "the place for");
    MUST_FAIL(ipu_executable_save(NULL, "x"), IPU_ERR_ARGUMENT,
              "the executable is NULL");
    MUST_FAIL(ipu_executable_load(NULL, &x), IPU_ERR_ARGUMENT,
              "the file's name is NULL");
    MUST_FAIL(ipu_executable_load("x", NULL), IPU_ERR_ARGUMENT,
              "the place for");
    MUST_FAIL(ipu_graph_load(in_folder("nothing"), &g), IPU_ERR_DATA,
              strerror(ENOENT));
    MUST_FAIL(ipu_graph_load(folder, &g), IPU_ERR_DATA, "no regular file");
    ck_assert_ptr_null(g);
    MUST(ipu_graph_new(&g));
    MUST_FAIL(ipu_graph_save(g, NULL), IPU_ERR_ARGUMENT,
              "the file's name is NULL");
    MUST_FAIL(ipu_graph_save(g, in_folder("no/such/folder")), IPU_ERR_DATA,
              "cannot be written");
    MUST_FAIL(ipu_graph_save(g, folder), IPU_ERR_DATA, "Is a directory");
    ipu_graph_free(g);
}

/* The folder holds only the files that were asked for. A link stays a link. */
TEST(a_file_replaces_what_was_there)
{
    struct device e = device_new();
    ipu_graph *loaded = NULL;
    struct stat info;
    char command[600];

    file_write(in_folder("graph"), "old", 3);
    ck_assert_int_eq(symlink("graph", in_folder("link")), 0);
    MUST(ipu_graph_save(e.graph, in_folder("link")));
    ck_assert_int_eq(lstat(in_folder("link"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    snprintf(command, sizeof command,
             "test \"$(ls '%s' | tr '\\n' ' ')\" = "
             "'graph link '",
             folder);
    ck_assert_int_eq(system(command), 0);
    ipu_graph_free(loaded);
    device_free(&e);
}

/* -------------------------------------------------------------------- lists */

/* The checksum of these nine bytes is published. Computed in parts, and from
 * any address, it is the same. */
TEST(the_checksum_is_the_usual_one)
{
    char text[64] = "...123456789";

    ck_assert_uint_eq(ipu__crc64(0, "123456789", 9),
                      UINT64_C(0x995dc9bbdf1939fa));
    ck_assert_uint_eq(ipu__crc64(0, "", 0), 0);
    for (size_t i = 0; i <= 9; i++)
        ck_assert_uint_eq(
            ipu__crc64(ipu__crc64(0, text + 3, i), text + 3 + i, 9 - i),
            UINT64_C(0x995dc9bbdf1939fa));
}

TEST(ops_are_found_by_their_names)
{
    for (int i = 0; ipu__op_at(i); i++)
        ck_assert_ptr_eq(ipu__op_find(ipu__op_at(i)->name), ipu__op_at(i));
    ck_assert_ptr_null(ipu__op_find("nothing"));
    ck_assert_ptr_null(ipu__op_at(-1));
}

/* Members rise in number, and none lies upon another. */
static void check_layout(const struct ipu__layout *layout, size_t bytes)
{
    unsigned char seen[1024] = {0};

    ck_assert_msg(layout->bytes == bytes,
                  "%s has %zu bytes, and had %zu when device/file/layouts.c "
                  "was written: add what is new there, and the size here",
                  layout->name, layout->bytes, bytes);
    for (int32_t i = 0; i < layout->nmembers; i++) {
        const struct ipu__layout_member *m = &layout->members[i];

        ck_assert_int_eq(m->number, i + 1);
        for (uint32_t k = m->offset; k < m->offset + m->bytes; k++)
            ck_assert_msg(!seen[k]++, "%s: %s", layout->name, m->name);
    }
}

TEST(every_member_is_kept)
{
    check_layout(&ipu__tensor_layout, 160);
    check_layout(&ipu__node_layout, 416);
    check_layout(&ipu__attributes_layout, 352);
    check_layout(&ipu__sink_layout, 32);
    check_layout(&ipu__assign_layout, 8);
    check_layout(&ipu__region_layout, 32);
    check_layout(&ipu__feed_tensor_layout, 80);
    check_layout(&ipu__target_layout, 200);
    check_layout(&ipu__executable_layout, 600);
    check_layout(&ipu__value_layout, 176);
    check_layout(&ipu__block_layout, 40);
    check_layout(&ipu__step_layout, 664);
    check_layout(&ipu__part_layout, 392);
    check_layout(&ipu__stream_layout, 56);
    check_layout(&ipu__tile_layout, 56);
    /* The first struct is part of an executable and not allocated by itself. */
    ck_assert_uint_eq(sizeof(ipu_memory_info), 112);
    ck_assert_uint_eq(sizeof(ipu_cycles), 104);
    /* graph.c and executable.c write these as well. */
    ck_assert_uint_eq(sizeof(struct ipu_graph), 280);
    ck_assert_uint_eq(sizeof(struct ipu__loop), 88);
    ck_assert_uint_eq(sizeof(struct ipu__loop_code), 104);
    ck_assert_uint_eq(sizeof(struct ipu__feed_code), 48);
}

TEST_MAIN("device_file", .set_up = set_up, .tear_down = tear_down)
