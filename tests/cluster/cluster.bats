# SPDX-License-Identifier: Apache-2.0
# Processes are started by hand as tasks of a cluster, as in several terminals.

load tasks

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
    export MEMBER=$BATS_FILE_TMPDIR/member
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    # shellcheck disable=SC2046
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" $(pkg-config --cflags ompi-c) \
        -o "$MEMBER" "$BATS_TEST_DIRNAME/member.c" -L"$lib" -lhvd \
        $(pkg-config --libs ompi-c) -Wl,-rpath,"$lib"
}

@test "two workers start in any order, without MPI" {
    task "$two" worker 1 "$MEMBER"
    sleep 0.5
    task "$two" worker 0 "$MEMBER"
    expect 0 0
    grep -Fx 'rank 0 of 2, sum 3, without MPI' worker0.out
    grep -Fx 'rank 1 of 2, sum 3, without MPI' worker1.out
    [ ! -s worker0.err ]
}

@test "the chief is rank 0" {
    local cluster="\"chief\":[\"localhost:${port[0]}\"],\"worker\":[\"localhost:${port[1]}\",\"localhost:${port[2]}\"]"
    task "$cluster" worker 0 "$MEMBER"
    task "$cluster" chief 0 "$MEMBER"
    task "$cluster" worker 1 "$MEMBER"
    expect 0 0 0
    grep -F 'rank 0 of 3, sum 6' chief0.out
    grep -F 'rank 2 of 3, sum 6' worker1.out
}

@test "one worker needs nobody" {
    task "\"worker\":[\"localhost:${port[0]}\"]" worker 0 "$MEMBER"
    expect 0
    grep -F 'rank 0 of 1, sum 1' worker0.out
}

@test "ranks start again after they have shut down" {
    task "$two" worker 0 "$MEMBER" twice
    task "$two" worker 1 "$MEMBER" twice
    expect 0 0
    [ "$(grep -c 'of 2, sum 3' worker0.out)" -eq 2 ]
}

@test "a program describes the cluster itself" {
    local a=localhost:${port[0]} b=localhost:${port[1]}
    timeout 60 "$MEMBER" 0 "$a" "$b" >0.out 2>&1 3>&- &
    started+=($!)
    timeout 60 "$MEMBER" 1 "$a" "$b" >1.out 2>&1 3>&- &
    started+=($!)
    expect 0 0
    grep -F 'rank 1 of 2, sum 3' 1.out
}

@test "a cluster of the program and another one of TF_CONFIG are an error" {
    task "$two" worker 0 "$MEMBER" 0 "localhost:${port[2]}"
    expect 1
    grep -F 'describes another one: unset TF_CONFIG' worker0.err
    # The same one twice is none.
    started=()
    task "$two" worker 0 "$MEMBER" 0 "localhost:${port[0]}" "localhost:${port[1]}"
    task "$two" worker 1 "$MEMBER"
    expect 0 0
}

@test "under mpirun, TF_CONFIG has no effect" {
    TF_CONFIG="{\"cluster\":{$two},\"task\":{\"type\":\"worker\",\"index\":0}}" \
        run timeout 60 "$ROOT/mpi-launch.sh" -np 3 "$MEMBER"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'of 3, sum 6, with MPI' <<<"$output")" -eq 3 ]
}

@test "the missing are named, again and again" {
    HVD_START_TIME=2 HVD_STALL_CHECK_TIME=0.5 task "$two" worker 0 "$MEMBER"
    expect 1
    [ "$(grep -c "hvd_init waits for worker 1 at localhost:${port[1]}" worker0.err)" -ge 2 ]
    grep -F "took 2 s (HVD_START_TIME) and still waits for worker 1" worker0.err
}

