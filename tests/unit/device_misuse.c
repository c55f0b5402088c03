/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests misuse of builders, queues and readers that no other test covers. Each
 * is refused with a status, and with words that say what was wrong and where.
 */
#include "device.h"
#include "feeds.h"
#include "suite.h"

/* ----------------------------------------------------------------- builders */

static const ipu_tensor invalid = {-1};

static ipu_tensor given(ipu_graph *g, int32_t ndim, const int64_t *shape)
{
    return ipu_input(g, "x", IPU_FLOAT32, ndim, shape);
}

static void the_loss_is_invalid(ipu_graph *g)
{
    ipu_tensor x = given(g, 0, NULL), dx;

    ipu_gradients(g, invalid, 1, &x, &dx);
}

static void the_loss_is_for_nothing(ipu_graph *g)
{
    ipu_tensor dx;

    ipu_gradients(g, given(g, 0, NULL), 1, &invalid, &dx);
}

static void an_output_is_invalid(ipu_graph *g)
{
    ipu_output(g, "y", invalid);
}

static void nothing_is_mapped(ipu_graph *g)
{
    ipu_map(g, invalid, 0, 1);
}

static void mapped_to_no_tiles(ipu_graph *g)
{
    ipu_map(g, given(g, 0, NULL), 0, 0);
}

static void rounded_by_no_step(ipu_graph *g)
{
    ipu_stochastic_rounding(g, 1, 1, invalid);
}

static void on_no_ipu(ipu_graph *g)
{
    ipu_shard(g, IPU_MAX_IPUS);
}

static void on_too_many_ipus(ipu_graph *g)
{
    ipu_shard_automatically(g, IPU_MAX_IPUS + 1);
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)g, (void)context, (void)ninputs, (void)in, (void)noutputs, (void)out;
    return 0;
}

static void a_loop_of_no_array(ipu_graph *g)
{
    ipu_repeat(g, 1, body, NULL, 1, NULL, NULL, NULL);
}

static int stores(ipu_graph *g, void *context, int32_t ninputs,
                  const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_remote_buffer *rows = context;

    (void)ninputs, (void)noutputs;
    ipu_remote_store(g, *rows, in[0], ipu_remote_load(g, *rows, in[0]));
    out[0] = in[0];
    return 0;
}

static void a_condition_that_stores(ipu_graph *g)
{
    ipu_remote_buffer rows =
        ipu_remote_buffer_new(g, "rows", IPU_FLOAT32, 2, 1, SHAPE(2));
    ipu_tensor i = ipu_fill(g, IPU_INT32, 0, NULL, 1);

    ipu_while(g, 1, stores, stores, &rows, 1, &i, NULL, &i);
}

static void too_many_rows(ipu_graph *g)
{
    ipu_remote_buffer_new(g, "rows", IPU_FLOAT32, (int64_t)1 << 31, 1,
                          SHAPE(2));
}

static void groups_of_less_than_none(ipu_graph *g)
{
    ipu_cross_replica_sum(g, given(g, 0, NULL), -1);
}

static void a_mean_of_integers(ipu_graph *g)
{
    ipu_cross_replica_mean(g, ipu_input(g, "i", IPU_INT32, 0, NULL), 0);
}

static void reversed_along_less_than_none(ipu_graph *g)
{
    ipu_reverse(g, given(g, 1, SHAPE(2)), -1, NULL);
}

static void reversed_along_null(ipu_graph *g)
{
    ipu_reverse(g, given(g, 1, SHAPE(2)), 1, NULL);
}

static void summed_along_null(ipu_graph *g)
{
    ipu_sum(g, given(g, 1, SHAPE(2)), 1, NULL, 0);
}

static void an_image_too_large(ipu_graph *g)
{
    const ipu_conv_options o = {.size = sizeof o, .stride = {1, 1}};

    ipu_conv2d_transpose(
        g, given(g, 4, SHAPE(0, (int64_t)1 << 31, 1, 1)),
        ipu_variable(g, "k", IPU_FLOAT32, 4, SHAPE(1, 1, 1, 1)), 0, 0, &o);
}

static void gradients_of_less_than_none(ipu_graph *g)
{
    ipu_gradients(g, given(g, 0, NULL), -1, NULL, NULL);
}

static void gradients_for_null(ipu_graph *g)
{
    ipu_gradients(g, given(g, 0, NULL), 1, NULL, NULL);
}

static void averaged_for_less_than_none(ipu_graph *g)
{
    ipu_cross_replica_gradients(g, -1, NULL, NULL);
}

static void averaged_into_null(ipu_graph *g)
{
    const ipu_tensor x = given(g, 0, NULL);

    ipu_cross_replica_gradients(g, 1, &x, NULL);
}

static void rounded_by_a_fraction(ipu_graph *g)
{
    ipu_stochastic_rounding(g, 1, 1, given(g, 0, NULL));
}

static void a_loop_of_less_than_no_values(ipu_graph *g)
{
    ipu_repeat(g, 1, body, NULL, -1, NULL, NULL, NULL);
}

