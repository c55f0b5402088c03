/* SPDX-License-Identifier: Apache-2.0 */
#include "train/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Measures one turn. The size of the vocabulary depends on the text, so the
 * program's own is passed on to PyTorch. */
static int measure_once(const struct train_place *place,
                        const struct train_network *n, struct train_peer *peer)
{
    struct train_torch torch = {.steps = train_steps(place, n) / 2 + 1};
    double rate;

    if (train_run(place, n, TRAIN_ALONE, &rate) < 0 ||
        train_summary_number(place, "parameters", &peer->parameters) < 0)
        return -1;
    if (n->speaks &&
        train_summary_number(place, "vocabulary", &torch.vocabulary) < 0)
        return -1;
    if (train_run_torch(place, n, &torch) < 0)
        return -1;
    if (torch.parameters != peer->parameters) {
        fprintf(stderr,
                "train-bench: %s has %.0f parameters, and %.0f in "
                "train-bench-torch: these are not the same network\n",
                n->name, peer->parameters, torch.parameters);
        return -1;
    }
    series_add(&peer->ours, rate);
    series_add(&peer->theirs, torch.rate);
    series_add(&peer->ratios, rate / torch.rate);
    snprintf(peer->version, sizeof peer->version, "%s", torch.version);
    snprintf(peer->blas, sizeof peer->blas, "%s", torch.blas);
    return 0;
}

int train_peer_measure(const struct train_place *place,
                       const struct train_network *network, int repeats,
                       struct train_peer *peer)
{
    memset(peer, 0, sizeof *peer);
    if (setenv("OMP_NUM_THREADS", "1", 1) < 0) {
        perror("train-bench: OMP_NUM_THREADS");
        return -1;
    }
    for (int i = 0; i < repeats; i++)
        if (measure_once(place, network, peer) < 0)
            return -1;
    series_sort(&peer->ours);
    series_sort(&peer->theirs);
    series_sort(&peer->ratios);
    return 0;
}
