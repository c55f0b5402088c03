# SPDX-License-Identifier: Apache-2.0
# Ranks die, freeze or never come while a job starts and ends: hvd_init,
# hvd_shutdown and MPI_Finalize are watched, each from its first moment. A job
# that is suspended as a whole goes on: no rank is blamed.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export PREY=$BATS_FILE_TMPDIR/prey VICTIM=$BATS_FILE_TMPDIR/waiting
    mpicc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$PREY" \
        "$BATS_TEST_DIRNAME/prey.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$VICTIM" \
        "$BATS_TEST_DIRNAME/victim.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    export LINGERS=$BATS_FILE_TMPDIR/lingers
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$LINGERS" \
        "$BATS_TEST_DIRNAME/lingers.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    # -rdynamic: its functions stand before those of the libraries.
    export STARVED=$BATS_FILE_TMPDIR/starved
    gcc -Wall -Wextra -rdynamic -I"$ROOT/libhvd/include" -o "$STARVED" \
        "$BATS_TEST_DIRNAME/starved.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    export HVD_HEARTBEAT_TIME=2s HVD_EXIT_GRACE_TIME=2s
}

setup() {
    export LOG=$BATS_TEST_TMPDIR/log
    : >"$LOG"
}

# A stopped rank never ends, and mpirun waits for it.
teardown() {
    local pid
    for pid in $(pgrep -f "^($PREY|$VICTIM) "); do
        kill -KILL "$pid"
    done
}

alone=(--enable-recovery)

hunt() { # n start phase how victim delay [mpirun's options]
    local n=$1 tries session
    for tries in 1 2 3; do
        session=$(mktemp -d "${TMPDIR:-/tmp}/hXXXXXX")
        run env TMPDIR="$session" timeout -k 5 40 mpirun -np "$n" "${@:7}" "$PREY" "$LOG" "${@:2:5}"
        rm -rf "$session"
        # Open MPI 4.1.4 itself hangs now and then when a rank dies, with or
        # without libhvd: all ranks have ended, and mpirun does not see it.
        [ "$status" -eq 137 ] && ! pgrep -f "^$PREY " || break
        echo "mpirun hung without ranks; once more" >&3
        : >"$LOG"
    done
    echo "$output"
    cat "$LOG"
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ]
}

lines_with() { # text: how many lines of the output have it
    grep -c -- "$1" <<<"$output" || true
}

came_to() { # word [status]: how many ranks
    grep -c " $1 ${2-0} " "$LOG" || true
}

@test "a rank that is killed in MPI_Init is named by all" {
    hunt 4 init call kill 2 100000 "${alone[@]}"
    [ "$(lines_with '^hvd: rank [013]: error: a rank is dead or frozen: rank 2 (process [0-9]* on .*) \(was killed by signal 9 (Killed)\|is gone\), in hvd_init, in MPI_Init$')" -eq 3 ]
    [ "$(lines_with 'MPI_Init cannot be left; ending this process with status 70')" -eq 3 ]
}

@test "so is one that is stopped there, after a heartbeat" {
    for n in 2 3; do
        hunt "$n" init call stop 1 100000
        [ "$(lines_with '^hvd: rank [02]: error: a rank is dead or frozen: rank 1 (process [0-9]* on .*) is stopped (by SIGSTOP, or a debugger) for [0-9.]* s, in hvd_init')" -ge 1 ]
        [ "$status" -eq 70 ]
    done
}

@test "a loss between the meetings is returned by hvd_init, and named" {
    for start in init ranks; do
        for how in kill _exit abort; do
            : >"$LOG"
            hunt 3 "$start" meet "$how" 0 100000 "${alone[@]}"
            [ "$(lines_with '^rank [12]: -26: rank 0 (process [0-9]* on .*) ')" -eq 2 ]
            [ "$(lines_with '^hvd: rank [12]: error: a rank is dead or frozen: rank 0 (')" -ge 2 ]
        done
    done
}

@test "a program that has initialised MPI for one thread is guarded, too" {
    hunt 3 single call stop 2 100000
    [ "$(lines_with '^hvd: rank [01]: error: a rank is dead or frozen: rank 2 (process [0-9]* on .*) is stopped (by SIGSTOP, or a debugger) for [0-9.]* s, in hvd_init, in MPI_Comm_idup$')" -eq 2 ]
    [ "$(lines_with '^rank [01]: -26: rank 2 (')" -ge 1 ]
}

@test "a rank that never comes is missed after HVD_START_TIME" {
    HVD_START_TIME=2s HVD_STALL_CHECK_TIME=1s \
        hunt 3 init init late 1 20000000
    [ "$(lines_with '^hvd: rank 0: warning: hvd_init has taken [0-9]* s, now in MPI_Init: nothing was heard of rank 1, which has not called hvd_init, or has ended, or is on another host$')" -ge 1 ]
    [ "$(lines_with '^hvd: rank 2: warning: hvd_init has taken')" -eq 0 ]
    [ "$(lines_with '^hvd: rank [02]: error: .*: hvd_init has taken [0-9]* s, now in MPI_Init (HVD_START_TIME is 2 s): nothing was heard of rank 1,')" -eq 2 ]
    [ "$status" -eq 70 ]
}

