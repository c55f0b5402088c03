# SPDX-License-Identifier: Apache-2.0
# Process sets go on in the world that is left of another one (docs/ELASTIC.md).

load program

setup_file() {
    program_open sets
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

# The lines of all that have ended are the same.
train() { # ranks victim sets
    run timeout 60 mpirun --enable-recovery -np "$1" "$PROGRAM" 20 "$2"
    echo "$output"
    ! grep -q wrong <<<"$output"
    [ "$(grep -c "^process [0-9] ended: $3\$" <<<"$output")" -eq "$4" ]
}

@test "sets have the ranks that are left, and one without any is lost in words" {
    # The ids of the set that was added after the commit: 5 and 6.
    train 4 3 "1 of 2: 0 1; 2 of 1: 2; 3 of 2: 1 2; 4 of 9:; 6 of 2: 0 2;" 3
    [ "$(grep -c 'process set 2 goes on with 1 of 2 ranks' <<<"$output")" -eq 1 ]
    [ "$(grep -c 'process set 4 is lost with all its ranks' <<<"$output")" -eq 1 ]
}

# Ranks 0 and 2 of the second world are processes 0 and 3.
@test "spares know the sets, and are in none" {
    HVD_SPARES=1 train 5 1 "1 of 1: 0; 2 of 2: 2 3; 3 of 1: 2; 4 of 1: 3; 6 of 2: 0 3;" 4
}
