/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - trains the same network, batch and optimiser with a training program
 * and with PyTorch, in turn.
 */
#ifndef BENCH_TRAIN_PEER_H
#define BENCH_TRAIN_PEER_H

#include "train/run.h"
#include "train/series.h"

struct train_peer {
    struct series ours, theirs; /* units a second */
    struct series ratios;       /* ours / theirs of each turn */
    double parameters;
    char version[64], blas[128]; /* versions of PyTorch and of its BLAS */
};

/* Measures both on one thread, repeats times, and sorts the series. Returns 0,
 * or -1 after a line on stderr: one of them failed, or their numbers of
 * parameters differ. */
int train_peer_measure(const struct train_place *place,
                       const struct train_network *network, int repeats,
                       struct train_peer *peer);

#endif
