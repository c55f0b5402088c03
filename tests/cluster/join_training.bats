# SPDX-License-Identifier: Apache-2.0
# Workers that are killed come back to a training of the trainer library
# (docs/TRAINER.md), and those that train something else are sent away.

load tasks
load growing

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export GROWER=$BATS_FILE_TMPDIR/regression
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -O1 -Wall -Wextra -I"$ROOT/libhvd/include" -I"$ROOT/device/include" \
        -I"$ROOT/models/include" -o "$GROWER" \
        "$BATS_TEST_DIRNAME/regression.c" -L"$lib" -lhvd-train -lhvd -lipu \
        -Wl,-rpath,"$lib"
    local name
    for name in dies_in_grow dies_in_restore; do
        gcc -shared -fPIC -O1 -Wall -Wextra -I"$ROOT/libhvd/include" \
            -o "$BATS_FILE_TMPDIR/$name.so" "$BATS_TEST_DIRNAME/$name.c" -ldl
    done
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

@test "each of three workers is killed and started again, and all train to the end" {
    local victim
    workers 3
    grow 0 20
    grow 1 20
    grow 2 20
    until_event 1 '"commit"'
    for victim in 0 1 2; do
        end_with_signal "$victim"
        until_event $((victim + 1)) '"restore"'
        NAME=back$victim grow "$victim" 20
        until_event $((victim + 1)) '"join"'
    done
    end_alike back0 back1 back2
    grep -h '^end rank [0-2] of 3 ' back0.out
    grep '"join"' events | grep '"ranks":\[3,4,5\],.*"joined":\[5\]'
}

@test "a worker that comes late takes part" {
    workers 2
    HVD_ELASTIC_MIN=1 grow 0 20
    until_event 1 '"commit"'
    HVD_ELASTIC_MIN=1 grow 1 20
    until_event 1 '"join"'
    end_alike 0 1
}

@test "one that trains something else, or fails, is sent away, and the others go on" {
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 20
    grow 1 20
    until_event 1 '"commit"'
    NAME=other grow 2 20 5
    fails other
    grep -F 'this process cannot join the training: rows of a batch: 5 here, and 4 there' other.err
    NAME=none grow 2 20 1000
    fails none
    grep -F 'the data has ended, and has nothing' none.err
    until_event 2 '"restore"'
    grow 2 20
    until_event 1 '"join"'
    end_alike 0 1 2
}

@test "one that dies when it has been let in is not missed" {
    local ms
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 20
    grow 1 20
    until_event 1 '"commit"'
    for ms in 010 030 060 100 150; do
        NAME=dead grow 2 20
        sleep "0.$ms"
        end_with_signal dead
    done
    grow 2 20
    until_event 1 '"join"'
    end_alike 0 1 2
}

@test "one that dies while another one joins is named, and the others go on" {
    local i victim left
    export HVD_ELASTIC_MIN=3
    for victim in 0 2; do
        rm -f events
        workers 4
        for i in 0 1 2; do
            if [ "$i" -eq "$victim" ]; then
                LD_PRELOAD=$BATS_FILE_TMPDIR/dies_in_grow.so grow "$i" 20
            else
                grow "$i" 20
            fi
        done
        until_event 1 '"commit"'
        grow 3 20
        until_event 1 '"join"'
        left=(0 1 2)
        unset "left[$victim]"
        end_alike "${left[@]}" 3
        ! wait "${pid[$victim]}" || return 1
        grep '"loss"' events | grep "\"lost\":\[$victim\]"
        grep '"restore"' events |
            grep "\"ranks\":\[$(IFS=, && echo "${left[*]}")\]"
        grep '"join"' events | grep '"joined":\[3\]'
    done
}

@test "one that has just got the state goes on without those who had it" {
    export HVD_ELASTIC_MIN=1
    workers 2
    LD_PRELOAD=$BATS_FILE_TMPDIR/dies_in_restore.so grow 0 20
    until_event 1 '"commit"'
    grow 1 20
    end_alike 1
    ! wait "${pid[0]}" || return 1
    grep '"loss"' events | grep '"ranks":\[0\],"lost":\[0\]'
    grep '"restore"' events | grep '"ranks":\[1\],.*"joined":\[1\]'
}

@test "a worker comes back on another host, which the file of hosts names" {
    local port
    read -r -a port < <("$ROOT/tests/tools/free-ports" 2)
    workers_at "first:${port[0]}" "second:${port[1]}"
    head -c 32 /dev/urandom >key
    chmod 600 key
    export HVD_JOB_KEY_FILE=key HVD_HOSTS_FILE=hosts
    printf '127.0.0.1 first\n127.0.0.1 second\n' >hosts
    HVD_ELASTIC_MIN=1 grow 0 20
    HVD_ELASTIC_MIN=1 grow 1 20
    until_event 1 '"commit"'
    end_with_signal 1
    printf '# moved\n127.0.0.1\tFirst\n127.0.0.2 nobody second # here\n' >hosts
    NAME=back HVD_ELASTIC_MIN=1 grow 1 20
    until_event 1 '"join"'
    # Nothing else leads to these names.
    ss -Htln "sport = :${port[1]}" | grep -F "127.0.0.2:${port[1]}"
    end_alike 0 back
    rm hosts
    NAME=none grow 1 20
    fails none
    grep -F "HVD_HOSTS_FILE='hosts': No such file or directory" none.err
}

