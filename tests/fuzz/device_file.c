/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives spoilt files to the readers of graphs, executables and variables.
 *
 * Good files are spoilt: bits are turned, bytes are cut off, doubled or
 * inserted from elsewhere, numbers are replaced by small and by extreme ones.
 * Length and checksum are made right again, so that they do not refuse the
 * file. Then
 *
 *     a refusal            names the file and the reason
 *     an accepted file     is written again and reads as the same; a graph
 *                          compiles or is refused with a reason; a program
 *                          runs, or fails because of its data
 *
 * The sequence is the same in every run, so that a failure occurs again. A
 * sanitized build (make sanitize) sees bytes read or written elsewhere.
 */
#include "device_file_loops.h"
#include "suite.h"

#include "compiler/program.h"

enum {
    MOST_BYTES = 1 << 17,
    MOST_MEMORY = 1 << 20,
    MOST_ITERATIONS = 1000,
    MOST_INFEEDS = 8
};

static uint64_t state;

static uint32_t any(uint32_t below)
{
    return (uint32_t)(device_random(&state) >> 33) % below;
}

/* Returns the rounds of a test: `thousands` thousand, or 50 times as many with
 * HVD_TEST_FULL. */
static int rounds(int thousands)
{
    return thousands * (getenv("HVD_TEST_FULL") ? 50000 : 1000);
}

/* ----------------------------------------------------------------- spoiling */

static void replace_number(unsigned char *data, size_t bytes)
{
    static const int64_t extremes[] = {INT32_MAX, INT32_MIN,  INT64_MAX,
                                       INT64_MIN, UINT32_MAX, 0xffff,
                                       255,       1 << 20};
    int64_t number = any(3) ? (int64_t)any(12) - 2 : extremes[any(8)];
    size_t width = (size_t)1 << any(4);

    if (bytes >= width)
        memcpy(data + any((uint32_t)(bytes - width + 1)), &number, width);
}

/* Copies a piece of data to another place, inserted or over what is there. */
static size_t copy_piece(unsigned char *data, size_t bytes)
{
    static unsigned char piece[MOST_BYTES];
    size_t start = any((uint32_t)bytes + 1), at = any((uint32_t)bytes + 1);
    size_t n = any((uint32_t)(bytes - start < 200 ? bytes - start : 200) + 1);

    memcpy(piece, data + start, n);
    if (any(2)) {
        n = n < bytes - at ? n : bytes - at;
        memcpy(data + at, piece, n);
        return bytes;
    }
    if (bytes + n > MOST_BYTES)
        return bytes;
    memmove(data + at + n, data + at, bytes - at);
    memcpy(data + at, piece, n);
    return bytes + n;
}

static size_t take_out(unsigned char *data, size_t bytes)
{
    size_t at = any((uint32_t)bytes + 1);
    size_t n = any((uint32_t)(bytes - at < 64 ? bytes - at : 64) + 1);

    memmove(data + at, data + at + n, bytes - at - n);
    return bytes - n;
}

/* Spoils the contents of a file in room for MOST_BYTES. It mostly changes
 * numbers, because data that loses its frame is soon refused. */
static size_t spoil(unsigned char *data, size_t bytes)
{
    for (uint32_t times = 1 + any(3); times > 0 && bytes > 0; times--)
        switch (any(12)) {
        case 0: bytes = any((uint32_t)bytes); break;
        case 1: bytes = take_out(data, bytes); break;
        case 2: bytes = copy_piece(data, bytes); break;
        case 3:
            data[any((uint32_t)bytes)] ^= (unsigned char)(1u << any(8));
            break;
        case 4: data[any((uint32_t)bytes)] = (unsigned char)any(256); break;
        default: replace_number(data, bytes); break;
        }
    return bytes;
}

/* Writes a spoilt copy of a good file to path. */
static void write_spoilt(const char *path, struct file_bytes good)
{
    static unsigned char room[FILE_HEAD + MOST_BYTES];
    struct file_bytes spoilt = {room, good.count};

    ck_assert_uint_le(good.count, sizeof room);
    memcpy(room, good.data, good.count);
    spoilt.count = FILE_HEAD + spoil(room + FILE_HEAD, good.count - FILE_HEAD);
    file_sign(spoilt);
    file_write(path, spoilt.data, spoilt.count);
}

static void check_refused(int status, const char *path, int round)
{
    if (status != IPU_ERR_DATA ||
        strncmp(ipu_last_error(), path, strlen(path)) != 0)
        ck_abort_msg("round %d: %d: %s", round, status, ipu_last_error());
}

