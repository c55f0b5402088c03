#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What a person sees of a training program while it runs: on a terminal, in a
# pipe, after ^C. Not how fast it is.

load ../support/models

setup() {
    models_setup mnist
    FEW=(--model mlp --train-images 3000 --test-images 100 --epochs 2)
    SEE=(python3 -B "$BATS_TEST_DIRNAME/../support/terminal.py")
    unset TERM
    export TRANSCRIPT="$OUT/transcript"
}

# bin NAME: the path of another program.
bin() {
    echo "$(dirname "$PROGRAM")/$1"
}

@test "a terminal has a bar from the start on, and at the end only lines" {
    run "${SEE[@]}" 100 "$PROGRAM" "${FEW[@]}"
    [ "${lines[-1]}" = "status 0" ]
    [[ ${lines[0]} == "mnist: 1 rank, "* ]]
    [ "$(grep -c '^epoch [12]/2  loss' <<<"$output")" -eq 2 ]
    [[ $output != *"=>"* && $output != *ETA* ]]
    # In this order: the first was there before there was a world.
    tr '\r' '\n' <"$TRANSCRIPT" >"$OUT/drawn"
    local word
    for word in starting "drawing digits " "drawing test digits " compiling \
        "epoch 1/2 .*/92 steps" "evaluating .*50 %" "epoch 2/2 .*ETA"; do
        sed -n "1,\\|$word|!p" "$OUT/drawn" >"$OUT/rest"
        grep -q "$word" "$OUT/drawn"
        mv "$OUT/rest" "$OUT/drawn"
    done
    [ "$(grep -c starting "$OUT/drawn")" -eq 0 ]
}

@test "a bar is as wide as the window is at that moment" {
    run "${SEE[@]}" 40 "$PROGRAM" "${FEW[@]}"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "status 0" ]
    run "${SEE[@]}" 40 --resize "drawing test" 120 "$PROGRAM" "${FEW[@]}"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "status 0" ]
    # There is room for all of it only then.
    grep -q 'epoch 2/2 .*steps.*/s  ETA .*loss' "$TRANSCRIPT"
    [ "$(tr '\r' '\n' <"$TRANSCRIPT" |
        grep -c 'drawing digits.*digits .*/s')" -eq 0 ]
}

@test "^C leaves no bar and no file behind" {
    local word
    for word in "drawing digits" "epoch 1/1000"; do
        run "${SEE[@]}" 80 --interrupt "$word" "$PROGRAM" "${FEW[@]}" \
            --epochs 1000 --summary "$OUT/summary.json"
        [ "${lines[-1]}" = "signal 2" ]
        # A line of an epoch that has ended in time has a percentage, but no bar.
        [ "$(grep -c '\[=*>\? *\]' <<<"$output")" -eq 0 ]
        [ ! -e "$OUT/summary.json" ]
    done
}

@test "a failure is a line without a bar before it" {
    run "${SEE[@]}" 80 "$PROGRAM" --data "$OUT/none"
    [ "${lines[-1]}" = "status 1" ]
    [[ ${lines[0]} == "mnist: --data $OUT/none"* ]]
    run "${SEE[@]}" 80 "$PROGRAM" "${FEW[@]}" --optimizer sgd --lr 1e38 \
        --epochs 50
    [ "${lines[-1]}" = "status 1" ]
    [[ ${lines[-2]} == "mnist: the loss is no longer a number"* ]]
}

@test "a pipe has plain lines, the first of them while digits are drawn" {
    "$PROGRAM" --model mlp --steps 1 2>&1 | cat >"$OUT/log"
    head -n 1 "$OUT/log" | grep -qE \
        '^drawing digits +[0-9]+ %  [0-9]+/40000 digits  [0-9.]+/s  ETA [0-9]'
    [ "$(grep -c $'[\r\033]' "$OUT/log")" -eq 0 ]
    sed -n 2p "$OUT/log" | grep -q '^\(mnist\|drawing\|compiling\)'
}

@test "quiet prints nothing" {
    local name
    for name in mnist pipelined; do
        run "$(bin $name)" -q --train-images 512 --test-images 10
        [ "$status" -eq 0 ]
        [ -z "$output" ]
    done
    run "${SEE[@]}" 80 "$(bin char_gpt)" --quiet --layers 1 --width 16 \
        --heads 1 --context 16 --steps 3 --sample 0 --eval-windows 2
    [ "$(tr -d '\n' <<<"$output")" = "status 0" ]
    run "$PROGRAM" --quiet --data "$OUT/none"
    [ "$status" -eq 1 ]
    assert_one_line "mnist: --data $OUT/none"
}

@test "char_gpt and pipelined have bars, too" {
    run "${SEE[@]}" 110 "$(bin char_gpt)" --layers 1 --width 16 --heads 1 \
        --context 16 --steps 60 --sample 0 --eval-windows 2
    [ "${lines[-1]}" = "status 0" ]
    grep -q 'training .*/60 steps  .*/s  ETA .*loss' "$TRANSCRIPT"
    run "${SEE[@]}" 110 "$(bin pipelined)" --train-images 1024 \
        --test-images 50 --epochs 2
    [ "${lines[-1]}" = "status 0" ]
    grep -q 'drawing digits .*1024 digits' "$TRANSCRIPT"
    grep -q 'epoch 2 of 2 .*/16 updates  .*/s  ETA .*loss' "$TRANSCRIPT"
}

@test "of two ranks one draws" {
    HVD_TTY=1 COLUMNS=90 run ranks 2 "${FEW[@]}"
    assert_status_everywhere 2 0
    [ "$(grep -c 'mnist: 2 ranks' <<<"$output")" -eq 1 ]
    [ "$(tr '\r' '\n' <<<"$output" | grep -c 'drawing digits .* 0/3000')" -eq 1 ]
}
