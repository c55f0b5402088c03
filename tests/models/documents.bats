#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The command lines of Graphcore's, TensorFlow's and Habana's documents, with
# mnist in the place of python, each process in a terminal of its own: in every
# order of starting, or in some of those of many processes. Whatever the order,
# the weights are the same.

load ../support/models
load ../support/terminals

setup() {
    models_setup mnist
    terminals_setup
    export TRAIN='--model mlp --train-images 240 --test-images 48 --steps 12 --eval-every 0 --epochs 10 --global-batch 24 --optimizer momentum --lr 0.02'
}

readonly ORDERS=('0 1 2' '0 2 1' '1 0 2' '1 2 0' '2 0 1' '2 1 0')

# is_trained NAME: that process has reported, and its weights are those of the
# first order.
is_trained() {
    sed -n 's/.*equal on all ranks, checksum //p' "$1.out" >checksum
    [ -s checksum ]
    [ -e first ] || cp checksum first
    cmp checksum first
}

# in_terminals ORDER CLUSTER ARGS TASK...: types the line of each task, in that
# order; the arguments are the same for all. A terminal is named after its task.
in_terminals() {
    local order=$1 cluster=$2 arguments=$3 i task
    shift 3
    local -a tasks=("$@")
    for i in $order; do
        task=${tasks[i]}
        terminal "${task/:/}" "TF_CONFIG='{$cluster, \"task\": {\"type\": \"${task%:*}\", \"index\": ${task#*:}}}' mnist $TRAIN $arguments"
        sleep 0.1
    done
}

@test "Graphcore: two workers with TF_CONFIG, and two ranks of mpirun" {
    local first
    for first in 0 1; do
        terminal "worker$first" "TF_CONFIG='{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]},\"task\":{\"type\":\"worker\",\"index\":$first}}' mnist $TRAIN"
        sleep 0.3
        terminal "worker$((1 - first))" "TF_CONFIG='{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]},\"task\":{\"type\":\"worker\",\"index\":$((1 - first))}}' mnist $TRAIN"
        expect 0 0
        is_trained worker0
    done
    terminal mpirun "mpirun -np 2 -H localhost:2 mnist $TRAIN"
    expect 0
    is_trained mpirun
}

@test "TensorFlow: three workers, in every order" {
    local order cluster='
    "cluster": {
        "worker": ["localhost:3737", "localhost:3738", "localhost:3739"]
    }'
    for order in "${ORDERS[@]}"; do
        in_terminals "$order" "$cluster" "" worker:0 worker:1 worker:2
        expect 0 0 0
        is_trained worker0
    done
}

@test "TensorFlow: a chief, a worker and an evaluator, in every order" {
    local order cluster='"cluster": {"chief": ["localhost:3737"], "worker": ["localhost:3738"], "evaluator": ["localhost:3739"]}'
    for order in "${ORDERS[@]}"; do
        rm -rf model
        in_terminals "$order" "$cluster" "--model-dir model --checkpoint-every 5" \
            chief:0 worker:0 evaluator:0
        expect 0 0 0
        is_trained chief0
        grep '^step 12 ' evaluator0.out
        [ ! -s worker0.out ]
    done
}

@test "TensorFlow: workers and parameter servers" {
    local order cluster='
    "cluster": {
        "worker": ["localhost:3737", "localhost:3738"],
        "ps": ["localhost:3739"]
    }'
    for order in "${ORDERS[@]}"; do
        in_terminals "$order" "$cluster" "--strategy parameter-server" \
            worker:0 worker:1 ps:0
        expect 0 0 0
        is_trained worker0
    done
    # Two of them have half of the variables each, and the same numbers.
    cluster='
    "cluster": {
        "worker": ["localhost:3737", "localhost:3738"],
        "ps": ["localhost:3739", "localhost:3740"]
    }'
    for order in '3 2 1 0' '2 0 3 1' '0 1 2 3'; do
        in_terminals "$order" "$cluster" "--strategy parameter-server" \
            worker:0 worker:1 ps:0 ps:1
        expect 0 0 0 0
        is_trained worker0
    done
}

@test "Habana: HPU workers with TF_CONFIG, in any order" {
    local order cluster='"cluster": {"worker": ["localhost:3737", "localhost:3738"]}'
    for order in '0 1' '1 0'; do
        in_terminals "$order" "$cluster" "--strategy device-collective" \
            worker:0 worker:1
        expect 0 0
        is_trained worker0
    done
}

@test "Habana: HPU workers that mpirun starts, bound to cores" {
    # Each makes its TF_CONFIG from its rank, as the document's script does.
    with_free_ports '#!/bin/sh
export TF_CONFIG="{\"cluster\": {\"worker\": [\"localhost:3737\", \"localhost:3738\"]}, \"task\": {\"type\": \"worker\", \"index\": $OMPI_COMM_WORLD_RANK}}"
exec mnist --strategy device-collective "$@"' >train.sh
    chmod +x train.sh
    terminal mpirun "mpirun -np 2 --bind-to core --map-by slot:PE=1 ./train.sh $TRAIN"
    expect 0
    is_trained mpirun
    # The program does that itself: rank r has the port 3737 + r.
    terminal mpirun "mpirun -np 2 mnist --strategy device-collective --base-port $(ports_in_a_row 2) $TRAIN"
    expect 0
    is_trained mpirun
}

@test "Habana: HPU workers that a script of Python starts" {
    with_free_ports 'import json, multiprocessing as mp, os, sys

def set_tf_config(worker_index, num_workers):
    os.environ["TF_CONFIG"] = json.dumps({
        "cluster": {"worker": [f"localhost:{3737 + index}"
                               for index in range(num_workers)]},
        "task": {"type": "worker", "index": worker_index}})

def my_run(worker_index, num_workers):
    set_tf_config(worker_index, num_workers)
    os.execvp("mnist", ["mnist", *sys.argv[1:]])

num_workers = 2
processes = [mp.Process(target=my_run, args=(i, num_workers))
             for i in range(num_workers)]
for p in processes:
    p.start()
for p in processes:
    p.join()
sys.exit(any(p.exitcode for p in processes))' |
        sed "s/{[0-9]* + index}/{$(ports_in_a_row 2) + index}/" >train.py
    terminal python "python3 train.py --strategy device-collective $TRAIN"
    expect 0
    is_trained python
}
