# SPDX-License-Identifier: Apache-2.0
# Spares wait, and replace ranks that are lost (docs/ELASTIC.md).

load program

setup_file() {
    program_open spare
    export SPARE_FOLDER=$BATS_FILE_TMPDIR
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=5s HVD_START_TIME=30s
}

readonly STEPS=40 WEIGHT=820 # the sum of 1 to STEPS

train() { # ranks spares death...
    local n=$1 spares=$2
    shift 2
    run env HVD_SPARES="$spares" timeout 60 mpirun --enable-recovery \
        -np $((n + spares)) "$PROGRAM" $STEPS "$@"
    echo "$output"
    [ "$status" -ne 124 ]
    ! grep -q 'wrong' <<<"$output"
}

# So many processes have ended in a world of so many, which had these sizes.
ended() { # ranks size...
    local n=$1
    shift
    [ "$(lines_with "ended as rank [0-9]* of $n: joined [0-9]*, weight $WEIGHT, sizes $*$")" -eq "$n" ]
}

not_needed() { # process
    [ "$(lines_with "^process $1 was not needed: -[0-9]*: the job has ended")" -eq 1 ]
}

@test "a spare takes the place of a rank, of any" {
    local n spares victim
    while read -r n spares victim; do
        train "$n" "$spares" "$victim@7"
        ended "$n" "$n"
        [ "$(lines_with "^process $n ended as rank $((n - 1)) of $n: joined 1,")" -eq 1 ]
        [ "$(lines_with "joined 0,")" -eq $((n - 1)) ]
        [ "$spares" -eq 1 ] || not_needed $((n + 1))
    done <<<"3 1 0
        3 2 2
        4 1 1
        4 2 0"
}

@test "two spares take the places of two, also at once" {
    train 3 2 0@7 2@21
    ended 3 3
    [ "$(lines_with '^process 4 ended as rank 2 of 3: joined 2,')" -eq 1 ]
    train 4 2 3@commit 0@commit
    ended 4 4
}

@test "a rank of one that has a spare before its first commit is replaced, too" {
    train 3 1 1@0
    ended 3 3
}

@test "a spare that has replaced a rank may be replaced" {
    train 3 2 1@7 3@14
    ended 3 3
    [ "$(lines_with '^process 4 ended as rank 2 of 3: joined 2,')" -eq 1 ]
}

@test "a spare that dies is named, and the next one counts" {
    train 3 2 3@wait 0@35
    [ "$(lines_with 'a spare, rank 3 (process [0-9]*), .*; 1 spare is left')" -eq 1 ]
    ended 3 3
    train 3 1 3@wait
    [ "$(lines_with 'a spare, rank 3 .*; 0 spares are left')" -eq 1 ]
    ended 3 3
}

@test "with more deaths than spares the world shrinks" {
    train 4 1 0@7 2@14 1@21
    [ "$(lines_with 'ended as rank [01] of 2: .* weight 820, sizes 4 3 2$')" -eq 2 ]
}

@test "spares that are not needed end with the job" {
    local n
    for n in 1 2 3; do
        train "$n" 2
        ended "$n" "$n"
        not_needed "$n"
        not_needed $((n + 1))
        [ "$status" -eq 0 ]
    done
}

@test "a spare alone is nobody: the state is gone" {
    train 2 1 0@7 1@7
    [ "$(lines_with '^process 2 was not needed: -26: all ranks')" -eq 1 ]
    [ "$(lines_with 'ended as')" -eq 0 ]
}

@test "a death before the first world is made good" {
    train 3 2 1@last
    [ "$(lines_with 'weight 820')" -ge 2 ]
}

@test "a waiting spare leaves the processor to others" {
    run env HVD_SPARES=1 timeout 60 mpirun --enable-recovery -np 2 "$PROGRAM" 1500
    echo "$output"
    [[ $output =~ it\ used\ ([0-9]+)\ of\ ([0-9]+)\ ms ]]
    [ $((2 * BASH_REMATCH[1])) -lt "${BASH_REMATCH[2]}" ]
}

@test "wrong numbers of spares are refused in words on all ranks" {
    run env HVD_SPARES=2 timeout 60 mpirun --enable-recovery -np 2 "$PROGRAM" 5
    echo "$output"
    [ "$(lines_with "HVD_SPARES='2' is not a number of spare ranks: give 0 to 1")" -ge 2 ]
    run env HVD_SPARES=1 HVD_ELASTIC=0 timeout 60 mpirun -np 2 "$PROGRAM" 5
    echo "$output"
    [ "$(lines_with 'HVD_SPARES=1 needs HVD_ELASTIC=1')" -ge 1 ]
}
