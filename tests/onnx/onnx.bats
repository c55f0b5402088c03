#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipu-run passes ONNX's own tests for each operator that is supported, and prints
# one line for every mistake. The tests of ONNX are those of Debian's libonnx-testdata.

load ../support/commands

setup() {
    PROGRAM="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/ipu-run"
    DATA=/usr/share/libonnx-testdata/data
    RESULTS="$BATS_TEST_TMPDIR/results"
    export OPENBLAS_NUM_THREADS=1
}

# refusals: prints the reasons of what was refused in $RESULTS, and how often
# each occurred.
refusals() {
    sed -n 's/^refused [^:]*: //p' "$RESULTS" |
        sed -e 's/^.*node .*): //' -e "s/'[^']*'/'...'/g" |
        sort | uniq -c | sort -rn
}

# supported: prints the names of the supported operators.
supported() {
    "$PROGRAM" --list-operators | awk '$2 ~ /^[0-9]+$/ && NF { print $1 }' |
        grep -v '^[0-9]'
}

# The outputs of test_adam_multiple are those of epsilon 0.01; its model has none,
# which later versions of ONNX have mended. Those of Bernoulli were drawn by numpy.
@test "no test of one operator fails but those that are wrong, and 858 pass" {
    "$PROGRAM" "$DATA"/node/* >"$RESULTS" || true
    refusals
    tail -n 1 "$RESULTS"
    [ "$(grep '^FAIL' "$RESULTS" | grep -v 'test_bernoulli.*should be [01]$' |
        cut -d: -f1)" = "FAIL $DATA/node/test_adam_multiple" ]
    [ "$(grep -c '^pass' "$RESULTS")" -ge 858 ]
    [ "$(grep -c '^\(pass\|refused\) ' "$RESULTS")" -eq 925 ]
}

# What is refused of supported operators: types, training, and so on.
@test "of the operators that are supported, at most 9 cases are refused" {
    "$PROGRAM" "$DATA"/node/* >"$RESULTS" || true
    supported | sort >"$BATS_TEST_TMPDIR/names"
    sed -n 's/^refused .*node .* (\([A-Za-z0-9]*\)): .*/\1/p' "$RESULTS" |
        sort >"$BATS_TEST_TMPDIR/refused"
    join "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/refused" |
        uniq -c | tee "$BATS_TEST_TMPDIR/both"
    sum=$(awk '{ n += $1 } END { print n + 0 }' "$BATS_TEST_TMPDIR/both")
    echo "$sum cases"
    [ "$sum" -le 9 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/names")" -ge 165 ]
}

