#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# train-bench runs the training programs, reads their output, prints it in
# several formats, and prints one line for every mistake. Their speed is not
# tested.

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
    is_wrong 64 "--peer" --peer tensorflow
    is_wrong 64 "--instructions" --instructions sse9
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

# Replaces train-bench-torch, which needs PyTorch.
peer_that_says() { # JSON
    local bin=$BATS_TEST_TMPDIR/programs real=${PROGRAM%/*}
    mkdir "$bin"
    cp "$PROGRAM" "$bin"
    ln -s "$real/mnist" "$real/char_gpt" "$bin"
    ln -s /bin/true "$bin/mpi-launch.sh"
    # shellcheck disable=SC2016 # the stand-in expands them
    printf '#!/bin/sh\n[ "$OMP_NUM_THREADS" = 1 ] || exit 1\n%s\n' \
        'for last; do :; done; echo "$* $IPU_KERNELS" >>"$PEER_WORDS"' \
        >"$bin/train-bench-torch"
    printf "echo '%s' >\"\$last\"\n" "$1" >>"$bin/train-bench-torch"
    chmod +x "$bin/train-bench-torch"
    PROGRAM=$bin/train-bench
    export PEER_WORDS=$BATS_TEST_TMPDIR/words TMPDIR=$BATS_TEST_TMPDIR/results
    mkdir "$TMPDIR"
}

@test "beside a peer in turn, with the instructions that are asked for" {
    peer_that_says '{"per_second": 100, "parameters": 101770, "torch": "9.9"}'
    run "$PROGRAM" mlp --peer torch -r 3 --steps 50 --instructions generic \
        --format csv
    echo "$output"
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import csv, sys
row = list(csv.DictReader(sys.argv[1].splitlines()))[0]
assert row['network'] == 'mlp' and float(row['parameters']) == 101770, row
assert float(row['torch']) == 100, row
assert abs(float(row['ratio']) - float(row['hvd']) / 100) < 0.01, row
assert float(row['least']) <= float(row['ratio']) <= float(row['most']), row
" "$output"
    [ "$(grep -c "^mlp --steps 26 --result .*/torch generic$" \
        "$PEER_WORDS")" -eq 3 ]
    [ -z "$(ls -A "$TMPDIR")" ]
}

@test "a peer with another network is no peer" {
    peer_that_says '{"per_second": 100, "parameters": 101769}'
    run "$PROGRAM" mlp --peer torch -r 1 --steps 50
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == "train-bench: mlp has 101770 parameters, and 101769 in train-bench-torch: these are not the same network" ]]
    [ -z "$(ls -A "$TMPDIR")" ]
}

@test "the vocabulary of a text is the peer's, too" {
    peer_that_says '{"per_second": 100, "parameters": 1}'
    printf 'abcdefgh%.0s' {1..200} >"$BATS_TEST_TMPDIR/text"
    run "$PROGRAM" gpt --peer torch -r 1 --steps 2 \
        --text "$BATS_TEST_TMPDIR/text"
    echo "$output"
    [ "$status" -eq 1 ]
    grep -q "^gpt --steps 2 --vocabulary 8 --result " "$PEER_WORDS"
}

@test "without PyTorch a line says how to get it" {
    echo 'raise ImportError("not here")' >"$BATS_TEST_TMPDIR/torch.py"
    PYTHONPATH=$BATS_TEST_TMPDIR run "${PROGRAM%/*}/train-bench-torch" mlp
    [ "$status" -eq 1 ]
    [[ $output == "train-bench-torch: PyTorch cannot be loaded (not here): on Debian, apt-get install python3-torch" ]]
}
