/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the network of devices in several processes.
 */
#ifndef IPU_TARGET_NETWORK_H
#define IPU_TARGET_NETWORK_H

#include "ipu.h"

enum { IPU__MAX_PROCESSES = 1 << 16 };

/* IPU_ERR_ARGUMENT names a field that is out of its range. */
int ipu__network_check(const ipu_network *network);

#endif
