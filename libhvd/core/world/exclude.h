/* SPDX-License-Identifier: Apache-2.0 */
/* exclude.h - a rank that lives is left out of the next world. */
#ifndef HVD_CORE_WORLD_EXCLUDE_H
#define HVD_CORE_WORLD_EXCLUDE_H

/* Returns the rank of this world that hvd_exclude was last called with; -1:
 * none. Any thread. */
int hvd__world_excluded(void);

/* All ranks have agreed to exclude one of them: ends the world with
 * HVD_ERR_LOST, which it returns. The next hvd_recover leaves that rank out,
 * and fails there. */
int hvd__world_exclude(int rank);

#endif
