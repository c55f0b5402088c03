#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Every way in which the processes of a training can be started without MPI, as
# a person types them. All train the same network, so that all must end with the
# same weights. documents.bats has the lines of other libraries' documents.

load ../support/models
load ../support/terminals

setup_file() {
    # A library that ends whoever initialises MPI.
    cat >"$BATS_FILE_TMPDIR/no_mpi.c" <<'EOF'
#include <unistd.h>
static int end(void) { if (write(2, "MPI was initialised\n", 20) < 0) {} _exit(99); }
int MPI_Init(int *c, char ***v) { (void)c; (void)v; return end(); }
int MPI_Init_thread(int *c, char ***v, int r, int *p)
{ (void)c; (void)v; (void)r; (void)p; return end(); }
EOF
    gcc -shared -fPIC -o "$BATS_FILE_TMPDIR/no_mpi.so" "$BATS_FILE_TMPDIR/no_mpi.c"
}

setup() {
    models_setup mnist
    terminals_setup
    NO_MPI=$BATS_FILE_TMPDIR/no_mpi.so
    export TRAIN='--model mlp --train-images 960 --test-images 100 --steps 30 --global-batch 24 --optimizer momentum --lr 0.02'
}

# is_trained FILE N: N workers together, with the same weights in all tests.
is_trained() {
    local all=$BATS_FILE_TMPDIR/checksum.$2
    grep "mnist: $2 rank" "$1"
    sed -n 's/.*equal on all ranks, checksum //p' "$1" >checksum
    [ -s checksum ]
    [ -e "$all" ] || cp checksum "$all"
    cmp checksum "$all"
}

# on_ranks N ARGS...: mpirun, on this host, with what follows.
on_ranks() {
    local n=$1
    shift
    timeout 100 mpirun --oversubscribe --bind-to none -np "$n" \
        -H "localhost:$n" "$@"
}

@test "two terminals, with a file that describes the cluster" {
    with_free_ports '{"cluster": {"chief": ["localhost:3737"], "worker": ["localhost:3738"]}}' >cluster.json
    terminal worker "mnist --cluster cluster.json --task worker:0 $TRAIN"
    terminal chief "mnist --cluster cluster.json --task chief $TRAIN"
    expect 0 0
    is_trained chief.out 2
}

@test "mpirun starts workers that use no MPI" {
    local n
    for n in 1 2 3; do
        # shellcheck disable=SC2086
        on_ranks "$n" -x LD_PRELOAD="$NO_MPI" mnist --strategy multi-worker \
            --base-port "$(ports_in_a_row "$n")" $TRAIN >out 2>&1
        cat out
        is_trained out "$n"
    done
}

@test "mpirun starts workers, each of which makes its TF_CONFIG from its rank" {
    # The form of the HPU document: its script does this in Python.
    cat >set_tf_config <<'EOF'
#!/bin/sh
export TF_CONFIG="{\"cluster\":{\"worker\":[\"localhost:3737\",\"localhost:3738\"]},\"task\":{\"type\":\"worker\",\"index\":$OMPI_COMM_WORLD_RANK}}"
exec "$@"
EOF
    with_free_ports "$(cat set_tf_config)" >set_tf_config
    chmod +x set_tf_config
    # shellcheck disable=SC2086
    on_ranks 2 -x LD_PRELOAD="$NO_MPI" ./set_tf_config \
        mnist --strategy multi-worker $TRAIN >out 2>&1
    cat out
    is_trained out 2
}

@test "mpirun starts the ranks of a file" {
    with_free_ports '{"cluster": {"worker": ["localhost:3737", "localhost:3738"]}}' >cluster.json
    # shellcheck disable=SC2086
    on_ranks 2 -x LD_PRELOAD="$NO_MPI" mnist --cluster cluster.json $TRAIN >out 2>&1
    cat out
    is_trained out 2
    # shellcheck disable=SC2086
    run on_ranks 3 mnist --cluster cluster.json $TRAIN
    [ "$status" -ne 0 ]
    [[ $output == *"it has 2 ranks, but the launcher started 3 processes"* ]]
}

@test "over MPI, the library that forbids it is noticed" {
    # The tests above can fail.
    # shellcheck disable=SC2086
    run on_ranks 2 -x LD_PRELOAD="$NO_MPI" mnist --strategy horovod $TRAIN
    [ "$status" -ne 0 ]
    [[ $output == *"MPI was initialised"* ]]
}

