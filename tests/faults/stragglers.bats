# SPDX-License-Identifier: Apache-2.0
# Ranks that keep the others waiting are reported, and may be excluded
# (docs/ELASTIC.md).

load program

setup_file() {
    program_open straggler
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_STRAGGLER_TIME=0.3s
}

train() { # ranks mode slow...
    local n=$1
    shift
    run timeout 60 mpirun --enable-recovery -np "$n" "$PROGRAM" "$@"
    echo "$output"
    [ "$status" -ne 124 ]
    ! grep -q 'wrong:' <<<"$output"
}

# All steps were made once.
ended() { # ranks text
    [ "$(lines_with "rank [0-9]* of $1, weight 820, $2")" -eq "$1" ]
}

@test "a slow rank is reported, to all, by itself, and again as long as it is slow" {
    local n reports
    for n in 3 4; do
        train "$n" report 1
        ended "$n" "lost -1 (0)"
        reports=$(lines_with '^0: straggler 1, ')
        [ "$reports" -ge 2 ]
        [ "$(lines_with 'straggler 1, ')" -eq $((n * reports)) ]
        [ "$(lines_with 'rank 1: warning: this rank (process [0-9]* on .*) keeps the others waiting: in the last ')" -eq "$reports" ]
        [ "$(lines_with 'straggler [02-9]')" -eq 0 ]
    done
}

@test "of two ranks the slower one is it; of four, two" {
    train 2 report 0
    ended 2 "lost -1 (0)"
    [ "$(lines_with 'straggler 0, ')" -ge 2 ]
    [ "$(lines_with 'straggler 1, ')" -eq 0 ]
    train 4 report 0 3
    [ "$(lines_with 'straggler 0, ')" -ge 4 ]
    [ "$(lines_with 'straggler 3, ')" -ge 4 ]
    [ "$(lines_with 'straggler [12], ')" -eq 0 ]
}

@test "nobody is reported where all are alike, or nobody wants to know" {
    train 3 report 0 1 2
    [ "$(lines_with straggler)" -eq 0 ]
    HVD_STRAGGLER_TIME=0 train 3 report 1
    [ "$(lines_with straggler)" -eq 0 ]
    [ "$(lines_with 'keeps the others waiting')" -eq 0 ]
}

@test "a straggler is excluded, whoever asks, also rank 0" {
    local mode
    for mode in exclude one; do
        train 3 "$mode" 1
        ended 2 "lost 1 (5)"
        [ "$(lines_with '^1: out: -26: the others have given up this one: rank 1 .* was excluded by hvd_exclude')" -eq 1 ]
    done
    train 4 exclude 0
    ended 3 "lost 0 (5)"
    train 2 exclude 1
    ended 1 "lost 1 (5)"
}

@test "a spare takes its place" {
    HVD_SPARES=1 train 4 exclude 1
    ended 3 "lost "
    [ "$(lines_with '^1: out: -26: ')" -eq 1 ]
}

@test "a rank may exclude itself" {
    train 3 self 2
    ended 2 "lost 2 (5)"
    [ "$(lines_with '^2: out: -26: ')" -eq 1 ]
}

@test "hvd_recover leaves out whom its caller has excluded" {
    train 3 recover 1
    ended 2 "lost 1 (5)"
    [ "$(lines_with '^1: out: -26: the others have given up this one')" -eq 1 ]
}

@test "what cannot be done is refused in words" {
    train 2 wrong
    ended 2 "lost -1 (0)"
    run "$PROGRAM" wrong
    [ "$status" -eq 0 ]
}