@test "a server of names that does not answer holds nobody up" {
    gcc -shared -fPIC -o slow.so "$ROOT/tests/support/slow_names.c"
    export SLOW_PORT=${port[0]}
    # That of another rank: this one says whom it waits for, and gives up.
    LD_PRELOAD=$PWD/slow.so HVD_START_TIME=2 task "$two" worker 1 "$MEMBER"
    expect 1
    grep -F "took 2 s (HVD_START_TIME) and still waits for worker 0 at localhost:${port[0]} (its name is looked up)" worker1.err
    # Its own: it cannot listen.
    started=()
    SECONDS=0
    LD_PRELOAD=$PWD/slow.so task "$two" worker 0 "$MEMBER"
    expect 1
    [ "$SECONDS" -lt 20 ]
    grep -F "the address localhost:${port[0]} of rank 0: its name was not found within 10 s" worker0.err
}

@test "the limit of open files is raised, or named" {
    (
        ulimit -Sn 100
        task "$two" worker 0 "$MEMBER" sleep
        task "$two" worker 1 "$MEMBER" sleep
        for ((i = 0; i < 300; i++)); do
            [ "$(grep -l sum ./*.out | wc -l)" -lt 2 ] || break
            sleep 0.1
        done
        grep 'Max open files *194 ' "/proc/$(pgrep -P "${started[0]}")/limits"
        teardown
    )
    (
        ulimit -n 33
        task "$two" worker 0 "$MEMBER"
        expect 1
    )
    grep -F 'rank 0 of 2 needs 34 open files, and this process may have 33' worker0.err
}

@test "roles without a rank are told so" {
    local cluster="$two,\"evaluator\":[\"localhost:${port[2]}\"]"
    task "$cluster" evaluator 0 "$MEMBER"
    expect 1
    grep -F 'this process is evaluator 0 of the cluster, which has no rank' evaluator0.err
    started=()
    task "$two,\"ps\":[\"localhost:${port[2]}\"]" worker 0 "$MEMBER"
    expect 1
    grep -F 'ps' worker0.err
}

@test "an error in TF_CONFIG is one line that says where" {
    TF_CONFIG='{"cluster": {"worker": ["localhost:99999"]},
 "task": {"type": "worker", "index": 0}}' run "$MEMBER"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"line 1"*"cluster.worker[0]"* ]]
}

@test "a port in use is named" {
    task "$two" worker 0 "$MEMBER"
    until_listening "${port[0]}"
    task "$two" worker 0 "$MEMBER"
    ends_within 30 "${started[1]}"
    grep -F "rank 0 cannot listen on localhost:${port[0]}: a process uses that port" worker0.err
    task "$two" worker 1 "$MEMBER"
    expect 0 1 0
}

@test "a worker of another cluster is refused, and the right one is not" {
    task "$two" worker 0 "$MEMBER"
    task "$two,\"evaluator\":[\"localhost:${port[2]}\"]" worker 1 "$MEMBER"
    ends_within 30 "${started[1]}"
    grep -F 'has another description of the cluster' worker1.err
    task "$two" worker 1 "$MEMBER"
    expect 0 1 0
    [ "$(grep -c 'was refused' worker0.err)" -eq 1 ]
}

@test "other hosts need a key" {
    task "\"worker\":[\"192.0.2.1:${port[0]}\",\"192.0.2.2:${port[1]}\"]" worker 0 "$MEMBER"
    expect 1
    grep -F 'give all processes a key of the job' worker0.err
}

@test "a key is one that nobody else can read" {
    head -c 32 /dev/urandom >key
    chmod 644 key
    HVD_JOB_KEY_FILE=key task "$two" worker 0 "$MEMBER"
    expect 1
    grep -F 'the key of the job (key): others may use the file: chmod 600' worker0.err
    chmod 600 key
    started=()
    HVD_JOB_KEY_FILE=key task "$two" worker 0 "$MEMBER"
    HVD_JOB_KEY_FD=7 task "$two" worker 1 "$MEMBER" 7<key
    expect 0 0
    head -c 15 key >short
    chmod 600 short
    started=()
    HVD_JOB_KEY_FILE=short task "$two" worker 0 "$MEMBER"
    expect 1
    grep -F 'fewer than 16 bytes' worker0.err
}

