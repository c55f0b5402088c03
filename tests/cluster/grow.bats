# SPDX-License-Identifier: Apache-2.0
# Ranks of an elastic cluster come late, or come back (docs/ELASTIC.md).

load tasks
load growing

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export GROWER=$BATS_FILE_TMPDIR/grower
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$GROWER" \
        "$BATS_TEST_DIRNAME/grower.c" -L"$lib" -lhvd -Wl,-rpath,"$lib"
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=4s HVD_START_TIME=40s
}

@test "a cluster starts with as many as it needs, and the others join" {
    workers 3
    HVD_ELASTIC_MIN=1 grow 0 100 until 3
    until_line 0 '^world 0: rank 0 of 1, '
    HVD_ELASTIC_MIN=1 grow 1 100 until 3
    until_line 1 '^world 1: rank 1 of 2, old -1 of 1, 1 joined, step 0$'
    HVD_ELASTIC_MIN=1 grow 2 100 until 3
    ends_well 0 1 2
    grep -Fx 'world 2: rank 0 of 3, old 0 of 2, 1 joined, step 0' 0.out
    grep -Fx 'world 2: rank 1 of 3, old 1 of 2, 1 joined, step 0' 1.out
    grep -Fx 'world 2: rank 2 of 3, old -1 of 2, 1 joined, step 0' 2.out
    grep -Fx 'end: rank 2 of 3, step 100' 2.out
}

@test "without HVD_ELASTIC_MIN all are waited for" {
    workers 3
    grow 2 10
    grow 1 10
    sleep 1
    grow 0 10
    ends_well 0 1 2
    grep -Fx 'world 0: rank 1 of 3, old -1 of 0, 0 joined, step 0' 1.out
}

@test "each of three may be killed, and comes back" {
    local victim
    for victim in 0 1 2; do
        workers 3
        grow 0 100000000
        grow 1 100000000
        grow 2 100000000
        until_line "$victim" '^world 0: '
        kill -KILL "${pid[$victim]}"
        NAME=back grow "$victim" 100000000
        until_line back '^world [0-9]*: rank 2 of 3, old -1 of 2, 1 joined'
        kill -KILL "${pid[@]}" 2>/dev/null || true
        wait "${pid[@]}" || true
        grep wrong ./*.out && return 1
    done
    true
}

@test "several join at once, and are killed and come back again" {
    workers 4
    export HVD_ELASTIC_MIN=2
    grow 0 50 until 4
    grow 1 50 until 4
    until_line 0 '^world 0: rank 0 of 2, '
    kill -KILL "${pid[0]}"
    NAME=b0 grow 0 50 until 4
    grow 2 50 until 4
    grow 3 50 until 4
    ends_well b0 1 2 3
    grep -F 'rank 0 of 4, ' 1.out
}

@test "one that dies while it joins harms nobody" {
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 100 until 3
    grow 1 100 until 3
    until_line 0 '^world 0: '
    for ms in 005 010 020 030 040 050 060 080; do
        NAME=dead grow 2 100 until 3
        sleep "0.$ms"
        kill -KILL "${pid[dead]}"
        wait "${pid[dead]}" || true
    done
    grow 2 100 until 3
    ends_well 0 1 2
}

@test "one that is stopped while it waits stops nobody" {
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 3000
    grow 1 3000
    until_line 0 '^world 0: '
    NAME=slow grow 2 3000
    sleep 0.1
    kill -STOP "${pid[slow]}"
    until_line 0 '^end: '
    kill -KILL "${pid[slow]}"
    ends_well 0 1
}

@test "one with another key, or without HVD_ELASTIC, is refused in words" {
    workers 3
    head -c 32 /dev/zero | tr '\0' a >key
    head -c 32 /dev/zero | tr '\0' b >other
    chmod 600 key other
    export HVD_ELASTIC_MIN=2 HVD_JOB_KEY_FILE=$PWD/key
    grow 0 100 until 3
    grow 1 100 until 3
    until_line 0 '^world 0: '
    HVD_JOB_KEY_FILE=$PWD/other NAME=wrong grow 2 100
    fails wrong
    grep -E 'worker [01] at .* refuses this process: it has another key of the job' wrong.err
    HVD_ELASTIC=0 NAME=rigid grow 2 100
    fails rigid
    grep -F 'refuses this process: it has another value of HVD_ELASTIC' rigid.err
    grow 2 100 until 3
    ends_well 0 1 2
}

@test "one that waits is told when the job ends" {
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 500 deaf 0
    grow 1 500 deaf 0
    until_line 0 '^world 0: '
    grow 2 500
    ends_well 0 1
    fails 2
    grep -E '^-21: the job has ended, and worker [01] has not let this process in' 2.err
}

@test "a number of ranks that cannot be is refused" {
    workers 3
    HVD_ELASTIC_MIN=4 grow 0 1
    fails 0
    grep -F "HVD_ELASTIC_MIN='4' is not a number of ranks: give 1 to 3" 0.err
}
