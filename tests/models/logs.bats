#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# --log-dir of mnist and char_gpt: tests/support/read_run.py compares all formats
# with each other and with --losses, read_page.py the page with the log.

load ../support/models

setup() {
    models_setup mnist
    SUPPORT=$BATS_TEST_DIRNAME/../support
    FEW=(--model mlp --train-images 3000 --test-images 500 --epochs 1)
    LOG=(--log-dir "$OUT/log" --losses "$OUT/losses")
}

# read_run RANKS EVERY TESTS: reads what LOG has written.
read_run() {
    python3 -B "$SUPPORT/read_run.py" "$OUT/log" "$OUT/losses" "$@"
}

read_page() {
    python3 -B "$SUPPORT/read_page.py" "$OUT/log"
}

@test "points are means over all ranks, and all formats say the same" {
    local n
    for n in 1 2 3; do
        rm -rf "$OUT/log"
        run ranks $n "${FEW[@]}" "${LOG[@]}" --batch-size $((48 / n)) \
            --log-every 7 --histograms-every 20
        assert_status_everywhere $n 0
        [ "$(grep -c "^log            $OUT/log/log.html" <<<"$output")" -eq 1 ]
        [[ $output != *"--log-dir"* ]]
        read_run $n 7 test >"$OUT/run.$n"
        grep -qx "points 9" "$OUT/run.$n" # 62 steps
        grep -qx "histograms 20 40 60" "$OUT/run.$n"
        grep -qx "weights 4 101770" "$OUT/run.$n"
        grep -qx "images 1" "$OUT/run.$n"
        grep -qx "| world_size | $n |" "$OUT/run.$n"
        grep -qx "| --log-every | 7 |" "$OUT/run.$n"
        [ "$(read_page | tr '\n' ' ')" = "Curves Where the time went Ranks\
 What was slow Configuration " ]
        # Gradients of step 20 are those of the whole batch, to rounding.
        grep ^gradients "$OUT/run.$n" | tr ' ' '\n' | grep '\.' >"$OUT/sums.$n"
        [ "$(wc -l <"$OUT/sums.$n")" -eq 4 ]
        paste "$OUT/sums.1" "$OUT/sums.$n" | awk '
            { if ($1 <= 0 || $2 / $1 > 1.02 || $2 / $1 < 0.98) exit 1 }'
    done
}

@test "a log changes no bit of a training" {
    local n
    for n in 1 2; do
        run ranks $n "${FEW[@]}" --save-weights "$OUT/plain"
        assert_status_everywhere $n 0
        run ranks $n "${FEW[@]}" "${LOG[@]}" --histograms-every 10 \
            --save-weights "$OUT/logged"
        assert_status_everywhere $n 0
        cmp "$OUT/plain" "$OUT/logged"
    done
}

@test "every way to train has a log" {
    local -a more
    while read -r -a more; do
        rm -rf "$OUT/log"
        echo "${more[@]}"
        ranks 2 "${FEW[@]}" "${LOG[@]}" --batch-size 16 --histograms-every 20 \
            "${more[@]:1}"
        assert_status_everywhere 2 0
        read_run "${more[0]}" 10 test >"$OUT/run"
        read_page
        case ${more[*]} in
        *device-collective*) grep -qx "gradients" "$OUT/run" ;;
        *) grep -q "^gradients dense1/bias 0" "$OUT/run" ;;
        esac
    done <<'ways'
2 --replicas 2
2 --strategy device-collective
2 --variables-on-host
1 --strategy parameter-server
2 --compression fp16
2 --accumulate 2
ways
}

@test "char_gpt has a log, in stages, too" {
    local -a small=(--layers 2 --width 16 --heads 2 --context 16 --sample 0
        --eval-windows 2 --eval-every 12 --steps 24 --log-every 4
        --histograms-every 8)
    local gpt
    gpt=$(dirname "$PROGRAM")/char_gpt
    PROGRAM=$gpt ranks 2 "${small[@]}" "${LOG[@]}"
    assert_status_everywhere 2 0
    read_run 2 4 validation >"$OUT/run"
    grep -qx "histograms 8 16 24" "$OUT/run"
    grep -q "^gradients characters " "$OUT/run"
    grep -q '"validation/perplexity"' "$OUT/log/log.jsonl"
    read_page
    rm -rf "$OUT/log"
    "$gpt" "${small[@]}" --stages 2 --accumulate 4 --log-dir "$OUT/log"
    grep -q '"train/loss"' "$OUT/log/log.jsonl"
    read_page
}

