#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hvd-bench project reads tables and timelines, prints and draws what it
# projects, and says in one line, with file and line, what is wrong.

bats_require_minimum_version 1.5.0
load ../support/commands

setup() {
    ROOT="$BATS_TEST_DIRNAME/../.."
    BIN="${HVD_BUILD:-$ROOT/build}/bin"
    PROGRAM=$BIN/hvd-bench
    CASES=$ROOT/bench/project/cases
    OUT="$(mktemp -d "$BATS_TEST_TMPDIR/project.XXXXXX")"
    unset "${!HVD_@}"
}

project() {
    "$PROGRAM" project "$@" </dev/null
}

# One tensor of 8 MB, ready 5 ms before the end: on two hosts at 1 GB/s 3 ms of
# its 8 are too late.
one_tensor() {
    printf '%s\n' '# one tensor' 'forward_ms,10' 'backward_ms,20' 'update_ms,2' \
        '' 'ready_ms,tensor,bytes' '15,"the only, one",8000000' >"$OUT/one.csv"
}

plain=(--latency 0 --overhead 0 --bandwidth 1 --handling 0 --local 0
    --copying 0 --reducing 0)

# rows CODE: runs Python that sees the CSV of $output as rows.
rows() {
    /usr/bin/python3 -c "
import csv, sys
rows = list(csv.DictReader(sys.argv[1].splitlines()))
assert rows and all(None not in row and None not in row.values()
                    for row in rows), rows
def near(a, b): return abs(float(a) - b) <= 1e-3 + 1e-3 * abs(b)
$1" "$output"
}

@test "a step by hand: what is exposed, and why" {
    one_tensor
    run project "$OUT/one.csv" -H 1,2 "${plain[@]}" --format csv
    [ "$status" -eq 0 ]
    rows '
one, two = rows
assert near(one["step_ms"], 32) and near(one["efficiency_percent"], 100), one
assert near(two["step_ms"], 35) and near(two["exposed_ms"], 3), two
assert near(two["hidden_ms"], 5) and near(two["busy_ms"], 8), two
assert two["ranks"] == "2" and two["batches"] == "1", two
'
    run project "$OUT/one.csv" -H 2 "${plain[@]}" --table batches
    [ "$status" -eq 0 ]
    [[ $output == *"the only, one"* ]]
    [[ $output == *"a step is 3.000 ms longer than its computing"* ]]
    [[ $output == *"ready 5.000 ms before the end of the backward pass, and takes 8.000 ms by itself"* ]]
}

@test "text, csv and json say the same" {
    one_tensor
    run project "$OUT/one.csv" -H 2 "${plain[@]}" --format json
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import json, sys
document = json.loads(sys.argv[1])
text = json.dumps(document)
assert '35' in text and 'longer than its computing' in text, text
" "$output"
    run project "$OUT/one.csv" -H 2 "${plain[@]}"
    [ "$status" -eq 0 ]
    [[ $output == *" 35.000 "* ]]
}

@test "times of the command line replace those of the file" {
    one_tensor
    run project "$OUT/one.csv" -H 2 "${plain[@]}" --format csv --forward 1 \
        --backward 40 --update 0
    [ "$status" -eq 0 ]
    # It is ready at 30 of 40 ms, early enough.
    rows 'assert near(rows[0]["step_ms"], 41), rows'
    run project "$OUT/one.csv" -H 2 "${plain[@]}" --format csv --speed 2
    [ "$status" -eq 0 ]
    # 16 ms of computing; ready 2.5 ms before its end.
    rows 'assert near(rows[0]["step_ms"], 16 + 5.5), rows'
}

@test "one allreduce over sizes needs no training" {
    run project --table allreduce -H 2,4 -b 64K -e 1M -f 4 "${plain[@]}" \
        --format csv
    [ "$status" -eq 0 ]
    rows '
assert [r["bytes"] for r in rows] == ["65536", "262144", "1048576"] * 2, rows
for r in rows:
    hosts = int(r["hosts"])
    # 2 (p - 1) / p of the bytes at 1 GB/s; doubling sends log2 p times all
    least = 2 * (hosts - 1) / hosts * int(r["bytes"]) / 1e3
    assert least * 0.99 <= float(r["us"]) <= least * 1.5, r
'
}

