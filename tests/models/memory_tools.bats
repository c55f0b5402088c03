#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# memory_tools as its users meet it: its table, what must be the same bits, and
# wrong command lines.

setup() {
    TOOLS="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/memory_tools"
    SMALL=(--rows 64 --width 48 --layers 8 --updates 3)
}

# column TOOL N: prints column N of the row of a tool
column() {
    echo "$output" | awk -v tool="$1" -v n="$2" '$1 == tool { print $n }'
}

@test "every tool trains, and those that change no sum give the same bits" {
    run "$TOOLS" "${SMALL[@]}"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 10 ]
    for tool in recompute offload offload-all chips; do
        echo "$output" | grep -q "^$tool .* the same bits$"
    done
    [ "$(column recompute 6)" = "$(column plain 6)" ]
    for tool in accumulate pipeline shard float16; do
        echo "$output" | grep -Eq "^$tool .* (within|the same bits)"
    done
}

@test "what they are for falls" {
    run "$TOOLS" --rows 1024 --width 64 --layers 16 --updates 1
    [ "$status" -eq 0 ]
    for tool in recompute accumulate offload offload-all chips pipeline shard \
        float16; do
        [ "$(column $tool 2)" -lt "$(column plain 2)" ]
    done
    [ "$(column plain 4)" -eq 0 ]
    [ "$(column offload 4)" -gt 0 ]
    # Each of 4 replicas has a part of the state.
    [ "$(column shard 4)" -lt $(($(column offload 4) / 3)) ]
}

@test "what was told of each is what it is, within 5 %" {
    run "$TOOLS" --rows 2048 --width 64 --layers 16 --updates 1
    [ "$status" -eq 0 ]
    for tool in recompute accumulate offload offload-all chips pipeline; do
        for at in 8 10; do
            column $tool $at | grep -Eq '^[+-][0-4]\.[0-9]%$'
        done
    done
    [ "$(column chips 7)" -gt 0 ]
}

@test "tools can be chosen, and come in one order" {
    run "$TOOLS" "${SMALL[@]}" recompute plain
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    [[ "${lines[1]}" == plain* ]]
    [[ "${lines[2]}" == recompute* ]]
}

@test "a chip without memory beside it cannot offload" {
    run "$TOOLS" "${SMALL[@]}" --target mk1 offload
    [ "$status" -eq 1 ]
    [[ "$output" == *"memory_tools: offload: "*"'mk1' has no streaming memory"* ]]
}

@test "wrong command lines say what is wanted" {
    run "$TOOLS" --rows 0
    [ "$status" -eq 64 ]
    [[ "$output" == *"--rows: '0' is not a whole number from 1 to"* ]]
    run "$TOOLS" --rows 30 --parts 4
    [ "$status" -eq 64 ]
    [[ "$output" == *"--rows 30: it must be a multiple of twice --parts 4"* ]]
    run "$TOOLS" --layers 3 --parts 4
    [ "$status" -eq 64 ]
    [[ "$output" == *"--parts 4: there are only 3 --layers"* ]]
    run "$TOOLS" --lr nan
    [ "$status" -eq 64 ]
    [[ "$output" == *"--lr: 'nan'"* ]]
    run "$TOOLS" --target mk9
    [ "$status" -eq 64 ]
    [[ "$output" == *"--target: "* ]]
    run "$TOOLS" nothing
    [ "$status" -eq 64 ]
    [[ "$output" == *"tool 'nothing'"* ]]
    run "$TOOLS" --nothing
    [ "$status" -eq 64 ]
    [ "$output" = "memory_tools: there is no option --nothing; see --help" ]
}

@test "--help names the tools" {
    run "$TOOLS" --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"recompute "* ]]
    [[ "$output" == *"--parts=N"* ]]
    run "$TOOLS" --version
    [ "$status" -eq 0 ]
    [[ "$output" == "memory_tools "[0-9]* ]]
}

@test "output that nobody takes is a failure" {
    run bash -c "$TOOLS --rows 64 --width 16 --updates 1 plain 2>&1 >/dev/full"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "a profile has a program for each tool" {
    run "$TOOLS" "${SMALL[@]}" --profile "$BATS_TEST_TMPDIR/out"
    echo "$output"
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import json, sys
programs = json.load(open(sys.argv[1] + '/profile.json'))['programs']
names = [p['name'] for p in programs]
staged = [n for n in names if n.split()[0] in '0123' or n.startswith('update')]
assert [n for n in names if n not in staged] == ['plain', 'recompute',
    'accumulate', 'offload', 'offload-all', 'chips', 'shard', 'float16'], names
assert len(staged) == 12, names # four stages, there and back, and updates
named = {p['name']: p for p in programs}
assert named['recompute']['cycles']['again'] > 0
assert named['offload']['memory']['remote_bytes'] > 0
assert any(s['every'] > 1 for s in named['accumulate']['steps'])
assert named['plain']['measured']['runs'] == 3
" "$BATS_TEST_TMPDIR/out"
    [ -s "$BATS_TEST_TMPDIR/out/report.html" ]
    run "$TOOLS" "${SMALL[@]}" plain --profile /proc
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "memory_tools: --profile: /proc"* ]]
}
