/* SPDX-License-Identifier: Apache-2.0 */
/* Loops refuse wrong bodies and arguments, with a reason. */
#include "device.h"
#include "feeds.h"
#include "suite.h"

/* Context of a body that makes a mistake. */
struct wrong {
    ipu_graph *outer;
    ipu_tensor x, w;
    ipu_tensor kept; /* of the body */
};

typedef int wrong_fn(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                     ipu_tensor *out);

struct body {
    wrong_fn *fn;
    struct wrong *wrong;
};

static int call(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct body *body = context;

    (void)ninputs, (void)noutputs;
    return body->fn(g, body->wrong, in, out);
}

/* A repeat of this body, with one carried float32 [3]. */
static int repeat(struct device *d, wrong_fn *fn, struct wrong *wrong)
{
    struct body body = {fn, wrong};
    ipu_tensor out;

    *wrong = (struct wrong){.outer = d->graph};
    wrong->x = device_floats(d, "x", 1, SHAPE(3));
    wrong->w = ipu_variable(d->graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    return ipu_repeat(d->graph, 2, call, &body, 1, &wrong->x, NULL, &out);
}

static void check_wrong(wrong_fn *fn, int status, const char *words)
{
    struct device d = device_new();
    struct wrong wrong;

    MUST_FAIL(repeat(&d, fn, &wrong), status, words);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), status, words);
    device_free(&d);
}

static int nothing(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                   ipu_tensor *out)
{
    (void)g, (void)wrong, (void)in, (void)out;
    return 0;
}

static int another_shape(ipu_graph *g, struct wrong *wrong,
                         const ipu_tensor *in, ipu_tensor *out)
{
    (void)wrong;
    out[0] = ipu_reduce_sum(g, in[0], 1);
    return 0;
}

static int another_dtype(ipu_graph *g, struct wrong *wrong,
                         const ipu_tensor *in, ipu_tensor *out)
{
    (void)wrong;
    out[0] = ipu_cast(g, in[0], IPU_FLOAT16);
    return 0;
}

static int fails(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                 ipu_tensor *out)
{
    (void)g, (void)wrong;
    out[0] = in[0];
    return -42;
}

static int op_fails(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                    ipu_tensor *out)
{
    (void)wrong;
    out[0] = ipu_matmul(g, in[0], in[0]);
    return 0;
}

TEST(values_of_bodies)
{
    check_wrong(nothing, IPU_ERR_SHAPE,
                "repeat: the body must give 1 value, and has not set number 0");
    check_wrong(another_shape, IPU_ERR_SHAPE,
                "repeat: carried value 0 is float32 [3], and its body makes "
                "reduce_sum:0, which is float32 []");
    check_wrong(another_dtype, IPU_ERR_SHAPE,
                "makes cast:0, which is float16 [3], of it: dtype and shape "
                "must not change");
    check_wrong(fails, IPU_ERR_CALLBACK, "repeat: the body returned -42");
    check_wrong(op_fails, IPU_ERR_SHAPE, "repeat: in its body: ");
    check_wrong(op_fails, IPU_ERR_SHAPE, "device_loops_errors.c:");
}

/* Returns a tensor that belongs to the body of the previous loop. */
static int gives_another_bodys(ipu_graph *g, struct wrong *wrong,
                               const ipu_tensor *in, ipu_tensor *out)
{
    out[0] = wrong->kept.id < 0 ? ipu_relu(g, in[0]) : wrong->kept;
    wrong->kept = out[0];
    return 0;
}

TEST(a_value_of_another_body)
{
    struct device d = device_new();
    struct wrong wrong = {.kept = {-1}};
    struct body body = {gives_another_bodys, &wrong};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3)), y;

    MUST(ipu_repeat(d.graph, 2, call, &body, 1, &x, NULL, &y));
    MUST_FAIL(ipu_repeat(d.graph, 2, call, &body, 1, &x, NULL, &y),
              IPU_ERR_ARGUMENT, ": repeat: value 0 of the body: tensor ");
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              " belongs to another graph, or to the body of a loop, which has "
              "to carry it or enqueue it");
    device_free(&d);
}

static int builds_outside(ipu_graph *g, struct wrong *wrong,
                          const ipu_tensor *in, ipu_tensor *out)
{
    (void)g;
    out[0] = in[0];
    ipu_relu(wrong->outer, wrong->x);
    return 0;
}

static int outputs(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                   ipu_tensor *out)
{
    (void)wrong;
    out[0] = in[0];
    return ipu_output(g, "y", in[0]);
}

static int assigns_carried(ipu_graph *g, struct wrong *wrong,
                           const ipu_tensor *in, ipu_tensor *out)
{
    out[0] = in[0];
    return ipu_assign(g, in[0], wrong->w);
}

static int assigns_captured(ipu_graph *g, struct wrong *wrong,
                            const ipu_tensor *in, ipu_tensor *out)
{
    out[0] = in[0];
    return ipu_assign(g, wrong->x, in[0]);
}

static int assigns_twice(ipu_graph *g, struct wrong *wrong,
                         const ipu_tensor *in, ipu_tensor *out)
{
    out[0] = in[0];
    MUST(ipu_assign(g, wrong->w, in[0]));
    return ipu_assign(g, wrong->w, in[0]);
}

