/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of gradients have the totals that their authors publish, and calls
 * know how many elements go in and come out.
 */
#include "collectives/models.h"
#include "tables/call.h"

#include "suite.h"

#include <string.h>

static struct tensor_list list_of(const char *name)
{
    struct tensor_list list = {0};
    int i = 0;

    while (model_names[i] && strcmp(model_names[i], name) != 0)
        i++;
    ck_assert_ptr_nonnull(model_names[i]);
    ck_assert_int_eq(model_list(i, &list), 0);
    return list;
}

TEST(models_have_the_parameters_they_are_known_for)
{
    static const struct {
        const char *name;
        int tensors;
        int64_t total;
    } cases[] = {
        {"resnet50", 161, 25557032},   {"vgg16", 32, 138357544},
        {"bert-base", 199, 109482240}, {"gpt2-small", 148, 124439808},
        {"mnist", 6, 347146},          {"small161", 161, 161 * 64},
    };
    int n = 0;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor_list list = list_of(cases[i].name);

        ck_assert_int_eq(list.n, cases[i].tensors);
        ck_assert_int_eq(tensor_list_total(&list), cases[i].total);
        tensor_list_fini(&list);
    }
    while (model_names[n])
        n++;
    ck_assert_int_eq(n, sizeof cases / sizeof *cases);
}

TEST(gradients_come_from_the_last_layer_first)
{
    struct tensor_list list = list_of("resnet50");

    ck_assert_int_eq(list.counts[0], 1000);
    ck_assert_int_eq(list.counts[1], 2048 * 1000);
    ck_assert_int_eq(list.counts[160], 3 * 64 * 7 * 7);
    tensor_list_fini(&list);
    list = list_of("mnist");
    ck_assert_int_eq(list.counts[0], 10);
    ck_assert_int_eq(list.counts[5], 9 * 32);
    tensor_list_fini(&list);
    tensor_list_fini(&list);
}

/* The call is made on rank 2 of 3, with at most 100 bytes of float32. */
static struct call call_of(hvd_kind kind, int root)
{
    struct call call;

    call_init(&call, kind, bench_dtype_find("float"), bench_op_find("sum"),
              root, 2, 3, 100);
    return call;
}

TEST(what_all_have_is_the_size)
{
    static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_BROADCAST, HVD_REDUCE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct call call = call_of(kinds[i], 2);

        ck_assert_uint_eq(call_bytes(&call), 100);
        ck_assert_int_eq(call_in_count(&call), 25);
        ck_assert_int_eq(call_out_count(&call), 25);
        ck_assert_ptr_eq(call_input_of(&call, &call), &call);
    }
}

TEST(parts_are_multiples_of_16_bytes)
{
    struct call call = call_of(HVD_ALLGATHER, 0);
    char out[100];

    ck_assert_int_eq(call.share, 8);
    ck_assert_uint_eq(call_bytes(&call), 96);
    ck_assert_int_eq(call_in_count(&call), 8);
    ck_assert_int_eq(call_out_count(&call), 24);
    ck_assert_ptr_eq(call_input_of(&call, out), out + 64);
    call = call_of(HVD_REDUCESCATTER, 0);
    ck_assert_int_eq(call_in_count(&call), 24);
    ck_assert_int_eq(call_out_count(&call), 8);
    ck_assert_ptr_eq(call_input_of(&call, out), out);
    call = call_of(HVD_ALLTOALL, 0);
    ck_assert_int_eq(call_in_count(&call), 24);
    ck_assert_int_eq(call_out_count(&call), 24);
}

TEST(small_parts_are_what_they_are)
{
    struct call call;

    call_init(&call, HVD_ALLGATHER, bench_dtype_find("float"), NULL, 0, 0, 3,
              28);
    ck_assert_int_eq(call.share, 2);
    ck_assert_uint_eq(call_bytes(&call), 24);
    call_init(&call, HVD_ALLGATHER, bench_dtype_find("float"), NULL, 0, 0, 3,
              8);
    ck_assert_int_eq(call.total, 0);
}

TEST(only_a_root_gets_what_goes_to_it)
{
    struct call call = call_of(HVD_GATHER, 1);

    ck_assert_int_eq(call_out_count(&call), 0);
    call = call_of(HVD_GATHER, 2);
    ck_assert_int_eq(call_out_count(&call), 24);
    call = call_of(HVD_REDUCE, 0);
    ck_assert_int_eq(call_out_count(&call), 0);
    ck_assert_int_eq(call_in_count(&call), 25);
}

TEST(only_reductions_have_an_operation)
{
    struct call call = call_of(HVD_REDUCE, 0);

    ck_assert_ptr_nonnull(call.op);
    call = call_of(HVD_GATHER, 0);
    ck_assert_ptr_null(call.op);
    call = call_of(HVD_BARRIER, 0);
    ck_assert_uint_eq(call_bytes(&call), 0);
    ck_assert(!call_known(HVD_JOIN));
    ck_assert(!call_known(-1));
    ck_assert(!call_known(4)); /* no kind has this number */
    ck_assert(!call_known(HVD_NUM_KINDS));
}

TEST_MAIN("bench_models")
