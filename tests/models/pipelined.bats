#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# pipelined as its users meet it: command line, what must be equal to what, and
# training on 2 ranks of 2 replicas of 2 stages.

setup() {
    PIPELINED="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/pipelined"
    OUT="$(mktemp -d "$BATS_TEST_TMPDIR/pipelined.XXXXXX")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
    SMALL=(--train-images 640 --test-images 100)
}

# weights ARGS...: prints the hash of the trained weights
weights() {
    "$PIPELINED" "${SMALL[@]}" "$@" | sed -n 's/.*weights //p'
}

@test "help and version" {
    run "$PIPELINED" --help
    [ "$status" -eq 0 ]
    [[ $output == *--schedule* ]]
    run "$PIPELINED" --version
    [ "$status" -eq 0 ]
    [[ $output == pipelined\ * ]]
}

@test "a wrong command line is one line and status 64" {
    local arguments
    for arguments in "--schedule slow" "--stages 1" "--model gpt" "--nothing" \
        "--count" "--accumulate" "left" "--lr fast"; do
        # shellcheck disable=SC2086 # words are wanted
        run "$PIPELINED" $arguments
        echo "$arguments: $status: $output"
        [ "$status" -eq 64 ]
        [ "${#lines[@]}" -eq 1 ]
    done
}

@test "what the device refuses is one line and status 1" {
    run "$PIPELINED" "${SMALL[@]}" --count 6
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"multiple of 4, but it is 6"* ]]
    run "$PIPELINED" "${SMALL[@]}" --model towers --stages 3
    [ "$status" -eq 1 ]
    [[ $output == *"towers come in 4"* ]]
    run "$PIPELINED" "${SMALL[@]}" --count 4000
    [ "$status" -eq 1 ]
    [[ $output == *"make an update"* ]]
    run "$PIPELINED" "${SMALL[@]}" --profile /dev/null/x
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "schedules, stages, threads and recomputation give the same weights" {
    local one
    one="$(weights)"
    [ -n "$one" ]
    [ "$(weights --schedule interleaved)" = "$one" ]
    [ "$(weights --schedule sequential)" = "$one" ]
    [ "$(weights --stages 4 --schedule interleaved)" = "$one" ]
    [ "$(weights --threads 1)" = "$one" ]
    [ "$(weights --threads 2)" = "$one" ]
    [ "$(weights --recompute)" = "$one" ]
    [ "$(weights --seed 2)" != "$one" ]
}

@test "2 ranks of 2 replicas of 2 stages train as one process does" {
    mpirun --oversubscribe --bind-to none -np 2 "$PIPELINED" \
        --train-images 2048 --test-images 400 --replicas 2 --count 4 \
        --batch-size 8 >"$OUT/ranks"
    "$PIPELINED" --train-images 2048 --test-images 400 --count 16 \
        --batch-size 8 >"$OUT/one"
    cat "$OUT/ranks" "$OUT/one"
    # The loss to three figures; the same images, added in another order.
    loss() { sed -n 's/.*updates, loss \([0-9]*\.[0-9]\{3\}\).*/\1/p' "$1"; }
    [ -n "$(loss "$OUT/one")" ]
    [ "$(loss "$OUT/ranks")" = "$(loss "$OUT/one")" ]
    # 8 variables, once an update of 4 mini-batches for each of 2 replicas.
    grep -q "16 updates" "$OUT/ranks"
    grep -q "allreduces 128," "$OUT/ranks"
}

@test "the other networks train" {
    run "$PIPELINED" "${SMALL[@]}" --model towers --updates 3
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"on 4 modelled IPUs"* ]]
    run "$PIPELINED" "${SMALL[@]}" --model cnn --stages 3 --updates 6
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"on 3 modelled IPUs"* ]]
    run "$PIPELINED" "${SMALL[@]}" --model cnn --stages 4
    [ "$status" -eq 1 ]
    [[ $output == *"cnn has 3 pieces"* ]]
    run "$PIPELINED" "${SMALL[@]}" --model resnet --stages 4 --updates 2 \
        --batch-size 4 --schedule interleaved
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"2 updates"* ]]
}

@test "profiles have the stages and what ran when" {
    run "$PIPELINED" "${SMALL[@]}" --updates 1 --profile "$OUT/profile"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q 'stage 1 backward' "$OUT/profile/profile.json"
    grep -q mini_batch "$OUT/profile/profile.json"
    [ -s "$OUT/profile/report.html" ]
    run "$PIPELINED" "${SMALL[@]}" --updates 1 --profile text
    [ "$status" -eq 0 ]
    [[ $output == *"stage 0 forward"* ]]
}