static void split_in_no_parts(ipu_graph *g)
{
    ipu_tensor part;

    ipu_split(g, given(g, 1, SHAPE(2)), 0, 0, NULL, &part);
}

static void enlarged_by_nothing(ipu_graph *g)
{
    ipu_upsample2d(g, given(g, 4, SHAPE(1, 2, 2, 1)), 0);
}

static void more_rows_than_blas_takes(ipu_graph *g)
{
    ipu_attention(g, given(g, 3, SHAPE(0, (int64_t)1 << 31, 3)), 1, 0);
}

static void nothing_put_together(ipu_graph *g)
{
    ipu_concat(g, 0, NULL, 0);
}

static void put_together_along_nothing(ipu_graph *g)
{
    const ipu_tensor x = given(g, 1, SHAPE(2));

    ipu_concat(g, 1, &x, 1);
}

static void transposed_without_channels(ipu_graph *g)
{
    ipu_conv2d_transpose(
        g, given(g, 3, SHAPE(1, 4, 4)),
        ipu_variable(g, "k", IPU_FLOAT32, 4, SHAPE(3, 3, 1, 1)), 0, 0, NULL);
}

static void received_by_no_function(ipu_graph *g)
{
    ipu_host_receive(g, "r", given(g, 0, NULL), NULL, NULL);
}

static int receive(void *context, const char *name, void *data, int64_t count)
{
    (void)context, (void)name, (void)data, (void)count;
    return 0;
}

static void received_without_a_name(ipu_graph *g)
{
    ipu_host_receive(g, "", given(g, 0, NULL), receive, NULL);
}

static void certain_beyond_one(ipu_graph *g)
{
    const ipu_tensor x = given(g, 1, SHAPE(2));

    ipu_binary_cross_entropy(g, x, x, 1.5);
}

static void a_row_of_a_scalar(ipu_graph *g)
{
    const ipu_tensor v = ipu_variable(g, "v", IPU_FLOAT32, 0, NULL);

    ipu_remote_load(g, (ipu_remote_buffer){v.id},
                    ipu_fill(g, IPU_INT32, 0, NULL, 0));
}

static const struct misuse {
    void (*build)(ipu_graph *g);
    int status;
    const char *words;
} misuses[] = {
    {the_loss_is_invalid, IPU_ERR_ARGUMENT,
     "gradients: the loss: the tensor is invalid: what made it failed"},
    {the_loss_is_for_nothing, IPU_ERR_ARGUMENT,
     "gradients: number 0: the tensor is invalid: what made it failed"},
    {an_output_is_invalid, IPU_ERR_ARGUMENT,
     "output 'y': the tensor is invalid: what made it failed"},
    {nothing_is_mapped, IPU_ERR_ARGUMENT,
     "map: the tensor is invalid: what made it failed"},
    {mapped_to_no_tiles, IPU_ERR_ARGUMENT,
     "map: x to 0 tiles from 0 on; 1 or more, from 0 or more"},
    {rounded_by_no_step, IPU_ERR_ARGUMENT,
     "stochastic rounding: the step: the tensor is invalid: what made it "
     "failed"},
    {on_no_ipu, IPU_ERR_ARGUMENT,
     "shard 256: there are 0 to 255, or -1: where inputs are"},
    {on_too_many_ipus, IPU_ERR_ARGUMENT, "shard: 257 shards: 1 to 256"},
    {a_loop_of_no_array, IPU_ERR_ARGUMENT,
     "repeat: an array of tensors is NULL"},
    {a_condition_that_stores, IPU_ERR_STATE,
     "while: the condition must only compute: no assignments, no host calls, "
     "no "
     "queues, no stores"},
    {too_many_rows, IPU_ERR_ARGUMENT,
     "remote buffer 'rows': 2147483648 rows; it has 1 to 2^31 - 1"},
    {groups_of_less_than_none, IPU_ERR_ARGUMENT,
     "groups of -1 replicas, there may be 0 (all) to 256"},
    {a_mean_of_integers, IPU_ERR_SHAPE,
     "the mean of i would be of int32: cast it first"},
    {reversed_along_less_than_none, IPU_ERR_ARGUMENT,
     "reverse: less than 0 axes"},
    {reversed_along_null, IPU_ERR_ARGUMENT, "reverse: the axes are NULL"},
    {summed_along_null, IPU_ERR_ARGUMENT, "sum: the axes are NULL"},
    {an_image_too_large, IPU_ERR_SHAPE,
     "conv2d_transpose: float32 [0,2147483648,1,1] and a kernel of float32 "
     "[1,1,1,1]: these are too large"},
    {gradients_of_less_than_none, IPU_ERR_ARGUMENT,
     "gradients: the count is less than 0"},
    {gradients_for_null, IPU_ERR_ARGUMENT, "gradients: an array is NULL"},
    {averaged_for_less_than_none, IPU_ERR_ARGUMENT,
     "cross-replica gradients: the count is less than 0"},
    {averaged_into_null, IPU_ERR_ARGUMENT,
     "cross-replica gradients: an array is NULL"},
    {rounded_by_a_fraction, IPU_ERR_SHAPE,
     "stochastic rounding: the step, x, is no int32 scalar"},
    {a_loop_of_less_than_no_values, IPU_ERR_ARGUMENT,
     "repeat: -1 carried values, less than 0"},
    {split_in_no_parts, IPU_ERR_ARGUMENT,
     "split: 0 parts: give 1 or more, and an array"},
    {enlarged_by_nothing, IPU_ERR_ARGUMENT,
     "upsample2d: a factor of 0 and 4 dimensions: it must be at least 1, and "
     "they [n, h, w, c]"},
    {more_rows_than_blas_takes, IPU_ERR_SHAPE,
     "attention: x has 2147483648 rows and 3 columns: OpenBLAS takes at most "
     "2147483647 of each"},
    {nothing_put_together, IPU_ERR_ARGUMENT,
     "concat: 0 tensors: give 1 or more, in an array"},
    {put_together_along_nothing, IPU_ERR_SHAPE,
     "concat: there is no axis 1 in 1 dimensions"},
    {transposed_without_channels, IPU_ERR_SHAPE,
     "conv2d_transpose: float32 [1,4,4] and a kernel of float32 [3,3,1,1]: "
     "they must be [n, h, w, in] and [h, w, out, in]"},
    {received_by_no_function, IPU_ERR_ARGUMENT,
     "host receive 'r': the function is NULL"},
    {received_without_a_name, IPU_ERR_ARGUMENT,
     "host receive '': the name is empty"},
    {certain_beyond_one, IPU_ERR_ARGUMENT,
     "binary_cross_entropy: epsilon is 1.5, it must be between 0 and 1"},
    {a_row_of_a_scalar, IPU_ERR_ARGUMENT, "load_row: v is no remote buffer"},
};