/* Checks that an accepted file, written again, reads as the same. */
static void check_graph(const char *path, const ipu_graph *g, int round)
{
    const char *second = in_folder("second");
    ipu_graph *again = NULL;

    MUST(ipu_graph_save(g, path));
    if (ipu_graph_load(path, &again) < 0)
        ck_abort_msg("round %d: %s", round, ipu_last_error());
    MUST(ipu_graph_save(again, second));
    files_equal(path, second);
    ipu_graph_free(again);
}

static void check_program(const char *path, const ipu_executable *x, int round)
{
    const char *second = in_folder("second");
    ipu_executable *again = NULL;

    MUST(ipu_executable_save(x, path));
    if (ipu_executable_load(path, &again) < 0)
        ck_abort_msg("round %d: %s", round, ipu_last_error());
    MUST(ipu_executable_save(again, second));
    files_equal(path, second);
    ipu_executable_free(again);
}

/* ------------------------------------------------------------- good files */

enum { GRAPHS = 5 };

static struct file_bytes graphs[GRAPHS], executables[GRAPHS], variables;
static ipu_engine *holder;
static ipu_executable *programs[GRAPHS];

/* Builds one of each op that the other graphs do not have. */
static void build_rest(ipu_graph *g)
{
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(2, 4));
    ipu_tensor i = ipu_input(g, "i", IPU_INT32, 1, SHAPE(2));
    ipu_tensor scale = ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(4));
    ipu_tensor offset = ipu_variable(g, "offset", IPU_FLOAT32, 1, SHAPE(4));
    ipu_tensor step = ipu_counter(g, "step"), y, gradients[2], loss;
    const ipu_tensor wrt[] = {scale, offset};
    const int32_t first = 0;

    y = ipu_layer_norm(g, x, scale, offset, 1e-3);
    y = ipu_group_norm(g, y, 2, scale, offset, 1e-3);
    y = ipu_gelu(g, ipu_silu(g, ipu_gelu_tanh(g, ipu_sigmoid(g, y))));
    y = ipu_add(g, y, ipu_random_uniform(g, 2, SHAPE(2, 4), 0, 1, 5, step));
    y = ipu_multiply(g, y, ipu_random_normal(g, 1, SHAPE(4), 0, 1, 6, step));
    y = ipu_divide(g, ipu_exp(g, y), ipu_scale(g, ipu_abs(g, x), 1, 1));
    y = ipu_maximum(g, y, ipu_minimum(g, x, ipu_log(g, ipu_square(g, y))));
    y = ipu_power(g, ipu_sqrt(g, ipu_abs(g, y)), ipu_rsqrt(g, ipu_exp(g, x)));
    y = ipu_select(g, ipu_less(g, x, y), ipu_softmax(g, y),
                   ipu_log_softmax(g, ipu_negate(g, y)));
    y = ipu_add(g, y, ipu_gather(g, y, i, 0));
    y = ipu_scatter_add(g, y, i, x, 0);
    y = ipu_pad(g, y, SHAPE(1, 0), SHAPE(0, 2), 0.5);
    y = ipu_broadcast(g, y, 3, SHAPE(2, 3, 6));
    y = ipu_max(g, ipu_mean(g, y, 1, &first, 1), 1, &first, 0);
    ipu_output(g, "hot", ipu_one_hot(g, i, 3));
    ipu_output(g, "equal", ipu_not_equal(g, i, ipu_add(g, i, i)));
    ipu_output(g, "less", ipu_less_equal(g, ipu_equal(g, i, i), i));
    loss = ipu_mean_squared_error(g, y, ipu_sum(g, y, 1, &first, 1));
    ipu_gradients(g, loss, 2, wrt, gradients);
    ipu_lamb(g, scale, gradients[0], ipu_fill(g, IPU_FLOAT32, 0, NULL, 1), step,
             NULL);
    ipu_assign(g, offset, ipu_subtract(g, offset, gradients[1]));
    ipu_output(g, "loss", loss);
}

/* These ops are rarely used. */
static void build_rare(ipu_graph *g)
{
    const int32_t first = 0;
    ipu_tensor x = ipu_variable(g, "x", IPU_FLOAT32, 3, SHAPE(2, 3, 4));
    ipu_tensor step = ipu_counter(g, "step"), y, numbers, loss, dx;

    y = ipu_cumulative_sum(g, ipu_causal_mask(g, x, 1, -9), 2, 1, 0);
    y = ipu_reverse(g, ipu_clip(g, ipu_elu(g, y, 1), -1, 1), 1, &first);
    y = ipu_softmax_axis(g, ipu_leaky_relu(g, y, 0.1), 0);
    y = ipu_add(g, ipu_sin(g, y), ipu_cos(g, ipu_softplus(g, y)));
    y = ipu_log1p(g, ipu_abs(g, ipu_expm1(g, ipu_erf(g, y))));
    y = ipu_add(g, y, ipu_round(g, ipu_floor(g, ipu_ceil(g, ipu_sign(g, x)))));
    y = ipu_multiply(g, y, ipu_range(g, IPU_FLOAT32, 4, 1, 0.5));
    y = ipu_top_k(g, ipu_sigmoid_cross_entropy(g, y, x), 3, &numbers);
    y = ipu_stochastic_cast(g, y, IPU_FLOAT16, 3, step);
    y = ipu_cast(g, y, IPU_FLOAT32);
    y = ipu_subtract(g, ipu_min(g, y, 1, &first, 0),
                     ipu_prod(g, y, 1, &first, 0));
    loss = ipu_reduce_sum(g, y, 1);
    ipu_gradients(g, loss, 1, &x, &dx);
    ipu_assign(g, x, dx);
    ipu_output(g, "numbers", numbers);
    ipu_output(g, "least", ipu_argmin(g, dx, 1));
    ipu_output(g, "loss", loss);
}