@test "no small model of PyTorch fails, and 126 pass" {
    "$PROGRAM" "$DATA"/pytorch-converted/* "$DATA"/pytorch-operator/* \
        "$DATA"/simple/* >"$RESULTS"
    refusals
    tail -n 1 "$RESULTS"
    [ "$(grep -c '^FAIL' "$RESULTS")" -eq 0 ]
    [ "$(grep -c '^pass' "$RESULTS")" -ge 126 ]
}

# cases PROGRAM OPTION...: expects that the tests that the program writes pass with
# these options of ipu-run, or are refused with the reason that each names.
cases() {
    local cases="$BATS_TEST_TMPDIR/cases" case words
    /usr/bin/python3 -B -W ignore "$BATS_TEST_DIRNAME/$1" "$cases"
    "$PROGRAM" "${@:2}" "$cases"/pass/* >"$RESULTS"
    grep -v '^pass' "$RESULTS"
    [ "$(grep -c '^pass' "$RESULTS")" -eq "$(ls "$cases/pass" | wc -l)" ]
    for case in "$cases"/refuse/*; do
        words=$(<"$case/words")
        run "$PROGRAM" "$case"
        echo "$output"
        [[ ${lines[0]} == "refused $case: "*"$words"* ]]
        [ "${lines[1]}" = "0 passed, 1 refused, 0 failed" ]
    done
}

@test "operators give what PyTorch and numpy give, or say why not" {
    cases operators.py
}

@test "recurrent layers give what PyTorch and numpy give, or say why not" {
    cases recurrent.py --rtol 1e-4 --atol 1e-6
}

@test "branches give what numpy gives, or say why not" {
    cases control.py
}

@test "shapes that any operator computes are known, and refusals are together" {
    cases known.py
    run "$PROGRAM" "$BATS_TEST_TMPDIR/cases/many/many/model.onnx"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"100 nodes are not supported: node 'number_0' (Unique)"* ]]
    [[ $output == *"'number_29' (Unique)"*"; and "*" more" ]]
}

@test "derivatives and steps of optimisers are those of PyTorch and numpy" {
    cases training.py
}

@test "loops give what numpy and PyTorch give, or say why not" {
    cases loops.py
}

# A comparison that accepts everything would pass all of the above.
@test "a test with another output fails" {
    cp -r "$DATA/node/test_relu" "$BATS_TEST_TMPDIR/relu"
    cp "$BATS_TEST_TMPDIR"/relu/test_data_set_0/{input_0,output_0}.pb
    run "$PROGRAM" "$BATS_TEST_TMPDIR/relu"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "FAIL "*"output 0: element "*", and should be "* ]]
    [ "${lines[1]}" = "0 passed, 0 refused, 1 failed" ]
    cp "$DATA"/node/test_argmax_default_axis_example/test_data_set_0/output_0.pb \
        "$BATS_TEST_TMPDIR/relu/test_data_set_0"
    run "$PROGRAM" "$BATS_TEST_TMPDIR/relu"
    [[ ${lines[0]} == *"output 0 is float [3,4,5], and should be int64 [1,2]" ]]
}

# The tolerance of floats would accept it.
@test "integers are compared exactly" {
    /usr/bin/python3 -B -W ignore - "$BATS_TEST_TMPDIR/cases" <<END
import sys
sys.path.insert(0, "$BATS_TEST_DIRNAME")
import numpy
from cases import node
x = numpy.array([70000, 3], "int32")
node("same", "Identity", [x], [x])
node("other", "Identity", [x], [x + numpy.int32([1, 0])])
END
    run "$PROGRAM" "$BATS_TEST_TMPDIR"/cases/pass/*
    echo "$output"
    [[ ${lines[0]} == *"output 0: element 0 is 70000, and should be 70001" ]]
    [[ ${lines[1]} == "pass "*/same ]]
}

@test "a network of PyTorch trains as there, and is saved" {
    local out=$BATS_TEST_TMPDIR
    /usr/bin/python3 -B -W ignore "$BATS_TEST_DIRNAME/train.py" export "$out"
    "$PROGRAM" --train 8 --loss cross-entropy --rate 0.125 --momentum 0.5 --profile "$out/p" \
        --input "$out/x.npy" --labels "$out/labels.npy" --output "$out/outputs" \
        --save "$out/trained.onnx" "$out/model.onnx" | tee "$RESULTS"
    grep '^step' "$RESULTS" | paste - "$out/losses.txt" | tee "$out/both"
    [ "$(awk '{ d = $4 - $5; n += d * d < 1e-8 } END { print n }' "$out/both")" -eq 8 ]
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/train.py" check "$out"
    [ -s "$out/p/report.html" ]
    grep -q '_grad"' "$out/p/profile.json" # the derivatives are in it, too
    # Frozen parameters stay, and the others do not.
    "$PROGRAM" --train 3 --loss cross-entropy --freeze '*.bias' --freeze '0.w?ight' \
        --input "$out/x.npy" --labels "$out/labels.npy" --save "$out/frozen.onnx" \
        "$out/model.onnx" >"$RESULTS"
    /usr/bin/python3 -B - "$out/model.onnx" "$out/frozen.onnx" <<'END'
import onnx, sys
from onnx import numpy_helper
before, after = ({each.name: numpy_helper.to_array(each) for each in
                  onnx.load(path).graph.initializer} for path in sys.argv[1:])
for name, value in before.items():
    same = (value == after[name]).all()
    assert same == (name.endswith(".bias") or name == "0.weight"), name
END
    is_wrong 1 "no initialiser that could be trained has a name like 'fc*'" --train 3 \
        --freeze 'fc*' --loss cross-entropy --input "$out/x.npy" \
        --labels "$out/labels.npy" "$out/model.onnx"
    is_wrong 2 "--freeze is for --train, or --epochs" --freeze '*' "$out/model.onnx"
    is_wrong 2 "--train needs --labels or --data" --train 3 "$out/model.onnx"
    is_wrong 1 "the labels are float [5,2,8,8], and the loss takes float [5,3]" \
        --train 3 --labels "$out/x.npy" "$out/model.onnx"
    is_wrong 1 "no initialisers of floats" --train 3 --labels "$out/x.npy" \
        "$DATA/node/test_relu/model.onnx"
}

