# SPDX-License-Identifier: Apache-2.0
# Workers of other hosts, which tests/hosts/net makes, join an elastic cluster,
# and come back (docs/ELASTIC.md). The programs are those of
# tests/cluster/grow.bats and join_training.bats.

load ../cluster/tasks
load ../cluster/growing

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export NET=$BATS_FILE_TMPDIR/net GROWER=$BATS_FILE_TMPDIR/grower
    export REGRESSION=$BATS_FILE_TMPDIR/regression
    local lib=${HVD_BUILD:-$ROOT/build}/lib from=$ROOT/tests/cluster
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$GROWER" "$from/grower.c" \
        -L"$lib" -lhvd -Wl,-rpath,"$lib"
    gcc -O1 -Wall -Wextra -I"$ROOT/libhvd/include" -I"$ROOT/device/include" \
        -I"$ROOT/models/include" -o "$REGRESSION" "$from/regression.c" \
        -L"$lib" -lhvd-train -lhvd -lipu -Wl,-rpath,"$lib"
    head -c 32 /dev/urandom >"$BATS_FILE_TMPDIR/key"
    chmod 600 "$BATS_FILE_TMPDIR/key"
    "$BATS_TEST_DIRNAME/net" up "$NET" 3
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=4s HVD_START_TIME=40s
    export HVD_JOB_KEY_FILE=$BATS_FILE_TMPDIR/key
}

teardown_file() {
    "$BATS_TEST_DIRNAME/net" down "$NET"
}

teardown() {
    local node
    "$BATS_TEST_DIRNAME/net" clear "$NET"
    wait
    for node in 1 2 3; do
        "$BATS_TEST_DIRNAME/net" join "$NET" "$node"
    done
}

# Describes workers of which the i-th is on the i-th of these hosts.
workers() { # host...
    local i addresses=()
    nodes=("$@")
    for i in "${!nodes[@]}"; do
        addresses+=("10.77.0.${nodes[i]}:$((3737 + i))")
    done
    workers_at "${addresses[@]}"
}

# Runs a program on the host of a worker.
on_host() { # index command...
    local index=$1
    shift
    exec "$NET/agent" "10.77.0.${nodes[index]}" "exec $*"
}
# shellcheck disable=SC2034 # growing.bash runs it
AGENT=(on_host)

@test "a world of one host takes in workers of two others, one after the other" {
    export HVD_ELASTIC_MIN=1
    workers 1 2 3
    grow 0 100 until 3
    until_line 0 '^world 0: rank 0 of 1, '
    grow 1 100 until 3
    until_line 1 '^world 1: rank 1 of 2, old -1 of 1, 1 joined, step 0$'
    grow 2 100 until 3
    ends_well 0 1 2
    grep -Fx 'world 2: rank 0 of 3, old 0 of 2, 1 joined, step 0' 0.out
    grep -Fx 'world 2: rank 1 of 3, old 1 of 2, 1 joined, step 0' 1.out
    grep -Fx 'world 2: rank 2 of 3, old -1 of 2, 1 joined, step 0' 2.out
}

@test "a world of two hosts takes in several of all hosts at once" {
    export HVD_ELASTIC_MIN=2
    workers 1 2 1 2 3 3
    grow 0 50 until 6
    grow 1 50 until 6
    until_line 0 '^world 0: rank 0 of 2, '
    for index in 2 3 4 5; do
        grow $index 50 until 6
    done
    ends_well 0 1 2 3 4 5
}

@test "so they do over UCX" {
    export HVD_ELASTIC_MIN=2 HVD_TRANSPORT=ucx
    workers 1 2 3
    grow 0 50 until 3
    grow 1 50 until 3
    until_line 0 '^world 0: rank 0 of 2, '
    grow 2 50 until 3
    ends_well 0 1 2
}

