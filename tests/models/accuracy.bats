#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Every strategy learns to read digits: with HVD_TEST_FULL, 97 % of the test
# images, and 96 % where workers do not wait for each other. The images are those
# of MNIST in the folder MNIST, or in ../shared/data/mnist beside the tree; where
# there are none, more are drawn. Without HVD_TEST_FULL, 70 % must be reached in
# two epochs of a few drawn digits.

load ../support/models

setup() {
    models_setup mnist
    TOOLS=$BATS_TEST_DIRNAME/../tools
    MNIST=${MNIST:-$BATS_TEST_DIRNAME/../../../shared/data/mnist}
    if [ -z "${HVD_TEST_FULL-}" ]; then
        DIGITS=(--train-images 2000 --test-images 500 --epochs 2)
    elif [ -e "$MNIST/train-images-idx3-ubyte.gz" ] ||
        [ -e "$MNIST/train-images-idx3-ubyte" ]; then
        DIGITS=(--data "$MNIST")
    else
        DIGITS=(--train-images 12000 --test-images 1000)
    fi
    echo "# ${DIGITS[*]}" >&3
    DIGITS+=(--global-batch 64 --eval-every 0)
}

# reaches PERCENT NAME COMMAND...: the training does, with the digits; of few
# digits, 70 %.
reaches() {
    local least=$1 name=$2 accuracy
    shift 2
    [ -n "${HVD_TEST_FULL-}" ] || least=70
    "$@" "${DIGITS[@]}" >"$OUT/log"
    cat "$OUT/log"
    accuracy=$(sed -n 's/^test accuracy  \([0-9.]*\) %.*/\1/p' "$OUT/log")
    echo "# $name: $accuracy %" >&3
    at_least "$accuracy" "$least"
}

on_ranks() { # n
    local n=$1
    shift
    mpirun --oversubscribe --bind-to none -np "$n" "$PROGRAM" "$@"
}

@test "one process" {
    reaches 97 "one process" "$PROGRAM"
}

@test "horovod, 2 ranks" {
    reaches 97 "horovod" on_ranks 2 --strategy horovod
}

@test "multi-worker, 2 processes" {
    reaches 97 "multi-worker" "$TOOLS/by-hand" 2 "$PROGRAM" \
        --strategy multi-worker
}

@test "mirrored, 2 replicas" {
    reaches 97 "mirrored" "$PROGRAM" --strategy mirrored --replicas 2
}

@test "mirrored x horovod, 2 replicas in each of 2 ranks" {
    reaches 97 "mirrored x horovod" on_ranks 2 --strategy mirrored --replicas 2
}

@test "device-collective, 2 processes" {
    reaches 97 "device-collective" on_ranks 2 --strategy device-collective
}

@test "parameter-server, synchronous, 2 workers and 2 servers" {
    reaches 97 "parameter-server, sync" \
        on_ranks 4 --strategy parameter-server --servers 2
}

@test "parameter-server, asynchronous, 2 workers and 2 servers" {
    reaches 96 "parameter-server, async" \
        on_ranks 4 --strategy parameter-server --servers 2 --ps-mode async
}
