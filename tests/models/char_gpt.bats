#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# char_gpt on the command line: options, texts, training on 1 to 4 ranks, runs
# that must give equal weights, and its files. The text is hvd's own
# documentation, or made here.

load ../support/models

setup() {
    models_setup char_gpt
    GPT=$PROGRAM
    # A network that takes no time.
    SMALL=(--layers 1 --heads 2 --width 16 --context 16 --batch-size 4
        --eval-windows 8 --sample 0)
    for ((i = 0; i < 200; i++)); do
        echo "one two three four five six seven eight nine ten"
    done >"$OUT/text"
}

# ------------------------------------------------------------ command line

@test "help and version are printed once, and succeed" {
    run ranks 2 --help
    assert_status_everywhere 2 0
    [ "$(grep -c -- --temperature <<<"$output")" -eq 1 ]
    [[ $output != *--epochs* ]]
    run "$GPT" --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^char_gpt\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a wrong command line is one line and status 64 on every rank" {
    local -a wrong=("--layers=0" "--heads=0" "--width=none" "--context=1"
        "--dropout=1" "--dropout=-0.1" "--temperature=0" "--sample=-1"
        "--epochs=2" "--text=" "--steps=0" "--clip=0" "--warmup=-1")
    local option
    for option in "${wrong[@]}"; do
        run "$GPT" "$option"
        [ "$status" -eq 64 ]
        assert_one_line "char_gpt: " "${option%%=*}"
    done
    run ranks 2 --width 100 --heads 3
    assert_status_everywhere 2 64
    assert_one_line "--width 100" "--heads 3" "multiple"
}

@test "ranks with different command lines do not wait for each other" {
    run mpirun --oversubscribe -np 1 "$GPT" "${SMALL[@]}" --text "$OUT/text" \
        --steps 2 --context 16 : \
        -np 1 "$GPT" "${SMALL[@]}" --text "$OUT/text" --steps 2 --context 17
    [ "$status" -ne 0 ]
    [ "$(grep -c "^char_gpt: the ranks differ in --context" \
        <<<"$output")" -eq 1 ]
    sed s/nine/niny/ "$OUT/text" >"$OUT/other"
    run mpirun --oversubscribe -np 1 "$GPT" "${SMALL[@]}" \
        --text "$OUT/text" --steps 2 : \
        -np 1 "$GPT" "${SMALL[@]}" --text "$OUT/other" --steps 2
    [ "$status" -ne 0 ]
    [ "$(grep -c "^char_gpt: the ranks differ in the text" \
        <<<"$output")" -eq 1 ]
}

# ------------------------------------------------------------------- texts

@test "what is no text is one line on two ranks" {
    run ranks 2 --text "$OUT/none"
    assert_status_everywhere 2 1
    assert_one_line "--text: $OUT/none" "No such file"
    run ranks 2 --text "$OUT"
    assert_status_everywhere 2 1
    assert_one_line "no regular file"
    : >"$OUT/empty"
    run ranks 2 --text "$OUT/empty"
    assert_status_everywhere 2 1
    assert_one_line "$OUT/empty is empty"
    printf 'ab\0cd' >"$OUT/binary"
    run ranks 2 --text "$OUT/binary"
    assert_status_everywhere 2 1
    assert_one_line "byte 2" "is 0"
    printf 'abc\377' >"$OUT/latin"
    run ranks 2 --text "$OUT/latin"
    assert_status_everywhere 2 1
    assert_one_line "byte 3" "UTF-8"
    echo "too short" >"$OUT/short"
    run ranks 2 --text "$OUT/short"
    assert_status_everywhere 2 1
    assert_one_line "too short" "--context 128"
    run ranks 2 --text "$OUT/text" "${SMALL[@]}" --sample 1 --prompt 'x~'
    assert_status_everywhere 2 1
    assert_one_line "--prompt" "'~'"
}

@test "without a text it learns the documentation" {
    run ranks 1 "${SMALL[@]}" --steps 2
    assert_status_everywhere 1 0
    [[ $output == *"hvd's documentation"* ]]
}

@test "documentation that is not there is an error that says what to do" {
    mkdir "$OUT/bin"
    cp "$GPT" "$OUT/bin"
    LD_LIBRARY_PATH="$(dirname "$GPT")/../lib" run "$OUT/bin/char_gpt" --steps 1
    [ "$status" -eq 1 ]
    assert_one_line "--text FILE"
}

