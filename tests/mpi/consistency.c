/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HVD_CONSISTENCY_CHECK finds ranks that end up with different bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

TEST(equal_results_pass)
{
    float data[100];
    hvd_tensor out = {.size = sizeof out};
    hvd_handle handle;

    for (int i = 0; i < 100; i++)
        data[i] = (float)(ranks_rank() + i);
    ck_hvd(hvd_allreduce(data, data, 100, HVD_FLOAT32, HVD_AVERAGE));
    ck_hvd(hvd_broadcast(data, 100, HVD_FLOAT32, ranks_size() - 1));
    ck_hvd(hvd_allgather_async("g", data, ranks_rank(), HVD_FLOAT32, &handle));
    ck_hvd(hvd_wait_output(handle, &out));
    hvd_free(out.data);
    ck_hvd(hvd_barrier());
}

/* A rank that gives one output for two tensors spoils one of them. */
TEST(the_tensor_and_the_rank_are_named)
{
    float in[2][50], out[2][50];
    hvd_handle handles[2];
    const void *inputs[2] = {in[0], in[1]};
    int last = ranks_size() - 1;
    void *outputs[2] = {out[0], out[ranks_rank() == last ? 0 : 1]};
    int64_t counts[2] = {50, 50};
    int spoilt = 0;

    if (last == 0)
        return;
    for (int i = 0; i < 50; i++) {
        in[0][i] = (float)i;
        in[1][i] = (float)(1000 + i);
    }
    ck_hvd(hvd_grouped_allreduce_async("pair", 2, inputs, outputs, counts,
                                       HVD_FLOAT32, HVD_SUM, handles));
    for (int i = 0; i < 2; i++) {
        int status = hvd_wait(handles[i]);

        if (status == HVD_OK)
            continue;
        spoilt++;
        ck_assert_int_eq(status, HVD_ERR_INCONSISTENT);
        ck_error_says("'pair' member");
        ck_error_says("has other bytes in its result than rank 0");
    }
    ck_assert_int_eq(spoilt, 1);
    ck_hvd(hvd_barrier());
}

/* Agreed on by name, a group is one batch: the second member spoils the
 * result of the first before they are compared. */
static void check_on(void)
{
    setenv("HVD_EXPRESS", "0", 1);
    ranks_restart_with("HVD_CONSISTENCY_CHECK", "1");
}

static void check_off(void)
{
    unsetenv("HVD_EXPRESS");
    ranks_restart_with("HVD_CONSISTENCY_CHECK", NULL);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_consistency", .set_up_once = check_on,
                .tear_down_once = check_off)
