# SPDX-License-Identifier: Apache-2.0
# The simulator: random scripts in simulated worlds all go well, runs repeat
# exactly, and what it measures at thousands of ranks keeps its bounds.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export PROGRAM=${HVD_BUILD:-$ROOT/build}/bin/hvd-sim
    export SEEDS=${HVD_TEST_FULL:+1000000}
}

setup() {
    load "$ROOT/tests/support/commands.bash"
}

# measures ARGS...: one row of CSV in the variables named by its head.
measures() {
    run "$PROGRAM" --csv "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    IFS=, read -r _ _ ranks _ _ _ times messages _ others _ _ memory _ <<<"${lines[1]}"
}

# A million seeds take a core more than two hours while others work beside it:
# all cores share them.
@test "every seed ends well" {
    local n=${SEEDS:-10000} jobs=1 i
    [ -z "$SEEDS" ] || jobs=$(nproc)
    for ((i = 0; i < jobs; i++)); do
        timeout 8000 "$PROGRAM" --from $((n * i / jobs + 1)) \
            --seeds $((n * (i + 1) / jobs - n * i / jobs)) \
            >"$BATS_TEST_TMPDIR/$i" 2>&1 3>&- &
    done
    wait
    cat "$BATS_TEST_TMPDIR"/[0-9]*
    for ((i = 0; i < jobs; i++)); do
        [ "$(<"$BATS_TEST_TMPDIR/$i")" = \
            "$((n * (i + 1) / jobs - n * i / jobs)) seeds, all well" ]
    done
}

@test "a seed repeats itself" {
    "$PROGRAM" --seed 7 --verbose >"$BATS_TEST_TMPDIR/one"
    "$PROGRAM" --seed 7 --verbose >"$BATS_TEST_TMPDIR/other"
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/other"
    run "$PROGRAM" --seeds 200 --twice 1
    [ "$status" -eq 0 ]
}

@test "a small sum takes log2 of the hosts, and two more" {
    local hosts log2
    for hosts in 2:1 3:2 4:2 5:3 8:3 13:4 64:6; do
        log2=${hosts#*:}
        measures --hosts "${hosts%:*}" --ranks 4
        [ "${times%.*}" -le $((log2 + 2)) ]
        [ "${messages%.*}" -le $((2 * log2)) ]
        [ "$others" = 0.0 ]
    done
}

# A doubling of four hosts there and back, and no lane.
@test "a sum too large to be passed on whole is made in halves" {
    measures --hosts 4 --ranks 2 --bytes 64K --overhead 4us --bandwidth 1.2
    [ "${messages%.*}" -eq 4 ]
}

# Passed on, all blocks are in the 3 messages of a doubling; straight, 4 go beside
# these; larger ones wait for the doubling, and 7 follow it, in pieces of 32 KiB.
# On 16 hosts blocks of 32 KiB are 512 KiB on a rank.
@test "blocks too large to be passed on go straight, up to 512 KiB on a rank" {
    local size kind bytes least
    for size in 64K:3 128K:7 256K:7 262400:17; do
        measures --hosts 8 --ranks 1 --kind alltoall --bytes "${size%:*}"
        [ "${messages%.*}" -eq "${size#*:}" ]
    done
    for size in alltoall:512K:15 alltoall:524800:34 allgather:8K:4 \
        allgather:32K:15 allgather:33000:34 reducescatter:128K:4 \
        reducescatter:131136:15 reducescatter:512K:15 \
        reducescatter:524800:19; do
        IFS=: read -r kind bytes least <<<"$size"
        measures --hosts 16 --ranks 1 --kind "$kind" --bytes "$bytes"
        [ "${messages%.*}" -eq "$least" ]
    done
    # The message of a round has one block, of at most 64 KiB.
    for size in 128K:1 131080:4 256K:5; do
        measures --hosts 2 --ranks 1 --kind alltoall --bytes "${size%:*}"
        [ "${messages%.*}" -eq "${size#*:}" ]
    done
}

# Behind the 3 messages of a round come those of a tree or, from 128 KiB on, of a
# chain: in pieces of 16, 32 and 64 KiB.
@test "a large broadcast goes along a chain in pieces, larger ones in larger ones" {
    local size
    for size in 64K:6 128K:11 1M:35 4M:67; do
        measures --hosts 8 --ranks 2 --kind broadcast --bytes "${size%:*}"
        [ "${messages%.*}" -eq "${size#*:}" ]
        [ "$others" = 0.0 ]
    done
}

@test "a small sum, and a barrier by name, on 4096 ranks" {
    local args
    for args in '' '--kind barrier --by-name'; do
        # shellcheck disable=SC2086 # a list
        measures --hosts 512 --ranks 8 $args
        [ "$ranks" -eq 4096 ]
        [ "${times%.*}" -le 11 ]
        [ "${messages%.*}" -le 18 ]
        [ "$others" = 0.0 ]
        [ "$memory" -le $((64 << 20)) ]
    done
}

# On each host one batch moves at a time, and takes as long as four layers need to
# become ready.
@test "small sums do not take large ones past the lanes" {
    local batches
    run "$PROGRAM" --csv --hosts 4 --ranks 4 --bytes 4M --bandwidth 2.9 \
        --requests 16 --every 1ms
    echo "$output"
    [ "$status" -eq 0 ]
    batches=${lines[-1]##*,}
    [ "$batches" -ge 2 ]
    [ "$batches" -le 10 ]
}

@test "survivors of several hosts agree, or end in words, whatever happens" {
    run timeout 20000 "${PROGRAM}-recovery" --seeds "${HVD_TEST_FULL:+99}6999"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "faults in that agreement are found" {
    run "$BATS_TEST_DIRNAME/recovery/mutants"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "wrong arguments are refused" {
    is_wrong 1 --kind --hosts 2 --kind nonsense
    is_wrong 1 --alpha --hosts 2 --alpha soon
    is_wrong 1 --every --hosts 2 --every now
    is_wrong 1 --seeds --seeds 0
}

@test "watchdogs tell every rank of a loss, in time and alike, and of nothing else" {
    run timeout 20000 "${PROGRAM}-watch" --seeds "${HVD_TEST_FULL:+20}5000"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "the letters of a host do not grow with the number of hosts" {
    local hosts letters kill freeze stall
    run "${PROGRAM}-watch" --hosts 128 --ranks 2 --csv
    echo "$output"
    [ "$status" -eq 0 ]
    while IFS=, read -r hosts _ letters _ kill freeze stall; do
        awk -v h="$hosts" -v l="$letters" -v k="$kill" -v f="$freeze" \
            -v s="$stall" 'BEGIN { exit !(l <= 2 * (h <= 9 ? h - 1 : 8) &&
                k < 1 && f < 11 && s <= 60) }'
    done < <(sed 1d <<<"$output")
}
