/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a damaged file gives IPU_ERR_DATA and names the file, whichever bit
 * is turned, wherever it is cut off, and if it has another version, byte order
 * or kind.
 */
#include "device_file_loops.h"
#include "suite.h"

#include <fcntl.h>
#include <stdbool.h>

/* Loads a damaged file; aborts the test unless the load fails as it should. */
typedef int load(const char *path);

static ipu_engine *engine;

static int load_graph(const char *path)
{
    ipu_graph *g = NULL;
    int status = ipu_graph_load(path, &g);

    ipu_graph_free(g);
    return status;
}

static int load_executable(const char *path)
{
    ipu_executable *x = NULL;
    int status = ipu_executable_load(path, &x);

    ipu_executable_free(x);
    return status;
}

static int load_variables(const char *path)
{
    return ipu_engine_load_variables(engine, path, 3);
}

static struct device d;
static struct loops_queues *queues;
static const struct kind {
    const char *name, *words;
    load *load;
} kinds[] = {{"graph", "a graph", load_graph},
             {"executable", "an executable", load_executable},
             {"variables", "variables", load_variables},
             {"loops", "a graph", load_graph},
             {"loops program", "an executable", load_executable}};

enum { KINDS = 5 };

static int store(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_remote_buffer *rows = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], in[1]);
    MUST(ipu_remote_store(g, *rows, loops_int(g, 1), out[0]));
    return ipu_outfeed_enqueue(g, queues->results, 1, NULL, &in[2]);
}

static int goes_on(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)in, (void)noutputs;
    out[0] = loops_int(g, 1);
    return 0;
}

/* A loop, its condition, two queues and a remote buffer. */
static void save_loops(void)
{
    struct device l = device_new();
    ipu_tensor x = device_floats(&l, "x", 1, SHAPE(2));
    ipu_remote_buffer rows;

    queues = loops_queues_new();
    rows = ipu_remote_buffer_new(l.graph, "rows", IPU_FLOAT32, 2, 1, SHAPE(2));
    MUST(ipu_while(l.graph, 2, goes_on, store, &rows, 1, &x, queues->data, &x));
    MUST(ipu_output(l.graph, "y", x));
    file_compile(l.graph, &l.executable);
    MUST(ipu_graph_save(l.graph, in_folder("loops")));
    MUST(ipu_executable_save(l.executable, in_folder("loops program")));
    device_free(&l);
    loops_queues_free(queues);
}

/* The graph, executable and checkpoint are of one small program, so that trying
 * all damage takes no time. */
static void set_up(void)
{
    ipu_tensor x, v;

    folder_make();
    save_loops();
    d = device_new();
    x = device_floats(&d, "x", 2, SHAPE(2, 3));
    v = ipu_variable(ipu_module(d.graph, "dense"), "v", IPU_FLOAT32, 2,
                     SHAPE(3, 2));
    x = ipu_matmul(d.graph, x, v);
    x = ipu_bias_add(
        d.graph, x,
        ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(2), (const float[]){1, 2}));
    MUST(ipu_host_call(d.graph, "seen", x, device_no_call, NULL));
    MUST(ipu_output(d.graph, "y", ipu_tanh(d.graph, x)));
    file_compile(d.graph, &d.executable);
    MUST(ipu_engine_new(d.executable, &d.engine));
    engine = d.engine;
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    MUST(ipu_executable_save(d.executable, in_folder("executable")));
    MUST(ipu_engine_save_variables(d.engine, in_folder("variables")));
}

static void tear_down(void)
{
    device_free(&d);
    folder_remove();
}

static void must_refuse(const struct kind *k, const char *path,
                        const char *words)
{
    int status = k->load(path);

    if (status != IPU_ERR_DATA ||
        strncmp(ipu_last_error(), path, strlen(path)) != 0)
        ck_abort_msg("%s: %d, %s", words, status, ipu_last_error());
    ck_assert_msg(strstr(ipu_last_error(), words) != NULL, "'%s' is not in: %s",
                  words, ipu_last_error());
}

/* The test turns every bit of the head, and one bit of each later byte, or all
 * bits if HVD_TEST_FULL is set. */
LOOP_TEST(every_bit_counts, 0, KINDS)
{
    bool all = getenv("HVD_TEST_FULL") != NULL;
    const struct kind *k = &kinds[_i];
    const char *path = in_folder(k->name);
    struct file_bytes b = file_read(path);
    int file = open(path, O_RDWR);

    ck_assert_int_ge(file, 0);
    for (size_t at = 0; at < b.count; at++)
        for (int bit = 0; bit < 8; bit++) {
            unsigned char turned = (unsigned char)(b.data[at] ^ 1u << bit);

            if (!all && at >= FILE_HEAD && at % 8 != (size_t)bit)
                continue;
            ck_assert_int_eq(pwrite(file, &turned, 1, (off_t)at), 1);
            must_refuse(k, path, "");
            ck_assert_int_eq(pwrite(file, b.data + at, 1, (off_t)at), 1);
        }
    close(file);
    MUST(k->load(path));
    free(b.data);
}

