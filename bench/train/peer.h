/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - a training program and PyTorch with the same network, batch
 * and optimiser, in turn.
 */
#ifndef BENCH_TRAIN_PEER_H
#define BENCH_TRAIN_PEER_H

#include "train/run.h"
#include "train/series.h"

struct train_peer {
    struct series ours, theirs; /* units a second */
    struct series ratios;       /* ours / theirs, of each turn */
    double parameters;
    char version[64], blas[128]; /* PyTorch's, and what it multiplies with */
};

/* Both on one thread, repeats times. The series are sorted. Returns 0; or -1
 * after a line on stderr: one of them could not be run, or they do not have
 * equally many parameters. */
int train_peer_measure(const struct train_place *place,
                       const struct train_network *network, int repeats,
                       struct train_peer *peer);

#endif
