# SPDX-License-Identifier: Apache-2.0
# Spares of several hosts, which tests/hosts/net makes, replace ranks of any
# host (docs/ELASTIC.md). The program is that of tests/faults/spares.bats.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    load ranks.bash
    make_hosts spare 3
}

teardown_file() {
    load ranks.bash
    remove_hosts
}

setup() {
    load ranks.bash
    export OUT=$BATS_TEST_TMPDIR SPARE_FOLDER=$BATS_TEST_TMPDIR
    # A busy machine may keep a host's processes waiting for seconds.
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=6s HVD_EXIT_GRACE_TIME=2s
    export HVD_START_TIME=30s
}

teardown() {
    clear_hosts 3
}

# Starts mpirun with so many slots on node1, node2, ...; the last are spares.
begin() { # "slots slots ..." spares argument...
    local slots=$1
    export HVD_SPARES=$2
    shift 2
    start_ranks 90 "$slots" "$@"
}

# Waits until so many processes have said how they end; a dead rank makes
# mpirun end late, or never.
finish() { # processes [so many of which fail]
    wait_for_lines '^process [0-9]+ (ended as|was not needed)' "$1"
    sleep 0.5
    "$BATS_TEST_DIRNAME/net" clear "$NET"
    wait
    tail -n +1 "$OUT"/*.out "$OUT/mpirun"
    [ "$(lines_with wrong)" -eq "${2-0}" ]
}

# So many have ended in a world of so many, which had these sizes, and a weight
# that is the sum of 1 to the number of steps.
ended() { # ranks sizes [steps]
    local steps=${3:-40}
    [ "$(lines_with "ended as rank [0-9]+ of $1: joined [0-9]*, weight $((steps * (steps + 1) / 2)), sizes $2\$")" -eq "$1" ]
}

# Waits for a line; long trainings have time for that.
until_line() { # extended regular expression
    wait_for_lines "$1" 1
    [ "$(lines_with "$1")" -gt 0 ] || {
        tail -n +1 "$OUT"/*.out "$OUT/mpirun"
        return 1
    }
}

# Sends a process a signal when the training runs.
send() { # signal process
    until_line '^process 0 trains$'
    kill -"$1" "$(cat "$OUT/$2")"
}

not_needed() { # process
    [ "$(lines_with "^process $1 was not needed: -[0-9]*: the job has ended")" -eq 1 ]
}

@test "a spare of another host takes the place of a rank of any host" {
    local victim
    for victim in 0 1 2; do
        begin '1 1 2' 1 40 $victim@7
        finish 3
        ended 3 3
        # It joins the first world that starts on all hosts, mostly number 1.
        [ "$(lines_with '^process 3 ended as rank 2 of 3: joined [1-9],')" -eq 1 ]
        [ "$(lines_with 'joined 0,')" -eq 2 ]
    done
}

@test "spares take the places of all ranks of a host, of two hosts at once" {
    begin '2 2 3' 2 40 2@7 3@7 # a host goes
    finish 5
    ended 5 5
    begin '1 1 5' 2 40 0@7 1@7 # two hosts go
    finish 5
    ended 5 5
}

@test "spares that are not needed end with the job" {
    begin '1 2 1' 2 40
    finish 4
    ended 2 2
    not_needed 2
    not_needed 3
}

@test "a spare that has replaced a rank may be replaced, the first rank, too" {
    begin '2 2 1' 2 40 1@7 3@14
    finish 3
    ended 3 3
    [ "$(lines_with '^process 4 ended as rank 2 of 3: joined [2-9],')" -eq 1 ]
    begin '1 2 2' 2 40 0@7 1@14
    finish 3
    ended 3 3
}

@test "with more deaths than spares the world shrinks" {
    begin '2 2 1' 1 40 0@7 2@14
    finish 3
    [ "$(lines_with 'ended as rank [0-2] of 3: .* weight 820, sizes 4 3$')" -eq 3 ]
}

@test "a death before the first world is made good" {
    begin '1 2 2' 2 40 1@0
    finish 3
    ended 3 3
}

@test "a spare that dies is named, and the next one counts" {
    begin '1 1 3' 2 40 3@wait 0@35
    finish 3
    [ "$(lines_with 'a spare, rank 3 \(process [0-9]+\), .*; 1 spare is left')" -eq 1 ]
    ended 3 3
}

@test "a stopped spare is named and passed over, and told so when it goes on" {
    begin '1 1 2' 2 6000
    send STOP 2
    until_line 'a spare, rank 2 \(process [0-9]+\), is silent, or its host is cut off; 1 spare is left'
    send KILL 1
    until_line '^process 3 has come in' # else the spare that wakes is called
    send CONT 2
    finish 3
    ended 2 2 6000
    [ "$(lines_with '^process 3 ended as rank 1 of 2')" -eq 1 ]
    [ "$(lines_with '^process 2 was not needed: -26: the others have given up this one: rank 2')" -eq 1 ]
}

@test "spares take the places of the ranks of a host that is cut off" {
    begin '2 2 3' 2 3000
    until_line '^process 0 trains$'
    cut_host 2
    wait_for_lines '^process [23]: wrong: ' 2
    finish 5 2
    ended 5 5 3000
    [ "$(lines_with '^process [23]: wrong: .*this side of the network has no more than [12] of 5 ranks')" -eq 2 ]
}

@test "a host of spares that is cut off is named, and its spares end in words" {
    begin '1 1 1' 1 8000
    until_line '^process 0 trains$'
    cut_host 3
    finish 3
    [ "$(lines_with 'a spare, rank 2 \(process [0-9]+\), is silent, or its host is cut off; 0 spares are left')" -eq 1 ]
    [ "$(lines_with '^process 2 was not needed: -26: all ranks of the job')" -eq 1 ]
    ended 2 2 8000
}

@test "a waiting spare leaves the processor to others" {
    begin '1 1' 1 1500
    finish 2
    output=$(cat "$OUT"/*.out)
    [[ $output =~ it\ used\ ([0-9]+)\ of\ ([0-9]+)\ ms ]]
    [ $((2 * BASH_REMATCH[1])) -lt "${BASH_REMATCH[2]}" ]
}

@test "spares end in words when nobody is left that could call them" {
    begin '1 1 1' 1 40 0@7 1@7
    finish 1
    [ "$(lines_with '^process 2 was not needed: -26: all ranks of the job')" -eq 1 ]
}