@test "models of old versions, and elements in other files, are saved whole" {
    local out=$BATS_TEST_TMPDIR
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/save.py" make "$out"
    "$PROGRAM" --train 3 --rate 0.5 --input "$out/x.npy" --labels "$out/labels.npy" \
        --save "$out/old-trained.onnx" "$out/old.onnx"
    "$PROGRAM" --train 3 --rate 0.5 --input "$out/x.npy" --labels "$out/labels.npy" \
        --save "$out/inside/model.onnx" "$out/outside/model.onnx"
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/save.py" check "$out"
}

@test "inputs are given, random, or wrong" {
    local model=$DATA/node/test_add/model.onnx good=$BATS_TEST_TMPDIR/good.npy
    /usr/bin/python3 -c "
import numpy
numpy.save('$good', numpy.ones((3, 4, 5), numpy.float32))
numpy.save('$BATS_TEST_TMPDIR/order.npy', numpy.ones((3, 4), order='F'))
numpy.save('$BATS_TEST_TMPDIR/type.npy', numpy.ones((3, 4, 5), '>f4'))
numpy.save('$BATS_TEST_TMPDIR/shape.npy', numpy.ones((3, 4), numpy.float32))"
    run "$PROGRAM" --input "$good" --seed 5 --output "$BATS_TEST_TMPDIR/a" "$model"
    echo "$output"
    [ "$status" -eq 0 ]
    "$PROGRAM" --input "$good" --seed 5 --output "$BATS_TEST_TMPDIR/b" "$model"
    cmp "$BATS_TEST_TMPDIR"/{a,b}/sum.npy
    /usr/bin/python3 -c "
import numpy
y = numpy.load('$BATS_TEST_TMPDIR/a/sum.npy')
assert y.dtype == numpy.float32 and y.shape == (3, 4, 5)
assert 0 <= y.min() < 0.2 and 1.8 < y.max() < 2 and y.std() > 0.4"
    is_wrong 1 "no further input" --input "$good" --input "$good" \
        --input "$good" "$model"
    is_wrong 1 "the model has no such input" --input "z=$good" "$model"
    is_wrong 1 "order of C" --input "$BATS_TEST_TMPDIR/order.npy" "$model"
    is_wrong 1 "its type is none" --input "$BATS_TEST_TMPDIR/type.npy" "$model"
    is_wrong 1 "does not have the shape" --input \
        "$BATS_TEST_TMPDIR/shape.npy" "$model"
    head -c 300 "$good" >"$BATS_TEST_TMPDIR/short.npy"
    is_wrong 1 "its length" --input "$BATS_TEST_TMPDIR/short.npy" "$model"
    head -c 100 "$good" >"$BATS_TEST_TMPDIR/short.npy"
    is_wrong 1 "its header" --input "$BATS_TEST_TMPDIR/short.npy" "$model"
    is_wrong 1 "cannot be read" --input "$BATS_TEST_TMPDIR/none.npy" "$model"
}