@test "a worker with another key is refused" {
    local name
    for name in a b; do
        head -c 32 /dev/urandom >$name
        chmod 600 $name
    done
    HVD_JOB_KEY_FILE=a task "$two" worker 0 "$MEMBER"
    HVD_JOB_KEY_FILE=b task "$two" worker 1 "$MEMBER"
    ends_within 30 "${started[1]}"
    grep -F 'has another key of the job' worker1.err
    HVD_JOB_KEY_FILE=a task "$two" worker 1 "$MEMBER"
    expect 0 1 0
}

@test "an interrupt ends one worker, which the others name" {
    local cluster="\"worker\":[\"localhost:${port[0]}\",\"localhost:${port[1]}\",\"localhost:${port[2]}\"]" i
    for i in 0 2; do
        task "$cluster" worker $i "$MEMBER" sleep
    done
    # A background process of a shell ignores the signal unless it is told not to.
    task "$cluster" worker 1 python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$MEMBER" sleep
    for i in {1..300}; do
        [ "$(grep -l sum ./*.out | wc -l)" -lt 3 ] || break
        sleep 0.1
    done
    pkill -INT -P "${started[2]}"
    ends_within 30 "${started[0]}"
    ends_within 30 "${started[1]}"
    grep -F 'rank 1 (process' worker0.err
    grep -F 'rank 1 (process' worker2.err
}

@test "settings of transports that do not fit are errors" {
    HVD_TRANSPORT=mpi task "$two" worker 0 "$MEMBER"
    HVD_TRANSPORT=mpi task "$two" worker 1 "$MEMBER"
    expect 1 1
    grep -F 'HVD_TRANSPORT=mpi, but the ranks of a cluster have no MPI' worker1.err
    HVD_TRANSPORT=tcp run timeout 60 "$ROOT/mpi-launch.sh" -np 2 "$MEMBER"
    [ "$status" -ne 0 ]
    [[ $output == *"HVD_TRANSPORT=tcp is for the ranks of a cluster"* ]]
}

@test "only the addresses of the cluster are listened on" {
    task "$two" worker 0 "$MEMBER" sleep
    task "$two" worker 1 "$MEMBER" sleep
    local i
    for i in {1..300}; do
        [ "$(grep -l sum ./*.out | wc -l)" -lt 2 ] || break
        sleep 0.1
    done
    local pids
    pids=$(pgrep -P "${started[0]}"; pgrep -P "${started[1]}")
    # shellcheck disable=SC2086
    run grep -F "$(printf 'pid=%s,\n' $pids)" <(ss -Hltunp)
    echo "$output"
    tail ./*.{out,err}
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == *"127.0.0.1:"* || ${lines[0]} == *"[::1]:"* ]]
    [[ ${lines[1]} == *"127.0.0.1:"* || ${lines[1]} == *"[::1]:"* ]]
}

@test "data that is not in shared memory goes over TCP, or UCX" {
    local transport
    for transport in tcp ucx; do
        HVD_SHM_SIZE=0 HVD_TRANSPORT=$transport HVD_LOG=info \
            timeout 100 "$ROOT/tests/tools/by-hand" 2 "$MEMBER" >out 2>&1
        [ "$(grep -c 'of 2, sum 3, without MPI' out)" -eq 2 ]
        grep -i "over $transport" out
    done
}

@test "a model is trained by two workers in two terminals" {
    task "$two" worker 0 "$BIN/mnist" -s 30 --train-images 4000 \
        --test-images 500
    task "$two" worker 1 "$BIN/mnist" -s 30 --train-images 4000 \
        --test-images 500
    expect 0 0
    grep -F 'equal on all ranks' worker0.out
}
