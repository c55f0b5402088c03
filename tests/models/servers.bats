#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A worker or a parameter server is interrupted or killed in the middle of a
# training, in each mode: all others end, with the line that names it. Tasks are
# started by hand; tests/faults has the same under mpirun.

load ../support/models
load ../support/terminals

setup() {
    models_setup mnist
    terminals_setup
    export HVD_EXIT_GRACE_TIME=2s
}

tasks=(worker:0 worker:1 ps:0 ps:1)

# trains MODE...: two workers and two servers, until one of them is gone.
trains() {
    local task cluster='"cluster":{"worker":["localhost:3737","localhost:3738"],"ps":["localhost:3739","localhost:3740"]}'
    started=()
    for task in "${tasks[@]}"; do
        terminal "$task" "TF_CONFIG='{$cluster,\"task\":{\"type\":\"${task%:*}\",\"index\":${task#*:}}}' exec mnist --model mlp --train-images 960 --test-images 100 --epochs 100000 --strategy parameter-server $*"
    done
    within_60_s grep -q 'epoch 3/' worker:0.out
}

# gone I RANK: all but task I of those above end with status 1, and one at least
# names the rank.
gone() {
    local i status
    for i in "${!started[@]}"; do
        status=0
        wait "${started[i]}" || status=$?
        echo "${tasks[i]}: $status"
        [ "$i" -eq "$1" ] || [ "$status" -eq 1 ]
    done
    started=()
    grep -h "rank $2" ./*.err
    rm -f ./*.err ./*.out
}

modes=("--ps-mode sync" "--ps-mode sync --backups 1" "--ps-mode async"
    "--ps-mode stale --staleness 2")

@test "a worker that is killed ends all, in each mode" {
    local mode
    for mode in "${modes[@]}"; do
        echo "$mode"
        trains "$mode"
        pkill -KILL -P "${started[1]}"
        gone 1 1
    done
}

@test "a server that is killed ends all, in each mode" {
    local mode
    for mode in "${modes[@]}"; do
        echo "$mode"
        trains "$mode"
        pkill -KILL -P "${started[2]}"
        gone 2 2
    done
}

@test "both end all in an elastic cluster, too, since the strategy is not" {
    export HVD_ELASTIC=1
    trains "--ps-mode sync"
    pkill -KILL -P "${started[1]}"
    gone 1 1
    trains "--ps-mode async"
    pkill -KILL -P "${started[2]}"
    gone 2 2
}

@test "a worker that is interrupted ends all, in each mode" {
    local mode
    for mode in "${modes[@]}"; do
        echo "$mode"
        trains "$mode"
        interrupt 1
        gone 1 1
    done
}

@test "a server that is interrupted ends all, in each mode" {
    local mode
    for mode in "${modes[@]}"; do
        echo "$mode"
        trains "$mode"
        interrupt 3
        gone 3 3
    done
}
