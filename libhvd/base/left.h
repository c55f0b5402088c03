/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left.h - memory that is left to others.
 *
 * When a world is lost, MPI or UCX may still write to the memory of transfers
 * that nobody can end, so it is never freed. A process may lose many worlds.
 */
#ifndef HVD_BASE_LEFT_H
#define HVD_BASE_LEFT_H

/* Keeps a pointer to a block of malloc, for memory checkers: they find the
 * block, and all that it points to, as long as the process runs. Any thread may
 * call it. */
void hvd__leave_behind(void *block);

#endif
