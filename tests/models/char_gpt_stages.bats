#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# char_gpt as a pipeline: what must have the bits of the program on one IPU,
# what is equal to rounding, what is refused, and what it says.

load ../support/models

setup() {
    models_setup char_gpt
    # A network that takes no time.
    SMALL=(--layers 4 --heads 2 --width 16 --context 16 --batch-size 4
        --eval-windows 8 --sample 0 --text "$OUT/text" --lr 0.01)
    for ((i = 0; i < 200; i++)); do
        echo "one two three four five six seven eight nine ten"
    done >"$OUT/text"
}

# same_bits ARGS...: checks that these give the weights of $OUT/plain.
same_bits() {
    rm -f "$OUT/cut"
    "$PROGRAM" "${SMALL[@]}" "$@" --save-weights "$OUT/cut"
    cmp "$OUT/plain" "$OUT/cut"
}

@test "2 to 6 stages of any schedule have the bits of one IPU" {
    "$PROGRAM" "${SMALL[@]}" --steps 24 --accumulate 24 \
        --save-weights "$OUT/plain"
    local schedule
    for schedule in grouped interleaved sequential; do
        same_bits --steps 24 --accumulate 24 --stages 2 --schedule $schedule
        same_bits --steps 24 --accumulate 24 --stages 4 --schedule $schedule
    done
    same_bits --steps 24 --accumulate 24 --stages 3
    same_bits --steps 24 --accumulate 24 --stages 6 --threads 2
    same_bits --steps 24 --accumulate 24 --stages 4 --recompute
    same_bits --steps 24 --accumulate 24 --stages 2 --schedule sequential \
        --recompute
    # The comparison can fail.
    run same_bits --steps 24 --accumulate 12 --stages 2
    [ "$status" -ne 0 ]
}

@test "so it is with dropout, every optimizer, and over many updates" {
    local -a way
    for way in "--dropout 0.2" "--optimizer sgd" "--optimizer momentum" \
        "--optimizer adam" "--optimizer lamb" "--weight-decay 0.3" \
        "--lr-schedule one-cycle"; do
        # shellcheck disable=SC2206 # words are wanted
        way=($way --steps 40 --accumulate 4 --eval-every 12)
        "$PROGRAM" "${SMALL[@]}" "${way[@]}" --save-weights "$OUT/plain"
        same_bits "${way[@]}" --stages 2
        same_bits "${way[@]}" --stages 4 --schedule interleaved --recompute
    done
}

@test "a table that both ends share is like that of one IPU" {
    local -a common=("${SMALL[@]}" --tie --steps 24 --accumulate 8
        --optimizer sgd --lr 0.1)
    "$PROGRAM" "${common[@]}" --save-weights "$OUT/plain"
    "$PROGRAM" "${common[@]}" --stages 4 --save-weights "$OUT/cut"
    "$PROGRAM" "${common[@]}" --stages 4 --seed 2 --save-weights "$OUT/other"
    at_least 1e-5 "$(difference "$OUT/plain" "$OUT/cut")"
    at_least "$(difference "$OUT/plain" "$OUT/other")" 1e-2
}

@test "ranks and replicas are like one process with all of the batch" {
    local -a common=("${SMALL[@]}" --steps 16 --accumulate 8 --optimizer sgd
        --lr 0.3)
    ranks 1 "${common[@]}" --batch-size 16 --save-weights "$OUT/whole"
    ranks 2 "${common[@]}" --batch-size 4 --stages 2 --replicas 2 \
        --save-weights "$OUT/quarters"
    assert_status_everywhere 2 0
    ranks 1 "${common[@]}" --batch-size 4 --stages 4 --replicas 4 \
        --save-weights "$OUT/replicas"
    ranks 2 "${common[@]}" --batch-size 7 --stages 2 --save-weights "$OUT/less"
    at_least 1e-5 "$(difference "$OUT/whole" "$OUT/quarters")"
    at_least 1e-5 "$(difference "$OUT/whole" "$OUT/replicas")"
    at_least "$(difference "$OUT/whole" "$OUT/less")" 1e-4
}

@test "two ranks have the bits of two ranks without stages" {
    local -a common=("${SMALL[@]}" --steps 16 --accumulate 8 --dropout 0.1
        --check-every 1)
    ranks 2 "${common[@]}" --save-weights "$OUT/plain"
    assert_status_everywhere 2 0
    ranks 2 "${common[@]}" --stages 2 --save-weights "$OUT/cut"
    assert_status_everywhere 2 0
    cmp "$OUT/plain" "$OUT/cut"
    ranks 2 "${common[@]}" --stages 2 --serial --save-weights "$OUT/cut"
    assert_status_everywhere 2 0
    cmp "$OUT/plain" "$OUT/cut"
}

@test "gradients are averaged once an update, compressed if that is wanted" {
    local -a common=("${SMALL[@]}" --stages 2 --steps 16)
    local each
    ranks 2 "${common[@]}" --accumulate 4 --summary "$OUT/summary.json"
    each=$(field averages)
    [ "$each" -eq $((4 * (4 * 12 + 5))) ] # updates, variables
    ranks 2 "${common[@]}" --accumulate 16 --summary "$OUT/summary.json" \
        --save-weights "$OUT/plain"
    [ $((4 * $(field averages))) -eq "$each" ]
    ranks 2 "${common[@]}" --accumulate 16 --compression bf16 \
        --save-weights "$OUT/bf16"
    assert_status_everywhere 2 0
    run cmp -s "$OUT/plain" "$OUT/bf16"
    [ "$status" -eq 1 ]
    at_least 1e-2 "$(difference "$OUT/plain" "$OUT/bf16")"
}

