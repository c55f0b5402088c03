/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that comes from here leaves the lock wanted, though no other thread
 * may want it: at worst that costs a call that wakes no one. */
void hvd__mutex_wait(struct hvd__mutex *mutex)
{
    while (atomic_exchange_explicit(&mutex->state, HVD__MUTEX_WANTED,
                                    memory_order_acquire) != HVD__MUTEX_FREE)
        syscall(SYS_futex, &mutex->state, FUTEX_WAIT_PRIVATE, HVD__MUTEX_WANTED,
                NULL, NULL, 0);
}

void hvd__mutex_wake(struct hvd__mutex *mutex)
{
    syscall(SYS_futex, &mutex->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