@test "result files that cannot be written are found before training" {
    local option
    for option in --summary --save-weights; do
        run ranks 2 --text "$OUT/text" $option "$OUT/no/such/file" \
            --steps 1000000
        assert_status_everywhere 2 1
        assert_one_line "$option" "$OUT/no/such/file"
    done
}

# ---------------------------------------------------------------- training

@test "it learns a text by heart, and writes it" {
    run ranks 2 --text "$OUT/text" --layers 1 --heads 2 --width 32 \
        --context 32 --batch-size 8 --steps 250 --lr 0.01 --eval-every 100 \
        --sample 100 --temperature 0.05 --prompt "one t" \
        --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    at_least 0.25 "$(field validation_loss)"
    [ "$(field world_size)" -eq 2 ]
    [ "$(field tokens)" -eq $((250 * 8 * 32 * 2)) ]
    [ "$(grep -c '"perplexity"' "$OUT/summary.json")" -eq 4 ]
    [ "$(grep -c '^step ' <<<"$output")" -eq 3 ]
    [[ $output == *"wo three four five six seven eight"* ]]
    [[ $output == *"weights        equal on all ranks"* ]]
    [[ $output == *"perplexity"* ]]
}

@test "the report says the last validation loss and the best one" {
    run ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 9 --eval-every 3 \
        --lr-schedule constant --optimizer sgd --lr 1.5 \
        --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    "${PYTHON:-python3}" - "$OUT/summary.json" >"$OUT/lines" <<'END'
import json, math, sys
s = json.load(open(sys.argv[1]))
best = min(s["history"], key=lambda e: e["validation_loss"])
assert best["step"] < 9, s["history"]
assert s["best_step"] == best["step"], s
assert s["best_validation_loss"] == best["validation_loss"], s
assert s["validation_loss"] == s["history"][-1]["validation_loss"], s
print(f"validation     loss {s['validation_loss']:.4f}, ")
print(f"best           loss {s['best_validation_loss']:.4f}, perplexity "
      f"{math.exp(s['best_validation_loss']):.2f}, after step {s['best_step']} of 9")
END
    [ "$(grep -cFf "$OUT/lines" <<<"$output")" -eq 2 ]
    # A single evaluation is the best.
    run ranks 1 "${SMALL[@]}" --text "$OUT/text" --steps 3 --eval-every 0
    [[ $output != *"best  "* ]]
}

@test "ranks with half, a quarter of the batch equal one with all of it" {
    local -a common=("${SMALL[@]}" --text "$OUT/text" --steps 5 --lr 0.01)
    local optimizer
    for optimizer in sgd adamw; do
        ranks 1 "${common[@]}" --optimizer $optimizer --batch-size 16 \
            --save-weights "$OUT/whole"
        ranks 2 "${common[@]}" --optimizer $optimizer --batch-size 8 \
            --save-weights "$OUT/half"
        ranks 4 "${common[@]}" --optimizer $optimizer --batch-size 4 \
            --save-weights "$OUT/quarter"
        ranks 2 "${common[@]}" --optimizer $optimizer --batch-size 7 \
            --save-weights "$OUT/less"
        at_least 1e-3 "$(difference "$OUT/whole" "$OUT/half")"
        at_least 1e-3 "$(difference "$OUT/whole" "$OUT/quarter")"
    done
    # The comparison can fail: two pieces less in a batch show.
    at_least "$(difference "$OUT/whole" "$OUT/less")" 5e-3
}

@test "the same run gives the same bits and sample, another seed others" {
    local -a common=("${SMALL[@]}" --text "$OUT/text" --steps 5 --dropout 0.1
        --sample 50)
    ranks 2 "${common[@]}" --save-weights "$OUT/a" | tail -3 >"$OUT/sample.a"
    ranks 2 "${common[@]}" --save-weights "$OUT/b" | tail -3 >"$OUT/sample.b"
    ranks 2 "${common[@]}" --seed 2 --save-weights "$OUT/c"
    cmp "$OUT/a" "$OUT/b"
    cmp "$OUT/sample.a" "$OUT/sample.b"
    run cmp -s "$OUT/a" "$OUT/c"
    [ "$status" -eq 1 ]
}

@test "overlapped and serial reduction give the same bits" {
    ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 6 --save-weights "$OUT/a"
    ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 6 --serial \
        --save-weights "$OUT/b"
    cmp "$OUT/a" "$OUT/b"
}

@test "on poisoned memory the same bits come out" {
    ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 3 --save-weights "$OUT/a"
    IPU_POISON=1 ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 3 \
        --save-weights "$OUT/b"
    cmp "$OUT/a" "$OUT/b"
}

