/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers learn the parity of a sequence of bits, which no layer can
 * tell from one of them: on any number of ranks and replicas, by LSTM and GRU,
 * one layer and two; and in both directions that of sequences of several
 * lengths, behind which there are other bits.
 */
#include "lines.h"

enum { BITS = 5, SEQUENCES = 1 << BITS, BATCH = 120 };

static float bits[BATCH][BITS][1];
static int32_t parities[BATCH], lengths[BATCH];

enum { SEVERAL_LENGTHS = 3, FORMS = 4 };
static int form; /* of the network */

static hvd_dataset *sequences(int rows)
{
    const hvd_component components[] = {{"bits", HVD_FLOAT32, 2, {BITS, 1}},
                                        {"parity", HVD_INT32, 0, {0}},
                                        {"lengths", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {bits, parities, lengths};

    for (int i = 0; i < BATCH; i++) {
        parities[i] = 0;
        lengths[i] = form == SEVERAL_LENGTHS ? BITS - i / SEQUENCES : BITS;
        for (int t = 0; t < BITS; t++) {
            int bit = i % SEQUENCES >> t & 1;

            bits[i][t][0] = bit ? 1.0F : -1.0F;
            parities[i] ^= t < lengths[i] ? bit : 0;
        }
    }
    return hvd_dataset_memory(3, components, arrays, rows, NULL, NULL);
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    const ipu_tensor steps = hvd_net_input(net, "lengths");
    hvd_recurrent_options two, both;

    (void)context;
    hvd_recurrent_options_init(&two, sizeof two);
    two.layers = 2;
    hvd_recurrent_options_init(&both, sizeof both);
    both.direction = HVD_BIDIRECTIONAL;
    both.lengths = &steps;
    switch (form) {
    case 0: x = hvd_lstm(net, "r", x, 8, HVD_LAST_STATE); break;
    case 1: x = hvd_gru(net, "r", x, 8, HVD_LAST_STATE); break;
    case 2: x = hvd_gru_with(net, "r", x, 6, &two); break;
    default: x = hvd_gru_with(net, "r", x, 8, &both);
    }
    return hvd_dense(net, "logits", x, 2, HVD_LINEAR);
}

LOOP_TEST(parities_are_learnt, 0, FORMS)
{
    hvd_train_spec steps = lines_steps(250);
    hvd_results results = {.size = sizeof results};
    const int rows = _i == SEVERAL_LENGTHS ? BATCH : SEQUENCES;
    hvd_estimator *e;

    form = _i;
    lines_set_options();
    lines_model.build = build;
    lines_model.loss = NULL;
    lines_options.optimizer = "adam";
    lines_options.rate.rate = 0.03;
    lines_options.replicas = 1 + (ranks_size() == 2);
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(
        e, hvd_dataset_batch_global(sequences(BATCH), BATCH, 1), &steps, NULL));
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(sequences(rows), 4, 0),
                                NULL, &results));
    ck_assert_int_eq(results.rows, rows);
    ck_assert_double_eq(results.accuracy, 1);
    ck_assert_double_lt(results.loss, 0.05);
    hvd_estimator_free(e);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_recurrent")