static int takes_a_name(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                        ipu_tensor *out)
{
    (void)wrong;
    out[0] = in[0];
    return ipu_variable(g, "w", IPU_FLOAT32, 1, SHAPE(3)).id < 0 ? -1 : 0;
}

TEST(what_bodies_do)
{
    check_wrong(builds_outside, IPU_ERR_STATE,
                "relu: the body of a loop of this graph is being built: use "
                "the graph that the body was called with");
    check_wrong(outputs, IPU_ERR_STATE,
                "output 'y': not in the body of a loop: carry the tensor, or "
                "enqueue it");
    check_wrong(assigns_carried, IPU_ERR_ARGUMENT,
                "assign: repeat:0/0 is not a variable");
    check_wrong(assigns_captured, IPU_ERR_ARGUMENT,
                "assign: x is not a variable");
    check_wrong(assigns_twice, IPU_ERR_STATE, "a variable is assigned once");
    check_wrong(takes_a_name, IPU_ERR_NAME,
                "variable 'w': an input or variable has that name");
}

static int keeps(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                 ipu_tensor *out)
{
    out[0] = wrong->kept = ipu_relu(g, in[0]);
    return 0;
}

TEST(tensors_of_bodies_outside)
{
    struct device d = device_new();
    struct wrong wrong;

    MUST(repeat(&d, keeps, &wrong));
    MUST_FAIL(ipu_output(d.graph, "y", wrong.kept), IPU_ERR_ARGUMENT,
              "or to the body of a loop, which has to carry it or enqueue it");
    device_free(&d);
}

/* ----------------------------------------------------------- derivatives */

static int square(ipu_graph *g, struct wrong *wrong, const ipu_tensor *in,
                  ipu_tensor *out)
{
    (void)wrong;
    out[0] = ipu_square(g, in[0]);
    return 0;
}

static int differentiates_outside(ipu_graph *g, struct wrong *wrong,
                                  const ipu_tensor *in, ipu_tensor *out)
{
    ipu_tensor dw,
        loss = ipu_reduce_sum(g, ipu_multiply(g, in[0], wrong->kept), 1);

    out[0] = in[0];
    return ipu_gradients(g, loss, 1, &wrong->w, &dw);
}

TEST(gradients_that_leave_the_body)
{
    struct device d = device_new();
    struct wrong wrong = {.outer = d.graph};
    struct body body = {differentiates_outside, &wrong};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3)), y;

    wrong.w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    wrong.kept = ipu_exp(d.graph, wrong.w);
    MUST_FAIL(ipu_repeat(d.graph, 2, call, &body, 1, &x, NULL, &y),
              IPU_ERR_ARGUMENT, "computed outside of the loop");
    device_free(&d);
}

/* ------------------------------------------------------------- the request */

TEST(requests)
{
    struct device d = device_new();
    struct body body = {square, NULL};
    struct device other = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3)), y;

    MUST_FAIL(ipu_repeat(NULL, 2, call, &body, 1, &x, NULL, &y),
              IPU_ERR_ARGUMENT, "repeat: the graph is NULL");
    MUST_FAIL(ipu_repeat(other.graph, 2, call, &body, 1, &x, NULL, &y),
              IPU_ERR_ARGUMENT, "repeat: carried value 0: tensor");
    device_free(&other);
    other = device_new();
    MUST_FAIL(ipu_repeat(other.graph, -1, call, &body, 0, NULL, NULL, NULL),
              IPU_ERR_ARGUMENT, "repeat: -1 iterations, less than 0");
    device_free(&other);
    other = device_new();
    MUST_FAIL(ipu_repeat(other.graph, 2, NULL, &body, 0, NULL, NULL, NULL),
              IPU_ERR_ARGUMENT, "repeat: the body is NULL");
    device_free(&other);
    MUST_FAIL(ipu_while(d.graph, 2, NULL, call, &body, 1, &x, NULL, &y),
              IPU_ERR_ARGUMENT, "while: the condition is NULL");
    device_free(&d);
}

static int is_float(ipu_graph *g, void *context, int32_t ninputs,
                    const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_reduce_sum(g, in[0], 1);
    return 0;
}

static int has_effects(ipu_graph *g, void *context, int32_t ninputs,
                       const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)noutputs, (void)in;
    out[0] = ipu_fill(g, IPU_INT32, 0, NULL, 1);
    return ipu_assign(g, ((const struct body *)context)->wrong->w, in[0]);
}

static void check_condition(ipu_body_fn condition, int status,
                            const char *words)
{
    struct device d = device_new();
    struct wrong wrong = {.outer = d.graph};
    struct body body = {square, &wrong};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3)), y;

    wrong.w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    MUST_FAIL(ipu_while(d.graph, 2, condition, call, &body, 1, &x, NULL, &y),
              status, words);
    device_free(&d);
}

TEST(conditions)
{
    check_condition(is_float, IPU_ERR_SHAPE,
                    "while: the condition must give an int32 scalar, not "
                    "float32 []");
    check_condition(has_effects, IPU_ERR_STATE,
                    "while: the condition must only compute");
}

TEST_MAIN("device_loops_errors")
