#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# train-bench: that it runs the programs and reads what they say; its formats;
# one line for every mistake. Not how fast they are.

load ../support/commands

setup() {
    PROGRAM="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/train-bench"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export TMPDIR="$BATS_TEST_TMPDIR"
}

@test "every mistake is one line" {
    is_wrong 64 "rnn" rnn
    is_wrong 64 "--repeats" -r 0
    is_wrong 64 "--steps" --steps x
    is_wrong 64 "--format" --format xml
    is_wrong 64 "--ops" --ops -1
}

@test "help and version" {
    run "$PROGRAM" --help
    [ "$status" -eq 0 ]
    [[ $output == *--scaling* ]]
    run "$PROGRAM" --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^train-bench\ [0-9] ]]
}

@test "what programs cannot do is theirs to say, and ends it" {
    run "$PROGRAM" mlp -r 1 --steps 2 --data "$BATS_TEST_TMPDIR/none"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "mnist: "*"none"* ]]
    [[ ${lines[1]} == "train-bench: mnist: it failed" ]]
    [ -z "$(ls -A "$BATS_TEST_TMPDIR")" ]
}

@test "speeds of all networks, and where time goes" {
    run "$PROGRAM" -r 2 --steps 2 --format csv
    echo "$output"
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import csv, sys
text = sys.argv[1].splitlines()
second = next(i for i, l in enumerate(text) if l.startswith('network,op'))
speeds = list(csv.DictReader(text[:second]))
assert [r['network'] for r in speeds] == ['cnn', 'mlp', 'gpt'], speeds
for r in speeds:
    assert float(r['per_s']) >= float(r['median']) > 0, r
    assert float(r['sgemm_gflop_s']) > 0 and float(r['share_%']) > 0, r
assert 0.17 < float(speeds[0]['gflop_per_step']) < 0.2, speeds[0]
assert 0.012 < float(speeds[1]['gflop_per_step']) < 0.014, speeds[1]
ops = list(csv.DictReader(text[second:]))
for name in 'cnn', 'mlp', 'gpt':
    mine = [r for r in ops if r['network'] == name]
    assert 3 < len(mine) <= 10 and sum(float(r['share_%']) for r in mine) < 101
    assert any(r['op'] == 'matmul' for r in mine), mine
" "$output"
    [ -z "$(ls -A "$BATS_TEST_TMPDIR")" ]
}

@test "two ranks beside a pair and one" {
    run "$PROGRAM" --scaling mlp -r 1 --steps 50 --format csv
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ]
    /usr/bin/python3 -c "
import csv, sys
row = list(csv.DictReader(sys.argv[1].splitlines()))[0]
one, pair, ranks = (float(row[k]) for k in ('one', 'pair', 'ranks'))
assert one > 0 and pair > 0 and ranks > 0
assert abs(float(row['ranks_%']) - 50 * ranks / one) < 0.1, row
assert abs(float(row['of_pair_%']) - 100 * ranks / pair) < 0.1, row
" "$output"
}
