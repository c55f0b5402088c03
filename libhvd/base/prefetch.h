/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.h - asks for a cache line before it is needed, without waiting for
 * it. Any address is allowed. Where another core has written the line last,
 * that takes up to some hundred nanoseconds; a store to the line would take as
 * long, and the next locked instruction would wait for that store.
 */
#ifndef HVD_BASE_PREFETCH_H
#define HVD_BASE_PREFETCH_H

enum { HVD__CACHE_LINE = 64 };

/* Prefetches a line that this core is going to write. Compilers make a prefetch
 * for reading of it unless they may assume a processor with PREFETCHW, but all
 * processors of this architecture take the instruction. */
static inline void hvd__prefetch_write(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

#endif