static void build_images(ipu_graph *g)
{
    const ipu_conv_options odd = {.size = sizeof odd,
                                  .stride = {2, 1},
                                  .dilation = {1, 2},
                                  .padding = {1, 0, 2, 1}};
    const ipu_pool_options windows = {.size = sizeof windows,
                                      .window = {2, 3},
                                      .stride = {1, 2},
                                      .padding = {1, 1, 2, 1}};
    ipu_tensor x = ipu_variable(g, "x", IPU_FLOAT16, 4, SHAPE(1, 6, 5, 2));
    ipu_tensor k = ipu_variable(g, "k", IPU_FLOAT16, 4, SHAPE(3, 2, 2, 3));
    ipu_tensor y = ipu_avg_pool2d(g, ipu_conv2d(g, x, k, &odd), 2), dx[2];

    y = ipu_max_pool2d(g, y, 1);
    y = ipu_max_pool2d_with(g, ipu_avg_pool2d_with(g, y, &windows), &windows);
    y = ipu_cast(g, ipu_reduce_sum(g, y, 1), IPU_FLOAT32);
    ipu_gradients(g, y, 2, (const ipu_tensor[]){x, k}, dx);
    ipu_output(g, "dx", dx[0]);
    ipu_assign(g, k, dx[1]);
}

static struct loops_queues *queues;

static void build_loops(ipu_graph *g)
{
    queues = loops_queues_new();
    file_build_loops(g, queues);
}

static void set_up(void)
{
    void (*const build[GRAPHS])(ipu_graph *) = {
        file_build, build_rest, build_images, build_rare, build_loops};

    folder_make();
    for (int i = 0; i < GRAPHS; i++) {
        ipu_graph *g = NULL;

        MUST(ipu_graph_new(&g));
        build[i](g);
        file_compile(g, &programs[i]);
        MUST(ipu_graph_save(g, in_folder("good")));
        graphs[i] = file_read(in_folder("good"));
        MUST(ipu_executable_save(programs[i], in_folder("good")));
        executables[i] = file_read(in_folder("good"));
        ipu_graph_free(g);
    }
    MUST(ipu_engine_new(programs[0], &holder));
    MUST(ipu_engine_save_variables(holder, in_folder("good")));
    variables = file_read(in_folder("good"));
}

static void tear_down(void)
{
    for (int i = 0; i < GRAPHS; i++) {
        free(graphs[i].data);
        free(executables[i].data);
    }
    free(variables.data);
    ipu_engine_free(holder);
    for (int i = 0; i < GRAPHS; i++)
        ipu_executable_free(programs[i]);
    loops_queues_free(queues);
    folder_remove();
}

/* ------------------------------------------------------------------ running */

/* Returns whether a program is worth running. A long or large one is no reason
 * to refuse its file. */
static bool is_small(const ipu_executable *x, int64_t times)
{
    if (x->memory_bytes > MOST_MEMORY || x->scratch_bytes > MOST_MEMORY)
        return false;
    for (int32_t i = 0; i < x->nloops; i++) {
        const struct ipu__loop_code *loop = &x->loops[i];

        if (loop->count > MOST_ITERATIONS ||
            (loop->condition.program && loop->count == 0) ||
            loop->count * times > MOST_ITERATIONS ||
            !is_small(loop->body.program, loop->count * times) ||
            (loop->condition.program &&
             !is_small(loop->condition.program, (loop->count + 1) * times)))
            return false;
    }
    return true;
}

/* Makes queues as the program wants them. The infeeds are those to be freed
 * after it. */