@test "what does not say who trains is refused" {
    with_free_ports '{"cluster": {"worker": ["localhost:3737", "localhost:3738"]}}' >cluster.json
    local config='{"cluster":{"worker":["localhost:1"]},"task":{"type":"worker","index":0}}'
    TF_CONFIG=$config run mnist --cluster cluster.json --task worker:0
    [ "$status" -eq 1 ]
    assert_one_line "--cluster" "TF_CONFIG" "unset"
    run mnist --cluster cluster.json
    [ "$status" -eq 1 ]
    assert_one_line "cluster.json" "give --task"
    run mnist --cluster cluster.json --task worker:2
    [ "$status" -eq 1 ]
    assert_one_line "--task worker:2" "0 to 1"
    run mnist --cluster cluster.json --task worker
    assert_one_line "--task worker" "worker:0"
    run mnist --cluster cluster.json --task helper:0
    assert_one_line "--task 'helper:0'" "give a role"
    run mnist --cluster cluster.json --task worker:x
    assert_one_line "--task" "x"
    run mnist --cluster missing.json --task worker:0
    assert_one_line "--cluster" "missing.json"
    run mnist --cluster cluster.json --task worker:0 --strategy horovod
    assert_one_line "--strategy horovod" "--cluster"
    run mnist --base-port 4000
    assert_one_line "--base-port" "mpirun"
    run mnist --task worker:0
    [ "$status" -eq 64 ]
    assert_one_line "--task" "--cluster"
    run mnist --cluster cluster.json --base-port 4000
    [ "$status" -eq 64 ]
    assert_one_line "--cluster" "--base-port"
}

@test "a launcher that does not say enough is named" {
    PMI_RANK=0 run mnist --strategy multi-worker
    [ "$status" -eq 1 ]
    assert_one_line "how many" "--cluster"
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
        run mnist --strategy multi-worker
    [ "$status" -eq 1 ]
    assert_one_line "4 processes, 2 of them on this host" "--cluster"
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
        run mnist --strategy multi-worker --base-port 65535
    [ "$status" -eq 1 ]
    assert_one_line "--base-port 65535" "65535"
}

@test "one command starts its workers itself, without MPI" {
    local n
    for n in 1 2 3; do
        # shellcheck disable=SC2086
        LD_PRELOAD=$NO_MPI mnist --spawn "$n" $TRAIN >out 2>err
        cat out err
        is_trained out "$n"
        [ ! -s err ]
    done
    # shellcheck disable=SC2086
    mnist --spawn 2 --base-port "$(ports_in_a_row 2)" $TRAIN >out
    is_trained out 2
    # Any program, by the command for all.
    # shellcheck disable=SC2086
    hvd-run -n 2 mnist $TRAIN >out
    is_trained out 2
    char_gpt --spawn 2 --layers 1 --width 32 --steps 4 --sample 0 >out
    grep 'char_gpt: 2 ranks' out
}

@test "a command that starts its workers passes on failures and signals" {
    run mnist --spawn 2 --global-batch 3
    [ "$status" -eq 1 ]
    [[ $output == *"--global-batch 3"*"2 replicas"* ]]
    local code=0 i
    mnist --spawn 2 --model mlp --epochs 1000 >out 2>err &
    started+=($!)
    for ((i = 0; i < 300; i++)); do
        ! grep -q 'epoch 2/' out || break
        sleep 0.1
    done
    kill -TERM $!
    wait $! || code=$?
    started=()
    [ "$code" -eq 143 ]
    run pgrep -f 'mnist --spawn 2 --model mlp --epochs 1000'
    [ "$status" -eq 1 ]
    run mnist --spawn 2 --strategy horovod
    [ "$status" -eq 64 ]
    assert_one_line "--spawn" "horovod"
    run mnist --spawn 2 --cluster x
    [ "$status" -eq 64 ]
    assert_one_line "--spawn" "--cluster"
    TF_CONFIG='{}' run mnist --spawn 2
    [ "$status" -eq 1 ]
    assert_one_line "TF_CONFIG"
}

@test "a worker that is killed while data is drawn is named by the other, in time" {
    local i cluster='"cluster":{"worker":["localhost:3737","localhost:3738"]}'
    export HVD_LOG=info HVD_EXIT_GRACE_TIME=2s
    for i in 0 1; do
        terminal "worker$i" "TF_CONFIG='{$cluster,\"task\":{\"type\":\"worker\",\"index\":$i}}' exec mnist --train-images 1000000 --strategy device-collective"
    done
    within_60_s grep 'rank 1 of 2' worker1.err
    pkill -KILL -P "${started[0]}"
    expect 137 1
    grep 'mnist: rank 1 (.*): hvd: rank 0 (process ' worker1.err
    ! grep 'ending this process' worker1.err
}

@test "an interrupt in one terminal ends that worker, which the others name" {
    local i cluster='"cluster":{"worker":["localhost:3737","localhost:3738","localhost:3739"]}'
    for i in 0 1 2; do
        terminal "worker$i" "TF_CONFIG='{$cluster,\"task\":{\"type\":\"worker\",\"index\":$i}}' mnist --model mlp --epochs 100000"
    done
    within_60_s grep 'epoch 1/' worker0.out
    interrupt 1
    expect 1 130 1
    [ ! -s worker1.err ]
    # Whoever sees it says which process is gone.
    grep -h 'rank 1' worker0.err worker2.err
}
