# SPDX-License-Identifier: Apache-2.0
# The tasks of a cluster run on several hosts, which tests/hosts/net makes,
# started by hand on each.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BUILD=${HVD_BUILD:-$ROOT/build}
    export NET=$BATS_FILE_TMPDIR/net
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$BATS_FILE_TMPDIR/victim" \
        "$ROOT/tests/faults/victim.c" -L"$BUILD/lib" -lhvd \
        -Wl,-rpath,"$BUILD/lib"
    head -c 32 /dev/urandom >"$BATS_FILE_TMPDIR/key"
    chmod 600 "$BATS_FILE_TMPDIR/key"
    "$ROOT/tests/hosts/net" up "$NET" 3
}

teardown_file() {
    "$ROOT/tests/hosts/net" down "$NET"
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    export HVD_JOB_KEY_FILE=$BATS_FILE_TMPDIR/key
    export HVD_HEARTBEAT_TIME=3s HVD_EXIT_GRACE_TIME=2s HVD_START_TIME=60s
}

teardown() {
    "$ROOT/tests/hosts/net" clear "$NET"
    wait
    "$ROOT/tests/hosts/net" join "$NET" 2
    "$ROOT/tests/hosts/net" join "$NET" 3
}

# Starts two workers on each host, the last one first; worker i writes to files
# i.out and i.err. form is that of the hosts' addresses.
started=()
form=10.77.0.%d:%d
start() { # command...
    local i address cluster=
    for i in {0..5}; do
        # shellcheck disable=SC2059 # a form
        printf -v address "$form" $((i / 2 + 1)) $((3737 + i))
        cluster+="${cluster:+,}\"$address\""
    done
    rm -f ./*.out ./*.err # of a start before, which cut_off would take for this one's
    head -c 4096 /dev/zero >meeting
    export RANKS_MEETING=$PWD/meeting
    for i in {5..0}; do
        TF_CONFIG="{\"cluster\":{\"worker\":[$cluster]},\"task\":{\"type\":\"worker\",\"index\":$i}}" \
            timeout 200 "$NET/agent" "10.77.0.$((i / 2 + 1))" "$*" \
            >"$i.out" 2>"$i.err" 3>&- &
        started[i]=$!
    done
}

all_end() { # with this status
    local i status
    for i in {0..5}; do
        status=0
        wait "${started[i]}" || status=$?
        [ "$status" -eq "$1" ] || {
            echo "worker $i: $status"
            tail ./*.out ./*.err
            return 1
        }
    done
}

@test "every operation works on three hosts" {
    local transport
    for transport in tcp ucx; do
        HVD_TRANSPORT=$transport start "$BUILD/bin/tests-mpi-operations"
        all_end 0
        [ "$(cat ./*.out | grep -c '^ok')" -ge 60 ]
    done
}

@test "tensors of all sizes are summed on three hosts" {
    start "$BUILD/bin/tests-mpi-allreduce"
    all_end 0
}

@test "a model is trained on three hosts" {
    start "$BUILD/bin/mnist" -s 20 --train-images 3000 --test-images 300
    all_end 0
    grep -F 'equal on all ranks' 0.out
}

@test "workers of two hosts train with servers on a third" {
    start "$BUILD/bin/mnist" -s 20 --train-images 3000 --test-images 300 \
        --strategy parameter-server --servers 2
    all_end 0
    grep -F 'equal on all ranks' 0.out
}

@test "a worker that is killed is named on all hosts" {
    start "$BATS_FILE_TMPDIR/victim" loop kill 3
    local i
    for i in 0 1 2 4 5; do
        wait "${started[i]}" || true
        grep -E 'rank 3 .*(killed|gone)' "$i.err" "$i.out"
    done
}

# Waits for so many lines like this in all these files, a minute at most.
wait_for() { # lines extended-regular-expression file...
    local tenths lines=$1 expression=$2
    shift 2
    for ((tenths = 0; tenths < 600; tenths++)); do
        [ "$(cat "$@" 2>/dev/null | grep -cE -- "$expression")" -lt "$lines" ] || return 0
        sleep 0.1
    done
    tail "$@"
    return 1
}

# Starts six workers, of which nobody uses the library.
start_idle() {
    start "$BATS_FILE_TMPDIR/victim" idle none 9
    wait_for 6 '^rank . runs$' {0..5}.out
}

# Cuts the second host off while nobody uses the library.
cut_off() {
    local i
    start_idle
    "$ROOT/tests/hosts/net" cut "$NET" 2
    for i in 0 1 4 5; do
        wait "${started[i]}" || true
        grep -E 'rank [23]' "$i.err" "$i.out"
    done
}

@test "a host that is cut off is named on the others" {
    cut_off
}

@test "hosts with IPv6 addresses train, and name one that is cut off" {
    form='[fd77::%d]:%d'
    start "$BUILD/bin/mnist" -s 20 --train-images 3000 --test-images 300
    all_end 0
    grep -F 'equal on all ranks' 0.out
    ! grep warning ./*.err
    cut_off
    grep -h 'no heartbeat for 3' ./*.err
}

# Starts hvd-server on the hosts 2 and 3, for a client on host 1.
servers() {
    local i
    echo '{"cluster":{"worker":["10.77.0.2:3737","10.77.0.3:3737"]}}' >cluster.json
    for i in 0 1; do
        TMPDIR=$PWD "$NET/agent" "10.77.0.$((i + 2))" "$BUILD/bin/hvd-server" \
            --cluster cluster.json --task "worker:$i" 2>"server$i" 3>&- &
        started[i]=$!
    done
    wait_for 2 'waits for clients' server0 server1
}

client() {
    timeout 60 "$NET/agent" 10.77.0.1 "$BUILD/bin/mnist" --remote cluster.json \
        --train-images 3000 --test-images 300 --model mlp "$@"
}

@test "servers on two hosts train for a client on a third" {
    servers
    client --epochs 1 --summary summary.json --save-weights weights >out
    grep -F 'equal on all ranks' out
    grep -F '"world_size": 2' summary.json
    [ -s weights ]
    # A server's host is cut off: the client says which.
    client --epochs 100000 >out 2>err &
    wait_for 1 '^epoch ' out
    "$ROOT/tests/hosts/net" cut "$NET" 3
    ! wait $!
    cat err
    grep -E '^(worker 0 at 10.77.0.2:3737: mnist: .* rank 1 |mnist: worker 1 at 10.77.0.3:3737: )' err
    # The other one waits for the next client.
    "$ROOT/tests/hosts/net" join "$NET" 3
    kill -0 "${started[0]}" "${started[1]}"
    for i in {1..150}; do
        ! client --epochs 1 >out 2>err || break
        sleep 0.1
    done
    grep -F 'equal on all ranks' out
    kill "${started[@]}"
}

@test "only the addresses of the cluster are listened on" {
    local i
    start_idle
    # Connections and heartbeats, of both ranks of a host.
    for i in 1 2 3; do
        run "$NET/agent" "10.77.0.$i" 'ss -Hltun'
        echo "$output"
        [ "${#lines[@]}" -eq 4 ]
        [ "$(grep -c " 10\.77\.0\.$i:" <<<"$output")" -eq 4 ]
    done
}

@test "without the key, no address of a network is listened on" {
    unset HVD_JOB_KEY_FILE
    start "$BUILD/bin/mnist" -s 1
    all_end 1
    grep -F 'give all processes a key of the job' 5.err
}
