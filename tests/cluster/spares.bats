# SPDX-License-Identifier: Apache-2.0
# Workers of a cluster that are more than the job uses wait, and take the places
# of lost ones at a commit (docs/ELASTIC.md).

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    local build=${HVD_BUILD:-$ROOT/build}
    export PATH=$build/bin:$PATH SPARE=$BATS_FILE_TMPDIR/spare
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$SPARE" \
        "$ROOT/tests/faults/spare.c" -L"$build/lib" -lhvd \
        -Wl,-rpath,"$build/lib"
    export SPARE_FOLDER=$BATS_FILE_TMPDIR
    export HVD_HEARTBEAT_TIME=10s HVD_START_TIME=30s
}

teardown() {
    ! pgrep -f "$SPARE"
}

readonly STEPS=400 WEIGHT=80200 # the sum of 1 to STEPS

train() { # ranks spares option... -- death...
    local n=$1 spares=$2 options=()
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    run timeout 60 hvd-run --elastic "1:$n" --spare "$spares" "${options[@]}" \
        "$SPARE" $STEPS "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    ! grep -q 'wrong' <<<"$output"
}

lines_with() { # text: how many lines of the output have it
    grep -c -- "$1" <<<"$output" || true
}

ended() { # ranks sizes
    [ "$(lines_with "ended as rank [0-9]* of $1: joined [0-9]*, weight $WEIGHT, sizes $2$")" -eq "$1" ]
}

@test "a spare takes the place of a worker, also of the first" {
    train 3 1 -- 1@7
    ended 3 "3 2 3"
    [ "$(lines_with 'process 3 ended as rank 2 of 3: joined [1-9]')" -eq 1 ]
    train 3 2 -- 0@7
    ended 3 "3 2 3"
    [ "$(lines_with 'process 4 was not needed: -21: the job has ended')" -eq 1 ]
}

@test "a worker that comes back is a spare" {
    train 2 1 --restarts 1 -- 1@7
    ended 2 "2 1 2"
    [ "$(lines_with 'process 2 ended as rank 1 of 2: joined [1-9]')" -eq 1 ]
}

@test "spares that are not needed end with the job, and do not count" {
    train 2 2 --
    ended 2 2
    [ "$(lines_with 'was not needed: -21: the job has ended')" -eq 2 ]
    run timeout 60 hvd-run --elastic 2:2 --spare 1 \
        sh -c '"$SPARE" 20 || { sleep 2; exit 9; }'
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "with more losses than spares the world shrinks" {
    train 3 1 -- 0@7 1@200 2@300
    [ "$(lines_with "ended as rank 0 of 1: .* weight $WEIGHT, sizes 3 2 3 2 1$")" -eq 1 ]
}

@test "wrong numbers are refused in words" {
    run hvd-run -n 2 --spare 1 true
    [ "$status" -eq 64 ]
    [[ $output == *"--spare needs --elastic"* ]]
    run env HVD_SPARES=2 hvd-run --elastic 1:2 "$SPARE" 5
    echo "$output"
    [ "$(lines_with "HVD_SPARES='2' is not a number of spare ranks: give 0 to 1")" -ge 1 ]
    run env HVD_SPARES=1 HVD_ELASTIC_MIN=2 timeout 30 hvd-run --elastic 1:2 "$SPARE" 5
    echo "$output"
    [ "$(lines_with "HVD_ELASTIC_MIN='2' is not a number of ranks: give 1 to 1")" -ge 1 ]
}
