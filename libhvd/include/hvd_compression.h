/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_compression.h - the forms in which reductions travel, and those of the
 * program's own: a part of hvd.h, which includes it.
 */
#ifndef HVD_COMPRESSION_H
#define HVD_COMPRESSION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The form in which an HVD_ALLREDUCE of float32 or float64 travels. */
typedef int32_t hvd_compression;
enum {
    HVD_COMPRESSION_NONE = 0,
    HVD_COMPRESSION_FP16 = 1, /* as float16; values above 65504 overflow */
    HVD_COMPRESSION_BF16 = 2, /* as bfloat16 */
    HVD_COMPRESSION_TOPK = 3, /* float32: the largest HVD_TOPK_RATIO of the
                                 values; what is left is added next time */
    HVD_COMPRESSION_REGISTERED =
        16 /* numbers of hvd_register_compressor: this and up */
};

/* Returns "none", "fp16", "topk", or the name of a registered scheme. */
const char *hvd_compression_name(hvd_compression compression);
/* Returns the number of such a name; HVD_ERR_ARGUMENT if there is none. */
int hvd_compression_from_name(const char *name);

/*
 * A scheme of the program's own for HVD_ALLREDUCE of float32: every rank
 * encodes its values, all ranks get the code of all, and add what it stands
 * for. Functions return a negative status on failure. They may be called on any
 * thread, but not two at once for one state.
 */
typedef struct hvd_compressor {
    uint32_t size;    /* sizeof(hvd_compressor) */
    int32_t reserved; /* 0 */
    const char *name; /* the same on all ranks; as a request's; copied */
    void *context;    /* passed to the functions */
    /* Returns the most bytes of the code of count values. */
    int64_t (*max_bytes)(void *context, int64_t count);
    /* Returns the bytes of the state that is kept between two requests of one
     * name, zero at first (for error feedback). May be NULL: then state is
     * NULL, too. */
    int64_t (*state_bytes)(void *context, int64_t count);
    /* Writes the code of values and returns its bytes. Without values (count 0)
     * their address may be NULL. */
    int64_t (*encode)(void *context, void *state, const float *values,
                      int64_t count, void *code);
    /* Adds what the code stands for to sum[i]. */
    int (*add)(void *context, const void *code, int64_t bytes, float *sum,
               int64_t count);
} hvd_compressor;

/* Registers a scheme and returns its number for hvd_request.compression. All
 * ranks must register the same ones in the same order, after hvd_init or
 * before. */
int hvd_register_compressor(const hvd_compressor *compressor);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
