#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipu-bench has several formats, chooses groups and chips, and prints one line
# for every mistake.

load ../support/commands

setup() {
    PROGRAM="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/ipu-bench"
}

@test "all groups as CSV, each row complete" {
    run "$PROGRAM" --format csv
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import csv, sys
rows = list(csv.DictReader(sys.argv[1].splitlines()))
assert all(None not in r and None not in r.values() for r in rows)
assert len({r['group'] for r in rows}) == 10, {r['group'] for r in rows}
triad = [r for r in rows if r['what'] == 'triad, by hand'][0]
assert 44 < float(triad['rate']) < 47.1 and triad['unit'] == 'TB/s', triad
" "$output"
}

@test "groups that are named, and only these" {
    run "$PROGRAM" exchange broadcast --format csv
    [ "$status" -eq 0 ]
    [ "$(cut -d, -f1 <<<"$output" | sort -u | tr '\n' ' ')" = \
        "broadcast exchange group " ]
}

@test "the text says what is an estimate, and why" {
    run "$PROGRAM" --system C2 host
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "# C2 (2 x mk1): "* ]]
    [[ $output == *"# ~ the host's latency is typical"* ]]
}

@test "JSON" {
    run "$PROGRAM" --format json matmul
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import json, sys
document = json.loads(sys.argv[1])
assert len(document['rows']) > 15 and document['notes']
" "$output"
}

@test "a chip from a file" {
    echo '{"based_on": "mk2", "name": "twice", "clock_hz": 2.65e9}' \
        >"$BATS_TEST_TMPDIR/chip.json"
    run "$PROGRAM" --target "$BATS_TEST_TMPDIR/chip.json" --format csv memory
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == "memory,load latency,8,6,2.26"* ]]
}

@test "mistakes are one line" {
    is_wrong 2 "'speed' is not a group: memory, exchange, links, host, matmul, \
matvec, convolution, reduction, broadcast or stencil; networks by itself" speed
    is_wrong 2 "there is no system 'Pod3': C2, M2000, Pod16, Pod64, Pod128, Pod256, \
Bow-2000, Bow-Pod16, Bow-Pod64, Bow-Pod128, Bow-Pod256 or model" --system Pod3
    is_wrong 2 "there is no target 'mk7': mk1, mk2, bow (ipu1, ipu2, ipu21) or \
c600, or a JSON file of your own" --target mk7
    is_wrong 2 "/nowhere/chip.json: cannot be read: No such file or directory" \
        --target /nowhere/chip.json
    is_wrong 2 "--format: 'xml' is none of text, csv, json" --format xml
    is_wrong 2 "'--frmat' is not an option, or lacks its value; see --help" \
        --frmat csv
}

@test "help and version" {
    run "$PROGRAM" --help
    [ "$status" -eq 0 ]
    [[ $output == *"--system"* ]]
    run "$PROGRAM" --version
    [[ $output == "ipu-bench "* ]]
}

@test "networks are a table by itself" {
    run "$PROGRAM" networks --format csv
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import csv, sys
rows = list(csv.DictReader(sys.argv[1].splitlines()))
names = {r['network'] for r in rows}
assert {'ResNet-50', 'MNIST MLP'} <= names, names
for r in rows:
    assert 0 < float(r['percent']) < 100 and float(r['samples/s']) > 0, r
    parts = [float(r[k])
             for k in ('compute', 'waiting', 'exchange', 'sync', 'outside')]
    assert abs(sum(parts) - 100) < 0.01, r
    if r['published']:
        ratio = float(r['samples/s']) / float(r['published'])
        assert abs(ratio - float(r['ratio'])) < 0.001, r
" "$output"
    local itself='networks is a table by itself, each network on a system of'
    itself+=' its own: without'
    is_wrong 2 "$itself other groups" networks matmul
    is_wrong 2 "$itself --system" networks --system C2
    is_wrong 2 "$itself --target" networks --target mk1
}

@test "a full disk is not a success" {
    run bash -c "'$PROGRAM' memory >/dev/full"
    [ "$status" -eq 1 ]
}
