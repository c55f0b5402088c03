/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where - each rank prints where it is: "rank 2 local 1/2 cross 0/2".
 */
#include <stdio.h>

#include "hvd.h"

int main(void)
{
    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 1;
    }
    printf("rank %d local %d/%d cross %d/%d\n", hvd_rank(), hvd_local_rank(),
           hvd_local_size(), hvd_cross_rank(), hvd_cross_size());
    return hvd_shutdown() < 0;
}