@test "one that comes late, but in time, is no cause" {
    HVD_START_TIME=6s hunt 3 init init late 1 3000000
    [ "$status" -eq 0 ]
    [ "$(came_to end)" -eq 3 ]
    [ "$(lines_with hvd:)" -eq 0 ]
}

@test "a rank that exits while it starts, by another of its threads" {
    hunt 3 init meet exit 1 100000 "${alone[@]}"
    [ "$(lines_with '^rank [02]: -2[0-9]: .*rank 1 ')" -eq 2 ]
}

@test "a rank that freezes on its way out of hvd_shutdown does not keep the others" {
    for start in init single; do
        : >"$LOG"
        hunt 3 "$start" gone stop 1 0
        [ "$(lines_with '^hvd: rank [02]: error: a rank is dead or frozen: rank 1 (process [0-9]* on .*) is stopped (by SIGSTOP, or a debugger) for [0-9.]* s, while this rank is in MPI_Finalize')" -ge 1 ]
        [ "$(lines_with 'MPI_Finalize cannot be left; ending this process with status 70')" -ge 1 ]
        [ "$(came_to end)" -ge 2 ]
    done
}

@test "nor does one that dies there" {
    for start in init single; do
        : >"$LOG"
        hunt 3 "$start" gone kill 0 0 "${alone[@]}"
        [ "$(came_to end)" -ge 2 ]
    done
}

@test "a wait in MPI_Finalize is reported, with whom it is for, and goes on" {
    HVD_STALL_CHECK_TIME=1s run timeout 40 mpirun -np 3 "$LINGERS" 4 before
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(lines_with '^hvd: rank 0: warning: MPI_Finalize, for which all processes of the job meet, has taken [1-4] s: rank 2 (process [0-9]* on .*) has not called it$')" -ge 2 ]
    [ "$(lines_with '^hvd: rank [12]')" -eq 0 ]
}

@test "a rank that leaves MPI_Finalize long after the others, or exits, is well" {
    local where
    for where in within behind; do
        run timeout 40 mpirun -np 3 "$LINGERS" 6 "$where"
        echo "$where: $output"
        [ "$status" -eq 0 ]
        [ -z "$output" ]
    done
}

await_lines() { # n text file: until so many lines of the file have the text
    for _ in {1..300}; do
        [ "$(grep -c -- "$2" "$3")" -lt "$1" ] || return 0
        sleep 0.1
    done
    cat "$3"
    return 1
}

suspend() { # seconds program: all of its ranks
    local pids
    pids=$(pgrep -f "^$2 ")
    # shellcheck disable=SC2086 # a list
    kill -STOP $pids
    sleep "$1"
    # shellcheck disable=SC2086
    kill -CONT $pids
}

@test "a job that was suspended has not waited: no stall ends it" {
    HVD_HEARTBEAT_TIME=1s HVD_STALL_CHECK_TIME=1s HVD_STALL_SHUTDOWN_TIME=4s \
        mpirun -np 3 "$VICTIM" late none 1 >"$LOG" 2>&1 &
    local job=$!
    await_lines 1 stalled "$LOG"
    suspend 6 "$VICTIM"
    wait "$job" || { cat "$LOG"; return 1; }
    ! grep error "$LOG"
}

@test "nor does HVD_START_TIME" {
    HVD_START_TIME=4s mpirun -np 3 "$PREY" "$LOG" init init late 1 3000000 \
        >"$LOG.out" 2>&1 &
    local job=$!
    await_lines 3 ' begin ' "$LOG"
    sleep 0.5 # so that hvd_init waits
    suspend 6 "$PREY"
    wait "$job" || { cat "$LOG.out"; return 1; }
    ! grep error "$LOG.out"
}

@test "a rank that goes on after it was given up says so, and blames nobody else" {
    HVD_EXIT_GRACE_TIME=30s timeout 40 mpirun -np 2 "${alone[@]}" "$PREY" "$LOG" \
        init loop stop 0 100000 >"$LOG.out" 2>&1 &
    local job=$!
    await_lines 1 '^rank 1: -26: rank 0 (' "$LOG.out"
    kill -CONT "$(awk '$1 == 0 && $3 == "begin" { print $2 }' "$LOG")"
    wait "$job" || true
    cat "$LOG.out"
    grep '^rank 0: -26: the others have given up this one: rank 0 (process' "$LOG.out"
}

# Its last event is of a function that MPI_Finalize unloads.
@test "Open MPI's thread has done its work when hvd_init returns" {
    local try
    for try in {1..4}; do
        run timeout 60 mpirun -np 3 "$STARVED"
        echo "$try: $output"
        [ "$status" -eq 0 ]
        [ "$(lines_with '^held$')" -eq 3 ]
    done
}
