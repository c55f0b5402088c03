# SPDX-License-Identifier: Apache-2.0
# Ranks of several hosts, which tests/hosts/net makes, are lost, and the others
# go on (docs/ELASTIC.md).

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    head -c 32 /dev/urandom >"$BATS_FILE_TMPDIR/key"
    chmod 600 "$BATS_FILE_TMPDIR/key"
    load ranks.bash
    make_hosts elastic 3
}

teardown_file() {
    load ranks.bash
    remove_hosts
}

setup() {
    load ranks.bash
    export OUT=$BATS_TEST_TMPDIR
    export HVD_JOB_KEY_FILE=$BATS_FILE_TMPDIR/key HVD_ELASTIC=1
    export HVD_HEARTBEAT_TIME=3s HVD_EXIT_GRACE_TIME=2s HVD_START_TIME=60s
}

teardown() {
    clear_hosts 3
}

# Starts the workers of a cluster: worker i on the i-th of these hosts, which
# writes to i.out.
begin() { # "host..." what victim
    local hosts=($1) i cluster=
    shift
    for i in "${!hosts[@]}"; do
        cluster+="${cluster:+,}\"10.77.0.${hosts[i]}:$((3737 + i))\""
    done
    rm -f "$OUT"/*.out
    for i in "${!hosts[@]}"; do
        TF_CONFIG="{\"cluster\":{\"worker\":[$cluster]},\"task\":{\"type\":\"worker\",\"index\":$i}}" \
            timeout --kill-after=5 100 "$NET/agent" "10.77.0.${hosts[i]}" \
            "$PROGRAM $*" >"$OUT/$i.out" 2>&1 3>&- &
    done
}

finish() {
    wait
    tail -n +1 "$OUT"/*.out
}

all_run() { # so many
    wait_for_lines '^runs$' "$1"
    [ "$(lines_with '^runs$')" -eq "$1" ]
}

went_on() { # so many, of so many; those that are left out, and why
    [ "$(lines_with "^old . of $2 went on as [0-9] of $1: lost $3\$")" -eq "$1" ]
    [ "$(lines_with wrong)" -eq 0 ]
}

@test "a rank of each host may die, the first among them" {
    local victim
    for victim in 0 1 2 5; do
        begin '1 1 2 2 3 3' die $victim
        finish
        went_on 5 6 "$victim \(1\)"
    done
}

@test "so may one of hosts with one, two and three ranks" {
    begin '1 2 2 3 3 3' die 4
    finish
    went_on 5 6 '4 \(1\)'
    begin '1 2 2 3 3 3' die 0 # nobody of its host can prove it
    finish
    went_on 5 6 '0 \(3\)'
}

@test "and one when tensors travel over UCX" {
    HVD_TRANSPORT=ucx begin '1 1 2 2 3 3' die 2
    finish
    went_on 5 6 '2 \(1\)'
}

@test "all ranks of a host may die" {
    begin '1 1 2 2 3 3' all 2
    finish
    went_on 4 6 '2 \([13]\) 3 \([13]\)'
    begin '1 1 2 2 3 3' all 0
    finish
    went_on 4 6 '0 \([13]\) 1 \([13]\)'
}

@test "a stopped rank is left out, and told so when it goes on" {
    begin '1 1 2 2 3 3' stop 3
    finish
    went_on 5 6 '3 \(2\)'
    [ "$(lines_with '^old 3: hvd_recover: -26: the others have given up this one: rank 3')" -eq 1 ]
    begin '1 1 2 2 3' stop 4 # the only one of its host
    finish
    went_on 4 5 '4 \([23]\)'
    [ "$(lines_with '^old 4: hvd_recover: -26: (the others have given up this one|this side of the network has no more than [1-4] of 5)')" -eq 1 ]
}

without_two() { # ranks "reasons": these end in words, and the other four go on
    went_on 4 6 "$2"
    [ "$(lines_with "^old [$1]: hvd_recover: -26: (this side of the network has no more than [1-3] of 6 ranks, too few to go on|the others have given up this one)")" -eq 2 ]
}

# Cuts a host off, for some seconds or for ever.
cut_off() { # host ranks "reasons" [seconds]
    begin '1 1 2 2 3 3' none 0
    all_run 6
    cut_host "$1"
    [ -z "${4-}" ] || {
        sleep "$4"
        "$ROOT/tests/hosts/net" join "$NET" "$1"
    }
    finish
    without_two "$2" "$3"
}

@test "a host that is cut off for ever ends in words, and the others go on" {
    cut_off 2 23 '2 \(3\) 3 \(3\)'
}

@test "so does the host of the first rank" {
    cut_off 1 01 '0 \(3\) 1 \(3\)'
}

@test "and one that is cut off for ten seconds" {
    cut_off 2 23 '2 \(3\) 3 \(3\)' 10
}

# With this heartbeat time a host speaks every 0.5 s: the cut comes before most
# hosts have spoken for the second time.
@test "a host is missed that is cut off at the moment at which the world stands" {
    export HVD_HEARTBEAT_TIME=5s CUT="$ROOT/tests/hosts/net cut $NET 3"
    begin '1 1 2 2 3 3' cut 5
    finish
    without_two 45 '4 \(3\) 5 \(3\)'
}

# Parts two hosts, which both reach the third, for some seconds or for ever. The
# two ranks of either host are left out: which depends on who was missed first.
part() { # host host "ranks and reasons of one host|of the other" [seconds]
    local lost
    begin '1 1 2 2 3 3' none 0
    all_run 6
    "$ROOT/tests/hosts/net" part "$NET" "$1" "$2"
    SECONDS=0
    sleep "${4:-0}"
    [ -z "${4-}" ] || "$ROOT/tests/hosts/net" mend "$NET" "$1" "$2"
    finish
    "$ROOT/tests/hosts/net" mend "$NET" "$1" "$2"
    [ "$SECONDS" -le 30 ]
    lost=${3#*|}
    [ "$(lines_with "^old . of 6 went on as . of 4: lost ${lost#* }\$")" -gt 0 ] ||
        lost=${3%|*}
    without_two "${lost%% *}" "${lost#* }"
}

@test "of two hosts that do not reach each other, one goes on with the third" {
    local first='01 0 \([34]\) 1 \([34]\)' second='23 2 \([34]\) 3 \([34]\)' \
        third='45 4 \([34]\) 5 \([34]\)'
    part 1 2 "$first|$second"
    part 1 3 "$first|$third" 8
}

@test "of two hosts that both reach that of the first rank, one goes on with it" {
    local lost='4 \([34]\) 5 \([34]\)'
    part 2 3 "45 $lost|45 $lost"
    part 2 3 "45 $lost|45 $lost" 8
}

@test "the larger one of two hosts that do not reach each other goes on" {
    begin '1 2 3 3' none 0
    all_run 4
    "$ROOT/tests/hosts/net" part "$NET" 2 3
    finish
    "$ROOT/tests/hosts/net" mend "$NET" 2 3
    went_on 3 4 '1 \([34]\)'
    [ "$(lines_with '^old 1: hvd_recover: -26: the others have given up this one')" -eq 1 ]
}

# A rank dies when a cut is not known yet: it is found while the next world
# starts.
@test "one of two hosts goes on, too, if a rank dies before the cut is known" {
    export CUT="$ROOT/tests/hosts/net part $NET 2 3; kill -KILL \$PPID"
    begin '1 1 2 2 3 3' cut 1
    finish
    "$ROOT/tests/hosts/net" mend "$NET" 2 3
    went_on 3 6 '1 \([13]\) 4 \([34]\) 5 \([34]\)'
}

@test "half of the ranks go on if the first is among them, the others end" {
    begin '1 1 2 2' none 0
    all_run 4
    cut_host 2
    finish
    went_on 2 4 '2 \(3\) 3 \(3\)'
    [ "$(lines_with '^old [23]: hvd_recover: -26: this side of the network has no more than [12] of 4')" -eq 2 ]
}

# Runs mpirun with so many slots on node1, node2, ...; a dead rank makes it end
# late, or never.
on() { # "slots slots ..." ranks that go on, argument...
    local slots=$1 left=$2
    shift 2
    start_ranks 60 "$slots" "$@"
    wait_for_lines '^old ' "$left"
    sleep 1
    "$BATS_TEST_DIRNAME/net" clear "$NET"
    wait
    tail -n +1 "$OUT"/*.out "$OUT/mpirun"
}

@test "under mpirun --enable-recovery ranks of several hosts may die, too" {
    local victim
    for victim in 0 3 5; do
        on '2 2 2' 5 die $victim
        went_on 5 6 "$victim \(1\)"
    done
    HVD_TRANSPORT=ucx on '2 3' 4 die 1
    went_on 4 5 '1 \(1\)'
}
