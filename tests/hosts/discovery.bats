# SPDX-License-Identifier: Apache-2.0
# hvd-run starts workers on the hosts that a script names, which come and go
# (docs/LAUNCHER.md). Three network namespaces are the hosts (tests/hosts/net).

bats_require_minimum_version 1.5.0

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
    export NET=$BATS_FILE_TMPDIR/net
    "$ROOT/tests/hosts/net" up "$NET" 3
    # A remote shell to hosts of which those in the file "down" are not reached.
    cat >"$BATS_FILE_TMPDIR/rsh" <<RSH
#!/bin/sh
if grep -qsx "\$1" down; then
    echo "no route to \$1" >&2
    exit 255
fi
exec "$NET/agent" "\$@"
RSH
    chmod +x "$BATS_FILE_TMPDIR/rsh"
    # Trainings last for long, and leave the processors to others.
    export SLOW=$BATS_FILE_TMPDIR/slow_blas.so
    gcc -shared -fPIC -O1 -o "$SLOW" "$ROOT/tests/faults/slow_blas.c" -ldl
    export HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

teardown_file() {
    "$ROOT/tests/hosts/net" down "$NET"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    unset TF_CONFIG
}

teardown() {
    [ -z "${job-}" ] || kill -KILL "$job" 2>/dev/null || true
    "$ROOT/tests/hosts/net" clear "$NET"
}

hosts() { # host:workers...: what the script prints from now on
    printf '10.77.0.%s\n' "$@" >next
    mv next hosts
}

# Starts hvd-run beside the hosts, without waiting for it.
run_on_hosts() { # option... program...
    timeout 120 "$ROOT/tests/hosts/net" run "$NET" "$BIN/hvd-run" \
        --rsh "$BATS_FILE_TMPDIR/rsh" --host-discovery-script 'cat hosts' "$@" \
        >out 2>&1 3>&- &
    job=$!
}

train() { # epochs option...
    local epochs=$1
    shift
    run_on_hosts "$@" env LD_PRELOAD="$SLOW" "$BIN/mnist" --elastic 1:4 --model mlp --train-images 2000 \
        --test-images 100 --epochs "$epochs" --elastic-log "$PWD/events"
}

within_60_s() { # command...
    local i
    for ((i = 0; i < 600; i++)); do
        ! "$@" 2>/dev/null || return 0
        sleep 0.1
    done
    tail -n 30 out
    return 1
}

ends() { # status
    local code=0
    wait "$job" || code=$?
    tail -n 40 out
    [ ! -e events ] || grep -v '"commit"' events
    [ "$code" -eq "$1" ]
}

# Prints the numbers of processes of a program on a host.
processes_of() { # host program
    local pid
    for pid in $(ip netns pids "$(cat "$NET/name")-$1"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$2" ] || echo "$pid"
    done
}

@test "workers start on hosts that appear, and move when theirs vanishes" {
    hosts 1:2 2:1
    train 60 --elastic 1:4 --restarts 2
    within_60_s grep -q '"event":"start"' events
    grep '"event":"start",.*"ranks":\[0,1,2\]' events
    [ "$(processes_of 1 mnist | wc -l)" -eq 2 ]
    hosts 1:2 2:1 3:1
    within_60_s grep -q '"joined":\[3\]' events
    grep -x 'hvd-run: 10.77.0.3 may be used, for 1' out
    [ "$(processes_of 3 mnist | wc -l)" -eq 1 ]
    # Two of host 3 take the places of worker 2 and, on host 1, of worker 1.
    hosts 1:1 3:3
    within_60_s grep -q '"joined":\[4,5\]\|"joined":\[5\]' events
    grep -x 'hvd-run: 10.77.0.2 may no longer be used' out
    grep -x 'hvd-run: worker 2 on 10.77.0.2 is ended: it may no longer run there' out
    [ "$(processes_of 3 mnist | wc -l)" -eq 3 ]
    [ -z "$(processes_of 2 mnist)" ]
    ends 0
    grep '"event":"end",.*"ranks":\[0,3,4,5\]' events
    grep '^\[worker 0\] weights *equal on all ranks' out
}

@test "a host that fails is not used for a while, and again when it is named anew" {
    echo 10.77.0.2 >down
    hosts 2:1 1:1 3:1
    train 60 --elastic 1:3 --restarts 1
    within_60_s grep -q 'not used any more' out
    grep -E 'worker [012] \(process [0-9]*\) failed with status 255 on 10.77.0.2, which is not used for 1 s: failure 1 of 1 there' out
    within_60_s grep -q '"event":"start"' events
    # The first worker has begun the training elsewhere.
    grep -E 'is ended: worker 0, which must begin, has no place' out
    grep -E '"event":"start",.*"ranks":\[0,1\]' events
    rm down
    hosts 1:1 3:1
    within_60_s grep -q '10.77.0.2 may no longer be used' out
    hosts 2:1 1:1 3:1
    within_60_s grep -q '"joined":\[2\]' events
    [ "$(processes_of 2 mnist | wc -l)" -eq 1 ]
    ends 0
}

@test "a worker that is killed is replaced, and so is the first one" {
    local host
    hosts 1:1 2:1 3:1
    train 60 --elastic 1:3 --restarts 5
    within_60_s grep -q '"event":"start",.*"ranks":\[0,1,2\]' events
    within_60_s grep -q '"event":"commit"' events
    for host in 3 1; do
        # shellcheck disable=SC2046 # one
        kill -KILL $(processes_of "$host" mnist)
        within_60_s grep -q "failed with status 137 on 10.77.0.$host, which is not used for 1 s: failure 1 of 5 there" out
        within_60_s eval "[ \"\$(processes_of $host mnist | wc -l)\" -eq 1 ]"
        within_60_s eval "[ \"\$(grep -c '\"joined\"' events)\" -eq $((host == 3 ? 1 : 2)) ]"
    done
    ends 0
    grep '"event":"end",.*"ranks":\[1,3,4\]' events
}

@test "a job ends with the last host that can be used" {
    hosts 1:1 2:1 3:1
    run_on_hosts --elastic 2:9 --restarts 1 sh -c 'exit 3'
    ends 3
    grep 'failed with status 3 on 10.77.0.., which is not used any more until the script has left it out' out
    run_on_hosts --elastic 2:3 --restarts 9 ./nothing
    ends 127
    [ "$(grep -c 'hvd-run: ./nothing: No such file or directory' out)" -ge 3 ]
}

@test "signals reach other hosts, and nobody survives hvd-run there" {
    local program='trap "echo got; exit 0" USR1; echo begun; while true; do sleep 0.1; done'
    hosts 1:1 2:1
    run_on_hosts --elastic 1:2 sh -c "$program"
    within_60_s eval '[ "$(grep -c begun out)" -eq 2 ]'
    kill -USR1 "$(pgrep -P "$job" hvd-run)"
    ends 0
    [ "$(grep -c '^\[worker [01]\] got$' out)" -eq 2 ]
    run_on_hosts --elastic 1:2 sleep 100
    within_60_s eval '[ -n "$(processes_of 2 sleep)" ]'
    kill -KILL "$(pgrep -P "$job" hvd-run)"
    within_60_s eval '[ -z "$(processes_of 1 sleep)$(processes_of 2 sleep)" ]'
    run_on_hosts --elastic 1:2 sleep 100
    within_60_s eval '[ -n "$(processes_of 1 sleep)" ]'
    kill -TERM "$(pgrep -P "$job" hvd-run)"
    ends 143
    [ -z "$(processes_of 1 sleep)$(processes_of 2 sleep)" ]
}
