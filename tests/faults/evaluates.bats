# SPDX-License-Identifier: Apache-2.0
# A rank dies in an evaluation, or in a prediction, behind an elastic training:
# those who are left recover, and do it again (docs/ELASTIC.md).

load program

setup_file() {
    program_open_estimator evaluates
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

repeat_without() { # ranks victim
    run timeout 60 mpirun --enable-recovery -np "$1" "$PROGRAM" "$2"
    echo "$output"
    [ "$status" -ne 124 ]
    [ "$(lines_with "^evaluated 101 rows of 101 with $(($1 - 1)) ranks: right$")" -eq $(($1 - 1)) ]
    [ "$(lines_with "^predicted 101 rows of 101 with $(($1 - 2)) ranks: right$")" -eq $(($1 - 2)) ]
    [ "$(lines_with failed)" -eq 0 ]
}

@test "evaluations and predictions are repeated by those who are left" {
    repeat_without 3 2
    repeat_without 4 1
    repeat_without 5 4
    repeat_without 8 3
}

@test "nobody dies, and nothing is repeated" {
    run timeout 60 mpirun -np 3 "$PROGRAM"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(lines_with "^evaluated 101 rows of 101 with 3 ranks: right$")" -eq 3 ]
    [ "$(lines_with "^predicted 101 rows of 101 with 3 ranks: right$")" -eq 3 ]
}
