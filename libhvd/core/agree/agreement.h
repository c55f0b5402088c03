/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agreement.h - the state in which a member of a process set agrees with the
 * others. It is private to this room and belongs to the driver.
 */
#ifndef HVD_CORE_AGREEMENT_H
#define HVD_CORE_AGREEMENT_H

#include "core/agree/coordinator.h"
#include "core/agree/ordered.h"
#include "core/agree/tune.h"
#include "core/run/execute.h"
#include "core/table/set.h"

struct hvd__agreement {
    struct hvd__ordered ordered;
    struct hvd__coordinator *coordinator; /* owned; the first member's */
    struct hvd__tune tune;                /* the world's, on its coordinator */
    size_t direct_max;       /* what all members have been told; 0: nothing */
    size_t first_direct_max; /* to be told; 0: nothing */
    struct hvd__writer out;  /* what will be announced next */
    int *scratch;            /* owned, [team.size] */
    bool heard_leaving;      /* of set->leaving */
    bool said_leave;
    bool heard_close; /* all members have left */
};

#endif
