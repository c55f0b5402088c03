#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The small programs of streams: what they print, what they refuse.

setup() {
    BIN="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin"
}

# is_wrong WORD PROGRAM ARGS...: one line that begins with the program's name.
is_wrong() {
    local word=$1 program=$2
    shift 2
    run "$BIN/$program" "$@"
    echo "$* -> $status: $output"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"$program: "*"$word"* ]]
}

@test "ten iterations between two queues" {
    run "$BIN/ipu-feeds"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "counter 10" ]
    [ "${lines[1]}" = "d1 [10, 800], first 2, last 2" ]
    [ "${lines[2]}" = "d2 [10, 800], first 0, last 0" ]
    [ "${#lines[@]}" -eq 3 ]
}

@test "a thread reads 100 losses, which fall" {
    run "$BIN/ipu-losses"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 100 ]
    [[ ${lines[0]} == "step 0 loss = "* && ${lines[99]} == "step 99 loss = "* ]]
    first=${lines[0]##* }
    last=${lines[99]##* }
    awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < 0.6 * a) }'
}

@test "mean losses of runs of a loop are those of the losses" {
    run "$BIN/ipu-losses" --steps 20
    [ "$status" -eq 0 ]
    mean=$(printf '%s\n' "${lines[@]:10}" |
        awk '{ s += $NF } END { print s / NR }')
    run "$BIN/ipu-losses" --steps 20 --per-run 10
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[1]} == "steps 10 to 19 mean loss = "* ]]
    awk -v a="$mean" -v b="${lines[1]##* }" \
        'BEGIN { exit !((a - b) ^ 2 < 1e-7) }'
}

@test "a data set's throughput as JSON" {
    run "$BIN/ipu-dataset-bench" --epochs 3 --elements 200 --batch 4
    [ "$status" -eq 0 ]
    /usr/bin/python3 - "$output" <<'END'
import json, sys
epochs = json.loads(sys.argv[1])["epochs"]
assert len(epochs) == 3
for e in epochs:
    assert list(e) == ["bandwidth", "elements_per_second",
                       "elements_processed", "time_elapsed",
                       "total_bytes_processed"], e
    assert all(v > 0 for v in e.values())
    assert e["elements_processed"] == 200
    assert e["total_bytes_processed"] == 200 * 4 * (784 + 1) * 4
    assert abs(e["bandwidth"] * 1e9 * e["time_elapsed"] /
               e["total_bytes_processed"] - 1) < 1e-5
END
    run "$BIN/ipu-dataset-bench" --epochs 1 --elements 200 --no-memcpy
    [ "$status" -eq 0 ]
}

@test "what is refused is one line" {
    is_wrong "prefetch depth 300: it must be 1 to 255" ipu-dataset-bench \
        --prefetch 300
    is_wrong "--epochs '0'" ipu-dataset-bench --epochs 0
    is_wrong "/nowhere" ipu-dataset-bench --data /nowhere
    is_wrong "/nowhere" ipu-losses --data /nowhere
    is_wrong "--per-run 3: it must divide --steps 10" ipu-losses --steps 10 \
        --per-run 3
}

@test "output that nobody takes is a failure" {
    for program in ipu-feeds "ipu-losses --steps 2" \
        "ipu-dataset-bench --epochs 1 --elements 2"; do
        run bash -c "$BIN/$program 2>&1 >/dev/full"
        [ "$status" -eq 1 ]
        [ "${#lines[@]}" -eq 1 ]
    done
}