# The chip of one tile holds all numbers of the model: two layers of 64 by 64
# weights and 64 biases, in float32.
@test "a model fits on a chip, or a remedy makes it fit" {
    local model=$BATS_TEST_TMPDIR/layers.onnx
    /usr/bin/python3 "$BATS_TEST_DIRNAME/layers.py" "$model"
    echo '{"tiles": 1, "name": "one"}' >"$BATS_TEST_TMPDIR/one.json"
    run "$PROGRAM" --fit --batch 4 --target "$BATS_TEST_TMPDIR/one.json" "$model"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "fits on one: "*" of 638976 bytes on the fullest tile" ]]
    [ "$(awk '/^  constants/ { print $2 }' <<<"$output")" -eq $((2 * 4 * 65 * 64)) ]
    # Its inputs alone would take 5 GB, if anybody made them.
    run bash -c "ulimit -v 3000000; exec '$PROGRAM' --fit --batch 20000000 '$model'"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "does not fit on mk2: "*" of 638976 bytes"* ]]
    # The shares add up, and dividing the batch makes the model fit.
    awk '/^  sum/ { exit !($2 == sum && sum > 638976) }
         { gsub(/^  [a-z, ]+ /, ""); sum += NR > 3 ? $1 : 0 }' <<<"$output"
    awk '$1 == "accumulate" { exit !($3 == "yes" && $4 <= 638976 && $6 > 0) }' \
        <<<"$output"
    [[ $output == *"  recompute    the program has no gradients"* ]]
    is_wrong 1 "there is no target 'mk9'" --fit --target mk9 --batch 1 "$model"
    is_wrong 1 "is a folder" --fit "$DATA/node/test_relu"
}

@test "a model fits on several chips, and so does its training" {
    local model=$BATS_TEST_TMPDIR/layers.onnx
    /usr/bin/python3 "$BATS_TEST_DIRNAME/layers.py" "$model"
    run "$PROGRAM" --fit --ipus 2 --batch 20000 --target bow "$model"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "fits on 2 IPUs of bow: "*" of 638976 bytes on the fullest tile" ]]
    [[ ${lines[2]} == "layers are divided so that the slowest IPU is as fast as can be" ]]
    # The chips share the weights, the fullest tile is one of theirs, and a batch
    # takes the time of both, and the host's; as a pipeline that of the slower one.
    awk 'NR == 1 { fullest = $7 }
         /^a batch takes/ { all = $6; between = $10 }
         $1 ~ /^[0-9]+$/ { n++; weights += $3; ms += $6
                           if ($4 > most) most = $4
                           if ($6 > slowest) slowest = $6 }
         /^as a pipeline/ { each = $8 }
         END { exit !(n == 2 && weights == 2 * 65 * 64 * 4 && most == fullest &&
                      all > between + ms && each == slowest && between > 0) }' \
        <<<"$output"
    # The remedy "shard" is the division that as many chips get.
    "$PROGRAM" --fit --batch 20000 --target bow "$model" >"$RESULTS" || true
    parts=$(awk '$1 == "shard" { print $2 }' "$RESULTS")
    run "$PROGRAM" --fit --ipus "$parts" --batch 20000 --target bow "$model"
    told=$(awk '/^fits/ { bytes = $7 } /^a batch takes/ { print "yes", bytes, $6 }' \
        <<<"$output")
    echo "$output"
    cat "$RESULTS"
    [ "$(awk '$1 == "shard" { print $3, $4, $6 }' "$RESULTS")" = "$told" ]
    run "$PROGRAM" --fit --ipus 2 --train 1 --loss mse --batch 16 "$model"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"as a pipeline of 2 stages it fits: "*" ms for the batch in 4 parts"* ]]
    "$PROGRAM" --fit --batch 16 "$model" >"$RESULTS"
    alone=$(awk '/^  variables/ { print $2 }' "$RESULTS")
    "$PROGRAM" --fit --train 1 --batch 16 "$model" >"$RESULTS"
    trained=$(awk '/^  variables/ { print $2 }' "$RESULTS")
    [ "$alone" -eq 0 ]
    [ "$trained" -gt 0 ]
    is_wrong 2 "--ipus needs --fit" --ipus 2 "$model"
}

