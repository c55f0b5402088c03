# SPDX-License-Identifier: Apache-2.0
# A rank of mnist is killed every two seconds, under mpirun and as a cluster whose
# workers come back (docs/TRAINER.md). With HVD_TEST_FULL 70 runs of each, for two
# minutes, or, under mpirun without restarts, until two ranks are left; two a core go
# on side by side, for their ranks wait for most of the time, as on slow processors.
# HVD_SERIES_RUNS has another number, for which HVD_TEST_LIMIT must leave time.
# Otherwise one short run of each, in which ranks are killed before it is over on a
# machine that trains 65,000 images a second.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
    export MNIST=${MNIST:-$ROOT/../shared/data/mnist}
}

series() { # kind
    local full=${HVD_TEST_FULL:+${HVD_SERIES_RUNS:-70}}
    if [ -z "$full" ] || [ ! -e "$MNIST/train-images-idx3-ubyte.gz" ]; then
        run "$BATS_TEST_DIRNAME/series" --kind "$1" --seed 21 --ranks 3 \
            --least 1 --every 0.6 --duration 4 --accuracy 0.5 "$BIN/mnist" \
            --model mlp --train-images 2000 --test-images 200 --batch-size 8 \
            --epochs 120
    else
        run "$BATS_TEST_DIRNAME/series" --kind "$1" --runs "$full" --seed 1 \
            --slow 6 --jobs $((2 * $(nproc))) "$BIN/mnist" --data "$MNIST" \
            --batch-size 16 --epochs 9 --eval-every 9
    fi
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "killed ranks stay away" {
    series mpirun
}

@test "killed ranks have the job started again when too few are left" {
    series restarts
}

@test "killed workers come back" {
    series cluster
}
