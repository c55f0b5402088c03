/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests arrays of numpy: headers are those that numpy writes; a damaged archive
 * is refused with a text, or still read, and never ends the process. That numpy
 * reads our archives, and we its, is tested in tests/models/checkpoint.bats.
 */
#include "files/npy.h"
#include "output/problem.h"

#include "folder.h"
#include "suite.h"

#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "file";

static const int64_t two_three[] = {2, 3}, three[] = {3};
static const float floats[] = {0, 1, 2, 3, 4, 5};
static struct safetensors_tensor tensors[] = {
    {.name = "a/b", .dtype = SAFETENSORS_F32, 2, two_three, .data = floats},
    {.name = "u", .dtype = SAFETENSORS_U8, 1, three, .data = floats},
};

TEST(header_is_that_of_numpy)
{
    size_t length = 0;
    char *header;
    struct npy npy;

    ck_assert_int_eq(safetensors_measure(&tensors[0]), 0);
    header = npy_header(&tensors[0], &length);
    ck_assert_ptr_nonnull(header);
    ck_assert_uint_eq(length, 128);
    ck_assert_mem_eq(header,
                     "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', "
                     "'fortran_order': False, 'shape': (2, 3), }  ",
                     70);
    ck_assert_int_eq(header[127], '\n');
    ck_assert_int_eq(npy_parse("x", header, length, length + 24, &npy), 0);
    ck_assert_uint_eq(npy.bytes, 24);
    ck_assert_int_eq(npy_parse("x", header, length, length + 23, &npy),
                     HVD_ERR_FILE);
    free(header);
    tensors[0].dtype = SAFETENSORS_BF16;
    ck_assert_ptr_null(npy_header(&tensors[0], &length));
}

/* Parses a header of version 1, with 64 bytes behind it. */
static int parse(const char *dictionary, struct npy *npy)
{
    char whole[1024] = "\x93NUMPY\x01";
    const size_t n = strlen(dictionary);

    whole[8] = (char)(n & 255);
    whole[9] = (char)(n >> 8);
    memcpy(whole + 10, dictionary, n);
    return npy_parse("file", whole, 10 + n, 10 + n + 64, npy);
}

TEST(order_and_spaces_do_not_matter)
{
    struct npy npy;
    static const float turned[] = {0, 2, 4, 1, 3, 5};
    float out[6];

    ck_assert_int_eq(parse("{\"shape\":(3L ,2),'fortran_order':True,\n"
                           "'descr':'>f4'}",
                           &npy),
                     0);
    ck_assert_int_eq(npy.shape[0], 3);
    ck_assert(npy.swapped && npy.fortran);
    npy.swapped = false;
    npy_copy(&npy, turned, out);
    ck_assert_mem_eq(out, ((const float[]){0, 1, 2, 3, 4, 5}), sizeof out);
    ck_assert_int_eq(
        parse("{'descr':'|u1','fortran_order':False,'shape':()}", &npy), 0);
    ck_assert_int_eq(npy.ndim, 0);
    ck_assert_int_eq(npy.count, 1);
}

static const char *const wrong[] = {
    "",
    "{}",
    "{'descr':'<f4','fortran_order':False}",
    "{'descr':'<f4','fortran_order':False,'shape':(2,),'more':1}",
    "{'descr':'<f4','descr':'<f4','shape':(2,)}",
    "{'descr':'|O','fortran_order':False,'shape':(2,)}",
    "{'descr':'<U4','fortran_order':False,'shape':(2,)}",
    "{'descr':[('x','<f4')],'fortran_order':False,'shape':(2,)}",
    "{'descr':'<f4','fortran_order':0,'shape':(2,)}",
    "{'descr':'<f4','fortran_order':False,'shape':(-2,)}",
    "{'descr':'<f4','fortran_order':False,'shape':(2.5,)}",
    "{'descr':'<f4','fortran_order':False,'shape':2}",
    "{'descr':'<f4','fortran_order':False,'shape':(2,",
    "{'descr':'<f4','fortran_order':False,'shape':(100,)}",
    "{'descr':'<f4','fortran_order':False,'shape':(4611686018427387904,4)}",
};

LOOP_TEST(wrong_headers_are_refused, 0, sizeof wrong / sizeof *wrong)
{
    struct npy npy;

    ck_assert_int_eq(parse(wrong[_i], &npy), HVD_ERR_FILE);
    ck_assert_int_eq(strncmp(problem_text(), "file: ", 6), 0);
}

static int open_all(void)
{
    struct npz *z = NULL;
    const int status = npz_open(path, &z);
    unsigned sum = 0;

    for (int i = 0; status == 0 && i < z->count; i++)
        for (size_t k = 0; k < z->tensors[i].bytes; k++)
            sum += ((const unsigned char *)z->tensors[i].data)[k];
    npz_close(z);
    return status < 0 ? status : (int)(sum & 1);
}

static void open_damaged(bool is_cut)
{
    const int status = open_all();

    ck_assert(!is_cut || status == HVD_ERR_FILE);
}

TEST(damaged_archives_are_refused_or_read)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(safetensors_measure(&tensors[i]), 0);
    ck_assert_int_eq(npz_save(path, tensors, 2, 0), 0);
    ck_assert_int_ge(open_all(), 0);
    file_damage(path, SIZE_MAX / 8, open_damaged);
}

TEST(what_cannot_be_saved_is_told)
{
    tensors[1].dtype = SAFETENSORS_BF16;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(safetensors_measure(&tensors[i]), 0);
    ck_assert_int_eq(npz_save(path, tensors, 2, 0), HVD_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(problem_text(), "numpy does not have"));
    ck_assert_int_eq(npz_save("/nowhere/x", tensors, 1, 0), HVD_ERR_FILE);
}

TEST_MAIN("train_npz", .set_up = folder_enter, .tear_down = folder_remove,
          .seconds = 60)