LOOP_TEST(every_byte_is_needed, 0, KINDS)
{
    const struct kind *k = &kinds[_i];
    const char *path = in_folder(k->name);
    struct file_bytes b = file_read(path);

    for (size_t n = b.count; n-- > 0;) {
        ck_assert_int_eq(truncate(path, (off_t)n), 0);
        must_refuse(k, path, "cut off");
    }
    file_write(path, b.data, b.count);
    MUST(k->load(path));
    b.data[b.count] = 0;
    file_write(path, b.data, b.count + 1);
    must_refuse(k, path, "some were added");
    free(b.data);
}

/* Contents that end early are refused, even if length and checksum fit them. */
LOOP_TEST(contents_that_end_early_are_refused, 0, KINDS)
{
    const struct kind *k = &kinds[_i];
    const char *path = in_folder(k->name);
    struct file_bytes b = file_read(path);
    size_t all = b.count;

    for (b.count = FILE_HEAD; b.count < all; b.count++) {
        file_sign(b);
        file_write(path, b.data, b.count);
        must_refuse(k, path, "damaged at byte");
    }
    b.data[b.count++] = 0;
    file_sign(b);
    file_write(path, b.data, b.count);
    must_refuse(k, path, "1 bytes too many");
    free(b.data);
}

static void put(struct file_bytes b, size_t at, uint32_t value)
{
    memcpy(b.data + at, &value, sizeof value);
}

LOOP_TEST(a_head_says_what_it_is, 0, KINDS)
{
    const struct kind *k = &kinds[_i];
    const char *path = in_folder(k->name);
    struct file_bytes b = file_read(path);

    put(b, 12, 4);
    file_sign(b);
    file_write(path, b.data, b.count);
    must_refuse(k, path,
                "format version 4, and this library reads 1 to 3: a later "
                "one has written it");
    put(b, 12, 0);
    file_write(path, b.data, b.count);
    must_refuse(k, path,
                "format version 0, and this library reads 1 to 3: "
                "none is before the first");
    put(b, 12, 3);
    put(b, 8, 0x04030201);
    file_write(path, b.data, b.count);
    must_refuse(k, path, "a machine of the other byte order");
    put(b, 8, 0);
    file_write(path, b.data, b.count);
    must_refuse(k, path, "damaged: no byte order is 00000000");
    put(b, 8, 0x01020304);
    b.data[b.count - 1] ^= 1;
    file_write(path, b.data, b.count);
    must_refuse(k, path, "damaged: its checksum is not that of its contents");
    file_write(path, b.data, b.count - 1);
    must_refuse(k, path, "bytes after its head, not");
    b.data[0] = 'x';
    file_write(path, b.data, b.count);
    must_refuse(k, path, "not a file of the device");
    file_write(path, "", 0);
    must_refuse(k, path, "it has 0 bytes");
    free(b.data);
}

TEST(one_kind_is_not_another)
{
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < KINDS; j++) {
            char words[64];

            snprintf(words, sizeof words, "holds %s, not %s", kinds[j].words,
                     kinds[i].words);
            if (kinds[i].load != kinds[j].load)
                must_refuse(&kinds[i], in_folder(kinds[j].name), words);
        }
}

/* Lengths and counts that would take all memory are refused, wherever they
 * stand. */
LOOP_TEST(no_number_is_believed, 0, KINDS)
{
    static const uint32_t numbers[] = {0xffffffff, 0x7fffffff, 0x80000000,
                                       0x00ffffff};
    const struct kind *k = &kinds[_i];
    const char *path = in_folder(k->name);
    struct file_bytes b = file_read(path);
    int refused = 0, tried = 0, file = open(path, O_WRONLY);

    ck_assert_int_ge(file, 0);
    for (size_t at = FILE_HEAD; at + 4 <= b.count; at++)
        for (int i = 0; i < 4; i++) {
            uint32_t kept;

            memcpy(&kept, b.data + at, sizeof kept);
            put(b, at, numbers[i]);
            file_sign(b);
            ck_assert_int_eq(pwrite(file, b.data, b.count, 0),
                             (ssize_t)b.count);
            if (k->load(path) < 0) {
                must_refuse(k, path, "");
                refused++;
            }
            tried++;
            put(b, at, kept);
        }
    /* Elements and cycles may be anything. */
    ck_assert_int_gt(refused, tried / 2);
    close(file);
    free(b.data);
}

TEST_MAIN("device_file_damage", .set_up = set_up, .tear_down = tear_down,
          .seconds = 300)
