#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipu-run trains on data sets, alone and on ranks: with the losses and weights of
# PyTorch, whatever the form of the data and the number of ranks.

load ../support/commands

setup_file() {
    export DATA=$BATS_FILE_TMPDIR OPENBLAS_NUM_THREADS=1
    /usr/bin/python3 -B -W ignore "$BATS_TEST_DIRNAME/data.py" make "$DATA"
}

setup() {
    ROOT=$BATS_TEST_DIRNAME/../..
    PROGRAM="${HVD_BUILD:-$ROOT/build}/bin/ipu-run"
    OUT=$BATS_TEST_TMPDIR
    SGD=(--loss cross-entropy --batch 12 --rate 0.25 --momentum 0.5)
}

# losses NAME: expects that the lines of "$OUT/lines" have PyTorch's losses.
losses() {
    grep '^step' "$OUT/lines" | paste - "$DATA/losses-$1.txt" | tee "$OUT/both"
    [ "$(awk '{ d = $4 - $5; n += d * d < 1e-10 } END { print n }' \
        "$OUT/both")" -eq 8 ]
}

equal() {
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/data.py" equal "$@"
}

# trains DATA...: trains in the order of the data, and expects what PyTorch has.
trains() {
    "$PROGRAM" --train 8 --in-order "${SGD[@]}" --save "$OUT/trained.onnx" \
        --data "$@" "$DATA/model.onnx" >"$OUT/lines"
    losses sgd
    equal "$OUT/trained.onnx" "$DATA/weights.npz"
}

@test "every form of a data set trains as in PyTorch" {
    trains "$DATA/named.npz"
    trains "$DATA/two.npz"
    trains "$DATA/data.safetensors"
    trains "$DATA/x.npy" --labels "$DATA/labels.npy"
    trains "$DATA/x.idx" --labels "$DATA/labels.idx" --divisor 255
    trains "$DATA/sets"
}

@test "other optimisers, epochs, and what is printed" {
    "$PROGRAM" --train 8 --in-order --loss cross-entropy --batch 12 \
        --optimizer adam --rate 0.01 --data "$DATA/named.npz" \
        "$DATA/model.onnx" >"$OUT/lines"
    losses adam
    "$PROGRAM" --epochs 2 --every 3 "${SGD[@]}" --data "$DATA/named.npz" \
        "$DATA/model.onnx" >"$OUT/lines"
    cat "$OUT/lines"
    [ "$(grep '^step' "$OUT/lines" | cut -d' ' -f2 | paste -sd' ')" = "3 6 8" ]
    [ "$(grep -c '^epoch [12]  mean loss [0-9.]*$' "$OUT/lines")" -eq 2 ]
}

# The order of rows depends on the seed alone.
@test "1, 2, 3 and 4 ranks train to the same weights" {
    local n
    for n in 1 2 3 4; do
        "$ROOT/mpi-launch.sh" -np $n "$PROGRAM" --epochs 3 --seed 5 "${SGD[@]}" \
            --weight-decay 0.01 --data "$DATA/named.npz" \
            --save "$OUT/$n.safetensors" "$DATA/model.onnx" >"$OUT/lines$n"
        [ "$(grep -c '^step' "$OUT/lines$n")" -eq 12 ]
        equal "$OUT/$n.safetensors" "$OUT/1.safetensors"
        paste "$OUT/lines1" "$OUT/lines$n" | awk '/^step/ {
            d = $4 - $8; if (d * d > 1e-10) exit 1 }'
    done
    "$PROGRAM" --epochs 3 --seed 6 "${SGD[@]}" --weight-decay 0.01 \
        --data "$DATA/named.npz" --save "$OUT/other.safetensors" \
        "$DATA/model.onnx" >"$OUT/other"
    run equal "$OUT/other.safetensors" "$OUT/1.safetensors"
    [ "$status" -ne 0 ]
}

# Models differ: the weights of rank 0 count.
@test "ranks begin with the weights of rank 0" {
    cp "$DATA/model.onnx" "$OUT/rank0.onnx"
    "$PROGRAM" --train 1 --in-order "${SGD[@]}" --data "$DATA/named.npz" \
        --save "$OUT/rank1.onnx" "$DATA/model.onnx" >"$OUT/lines"
    "$ROOT/mpi-launch.sh" -np 2 bash -c "exec '$PROGRAM' --train 8 --in-order \
        ${SGD[*]} --data '$DATA/named.npz' --save '$OUT/trained.onnx' \
        '$OUT'/rank\$OMPI_COMM_WORLD_RANK.onnx" >"$OUT/lines"
    losses sgd
    equal "$OUT/trained.onnx" "$DATA/weights.npz"
}

# Each of 2 equal rows drops weights of its own, and so do ranks with one row each:
# the gradient of a weight is that of no row, of one or of both.
@test "ranks drop different elements" {
    local n
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/data.py" dropping "$OUT"
    for n in 1 2; do
        "$ROOT/mpi-launch.sh" -np $n "$PROGRAM" --train 1 --batch 2 --loss mse \
            --data "$OUT/ones.npz" --save "$OUT/$n.safetensors" \
            "$OUT/dropping.onnx"
        /usr/bin/python3 -B "$BATS_TEST_DIRNAME/data.py" drops 3 \
            "$OUT/$n.safetensors"
    done
}

# ends RANKS WORD ARGS...: fails on all ranks, with one line that has the word.
ends() {
    local ranks=$1 word=$2
    shift 2
    run "$ROOT/mpi-launch.sh" -np "$ranks" "$PROGRAM" --train 8 --in-order \
        "${SGD[@]}" "$@" "$DATA/model.onnx"
    echo "$status: $output"
    [ "$status" -ne 0 ]
    [ "$(grep -c '^ipu-run: ' <<<"$output")" -eq 1 ]
    [[ $output == *"ipu-run: "*"$word"* ]]
}

@test "a mistake ends all ranks with one line" {
    ends 3 "label 17" --data "$DATA/wrong.npz"
    ends 2 "damaged.npz" --data "$DATA/damaged.npz"
    ends 2 "several ranks need --data" --input "$DATA/x.npy" \
        --labels "$DATA/labels.npy"
    ends 1 "have 40 elements" --data "$DATA/narrow.npz"
    ends 3 "must divide by the number of ranks" --batch 16 \
        --data "$DATA/named.npz"
    ends 2 "fewer rows than a batch" --batch 50 --data "$DATA/named.npz"
    ends 1 "nowhere.npz" --data "$DATA/nowhere.npz"
    ends 1 "second one of --labels" --data "$DATA/x.npy"
    ends 2 "/nowhere" --data "$DATA/named.npz" --save /nowhere/m.onnx
}

@test "what a data set needs is said" {
    is_wrong 2 "--train needs --labels or --data" --train 3 "$DATA/model.onnx"
    is_wrong 2 "--epochs needs --data" --epochs 3 "$DATA/model.onnx"
    is_wrong 1 "--data needs --batch" --train 3 --loss cross-entropy \
        --data "$DATA/named.npz" "$DATA/model.onnx"
    is_wrong 1 "the labels are float [12], and the loss takes float [12,3]" \
        --train 3 --batch 12 --data "$DATA/named.npz" "$DATA/model.onnx"
    is_wrong 1 "all inputs were given" --train 3 --batch 12 \
        --data "$DATA/named.npz" --input "$DATA/x.npy" "$DATA/model.onnx"
    is_wrong 2 "a .safetensors is for what --train has trained" \
        --save "$OUT/m.safetensors" "$DATA/model.onnx"
}
