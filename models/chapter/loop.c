/* SPDX-License-Identifier: Apache-2.0 */
#include "chapter/loop.h"

#include "data/images.h"
#include "output/device_problem.h"
#include "output/profile.h"

int loop_init(struct loop *loop, struct hvd_dataset *data, const char *outfeed,
              int replicas)
{
    ipu_infeed_options in;
    ipu_outfeed_options out;

    ipu_infeed_options_init(&in, sizeof in);
    in.name = "data";
    in.replicas = replicas;
    in.repeat = 1;
    ipu_outfeed_options_init(&out, sizeof out);
    out.name = outfeed;
    out.replicas = replicas;
    if (hvd_infeed_new(data, NULL, &in, &loop->infeed) < 0)
        return PROBLEM;
    if (ipu_outfeed_new(&out, &loop->outfeed) < 0 ||
        ipu_infeed_start(loop->infeed) < 0 || ipu_graph_new(&loop->graph) < 0)
        return device_problem();
    return 0;
}

int loop_compile(struct loop *loop)
{
    return device_status(ipu_compile(loop->graph, NULL, &loop->executable));
}

int loop_load(struct loop *loop, const char *profile)
{
    return ipu_engine_new(loop->executable, &loop->engine) < 0
               ? device_problem()
               : profile_start(profile, loop->engine);
}

int loop_profile(const struct loop *loop, const char *profile,
                 const char *title)
{
    const struct profile_program program = {"loop", loop->executable,
                                            loop->engine, NULL};

    return profile_finish(profile, title, 1, &program);
}

void loop_fini(struct loop *loop)
{
    ipu_engine_free(loop->engine);
    ipu_executable_free(loop->executable);
    ipu_graph_free(loop->graph);
    ipu_infeed_free(loop->infeed);
    ipu_outfeed_free(loop->outfeed);
}

/* --------------------------------------------------------------- perceptron */

enum { HIDDEN = 128, MOST_VARIABLES = 4 };

static const double rate_of_sgd = 0.1;

/* Has what is built next be on a chip, if there are several; -1: each op where
 * its tensors are. */
static void build_on(const struct perceptron *p, ipu_graph *g, int shard)
{
    if (p->shards > 1)
        ipu_shard(g, shard);
}

/* Builds the mean loss of a batch. */
static ipu_tensor build_loss(struct perceptron *p, ipu_graph *g,
                             ipu_tensor pixels, ipu_tensor labels)
{
    ipu_tensor x;

    build_on(p, g, 0);
    x = hvd_dense(p->net, "hidden", pixels, HIDDEN, HVD_RELU);
    build_on(p, g, 1);
    x = hvd_dense(p->net, "logits", x, CLASSES, HVD_LINEAR);
    x = ipu_mean(g, ipu_softmax_cross_entropy(g, x, labels), 1,
                 (const int32_t[]){0}, 0);
    build_on(p, g, -1);
    return x;
}

/* Builds a step. inputs: pixels, labels. */
static int build_step(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    struct perceptron *p = context;
    ipu_tensor w[MOST_VARIABLES], dw[MOST_VARIABLES], loss, rate;
    int status, n;

    (void)ninputs, (void)noutputs, (void)out;
    hvd_net_begin(p->net, g, HVD_MODE_TRAIN);
    loss = build_loss(p, g, in[0], in[1]);
    n = p->nvariables = hvd_net_end(p->net, &p->variables);
    for (int i = 0; i < n; i++)
        w[i] = p->variables[i].tensor;
    rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, rate_of_sgd);
    status = n < 0 ? n : ipu_gradients(g, loss, n, w, dw);
    if (status >= 0 && p->averages)
        status = ipu_cross_replica_gradients(g, n, dw, dw);
    for (int i = 0; i < n && status >= 0; i++)
        status = ipu_sgd(g, w[i], dw[i], rate, NULL);
    return status < 0 ? status
                      : ipu_outfeed_enqueue(g, p->loop.outfeed, 1, NULL, &loss);
}

int perceptron_init(struct perceptron *p, struct hvd_dataset *digits,
                    int64_t steps, int replicas)
{
    int status = loop_init(&p->loop, digits, "losses", replicas);

    if (status == 0)
        status = hvd_net_new(1, &p->net);
    if (status == 0)
        status = device_status(ipu_repeat(p->loop.graph, steps, build_step, p,
                                          0, NULL, p->loop.infeed, NULL));
    return status < 0 ? PROBLEM : loop_compile(&p->loop);
}

void perceptron_fini(struct perceptron *p)
{
    loop_fini(&p->loop);
    hvd_net_free(p->net);
}

const float *perceptron_values(const struct perceptron *p, int variable)
{
    static float values[IMAGE_PIXELS * HIDDEN]; /* the largest */

    return hvd_net_draw(p->net, variable, values) < 0 ? NULL : values;
}
