/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - statuses, the text of this thread's last failure, and allocation,
 * which fails with it.
 *
 * The door of the lowest room of the device, with shape.h. Whoever first
 * decides which error it is calls ipu__fail; everyone above returns the status
 * unchanged (IPU_TRY). The text belongs to the thread and stays until its next
 * failure.
 */
#ifndef IPU_BASE_ERROR_H
#define IPU_BASE_ERROR_H

#include <stddef.h>

/* Builders are defined here, not called from a program. */
#ifndef IPU_NO_SOURCES
#define IPU_NO_SOURCES
#endif
#include "ipu.h"

/* Room for a message with its NUL, and for one that is an explanation; longer
 * ones are cut. */
enum { IPU__MESSAGE_MAX = 1024, IPU__EXPLANATION_MAX = 4096 };

/* Return a negative status of expr from the calling function. */
#define IPU_TRY(expr)                                                          \
    do {                                                                       \
        int ipu_try_status_ = (expr);                                          \
        if (ipu_try_status_ < 0)                                               \
            return ipu_try_status_;                                            \
    } while (0)

/* Set this thread's last error and return status. */
__attribute__((format(printf, 2, 3))) int ipu__fail(int status,
                                                    const char *format, ...);

/* Sets the last error to a text that may be an explanation, and returns
 * status. */
int ipu__fail_explained(int status, const char *text);

/* IPU_ERR_MEMORY, saying how much was wanted. */
int ipu__fail_memory(size_t bytes);

/* Allocate zeroed memory that the caller owns: of so many bytes, or an array,
 * with room for one element more, so that an empty one is not NULL either.
 * place: the address of the pointer to it, which is NULL after a failure
 * (IPU_ERR_MEMORY). */
int ipu__new(void *place, size_t bytes);
int ipu__new_array(void *place, size_t count, size_t each);

/* IPU_ERR_ARGUMENT unless a caller's struct is as large as this library's. */
int ipu__check_size(const char *what, uint32_t size, size_t ours);

#endif