static int connect_queues(ipu_executable *x, ipu_infeed **infeeds)
{
    ipu_queue_info info = {.size = sizeof info};
    int n = 0;

    for (int32_t i = 0;
         n < MOST_INFEEDS && ipu_executable_queue(x, i, &info) == 1; i++) {
        ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_LAST);
        static struct source source;
        ipu_infeed_options in;
        ipu_infeed *infeed = NULL;
        ipu_outfeed *outfeed = NULL;

        ipu_infeed_options_init(&in, sizeof in);
        in.name = out.name = info.name;
        in.replicas = out.replicas = info.replicas;
        in.ntensors = info.ntensors;
        in.tensors = info.tensors;
        in.prefetch_depth = 1;
        in.source = (ipu_source){source_next, source_rewind, NULL, &source};
        if (info.kind == IPU_QUEUE_OUTFEED) {
            MUST(ipu_outfeed_new(&out, &outfeed));
            MUST(ipu_executable_connect_outfeed(x, outfeed));
            ipu_outfeed_free(outfeed);
        } else if (ipu_infeed_new(&in, &infeed) >= 0) {
            MUST(ipu_executable_connect_infeed(x, infeed));
            MUST(ipu_infeed_start(infeed));
            infeeds[n++] = infeed;
        }
    }
    return n;
}

static int runs; /* that did not fail */

static void run_program(ipu_executable *x)
{
    static unsigned char room[MOST_MEMORY];
    ipu_infeed *infeeds[MOST_INFEEDS];
    ipu_engine *e = NULL;
    int n;

    if (!is_small(x, 1))
        return;
    n = connect_queues(x, infeeds);
    ipu_engine_new(x, &e); /* a program of several replicas has none */
    for (int32_t i = 0; e && i < x->nstreams; i++) {
        const struct ipu__stream *s = &x->streams[i];

        if (s->bytes <= sizeof room)
            ipu_engine_connect(e, s->name, room, s->bytes);
        if (s->kind == IPU__STREAM_CALL)
            ipu_engine_connect_call(e, s->name, device_no_call, NULL);
    }
    /* Inputs of zeros may give a number that is no label, too. */
    if (e) {
        ipu_engine_connect_call(e, "seen", device_no_call, NULL);
        runs += ipu_engine_run(e) >= 0;
    }
    ipu_engine_free(e);
    while (n > 0)
        ipu_infeed_free(infeeds[--n]);
}

TEST(a_graph_is_refused_or_compiles)
{
    int n = rounds(6), accepted = 0;

    state = 19540607;
    for (int round = 0; round < n; round++) {
        const char *path = in_folder("spoilt");
        ipu_graph *g = NULL;
        int status;

        write_spoilt(path, graphs[any(GRAPHS)]);
        status = ipu_graph_load(path, &g);

        if (status < 0) {
            check_refused(status, path, round);
            continue;
        }
        accepted++;
        check_graph(path, g, round);
        if (round % 4 == 0) {
            ipu_target target = file_target();
            const ipu_compile_options all = {.size = sizeof all,
                                             .target = &target,
                                             .allow_out_of_memory = 1};
            ipu_executable *x = NULL;

            if (ipu_compile_with(g, &all, &x) >= 0)
                run_program(x);
            ipu_executable_free(x);
        }
        ipu_graph_free(g);
    }
    /* Names, lines and elements may be any. */
    ck_assert_int_gt(accepted, n / 50);
    ck_assert_int_lt(accepted, n / 10 * 9);
}

TEST(a_program_is_refused_or_runs)
{
    int n = rounds(6), accepted = 0;

    state = 19120623;
    runs = 0;
    for (int round = 0; round < n; round++) {
        const char *path = in_folder("spoilt");
        ipu_executable *x = NULL;
        int status;

        write_spoilt(path, executables[any(GRAPHS)]);
        status = ipu_executable_load(path, &x);

        if (status < 0) {
            check_refused(status, path, round);
            continue;
        }
        accepted++;
        check_program(path, x, round);
        if (ipu_executable_print(x, NULL, 0) < 0)
            ck_abort_msg("round %d: cannot be printed", round);
        run_program(x);
        ipu_executable_free(x);
    }
    ck_assert_int_gt(runs, n / 100);
    ck_assert_int_gt(accepted, n / 50);
    ck_assert_int_lt(accepted, n / 10 * 9);
}

TEST(variables_are_refused_or_read)
{
    int n = rounds(6), accepted = 0;

    state = 19030314;
    for (int round = 0; round < n; round++) {
        const char *path = in_folder("spoilt");
        int status;

        write_spoilt(path, variables);
        status = ipu_engine_load_variables(holder, path,
                                           IPU_LOAD_MISSING | IPU_LOAD_EXTRA);
        accepted += status >= 0;
        if (status < 0 && status != IPU_ERR_SHAPE)
            check_refused(status, path, round);
    }
    ck_assert_int_gt(accepted, n / 50);
    ck_assert_int_lt(accepted, n / 10 * 9);
}

TEST_MAIN("fuzz_device_file", .set_up_once = set_up,
          .tear_down_once = tear_down, .seconds = 1800)