@test "it learns a text by heart, and writes it" {
    run ranks 2 --text "$OUT/text" --layers 2 --heads 2 --width 32 \
        --context 32 --batch-size 4 --stages 2 --accumulate 4 --steps 600 \
        --lr 0.01 --eval-every 200 --sample 100 --temperature 0.05 \
        --prompt "one t" --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    at_least 0.3 "$(field validation_loss)"
    [[ $output == *"wo three four five six seven eight"* ]]
    [ "$(grep -c '^step ' <<<"$output")" -eq 3 ]
    [ "$(field tokens)" -eq $((600 * 4 * 32 * 2)) ]
}

@test "the summary and the last lines tell of the chips" {
    run ranks 1 "${SMALL[@]}" --stages 4 --schedule interleaved --steps 16 \
        --accumulate 8 --replicas 2 --recompute --summary "$OUT/summary.json"
    assert_status_everywhere 1 0
    [[ $output == *"pipeline: 4 stages, interleaved, 2 replicas, 8 mini-"* ]]
    [[ $output == *"8 modelled IPUs a rank"*"2 updates"* ]]
    [ "$(field stages)" -eq 4 ]
    [ "$(field schedule)" = interleaved ]
    [ "$(field replicas)" -eq 2 ]
    [ "$(field recompute)" = true ]
    [ "$(field ipus)" -eq 8 ]
    [ "$(field updates)" -eq 2 ]
    [ "$(field mini_batches)" -eq 32 ]
    [ "$(field slots)" -eq $((2 * 2 * (8 + 4 - 1))) ]
    at_least "$(field idle_fraction)" 0.2
    ranks 1 "${SMALL[@]}" --steps 1 --summary "$OUT/summary.json"
    [ "$(field pipeline)" = null ]
}

@test "steps and evaluations are those of whole updates" {
    run ranks 1 "${SMALL[@]}" --stages 2 --accumulate 4 --steps 13 \
        --eval-every 5
    assert_status_everywhere 1 0
    [ "$(grep -c '^step ' <<<"$output")" -eq 2 ]
    [[ $output == *"step 8/16 "*"step 16/16 "* ]]
}

@test "it goes on from weights of one IPU" {
    ranks 1 "${SMALL[@]}" --steps 3 --save-weights "$OUT/a"
    ranks 2 "${SMALL[@]}" --stages 4 --steps 8 --lr 1e-30 --optimizer sgd \
        --load-weights "$OUT/a" --save-weights "$OUT/b"
    assert_status_everywhere 2 0
    cmp "$OUT/a" "$OUT/b"
}

@test "the profile has every stage, and what ran when" {
    run "$PROGRAM" "${SMALL[@]}" --stages 4 --steps 8 --profile "$OUT/profile"
    [ "$status" -eq 0 ]
    grep -q '"stage 3 backward"' "$OUT/profile/profile.json"
    grep -q '"evaluation"' "$OUT/profile/profile.json"
    grep -q mini_batch "$OUT/profile/profile.json"
    [ -s "$OUT/profile/report.html" ]
    run "$PROGRAM" "${SMALL[@]}" --stages 2 --steps 8 --profile text
    [ "$status" -eq 0 ]
    [[ $output == *"the pipeline"*"schedule: 2 IPUs"*"stage 0 forward"*"evaluation"* ]]
}

@test "what does not go together is one line and status 64" {
    local -a wrong=("--stages 1" "--stages 65" "--stages 7"
        "--schedule grouped" "--recompute" "--stages 2 --schedule fast"
        "--stages 2 --clip 1" "--stages 2 --tie" "--stages 2 --replicas 0"
        "--stages 4 --tie --schedule interleaved")
    local arguments
    for arguments in "${wrong[@]}"; do
        # shellcheck disable=SC2086 # words are wanted
        run "$PROGRAM" "${SMALL[@]}" $arguments
        echo "$arguments: $status"
        [ "$status" -eq 64 ]
        assert_one_line "char_gpt: --"
    done
}

@test "what the device refuses is one line on two ranks" {
    run ranks 2 "${SMALL[@]}" --stages 4 --accumulate 6
    assert_status_everywhere 2 1
    assert_one_line "accumulate: " "a multiple of 8, but it is 6"
    run ranks 2 "${SMALL[@]}" --stages 4 --replicas 128
    assert_status_everywhere 2 1
    assert_one_line "128 replicas of 4 IPUs"
    run ranks 2 --text "$OUT/text" --layers 4 --width 2048 --stages 2
    assert_status_everywhere 2 1
    assert_one_line "IPU 0 needs" "bytes on its fullest tile"
}

@test "ranks with different pipelines do not wait for each other" {
    run mpirun --oversubscribe -np 1 "$PROGRAM" "${SMALL[@]}" --stages 2 \
        --accumulate 8 : -np 1 "$PROGRAM" "${SMALL[@]}" --stages 4 \
        --accumulate 8
    [ "$status" -ne 0 ]
    [ "$(grep -c "^char_gpt: the ranks differ in --stages" \
        <<<"$output")" -eq 1 ]
}

@test "a training that diverges says so on one line" {
    run ranks 2 "${SMALL[@]}" --stages 2 --optimizer sgd --lr 1e38 --steps 100
    assert_status_everywhere 2 1
    [ "$(grep -c '^char_gpt: the loss is no longer a number' \
        <<<"$output")" -eq 1 ]
}