@test "each of three workers on three hosts may be killed, and comes back" {
    local victim
    for victim in 0 1 2; do
        workers 1 2 3
        grow 0 100000000
        grow 1 100000000
        grow 2 100000000
        until_line "$victim" '^world 0: '
        end_with_signal "$victim"
        NAME=back grow "$victim" 100000000
        until_line back '^world [0-9]*: rank 2 of 3, old -1 of 2, 1 joined'
        "$BATS_TEST_DIRNAME/net" clear "$NET"
        wait
        grep wrong ./*.out && return 1
    done
    true
}

@test "those who have come count as the others when more are lost" {
    export HVD_ELASTIC_MIN=2
    workers 1 2 3 3 3
    grow 0 100 until 5
    grow 1 100 until 5
    until_line 0 '^world 0: rank 0 of 2, '
    for index in 2 3 4; do
        grow $index 100 until 5
    done
    until_line 4 '^world [0-9]*: rank [0-9] of 5, '
    end_with_signal 0
    end_with_signal 1
    until_line 4 '^world [0-9]*: rank [0-9] of 3, '
    NAME=b0 grow 0 100 until 5
    NAME=b1 grow 1 100 until 5
    ends_well b0 b1 2 3 4
}

@test "one that dies while it joins harms nobody" {
    local ms
    export HVD_ELASTIC_MIN=2
    workers 1 2 3
    grow 0 100 until 3
    grow 1 100 until 3
    until_line 0 '^world 0: '
    for ms in 010 020 030 040 050 060 070 080 100 150; do
        NAME=dead grow 2 100 until 3
        sleep "0.$ms"
        end_with_signal dead
    done
    grow 2 100 until 3
    ends_well 0 1 2
}

@test "one may die, the host of the lobby among them, while another one joins" {
    local ms
    export HVD_ELASTIC_MIN=3
    workers 1 2 3 3
    grow 0 100 until 4
    grow 1 100 until 4
    grow 2 100 until 4
    until_line 0 '^world 0: '
    for ms in 010 030 050 070 100; do
        for victim in 0 1; do
            NAME=new grow 3 100 until 4
            sleep "0.$ms"
            end_with_signal $victim
            end_with_signal new
            grow $victim 100 until 4
            until_line $victim '^world [0-9]*: rank 2 of 3, '
        done
    done
    grow 3 100 until 4
    ends_well 0 1 2 3
}

@test "a host that is cut off is left out, and its worker comes back later" {
    export HVD_ELASTIC_MIN=2
    workers 1 2 3
    grow 0 1500 until 3
    grow 1 1500 until 3
    grow 2 1500 until 3
    until_line 2 '^world 0: '
    "$BATS_TEST_DIRNAME/net" cut "$NET" 3
    until_line 0 '^world 1: rank 0 of 2, '
    fails 2
    "$BATS_TEST_DIRNAME/net" join "$NET" 3
    NAME=back grow 2 1500 until 3
    ends_well 0 1 back
}

@test "a guest whose host is cut off, or killed, is let in by the others" {
    local how
    export HVD_ELASTIC_MIN=3
    for how in cut kill; do
        workers 1 2 3 3
        grow 0 100 until 5
        grow 1 100 until 5
        grow 2 100 until 5
        until_line 0 '^world 0: '
        # so worker 0 is the only one that answers
        # shellcheck disable=SC2154 # growing.bash sets pid
        kill -STOP "${pid[1]}" "${pid[2]}"
        NAME=guest grow 3 100 until 5
        sleep 1
        if [ $how = cut ]; then
            "$BATS_TEST_DIRNAME/net" cut "$NET" 1
        else
            end_with_signal 0
        fi
        kill -CONT "${pid[1]}" "${pid[2]}"
        until_line guest '^world [0-9]*: rank 2 of 3, old -1 of 2, 1 joined'
        [ $how = kill ] || fails 0
        teardown
    done
}

# While that host is cut off, the others let in one more.
@test "a host that is cut off while its worker joins harms nobody" {
    local ms
    export HVD_ELASTIC_MIN=2
    workers 1 2 3 2
    grow 0 100 until 4
    grow 1 100 until 4
    until_line 0 '^world 0: '
    for ms in 020 050 080; do
        NAME=lost grow 2 100 until 4
        sleep "0.$ms"
        "$BATS_TEST_DIRNAME/net" cut "$NET" 3
        NAME=late grow 3 100 until 4
        until_line late '^world [0-9]*: rank 2 of 3, '
        end_with_signal late
        end_with_signal lost
        "$BATS_TEST_DIRNAME/net" join "$NET" 3
    done
    grow 2 100 until 4
    grow 3 100 until 4
    ends_well 0 1 2 3
}

# It stops where the ranks of the new world are connected, and no watchdog runs.
@test "a worker that stops in the middle of its joining harms nobody" {
    export HVD_ELASTIC_MIN=2 HVD_START_TIME=300s
    gcc -shared -fPIC -o stops.so "$BATS_TEST_DIRNAME/stops_at_page.c"
    workers 1 2 3 2
    grow 0 100 until 4
    grow 1 100 until 4
    until_line 0 '^world 0: '
    NAME=stopped LD_PRELOAD=$PWD/stops.so grow 2 100 until 4
    until_stopped stopped
    NAME=late grow 3 100 until 4
    until_line late '^world [0-9]*: rank 2 of 3, '
    kill -CONT "${pid[stopped]}"
    ends_well 0 1 late stopped
}

@test "a worker of another host takes part in a training, and so does one that comes back" {
    GROWER=$REGRESSION
    export HVD_ELASTIC_MIN=2
    workers 1 2 3
    grow 0 20
    grow 1 20
    until_event 1 '"commit"'
    grow 2 20
    until_event 1 '"join"'
    end_with_signal 0
    until_event 1 '"restore"'
    NAME=back0 grow 0 20
    until_event 2 '"join"'
    end_alike back0 1 2
}