@test "--log says what is written" {
    "$PROGRAM" "${FEW[@]}" --log-dir "$OUT/log" --log csv
    [ "$(ls "$OUT/log")" = scalars.csv ]
    "$PROGRAM" "${FEW[@]}" --log-dir "$OUT/more" --log jsonl,csv
    [ "$(cd "$OUT/more" && echo *)" = "log.html log.jsonl scalars.csv" ]
    run "$PROGRAM" "${FEW[@]}" --log-dir "$OUT/log" --log csv,xml
    [ "$status" -eq 64 ]
    assert_one_line "mnist: --log: 'xml'" tensorboard
    run "$PROGRAM" "${FEW[@]}" --log csv
    [ "$status" -eq 64 ]
    assert_one_line "--log-dir"
}

@test "a folder that cannot be written is found before training" {
    touch "$OUT/file"
    local folder
    for folder in "$OUT/no/such" "$OUT/file"; do
        run ranks 2 "${FEW[@]}" --epochs 100000 --log-dir "$folder"
        assert_status_everywhere 2 1
        assert_one_line "--log-dir $folder" "$folder"
    done
    run mpirun --oversubscribe -np 1 "$PROGRAM" "${FEW[@]}" : \
        -np 1 "$PROGRAM" "${FEW[@]}" --log-dir "$OUT/log"
    [ "$status" -ne 0 ]
    [ "$(grep -c "^mnist: the ranks differ in --log-dir" <<<"$output")" -eq 1 ]
}

@test "a training that fails leaves a log and a page of what it did" {
    run ranks 2 "${FEW[@]}" --optimizer sgd --lr 1e38 --epochs 50 \
        --log-dir "$OUT/log" --log-every 1
    assert_status_everywhere 2 1
    [ "$(grep -c '^mnist: the loss is no longer a number' <<<"$output")" -eq 1 ]
    read_page
}

# A shell has its background jobs ignore the interrupts of a terminal.
readonly INTERRUPTIBLE='
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])'

# end_by SIGNAL COMMAND...: sends a signal behind the third epoch, sets status.
end_by() {
    local signal=$1 tries pid
    shift
    rm -rf "$OUT"/{log,out,err} # so that no word of an earlier run is awaited
    python3 -c "$INTERRUPTIBLE" "$@" >"$OUT/out" 2>"$OUT/err" 3>&- &
    pid=$!
    for ((tries = 0; tries < 600; tries++)); do
        ! grep -qs "^epoch 3" "$OUT/out" || break
        sleep 0.1
    done
    kill "-$signal" "$pid"
    status=0
    wait "$pid" || status=$?
    cat "$OUT/out" "$OUT/err"
}

# Points are kept for ten seconds before they are written: only the end of the
# training can have written them.
@test "a training that is interrupted leaves all of its log, and a page" {
    local signal
    local -a endless=(--model mlp --train-images 3000 --test-images 50
        --epochs 100000 --log-dir "$OUT/log" --log-every 10)
    for signal in INT:130 TERM:143 HUP:129; do
        end_by "${signal%:*}" "$PROGRAM" "${endless[@]}"
        [ "$status" -eq "${signal#*:}" ]
        [ ! -s "$OUT/err" ]
        read_page
        [ "$(wc -l <"$OUT/log/scalars.csv")" -gt 12 ]
    done
    # mpirun gives its ranks a second, which a busy machine may not have.
    end_by TERM mpirun --oversubscribe --mca odls_base_sigkill_timeout 10 \
        -np 2 "$PROGRAM" "${endless[@]}"
    [ "$status" -ne 0 ]
    read_page
}

@test "a page is made of a training that was killed" {
    local made
    made=$(dirname "$PROGRAM")/hvd-log-page
    "$PROGRAM" --model mlp --train-images 3000 --test-images 50 --quiet \
        --epochs 100000 --log-dir "$OUT/log" &
    until [ "$(stat -c %s "$OUT/log/log.jsonl" 2>/dev/null || echo 0)" -gt 9999 ]; do
        sleep 0.1
    done
    kill -KILL $!
    wait $! || true
    [ ! -e "$OUT/log/log.html" ]
    run "$made" "$OUT/log"
    [ "$output" = "$OUT/log/log.html" ]
    read_page
    run "$made" "$OUT/log" "$OUT/none"
    [ "$status" -eq 1 ]
    grep -qx "hvd-log-page: $OUT/none/log.jsonl: No such file or directory" \
        <<<"$output"
    run "$made"
    [ "$status" -eq 64 ]
    assert_one_line "hvd-log-page: no folder"
}

@test "a log that finds no room is a failure at the end, and the rest is whole" {
    run bash -c "trap '' XFSZ; ulimit -f 1024; $PROGRAM --model mlp \
        --train-images 3000 --test-images 50 --epochs 3 --log-every 1 \
        --histograms-every 1 --log-dir $OUT/log --summary $OUT/summary.json"
    [ "$status" -eq 1 ]
    [[ $output == *"weights        equal on all ranks"* ]]
    grep -q "^mnist: --log-dir $OUT/log: .* cannot be written: File too large" \
        <<<"$output"
    [ "$(field steps)" -eq 138 ]
    [ ! -e "$OUT/log/log.html" ]
}