# Reads a log: the points must have the loss of the epoch, whatever updates they
# stand for, and the last one its accuracy.
readonly READ_LOG='
import csv, re, sys
folder, printed = sys.argv[1], open(sys.argv[2]).read()
rows = list(csv.DictReader(open(folder + "/scalars.csv")))
points = [r for r in rows if r["train/loss"]]
steps = [int(r["step"]) for r in points]
assert steps == [2, 4, 5], steps
loss = sum(float(r["train/loss"]) * n for r, n in zip(points, (2, 2, 1))) / 5
told = float(re.search(r"updates, loss (\S+),", printed)[1])
assert abs(loss - told) < 6e-5, (loss, told)
accuracy = float(re.search(r"test accuracy (\S+) %", printed)[1])
assert abs(100 * float(rows[-1]["test/accuracy"]) - accuracy) < 6e-3
for r in points:
    assert float(r["train/learning_rate"]) == 0.05
    assert float(r["speed/images_per_second"]) > 0
    assert float(r["time/device"]) > 0 and float(r["time/evaluation"]) == 0
page = open(folder + "/log.html").read()
for word in "train/loss", "Where the time went", "Configuration", "mlp":
    assert word in page, word'

@test "a log has points of all ranks and a page, and changes no bit" {
    local n plain
    for n in 1 2; do
        local -a args=(--oversubscribe --bind-to none -np $n "$PIPELINED"
            --train-images $((640 * n)) --test-images 100)
        plain=$(mpirun "${args[@]}" | sed -n 's/.*weights //p')
        mpirun "${args[@]}" --log-dir "$OUT/log$n" --log-every 2 \
            >"$OUT/out$n"
        cat "$OUT/out$n"
        [ "$(sed -n 's/.*weights //p' "$OUT/out$n")" = "$plain" ]
        grep -qx "log            $OUT/log$n/log.html" "$OUT/out$n"
        python3 -c "$READ_LOG" "$OUT/log$n" "$OUT/out$n"
    done
    "$PIPELINED" "${SMALL[@]}" --updates 2 --log-dir "$OUT/csv" --log csv
    [ "$(cd "$OUT/csv" && echo *)" = "scalars.csv" ]
    run "$PIPELINED" "${SMALL[@]}" --log csv
    [ "$status" -eq 64 ]
    [[ $output == *"give --log-dir, too"* ]]
    run "$PIPELINED" "${SMALL[@]}" --log-dir "$OUT/log" --log pdf
    [ "$status" -eq 64 ]
    [[ $output == *"'pdf' is no format of logs"* ]]
    run "$PIPELINED" "${SMALL[@]}" --log-dir /dev/null/x
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"--log-dir /dev/null/x: "* ]]
}

# allreduces FILE: prints the number of allreduces in a file of HVD_METRICS
allreduces() {
    sed -n 's/^hvd_completed_total{rank="0",op="allreduce"} //p' "$1"
}

@test "accumulation divides the allreduces, by the library's own metrics" {
    local n other='' here
    for n in 1 2 4; do
        HVD_METRICS="$OUT/$n.prom" mpirun --oversubscribe --bind-to none -np 2 \
            "$PIPELINED" --train-images 512 --test-images 100 --batch-size 8 \
            --schedule sequential --count $n >"$OUT/$n"
        cat "$OUT/$n"
        # Of 32 mini-batches a rank, and 8 variables.
        grep -q "epoch 1: $((32 / n)) updates" "$OUT/$n"
        grep -q "allreduces $((8 * 32 / n))," "$OUT/$n"
        # What is not of gradients is the same for all three.
        here=$(($(allreduces "$OUT/$n.prom") - 8 * 32 / n))
        echo "$n mini-batches: $here others"
        [ "$here" -ge 0 ]
        [ "$here" -eq "${other:-$here}" ]
        other=$here
    done
}

@test "what fails on one rank fails on all, and is said once" {
    # Rank 1 has its data cut short by a file that it cannot read.
    run mpirun --oversubscribe --bind-to none \
        -np 1 "$PIPELINED" "${SMALL[@]}" : \
        -np 1 "$PIPELINED" "${SMALL[@]}" --data /nowhere
    echo "$output"
    [ "$status" -ne 0 ]
    [ "$(grep -c '^pipelined: ' <<<"$output")" -eq 1 ]
    [[ $output == *"rank 1"*"/nowhere"* ]]
    # Networks that differ.
    run mpirun --oversubscribe --bind-to none \
        -np 1 "$PIPELINED" "${SMALL[@]}" --stages 2 : \
        -np 1 "$PIPELINED" "${SMALL[@]}" --stages 4
    echo "$output"
    [ "$status" -eq 0 ] # the same variables
    run mpirun --oversubscribe --bind-to none \
        -np 1 "$PIPELINED" "${SMALL[@]}" --count 4 : \
        -np 1 "$PIPELINED" "${SMALL[@]}" --count 8
    echo "$output"
    [ "$status" -ne 0 ]
    [ "$(grep -c '^pipelined: the ranks differ in --count' \
        <<<"$output")" -eq 1 ]
    run mpirun --oversubscribe --bind-to none \
        -np 1 "$PIPELINED" "${SMALL[@]}" : \
        -np 1 "$PIPELINED" "${SMALL[@]}" --model towers --count 12
    echo "$output"
    [ "$status" -ne 0 ]
    [ "$(grep -c '^pipelined: ' <<<"$output")" -eq 1 ]
    [[ $output == *"the strategies differ in variable 0"* ]]
}