@test "too few ranks wait for those that come back" {
    workers 3
    grow 0 20 4 2
    grow 1 20 4 2
    grow 2 20 4 2
    until_event 1 '"commit"'
    kill -KILL "${pid[0]}" "${pid[1]}"
    wait "${pid[0]}" "${pid[1]}" || true
    until_event 1 '"loss"'
    sleep 0.5
    NAME=back0 grow 0 20 4 2
    NAME=back1 grow 1 20 4 2
    end_alike back0 back1 2
    # Nobody trained alone.
    ! grep '"restore"' events | grep '"ranks":\[[0-9]*\]'
}

@test "too few wait on if one that waited does not answer when they let others in" {
    workers 3
    grow 0 20 4 3
    grow 1 20 4 3
    grow 2 20 4 3
    until_event 1 '"commit"'
    kill -KILL "${pid[0]}" "${pid[1]}"
    wait "${pid[0]}" "${pid[1]}" || true
    until_event 1 '"loss"'
    NAME=back0 grow 0 20 4 3
    until_guests 1 "${port[2]}"
    kill -STOP "${pid[back0]}"
    NAME=back1 grow 1 20 4 3
    until_guests 2 "${port[2]}"
    sleep 1
    kill -CONT "${pid[back0]}"
    end_alike back0 back1 2
    # Nobody trained in a smaller world.
    ! grep '"restore"' events | grep -v '"ranks":\[[0-9]*,[0-9]*,[0-9]*\]'
}

@test "mnist begins anew if a rank is lost before it trains" {
    GROWER=${HVD_BUILD:-$ROOT/build}/bin/mnist
    workers 2
    local rank
    for rank in 0 1; do
        grow "$rank" --elastic 1:2 --model mlp --train-images 60000 \
            --test-images 100 --epochs 1 --elastic-log log
    done
    until_line_of_any '^drawing digits'
    end_with_signal 1
    wait "${pid[0]}"
    cat 0.out
    grep '^mnist: 1 rank, ' 0.out
    # No event had named it: the start counts it.
    grep -c '"newcomers"' log | grep -x 1
    grep '"event":"start",.*"ranks":\[0\],"newcomers":1,' log
}

until_guests() { # n port: so many wait at the worker that listens there
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(ss -Htn state established "sport = :$2" | wc -l)" -lt "$1" ] || return 0
        sleep 0.05
    done
    return 1
}

# prepare WORKER...: starts workers of mnist, of which two must be left.
prepare() {
    local worker
    for worker in "$@"; do
        grow "$worker" --elastic 2:3 --model mlp --train-images 20000 \
            --test-images 100 --epochs 1 --elastic-log log
    done
}

@test "mnist waits for workers that come back if too few are left before it trains" {
    GROWER=${HVD_BUILD:-$ROOT/build}/bin/mnist
    local left victims victim
    for left in 0 2; do
        workers 3
        rm -f log
        prepare 0 1 2
        until_line_of_any '^drawing digits'
        victims=(0 1 2)
        unset "victims[$left]"
        for victim in "${victims[@]}"; do
            end_with_signal "$victim"
        done
        sleep 1
        kill -0 "${pid[$left]}"
        for victim in "${victims[@]}"; do
            prepare "$victim"
        done
        wait_for_all 0 1 2
        cat ./*.out log | grep -v '"commit"'
        grep -h '^ranks have gone or come: 3 go on\|^mnist: 3 ranks, ' ./*.out
        ! grep 'at least' ./*.err || return 1
        # The start counts them, since no event had named them.
        grep '"newcomers":2' log | grep '"event":"start",.*"ranks":\[0,1'
        grep '"event":"end"' log | grep '"ranks":\[0,1,2\]'
    done
}

@test "one that comes to mnist while too few wait, and dies, is not missed" {
    GROWER=${HVD_BUILD:-$ROOT/build}/bin/mnist
    local ms
    workers 3
    prepare 0 1 2
    until_line_of_any '^drawing digits'
    end_with_signal 1
    end_with_signal 2
    for ms in 05 50; do
        prepare 1
        sleep "0.$ms"
        end_with_signal 1
    done
    prepare 1 2
    wait_for_all 0 1 2
    cat 0.out log | grep -v '"commit"'
    grep '"event":"end"' log | grep '"ranks":\[0,1,2\]'
}

@test "one that comes to mnist goes on if a rank is lost while it prepares" {
    GROWER=${HVD_BUILD:-$ROOT/build}/bin/mnist
    local arguments=(--elastic 1:3 --model mlp --train-images 30000
        --batch-size 10 --test-images 100 --epochs 2 --elastic-log events)
    workers 3
    export HVD_ELASTIC_MIN=2
    grow 0 "${arguments[@]}"
    grow 1 "${arguments[@]}"
    until_event 1 '"commit"'
    grow 2 "${arguments[@]}"
    sleep 0.7 # it draws digits for a second and more
    end_with_signal 1
    wait_for_all 0 2
    grep -v '"commit"' events
    grep '"event":"loss",.*"lost":\[1\]' events
    grep '"ranks":\[0,2\],.*"joined":\[2\]' events
}

until_line_of_any() { # pattern
    local i
    for ((i = 0; i < 400; i++)); do
        ! grep -q "$1" ./*.{out,err} || return 0
        sleep 0.05
    done
    return 1
}
