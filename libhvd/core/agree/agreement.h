/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agreement.h - the state in which a member of a process set agrees with the
 * others. It is private to this room and belongs to the driver.
 */
#ifndef HVD_CORE_AGREEMENT_H
#define HVD_CORE_AGREEMENT_H

#include "core/agree/coordinator.h"
#include "core/agree/ordered.h"
#include "core/agree/relay.h"
#include "core/agree/tune.h"
#include "core/run/execute.h"
#include "core/table/set.h"

struct hvd__agreement {
    struct hvd__ordered ordered;
    struct hvd__relay relay;
    struct hvd__coordinator *coordinator; /* owned; only on the first member */
    struct hvd__tune
        tune;           /* coordinator only: now holds for the next batches */
    int *scratch;       /* owned, [team.size] */
    bool heard_leaving; /* the driver has seen set->leaving */
    bool said_leave;
    bool heard_close; /* all members have left */
};

#endif
