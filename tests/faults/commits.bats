# SPDX-License-Identifier: Apache-2.0
# Trainings that commit their state go on from the last commit, whichever rank
# dies, and whenever (docs/ELASTIC.md). commit.c compares each with its replay.

load program

setup_file() {
    program_open commit -O1 -I"$BATS_TEST_DIRNAME/../support"
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

# Each seed is a job of 2 to 6 ranks. All that are left have the same weights,
# and those of the replay.
survive() { # where first-seed jobs [variable...]
    local where=$1 first=$2 jobs=${HVD_TEST_FULL:+60} seed hashes
    jobs=${jobs:-$3}
    shift 3
    for ((seed = first; seed < first + jobs; seed++)); do
        run env "$@" timeout 90 mpirun --enable-recovery \
            -np $((2 + seed % 5)) "$PROGRAM" "$seed" 160 "$where"
        echo "seed $seed: $status: $output"
        [ "$status" -ne 124 ]
        ! grep -q 'wrong' <<<"$output"
        hashes=$(grep -o 'ended with .* weights [0-9a-f]*, [0-9]* losses' \
            <<<"$output" | sort -u)
        [ "$(wc -l <<<"$hashes")" -eq 1 ]
        grep -q ' [1-9][0-9]* losses' <<<"$hashes"
    done
}

@test "ranks die at random moments" {
    survive random 10 5
}

@test "ranks exit" {
    survive exit 80 3
}

@test "rank 0 dies while it gives the others its first state" {
    survive sync 91 3
}

@test "ranks die while a commit copies" {
    survive copy 21 4
}

@test "ranks die with a copy that nobody has agreed" {
    survive before 32 4
}

@test "ranks die while the others agree" {
    survive within 43 4
}

@test "ranks die when they have agreed" {
    survive after 54 4
}

@test "ranks die in hvd_restore" {
    survive restore 66 4
}

@test "also if tensors travel over MPI" {
    survive within 72 2 HVD_SHM_SIZE=0
    survive random 73 2 HVD_SHM_SIZE=0
}

@test "the first commit is possible when a rank was lost before it" {
    run timeout 60 mpirun --enable-recovery -np 4 "$PROGRAM" 10 160 early
    echo "$output"
    [ "$(lines_with '^rank [023]: the first commit: 0 ')" -eq 3 ]
}

@test "a function of hvd_on_reset that fails ends the training in words" {
    run timeout 60 mpirun --enable-recovery -np 3 "$PROGRAM" 10 160 reset
    echo "$output"
    [ "$(lines_with '^refused: rank 1: a function of hvd_on_reset has returned -77$')" -eq 2 ]
}

@test "without HVD_ELASTIC a loss ends the training in words" {
    run env HVD_ELASTIC=0 timeout 60 mpirun --enable-recovery -np 3 \
        "$PROGRAM" 5 160 before
    echo "$output"
    [ "$status" -ne 124 ]
    grep -q 'wrong: the end .*needs HVD_ELASTIC=1' <<<"$output"
}
