# SPDX-License-Identifier: Apache-2.0
# A rank dies after the others of its job have met it, and before they have taken
# up the checkpoint of an earlier job: nobody has been told its number.

load program

setup_file() {
    program_open_estimator resumes
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

# train RANKS STEPS [VICTIM]: adds to the events, and keeps the new ones alone.
train() {
    local log=$BATS_TEST_TMPDIR/log ranks=$1

    shift
    run timeout 60 mpirun --enable-recovery -np "$ranks" "$PROGRAM" \
        "$BATS_TEST_TMPDIR/model" "$log" "$@"
    echo "$output"
    [ "$status" -ne 124 ]
    [ "$(lines_with failed)" -eq 0 ]
    events=$(tail -n +$(($(wc -l <"$log.before") + 1)) "$log")
    cp "$log" "$log.before"
    echo "$events"
}

@test "a rank that is lost before its job has gone on has no number" {
    : >"$BATS_TEST_TMPDIR/log.before"
    train 3 8
    [[ $events == '{"event":"start","step":0,'*'"ranks":[0,1,2]'* ]]
    train 3 16 1
    [[ $events == '{"event":"loss","step":0,'*'"ranks":[],"lost":[],"newcomers":1,'* ]]
    [[ $events == *'"event":"resume","step":8,'*'"ranks":[3,4]'*'"event":"end","step":16,'* ]]
    train 2 24 0
    [[ $events == '{"event":"loss",'*'"ranks":[],"lost":[],"newcomers":1,'*'"event":"resume","step":16,'*'"ranks":[5]'* ]]
}
