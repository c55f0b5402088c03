# SPDX-License-Identifier: Apache-2.0
# While autotuning runs, results stay right; it ends, and keeps what it has
# found. The limits of time are for what hangs: on a busy machine each step waits
# for its turn on a core.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export TUNED=$BATS_FILE_TMPDIR/tuned
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$TUNED" \
        "$BATS_TEST_DIRNAME/tuned.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
}

@test "it ends, logs what it tried, and keeps what it found" {
    export HVD_AUTOTUNE=1 HVD_LOG=info
    export HVD_AUTOTUNE_LOG=$BATS_TEST_TMPDIR/log.csv
    export HVD_AUTOTUNE_FILE=$BATS_TEST_TMPDIR/found
    run timeout 300 mpirun -np 2 "$TUNED" 20 "$HVD_AUTOTUNE_FILE"
    echo "$output" | tail -5
    [ "$status" -eq 0 ]
    [[ $output == *"autotuning is over: fusion threshold "* ]]
    [ "$(head -1 "$HVD_AUTOTUNE_LOG")" = "fusion_threshold,direct_max,bytes_per_second,best" ]
    [ "$(wc -l <"$HVD_AUTOTUNE_LOG")" -ge 5 ]
    grep -Eq '^fusion_threshold=[0-9]+$' "$HVD_AUTOTUNE_FILE"
    grep -Eq '^direct_max=[0-9]+$' "$HVD_AUTOTUNE_FILE"
    # What was found counts, and nothing is tried again.
    run timeout 120 mpirun -np 3 "$TUNED" 20
    [ "$status" -eq 0 ]
    [ "$(wc -l <"$HVD_AUTOTUNE_LOG")" -eq 1 ]
    echo rubbish >"$HVD_AUTOTUNE_FILE"
    run timeout 120 mpirun -np 2 "$TUNED" 20
    [ "$status" -eq 9 ]
    [[ $output == *"is not what autotuning has written"* ]]
}

@test "files that cannot be used are said at once" {
    cd "$BATS_TEST_TMPDIR"
    export HVD_AUTOTUNE=1
    mkfifo fifo
    ln -s nothing dangling
    for file in fifo dangling /dev/full none/found; do
        HVD_AUTOTUNE_FILE=$file run timeout 120 mpirun -np 2 "$TUNED" 20
        [ "$status" -eq 9 ]
        [[ $output == *"cannot "*" '$file': "* ]]
        HVD_AUTOTUNE_LOG=$file run timeout 120 mpirun -np 2 "$TUNED" 20
        [ "$status" -eq 9 ]
        [[ $output == *"cannot write the log of autotuning '$file': "* ]]
    done
    [ -p fifo ] && [ -L dangling ]
    HVD_AUTOTUNE_LOG=/dev/stderr run timeout 120 mpirun -np 2 "$TUNED" 20
    [ "$status" -eq 0 ]
    [[ $output == *"fusion_threshold,direct_max"* ]]
}