@test "the published networks have the tensors of their tables" {
    "$CASES/make-cases" "$OUT"
    local name
    for name in resnet101 inception3 vgg16; do
        cmp "$OUT/$name.csv" "$CASES/$name.csv"
        run project "$CASES/$name.csv" -H 4,128 -n 4 --network roce-25g \
            --format csv
        [ "$status" -eq 0 ]
        rows '
assert [r["ranks"] for r in rows] == ["16", "512"], rows
assert all(0 < float(r["efficiency_percent"]) <= 100 for r in rows), rows
'
        run project "$CASES/$name.csv" -H 4,128 -n 4 --network roce-25g \
            --rules ring --format csv
        [ "$status" -eq 0 ]
    done
}

@test "4,096 hosts of 8 ranks" {
    run timeout 60 "$PROGRAM" project "$CASES/resnet101.csv" -H 4096 -n 8 \
        --network roce-100g --format csv
    [ "$status" -eq 0 ]
    rows 'assert rows[0]["ranks"] == "32768", rows'
}

@test "cores that hosts share, a bucket of tokens, a thread that looks late" {
    printf '%s\n' backward_ms,10 tensor,bytes,ready_ms a,4000000,0 \
        >"$OUT/a.csv"
    run project "$OUT/a.csv" -H 4 "${plain[@]}" --cores 2 --format csv
    [ "$status" -eq 0 ]
    rows 'assert near(rows[0]["compute_ms"], 20), rows'
    # 2 * 3/4 of 4 MB take 6 ms, or 5 if 1 MB passes at once.
    run project "$OUT/a.csv" -H 4 "${plain[@]}" --burst 1000 --format csv
    [ "$status" -eq 0 ]
    rows 'assert near(rows[0]["busy_ms"], 5), rows'
    run project "$OUT/a.csv" -H 4 "${plain[@]}" --attention 3000 --format csv
    [ "$status" -eq 0 ]
    rows 'assert near(rows[0]["busy_ms"], 9), rows'
}

@test "a network is read from a file of costs" {
    one_tensor
    printf '%s\n' '# measured' between_step_ns=0 between_message_ns=0 \
        between_kib_ns=1024 within_step_ns=0 within_message_ns=0 \
        within_kib_ns=0 reduce_kib_ns=0 >"$OUT/costs"
    run project "$OUT/one.csv" -H 2 --network "$OUT/costs" --format csv
    [ "$status" -eq 0 ]
    rows 'assert near(rows[0]["step_ms"], 35), rows'
    echo between_mile_ns=1 >>"$OUT/costs"
    run project "$OUT/one.csv" --network "$OUT/costs"
    [ "$status" -eq 64 ]
    [[ $output == *"line 9: 'between_mile_ns' is not a cost"* ]]
    run project "$OUT/one.csv" --network "$OUT/none"
    [ "$status" -eq 64 ]
    [[ $output == *"--network: $OUT/none: No such file"* ]]
}

# chosen ARGS...: the algorithm of 64 KiB on 8 hosts.
chosen() {
    project --table allreduce -H 8 -b 64K -e 64K --format csv "$@" |
        tail -n +2 | cut -d, -f4
}

@test "algorithms are chosen by hvd's costs, or by the network's" {
    # A single step where a step takes a second, but not where it takes nothing.
    [ "$(chosen --costs network --latency 1000000)" = direct ]
    [ "$(chosen --costs network --latency 0)" != direct ]
    [ "$(chosen --latency 0)" = "$(chosen --latency 1000000)" ]
}

# microseconds OF: of an allreduce, by the simulator and by the projection; a
# message takes 10 us, a byte a nanosecond, nothing else anything.
simulated() { # hosts ranks bytes
    "$BIN/hvd-sim" --hosts "$1" --ranks "$2" --bytes "$3" --alpha 10us \
        --local 0us --bandwidth 1 --csv | tail -1 | cut -d, -f6
}

projected() {
    project --table allreduce -H "$1" -n "$2" -b "$3" -e "$3" "${plain[@]}" \
        --latency 10 --format csv | tail -1 | cut -d, -f5
}

@test "rounds take as long as those of the real core in the simulator" {
    local shape
    for shape in '2 1 4' '2 2 16384' '3 1 4' '4 2 4' '4 2 16384' '5 1 4' \
        '8 1 16384' '8 1 65536' '16 1 65536' '16 4 4' '2 1 262144'; do
        # shellcheck disable=SC2086 # three words
        /usr/bin/python3 -c "
import sys
simulated, projected = map(float, sys.argv[1:])
assert abs(projected / simulated - 1) < 0.02, ('$shape', sys.argv[1:])
" "$(simulated $shape)" "$(projected $shape)"
    done
}