@test "every set of instructions gives the same bits, and none other is one" {
    local kernels
    ranks 1 "${SMALL[@]}" --text "$OUT/text" --steps 3 --dropout 0.1 \
        --save-weights "$OUT/a"
    for kernels in generic avx2 avx512; do
        grep -q "$kernels" /proc/cpuinfo || [ $kernels = generic ] || continue
        IPU_KERNELS=$kernels ranks 1 "${SMALL[@]}" --text "$OUT/text" \
            --steps 3 --dropout 0.1 --save-weights "$OUT/b"
        cmp "$OUT/a" "$OUT/b"
    done
    IPU_KERNELS=sse9 run ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 3
    assert_status_everywhere 2 1
    [[ $output == *"IPU_KERNELS='sse9' is no set of instructions: give one of auto, generic"* ]]
}

@test "every option of the network trains" {
    local -a way
    for way in "--tie" "--dropout 0.2" "--layers 3 --heads 1" "--clip 0.5" \
        "--optimizer lamb" "--optimizer sgd" "--optimizer momentum" \
        "--optimizer adam" "--warmup 0 --eval-every 0" "--compression bf16" \
        "--check-every 2" "--context 33 --width 10 --heads 5"; do
        # shellcheck disable=SC2086 # words
        run ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 4 $way \
            --summary "$OUT/summary.json"
        assert_status_everywhere 2 0
        at_least 4 "$(field validation_loss)"
    done
}

@test "evaluation counts every piece once, on any number of ranks" {
    local n loss
    for n in 1 2 3 4; do
        run ranks $n "${SMALL[@]}" --text "$OUT/text" --steps 1 --lr 1e-30 \
            --eval-windows 0 --summary "$OUT/summary.json"
        assert_status_everywhere $n 0
        [ "$(field validated_characters)" -eq 976 ]
        loss=${loss:-$(field validation_loss)}
        awk -v a="$loss" -v b="$(field validation_loss)" \
            'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }'
    done
}

@test "it goes on from saved weights" {
    ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 3 --save-weights "$OUT/a"
    run ranks 2 "${SMALL[@]}" --text "$OUT/text" --steps 1 --lr 1e-30 \
        --optimizer sgd --load-weights "$OUT/a" --save-weights "$OUT/b"
    assert_status_everywhere 2 0
    cmp "$OUT/a" "$OUT/b"
    run ranks 2 "${SMALL[@]}" --layers 2 --text "$OUT/text" --steps 1 \
        --load-weights "$OUT/a"
    assert_status_everywhere 2 1
    assert_one_line "layer1" "another network"
}

@test "running averages of the weights are evaluated, and saved" {
    local -a common=("${SMALL[@]}" --steps 150 --lr 0.03 --lr-schedule constant
        --eval-every 0)
    local trained hash averaged
    ranks 2 "${common[@]}" --summary "$OUT/summary.json"
    trained=$(field validation_loss)
    hash=$(field weights_hash)
    ranks 2 "${common[@]}" --ema 0.95 --summary "$OUT/summary.json" \
        --save-weights "$OUT/weights"
    averaged=$(field validation_loss)
    # It trains the same, and evaluates other values: those that it saves.
    [ "$(field weights_hash)" = "$hash" ]
    [ "$trained" != "$averaged" ]
    ranks 2 "${SMALL[@]}" --steps 1 --lr 1e-30 --optimizer sgd \
        --load-weights "$OUT/weights" --summary "$OUT/summary.json"
    [ "$(field validation_loss)" = "$averaged" ]
    run ranks 3 "${SMALL[@]}" --ema 0.9 --strategy parameter-server \
        --ps-mode async
    assert_status_everywhere 3 64
    assert_one_line "--ema" "--ps-mode sync"
}

@test "a training that diverges says so on one line" {
    run ranks 2 "${SMALL[@]}" --text "$OUT/text" --optimizer sgd --lr 1e38 \
        --steps 100
    assert_status_everywhere 2 1
    [ "$(grep -c '^char_gpt: the loss is no longer a number' \
        <<<"$output")" -eq 1 ]
}

# ----------------------------------------------------------------- signals

@test "an interrupted run dies by the signal and leaves nothing" {
    mkdir "$OUT/files"
    run timeout -s INT --preserve-status 2 "$GPT" "${SMALL[@]}" \
        --text "$OUT/text" --steps 100000000 --eval-every 0 \
        --summary "$OUT/files/summary.json"
    [ "$status" -eq 130 ]
    [ -z "$(ls -A "$OUT/files")" ]
}