@test "a profile has the bytes that --fit prints" {
    local model=$DATA/node/test_matmul_4d/model.onnx out=$BATS_TEST_TMPDIR/p bytes
    bytes=$("$PROGRAM" --fit --profile "$out" "$model" | awk '/^  sum/ { print $2 }')
    [ "$bytes" -gt 0 ]
    [ -s "$out/report.html" ]
    grep -q "\"fullest_tile_bytes\": *$bytes\b" "$out/profile.json"
    is_wrong 1 "$BATS_TEST_TMPDIR/none/p" --profile "$BATS_TEST_TMPDIR/none/p" "$model"
    is_wrong 1 "--profile takes a model" --profile "$out" "$DATA/node/test_relu"
}

# The time of steps is part of that of a run.
@test "the time of a run is printed beside that of the chip" {
    local model=$BATS_TEST_TMPDIR/layers.onnx
    /usr/bin/python3 "$BATS_TEST_DIRNAME/layers.py" "$model"
    run "$PROGRAM" --bench 5 --batch 64 --target bow "$model"
    echo "$output"
    [ "$status" -eq 0 ]
    chip=$("$PROGRAM" --fit --batch 64 --target bow "$model" |
        sed -n 's/^a run takes .* cycles, \(.*\) ms$/\1/p')
    awk -v chip="$chip" '/CPU, median of 5/ { median = $5 }
        /CPU, fastest/ { fastest = $3 }
        /bow, modelled/ { modelled = $3 }
        after { steps += $1; sum += $2; percent += $3 }
        /of the CPU/ { after = 1 }
        END { exit !(fastest > 0 && median >= fastest && modelled == chip &&
                     steps >= 2 && sum > 0 && percent > 99 && percent < 101) }
        ' <<<"$output"
    is_wrong 2 "--bench" --bench 0 "$model"
    is_wrong 1 "--bench takes a model" --bench 2 "$DATA/node/test_relu"
}

@test "every mistake is one line" {
    local model=$DATA/node/test_add/model.onnx
    is_wrong 2 "which model"
    is_wrong 2 "--batch" --batch none "$model"
    is_wrong 1 "cannot be read" "$BATS_TEST_TMPDIR/none.onnx"
    is_wrong 1 "no input has an open first dimension" --batch 2 "$model"
    is_wrong 1 "is not NAME=N" --dim n "$model"
    is_wrong 1 "open dimension of the name 'n'" --dim n=2 "$model"
    is_wrong 1 "more than one model" "$model" "$model"
    is_wrong 1 "(NonMaxSuppression): the shape of its output depends on data" \
        "$DATA/node/test_nonmaxsuppression_single_box/model.onnx"
    is_wrong 1 "give it with --input" "$DATA/node/test_identity_sequence/model.onnx"
    head -c 100 "$model" >"$BATS_TEST_TMPDIR/cut.onnx"
    is_wrong 1 "is damaged" "$BATS_TEST_TMPDIR/cut.onnx"
    run "$PROGRAM" --version
    [[ $output == "ipu-run "* ]]
}

# docs/ONNX.md has the table that --list-operators prints.
@test "the page lists the operators" {
    local page=$BATS_TEST_DIRNAME/../../docs/ONNX.md
    "$PROGRAM" --list-operators | awk '$2 ~ /^[0-9]+$/ && !/^[0-9]/ {
        name = $1; first = $2; $1 = $2 = ""; sub(/^ +/, "")
        print "| " name " | " first " | " $0 " |" }' |
        tr -s ' ' >"$BATS_TEST_TMPDIR/listed"
    grep -E '^\| [A-Za-z0-9]+ \| [0-9]+ \|' "$page" | tr -s ' ' \
        >"$BATS_TEST_TMPDIR/shown"
    diff "$BATS_TEST_TMPDIR/listed" "$BATS_TEST_TMPDIR/shown"
}
