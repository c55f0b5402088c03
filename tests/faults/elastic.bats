# SPDX-License-Identifier: Apache-2.0
# Ranks are lost, and the others go on (docs/ELASTIC.md).

load program

setup_file() {
    program_open elastic
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=2s HVD_START_TIME=20s
}

# A rank that does not run for a while, on a busy machine, is not to be found
# frozen before it dies.
go_on() { # n what [argument]
    local n=$1
    shift
    HVD_HEARTBEAT_TIME=${HEARTBEAT:-30s} run timeout 60 \
        mpirun --enable-recovery -np "$n" "$PROGRAM" "$@"
    echo "$output"
    [ "$status" -ne 124 ]
}

survive() { # rounds, rounds of a full test, option...
    local rounds=${HVD_TEST_FULL:+$2}
    rounds=${rounds:-$1}
    shift 2
    run "$BATS_TEST_DIRNAME/survive" --rounds "$rounds" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "random deaths in random collectives are survived" {
    survive 12 1000
}

@test "so are two and three deaths within 5 ms" {
    survive 6 200 --deaths 2 --ranks 4-6
    survive 3 200 --deaths 3 --ranks 5-6
}

@test "so are deaths when tensors travel over MPI" {
    survive 6 200 --transport mpi
}

@test "and without MPI" {
    survive 6 200 --transport tcp
    survive 4 100 --transport tcp --deaths 2 --ranks 4-5
}

@test "each rank of 2 to 5 and 8 may be the one that dies" {
    for n in 2 3 4 5 8; do
        go_on "$n" die 0
        [ "$(lines_with '^old .* went on as .*: lost 0 (1)$')" -eq $((n - 1)) ]
        go_on "$n" die $((n - 1))
        [ "$(lines_with "^old .* went on as .*: lost $((n - 1)) (1)$")" -eq $((n - 1)) ]
    done
}

@test "an exit without hvd_shutdown is survived, too" {
    go_on 3 exit 1
    [ "$(lines_with '^old .* went on as .*: lost 1 (1)$')" -eq 2 ]
}

@test "a stopped rank is left out, and told so when it goes on" {
    for memory in heap plain; do
        HEARTBEAT=2s go_on 3 stop 1 "$memory"
        [ "$(lines_with '^old [02] of 3 went on as [01] of 2: lost 1 (2)$')" -eq 2 ]
        [ "$(lines_with '^old 1: hvd_recover: -26: the others have given up this one: rank 1 (process')" -eq 1 ]
        [ "$(lines_with 'wrong')" -eq 0 ]
    done
}

@test "a rank that does not come to hvd_recover is reported, then left out" {
    HVD_STALL_CHECK_TIME=1s HVD_START_TIME=3s go_on 4 late 1
    [ "$(lines_with 'hvd_recover has waited 1 s for rank 2 (process [0-9]*)$')" -ge 1 ]
    [ "$(lines_with '^old [03] of 4 went on as [01] of 2: lost 1 (1) 2 (4)$')" -eq 2 ]
    [ "$(lines_with '^old 2: hvd_recover: -26: the others have given up this one')" -eq 1 ]
}

@test "a rank that recovers while all is well takes the others with it" {
    go_on 3 revoke 1
    [ "$(lines_with '^old [012] of 3 went on as [012] of 3: lost$')" -eq 3 ]
}

@test "a process that has survived exits with its own status" {
    run timeout 60 mpirun --enable-recovery -np 3 \
        bash -c '"$PROGRAM" die 1; echo "status: $?"'
    echo "$output"
    [ "$(lines_with '^old .* went on')" -eq 2 ]
    [ "$(lines_with '^status: 0$')" -eq 2 ]
}

@test "without HVD_ELASTIC, or in an intact world, hvd_recover says what is missing" {
    HVD_ELASTIC=0 go_on 3 die 1
    [ "$(lines_with 'hvd_recover: -2: this world cannot be recovered from: it needs HVD_ELASTIC=1')" -eq 2 ]
    # The first of the two to end may be lost to the other.
    [ "$(lines_with 'lost ranks:.* 1 (1)')" -eq 2 ]
    run "$PROGRAM" die 5
    [ "$status" -eq 0 ]
    [ "$(lines_with 'hvd_recover: -2: this world cannot be recovered from')" -eq 1 ]
}