LOOP_TEST(builders_refuse, 0, sizeof misuses / sizeof *misuses)
{
    const struct misuse *m = &misuses[_i];
    ipu_executable *x = NULL;
    ipu_graph *g = NULL;

    MUST(ipu_graph_new(&g));
    m->build(g);
    MUST_FAIL(ipu_compile(g, NULL, &x), m->status, m->words);
    /* The text must end so: it begins with the place in the program. */
    ck_assert_str_eq(strstr(ipu_last_error(), m->words), m->words);
    ipu_graph_free(g);
}

/* ------------------------------------------------------------------- queues */

TEST(infeeds_refuse)
{
    struct source source = source_of(0, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options o = infeed_options(&source, tensors, 1, 2);
    const ipu_benchmark_options b = {.size = sizeof b};
    ipu_infeed *infeed = NULL;
    char *json = NULL;

    tensors[0].ndim = IPU_MAX_DIMS + 1;
    MUST_FAIL(ipu_infeed_new(&o, &infeed), IPU_ERR_SHAPE,
              "infeed 'data': tensor 'x1' has 9 dimensions, one has 0 to 8");
    o.ntensors = 0;
    MUST_FAIL(ipu_infeed_new(&o, &infeed), IPU_ERR_ARGUMENT,
              "infeed 'data': 0 tensors, an element has 1 to 64");
    o.ntensors = 1;
    o.tensors = NULL;
    MUST_FAIL(ipu_infeed_new(&o, &infeed), IPU_ERR_ARGUMENT,
              "infeed 'data': the tensors are NULL");
    MUST_FAIL(ipu_dataset_benchmark(NULL, &b, &json), IPU_ERR_ARGUMENT,
              "benchmark: the data set is NULL");
    ck_assert_ptr_null(infeed);
    ck_assert_int_eq(source.closed, 0);
}

TEST(results_refuse)
{
    struct device d = device_new();
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    const ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2));
    ipu_results *results = NULL;
    float data[2] = {1, 2};

    MUST(ipu_outfeed_enqueue(d.graph, outfeed, 2, NULL,
                             (const ipu_tensor[]){x, ipu_square(d.graph, x)}));
    device_load(&d);
    device_connect(&d, "x", data, 2);
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_outfeed_dequeue(outfeed, 0, &results));
    MUST_FAIL(ipu_results_tensor(results, NULL, NULL, NULL, NULL), IPU_ERR_NAME,
              "say which of the tensors: '0', '1'");
    MUST_FAIL(ipu_results_tensor(results, "2", NULL, NULL, NULL), IPU_ERR_NAME,
              "there is no tensor '2' in: '0', '1'");
    MUST_FAIL(ipu_results_tensor(NULL, "0", NULL, NULL, NULL), IPU_ERR_ARGUMENT,
              "the results are NULL");
    MUST_FAIL((int)ipu_results_count(NULL), IPU_ERR_ARGUMENT,
              "the results are NULL");
    ipu_results_free(results);
    device_free(&d);
    ipu_outfeed_free(outfeed);
}

TEST_MAIN("device_misuse")