@test "a picture is an SVG that is well-formed" {
    one_tensor
    run project "$OUT/one.csv" -H 1,2,4 "${plain[@]}" --plot "$OUT/a.svg"
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c "
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag.endswith('svg')
kinds = [e.tag.rsplit('}')[-1] for e in root.iter()]
assert kinds.count('circle') == 3 and 'rect' in kinds, kinds
text = ' '.join(e.text or '' for e in root.iter())
assert 'a step on 4 hosts of 1 rank:' in text, text
" "$OUT/a.svg"
    run project "$OUT/one.csv" --plot "$OUT/none/a.svg"
    [ "$status" -eq 1 ]
    [[ ${lines[-1]} == "hvd-bench: project: --plot: $OUT/none/a.svg: "* ]]
}

# A timeline of two ranks: three gradients in six steps of 10 ms, and other
# requests. Rank 1 submits the second one half a millisecond late.
timeline() {
    /usr/bin/python3 -c "
import json
events = [dict(ph='M', name='process_name', pid=0, tid=0, args=dict(name='r'))]
for rank in 0, 1:
    for row, name in enumerate(('unnamed', 'c', 'b', 'a'), 1):
        events.append(dict(ph='M', name='thread_name', pid=rank, tid=row,
                           args=dict(name=name)))
def put(rank, row, at, dur, size):
    for name in ('ALLREDUCE', 'NEGOTIATE_ALLREDUCE'):
        events.append(dict(ph='X', name=name, pid=rank, tid=row, ts=1e9 + at,
                           dur=dur, args=dict(tensor='t', bytes=size)))
for step in range(6):
    at = 10000 * step
    for rank in 0, 1:
        put(rank, 2, at, 100, 4000000)
        put(rank, 3, at + 500 + 500 * rank, 500, 2000000)
        put(rank, 4, at + 4000, 2000, 400)  # done after 6 ms
        put(rank, 1, at + 7000, 10, 8)      # a loss
print('{\"traceEvents\":[')
print(',\n'.join(json.dumps(e) for e in events))
print(']}')
" >"$OUT/t.json"
}

@test "a timeline: computing, readiness and bytes of its steps" {
    timeline
    local plain=("${plain[@]}" --attention 0)
    run project "$OUT/t.json" -H 2 "${plain[@]}" --table batches --format csv
    [ "$status" -eq 0 ]
    # 2 of 10 ms are the wait of the recorded run: 8 ms compute, 4 of them
    # between the gradients. 4 MB take 4 ms, and b shares the link from 1 ms on.
    rows '
assert [r["last_tensor"] for r in rows] == ["c", "b", "a"], rows
assert [r["bytes"] for r in rows] == ["4000000", "2000000", "400"], rows
assert [float(r["ready_ms"]) for r in rows] == [0, 1, 4], rows
assert near(rows[1]["end_ms"], 5) and near(rows[0]["end_ms"], 6), rows
'
    # Of rank 0 alone, b is ready earlier.
    run project "$OUT/t.json" -H 2 "${plain[@]}" --table batches --format csv \
        --rank 0
    [ "$status" -eq 0 ]
    rows 'assert [float(r["ready_ms"]) for r in rows] == [0, 0.5, 4], rows'
    run project "$OUT/t.json" -H 1,2 "${plain[@]}" --format csv
    [ "$status" -eq 0 ]
    rows '
assert near(rows[0]["step_ms"], 8), rows
assert near(rows[1]["step_ms"], 10), rows
'
}

# Two ranks of which one takes 10 ms in a step and the other 6, in turn, and once
# ten times as long; the ranks learn of a 0.2 and 0.4 ms after both submitted it.
uneven_timeline() {
    /usr/bin/python3 -c "
import json
events = []
for rank in 0, 1:
    for row, name in enumerate(('a', 'b'), 1):
        events.append(dict(ph='M', name='thread_name', pid=rank, tid=row,
                           args=dict(name=name)))
def put(name, rank, row, at, end):
    events.append(dict(ph='X', name=name, pid=rank, tid=row, ts=1e9 + at,
                       dur=end - at, args=dict(tensor='t', bytes=4000)))
at = 0
for step in range(12):
    slow = 10 if step == 7 else 1
    took = [slow * (10000 if (step + rank) % 2 else 6000) for rank in (0, 1)]
    first = [at + t - 3000 for t in took]
    last = [at + t for t in took]
    for rank in 0, 1:
        agreed = max(first) + 200 + 200 * rank
        put('NEGOTIATE_ALLREDUCE', rank, 1, first[rank], agreed)
        put('ALLREDUCE', rank, 1, first[rank], agreed)
        put('ALLREDUCE', rank, 2, last[rank], max(last) + 1000)
    at = max(last) + 1000
print(json.dumps(dict(traceEvents=events)))
" >"$OUT/u.json"
}

