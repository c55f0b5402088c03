#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Networks that PyTorch exports give in ipu-run what they give in PyTorch, and so
# do the gradients of their losses: small ones, and with HVD_TEST_FULL=1 those at
# full size, which are also fitted to a chip.

load ../support/commands

setup() {
    PROGRAM="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/ipu-run"
    OUT=$BATS_TEST_TMPDIR
    export OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=SkylakeX
    grep -qw avx512f /proc/cpuinfo || export OPENBLAS_CORETYPE=Haswell
}

# compare: expects that each output of ipu-run differs from PyTorch's by at most
# 1e-4 of the largest number in it.
compare() {
    /usr/bin/python3 - "$OUT" <<'END'
import glob
import os
import sys
import numpy
paths = sorted(glob.glob(sys.argv[1] + "/y*.npy"))
assert paths
for path in paths:
    wanted = numpy.load(path)
    got = numpy.load(f"{sys.argv[1]}/out/{os.path.basename(path)}")
    most, error = abs(wanted).max(), abs(got - wanted).max()
    print(os.path.basename(path), "largest", most, "difference", error)
    assert got.shape == wanted.shape and most > 0.01 and got.std() > 0
    assert error <= 1e-4 * most
END
}

# equals NETWORK SIZE [OPSET]: expects that a network gives what PyTorch gives.
equals() {
    local inputs=() i
    /usr/bin/python3 -B -W ignore "$BATS_TEST_DIRNAME/export.py" "$1" "$2" \
        "$OUT" "${@:3}"
    for i in "$OUT"/x*.npy; do
        inputs+=(--input "$(basename "$i" .npy)=$i")
    done
    "$PROGRAM" "${inputs[@]}" --output "$OUT/out" "$OUT/model.onnx"
    compare
}

# learns NETWORK SIZE [OPSET]: expects that a training step of a network has the
# gradients of PyTorch, by one step of SGD with a large rate, and its running
# statistics.
learns() {
    local inputs=() i
    /usr/bin/python3 -B -W ignore "$BATS_TEST_DIRNAME/gradients.py" export "$1" \
        "$2" "$OUT" "${@:3}"
    for i in "$OUT"/x*.npy; do
        inputs+=(--input "$(basename "$i" .npy)=$i")
    done
    "$PROGRAM" --train 1 --rate 1024 --loss cross-entropy "${inputs[@]}" \
        --labels "$OUT/labels.npy" --save "$OUT/trained.onnx" "$OUT/model.onnx" \
        >"$OUT/steps"
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/gradients.py" check "$OUT"
}

# all_learn NETWORK...: the same of small ones, with HVD_TEST_FULL=1.
all_learn() {
    local network
    [ -n "${HVD_TEST_FULL-}" ] || return 0
    for network; do
        rm -f "$OUT"/*
        learns "$network" small
    done
}

# full NETWORK: the same at full size, and fits it to a Mk2.
full() {
    [ -n "${HVD_TEST_FULL-}" ] || return 0
    equals "$1" full
    run "$PROGRAM" --fit --target mk2 --batch 1 "$OUT/model.onnx"
    echo "$output"
    [ "$status" -le 1 ]
    [[ ${lines[0]} == *"fit"*" on mk2: "*" of 638976 bytes"* ]]
    [[ ${lines[1]} == "a run takes "*" ms" ]]
}

@test "small networks of images give what PyTorch gives: ResNet-18" {
    equals resnet18 small
}

@test "small networks of images give what PyTorch gives: MobileNetV2" {
    equals mobilenet_v2 small
}

@test "small networks of images give what PyTorch gives: SqueezeNet" {
    equals squeezenet1_1 small
}

@test "a small language model of LSTM gives what PyTorch gives" {
    equals lstm small
}

@test "a small encoder gives what PyTorch gives, with opset 13 and 17" {
    equals bert small
    equals bert small 17
}

@test "a small decoder gives what PyTorch gives, with opset 13 and 17" {
    equals gpt2 small
    equals gpt2 small 17
}

@test "a small network with normalisations learns as in PyTorch: MobileNetV2" {
    learns mobilenet_v2 small
}

@test "a small network without normalisations learns as in PyTorch: VGG-11" {
    learns vgg11 small
}

@test "a small encoder learns as in PyTorch" {
    learns bert small
}

@test "other small networks of images learn as in PyTorch" {
    all_learn resnet18 resnet50 mobilenet_v3_small efficientnet_b0 \
        densenet121 squeezenet1_1 vit_b_16
}

@test "other small language models learn as in PyTorch" {
    all_learn lstm gpt2
}

@test "full size: ResNet-18" {
    full resnet18
}

@test "full size: ResNet-50" {
    full resnet50
}

@test "full size: MobileNetV2" {
    full mobilenet_v2
}

@test "full size: MobileNetV3" {
    full mobilenet_v3_small
}

@test "full size: EfficientNet-B0" {
    full efficientnet_b0
}

@test "full size: VGG-11" {
    full vgg11
}

@test "full size: DenseNet-121" {
    full densenet121
}

@test "full size: SqueezeNet" {
    full squeezenet1_1
}

@test "full size: ViT-B/16" {
    full vit_b_16
}

@test "full size: the language model of LSTM" {
    full lstm
}

@test "full size: BERT-base" {
    full bert
}

@test "full size: GPT-2 small" {
    full gpt2
}