@test "a timeline: how much ranks differ, and how late they look" {
    uneven_timeline
    # The mean of 10 and 6 ms; of the deviation, 2.83 ms, four ranks wait for
    # 1.029 times as much, and two as long as was recorded but for the
    # difference between a normal deviation and this one.
    run project "$OUT/u.json" -H 1,2,4 "${plain[@]}" --attention 0 --format csv
    [ "$status" -eq 0 ]
    rows '
mean = 10 / (1 + 0.56419 * 8 ** .5 / 8)
for row, deviations in zip(rows, (0, 0.56419, 1.02938)):
    assert near(row["compute_ms"], mean), row
    assert near(row["uneven_ms"], mean * deviations * 8 ** .5 / 8), row
'
    run project "$OUT/u.json" -H 1,4 "${plain[@]}" --jitter 0 --format csv
    [ "$status" -eq 0 ]
    rows 'assert all(near(row["uneven_ms"], 0) for row in rows), rows'
    run project "$OUT/u.json" -H 2 "${plain[@]}" --table batches --format csv
    [ "$status" -eq 0 ]
    # A round of 4,064 bytes comes on top.
    rows 'assert near(rows[0]["agreed_ms"], 0.404), rows'
}

@test "a timeline that was recorded, of a training" {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
    HVD_TIMELINE=$OUT/mnist.json timeout 300 mpirun --oversubscribe \
        --bind-to none -np 2 "$BIN/mnist" -s 12 --eval-every 0 \
        --train-images 2000 --test-images 100 </dev/null
    local rank
    for rank in '' --rank=0 --rank=1; do
        run project "$OUT/mnist.json" -H 2 $rank --table batches --format csv
        [ "$status" -eq 0 ]
        # The gradients of the network: 6 tensors of 347,146 floats.
        rows '
assert sum(int(r["tensors"]) for r in rows) == 6, rows
assert sum(int(r["bytes"]) for r in rows) == 4 * 347146, rows
'
    done
}

# ---------------------------------------------------------------- mistakes

# is_refused STATUS TEXT ARGS...: one line on standard error, nothing else.
is_refused() {
    local wanted=$1 text=$2
    shift 2
    run --separate-stderr project "$@"
    [ "$status" -eq "$wanted" ]
    [ -z "$output" ]
    [ "$stderr" = "hvd-bench: project: $text" ] || {
        printf 'said:   %s\nwanted: %s\n' "$stderr" "hvd-bench: project: $text"
        return 1
    }
}

# bad TEXT LINES...: a table of these lines is refused.
bad() {
    local text=$1
    shift
    printf '%s\n' "$@" >"$OUT/bad.csv"
    is_refused 1 "$OUT/bad.csv:$text" "$OUT/bad.csv"
}

@test "wrong tables are refused with their line" {
    local head=tensor,bytes,ready_ms
    bad "3: the column ready_ms is missing" '#' backward_ms,1 tensor,bytes
    bad "2: the column bytes is missing" backward_ms,1 ready_ms,tensor
    bad "1: backward_ms is missing before the head" "$head"
    bad "1: 'forwards_ms' is neither forward_ms, backward_ms nor update_ms, nor \
a head with the columns tensor, bytes and ready_ms" forwards_ms,1
    bad "1: backward_ms: '-1' is negative" backward_ms,-1
    bad "1: backward_ms takes one value" backward_ms,1,2
    bad "2: no tensor after the head" backward_ms,1 "$head"
    bad "1: no head with the columns tensor, bytes and ready_ms up to the end of \
the file" backward_ms,1
    bad "3: bytes: '-4' is negative" backward_ms,1 "$head" a,-4,0
    bad "3: bytes: 1.5 is not a whole number from 1 to 1e15" backward_ms,1 \
        "$head" a,1.5,0
    bad "3: bytes: 0 is not a whole number from 1 to 1e15" backward_ms,1 \
        "$head" a,0,0
    bad "4: bytes: '4k' is not a number" backward_ms,1 "$head" '# x' a,4k,0
    bad "3: ready_ms: 'nan' is not a number" backward_ms,1 "$head" a,4,nan
    bad "3: ready_ms: 2 is after the backward pass of 1 ms" backward_ms,1 \
        "$head" a,4,2
    bad "3: ready_ms is missing" backward_ms,1 "$head" a,4,
    bad "3: 2 fields, where the head has 3" backward_ms,1 "$head" a,4
    bad "3: 4 fields, where the head has 3" backward_ms,1 "$head" a,4,0,1
    bad "3: the tensor has no name" backward_ms,1 "$head" ,4,0
    bad "3: a quote is not closed" backward_ms,1 "$head" '"a,4,0'
    printf 'backward_ms,1\n\0\n' >"$OUT/bad.csv"
    is_refused 1 "$OUT/bad.csv:2: not a text" "$OUT/bad.csv"
    : >"$OUT/bad.csv"
    is_refused 1 "$OUT/bad.csv:0: no head with the columns tensor, bytes and \
ready_ms up to the end of the file" "$OUT/bad.csv"
}

@test "wrong timelines are refused" {
    timeline
    sed -i '11s/"dur": [0-9]*/"dur": "x"/' "$OUT/t.json"
    is_refused 1 "$OUT/t.json:11: event 10: ts and dur are not numbers" \
        "$OUT/t.json"
    timeline
    sed -i '11s/"bytes": [0-9]*/"bytes": -1/' "$OUT/t.json"
    is_refused 1 "$OUT/t.json:11: event 10: dur or bytes is negative" \
        "$OUT/t.json"
    timeline
    sed -i '11s/"tid": [0-9]*/"tid": 99/' "$OUT/t.json"
    is_refused 1 "$OUT/t.json:11: event 10: its row has no name" "$OUT/t.json"
    timeline
    is_refused 1 "$OUT/t.json: no named allreduces recur in more than 3 steps \
of this rank: record a longer training, on two ranks or more" \
        "$OUT/t.json" --rank 5
    echo '{"a": 1}' >"$OUT/t.json"
    is_refused 1 "$OUT/t.json: there is no list traceEvents: not a timeline" \
        "$OUT/t.json"
    printf '{"traceEvents": [\n{]}' >"$OUT/t.json"
    run project "$OUT/t.json"
    [ "$status" -eq 1 ]
    [[ $output == "hvd-bench: project: $OUT/t.json:2: "* ]]
}

@test "files that are not there, or are none" {
    is_refused 1 "$OUT/none: No such file or directory" "$OUT/none"
    run project "$OUT"
    [ "$status" -eq 1 ]
    [[ $output == "hvd-bench: project: $OUT: "* ]]
}

@test "wrong command lines are refused" {
    one_tensor
    local file=$OUT/one.csv
    is_refused 64 "which training? A table or a timeline is missing; see --help"
    is_refused 64 "'b.csv' is one word too many; see --help" "$file" b.csv
    is_refused 64 "-H: '2,x' is not a list of whole numbers from 1 to 1048576" \
        "$file" -H 2,x
    is_refused 64 "-H: '0' is not a list of whole numbers from 1 to 1048576" \
        "$file" -H 0
    is_refused 64 "1048576 hosts of 2 ranks are more than 1048576 ranks" \
        "$file" -H 1048576 -n 2
    is_refused 64 "--network: 'wire' is none of tcp-1g, tcp-10g, tcp-25g, \
tcp-100g, roce-25g, roce-100g, ib-200g and has no / of a file" "$file" \
        --network wire
    is_refused 64 "--bandwidth must be more than 0" "$file" --bandwidth 0
    is_refused 64 "--latency: '-1' is not a number of 0 or more" "$file" \
        --latency=-1
    is_refused 64 "--speed must be more than 0" "$file" --speed 0
    is_refused 64 "--table: 'x' is none of steps, batches, allreduce" "$file" \
        --table x
    is_refused 64 "--plot draws steps, and --table=allreduce has none" \
        --table allreduce --plot a.svg
    is_refused 64 "-b and -e: from 4 bytes to 1 TiB, and -b is not more than -e" \
        --table allreduce -b 8 -e 4
}

@test "help names every option" {
    run project --help
    [ "$status" -eq 0 ]
    local word
    for word in --hosts --network --latency --bandwidth --cores --rules --table \
        --plot --rank; do
        [[ $output == *"$word"* ]]
    done
}
