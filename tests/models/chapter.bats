#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The small programs of streams and replicas: their output and their refusals.

setup() {
    BIN="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin"
    PROGRAMS=(ipu-feeds ipu-losses ipu-replicas ipu-dataset-bench)
}

# is_wrong STATUS WORD PROGRAM ARGS...: one line that begins with the program's
# name.
is_wrong() {
    local expected=$1 word=$2 program=$3
    shift 3
    run "$BIN/$program" "$@"
    echo "$program $* -> $status: $output"
    [ "$status" -eq "$expected" ]
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

# core: the kernels with which OpenBLAS multiplies in a program.
core() {
    OPENBLAS_VERBOSE=2 "$BIN/ipu-losses" --steps 1 2>&1 |
        sed -n 's/^Core: //p' | tail -n 1
}

@test "products use the processor's instructions, or those that a variable names" {
    local before='^(Prescott|Core2|Nehalem|Barcelona)$'
    grep -qw avx2 /proc/cpuinfo || skip "the processor has no AVX2"
    unset OPENBLAS_CORETYPE
    core
    [[ -n $(core) && ! $(core) =~ $before ]]
    [ "$(OPENBLAS_CORETYPE=Prescott core)" = Prescott ]
    [ "$(OPENBLAS_CORETYPE=Haswell core)" = Haswell ]
}

@test "a data set's throughput as JSON" {
    run "$BIN/ipu-dataset-bench" --epochs 3 --elements 200 --batch-size 4
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

# bench ARGS...: the elements and bytes of the first epoch
bench() {
    "$BIN/ipu-dataset-bench" --epochs 1 --elements 10 --batch-size 4 "$@" |
        /usr/bin/python3 -c 'import json, sys
e = json.load(sys.stdin)["epochs"][0]
print(int(e["elements_processed"]), int(e["total_bytes_processed"]))'
}

@test "data sets of all formats are measured, through the queue and alone" {
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import gzip, json, struct, zlib

rows = 12
floats = [[r + c / 8 for c in range(6)] for r in range(rows)]
data = b"".join(struct.pack("<6f", *row) for row in floats)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 2, 3), }"
header = header.ljust(117) + "\n"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
open("x.npy", "wb").write(npy)
gzip.open("x.npy.gz", "wb").write(npy)
open("wide.npy", "wb").write(
    npy.replace(b"'<f4'", b"'<i8'").replace(b"(12, 2, 3), ", b"(6, 6),     ") )
named = json.dumps({"a": {"dtype": "F32", "shape": [12, 6],
                          "data_offsets": [0, len(data)]}}).encode()
open("x.safetensors", "wb").write(struct.pack("<Q", len(named)) + named + data)
import zipfile
with zipfile.ZipFile("x.npz", "w") as z:
    z.writestr("a.npy", npy)
    z.writestr("b.npy", npy)
open("x-idx2-ubyte", "wb").write(
    struct.pack(">BBBBII", 0, 0, 13, 2, rows, 6) +
    b"".join(struct.pack(">6f", *row) for row in floats))
with open("x.csv", "w") as f:
    f.write("a,b,label\n")
    f.writelines(f"{r[0]},{r[1]},{i}\n" for i, r in enumerate(floats))
open("x.txt", "w").write("all work and no play " * 100)

def crc(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    c = 0xffffffff
    for byte in data:
        c = table[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xffffffff
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)

def field(number, payload):
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload

with open("x.tfrecord", "wb") as f:
    for row in floats:
        value = field(2, field(1, struct.pack("<6f", *row)))
        feature = field(1, field(1, b"x") + field(2, value))
        record = field(1, feature)
        size = struct.pack("<Q", len(record))
        f.write(size + crc(size) + record + crc(record))
END
    local way
    for way in "" --no-memcpy; do
        # shellcheck disable=SC2086 # none, or an option
        {
            [ "$(bench $way -d x.npy)" = "10 960" ] # 10 * 4 rows * 6 * 4 bytes
            [ "$(bench $way -d x.npy.gz)" = "10 960" ]
            [ "$(bench $way -d x.safetensors)" = "10 960" ]
            [ "$(bench $way -d x.npz)" = "10 1920" ]
            [ "$(bench $way -d x-idx2-ubyte)" = "10 960" ]
            [ "$(bench $way -d x.tfrecord --fields x:float32:2x3)" = "10 960" ]
            [ "$(bench $way -d x.csv --fields a:float32:2,label:int32)" = "10 480" ]
            [ "$(bench $way -d x.txt)" = "10 40960" ] # two windows of 128
            cp x.npy x.data
            [ "$(bench $way -d x.data --format npy)" = "10 960" ]
        }
    done
    is_wrong 1 "x.data: its name does not tell its format" ipu-dataset-bench \
        -d x.data
    is_wrong 1 "--fields: CSV files and TFRecords need them" ipu-dataset-bench \
        -d x.csv
    is_wrong 1 "--fields: 'a' needs a dtype" ipu-dataset-bench -d x.csv \
        --fields a:float
    is_wrong 1 "--fields: the shape of 'a' is not like" ipu-dataset-bench \
        -d x.csv --fields a:float32:0
    is_wrong 1 "has no batch" ipu-dataset-bench -d x.npy --batch-size 13
    is_wrong 1 "component 'data' is int64" ipu-dataset-bench \
        -d wide.npy --batch-size 2
    is_wrong 64 "--format: 'xml' is none of idx, csv, npy" ipu-dataset-bench \
        --format xml
    is_wrong 1 "/nowhere.npy" ipu-dataset-bench --data /nowhere.npy
}

# losses ARGS...: prints the losses of ipu-replicas, one on each line
losses() {
    "$BIN/ipu-replicas" "$@" | grep '^step '
}

@test "replicas learn as one with all of their images does" {
    local one
    one=$(losses --ipus 1 --batch-size 64 --steps 30)
    [ "$(wc -l <<<"$one")" -eq 30 ]
    awk -v a="$(head -1 <<<"$one")" -v b="$(tail -1 <<<"$one")" 'BEGIN {
        split(a, x, " = "); split(b, y, " = "); exit !(y[2] < 0.8 * x[2]) }'
    # As printed: rows are added in another order.
    [ "$(losses --ipus 2 --batch-size 32 --steps 30)" = "$one" ]
    [ "$(losses --ipus 4 --batch-size 16 --steps 30)" = "$one" ]
    [ "$(losses --ipus 4 --batch-size 16 --steps 30 --threads 1)" = "$one" ]
    # Eight IPUs, of which the program takes two: four replicas.
    [ "$(losses --ipus 8 --shards 2 --batch-size 16 --steps 30)" = "$one" ]
    # The comparison can fail.
    [ "$(losses --ipus 4 --batch-size 15 --steps 30)" != "$one" ]
}

@test "a cross-replica optimiser keeps replicas equal" {
    run "$BIN/ipu-replicas" --steps 5
    [ "$status" -eq 0 ]
    [[ ${lines[5]} == "4 replicas of 1 IPU: "*" gradients: 20 means, "* ]]
    [ "${lines[6]}" = "weights are equal in all replicas" ]
    run "$BIN/ipu-replicas" --steps 5 --apart
    [ "$status" -eq 0 ]
    [[ ${lines[5]} == *" gradients: 0 means, 0 bytes"* ]]
    [[ ${lines[6]} == "weights differ: "*"'hidden/kernel'"*"replicas 0 and 1" ]]
}

@test "profiles have the programs" {
    local out="$BATS_TEST_TMPDIR/out" program
    for program in ipu-feeds "ipu-losses --steps 4" "ipu-replicas --steps 4"; do
        rm -rf "$out"
        # shellcheck disable=SC2086 # words are wanted
        "$BIN/"$program --profile "$out"
        [ -s "$out/report.html" ]
        grep -q "\"${program%% *}\"" "$out/profile.json"
        # shellcheck disable=SC2086
        run "$BIN/"$program --profile text
        [ "$status" -eq 0 ]
        [[ $output == *"fullest"*"memory:"* ]]
        # shellcheck disable=SC2086
        is_wrong 1 "/dev/null/x" $program --profile /dev/null/x
    done
}

@test "help and version" {
    local program
    for program in "${PROGRAMS[@]}"; do
        run "$BIN/$program" --help
        [ "$status" -eq 0 ]
        [[ $output == "Usage: $program "*"Exit status: "* ]]
        run "$BIN/$program" -V
        [ "$status" -eq 0 ]
        [[ $output =~ ^$program\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    done
}

@test "a wrong command line is one line and status 64" {
    local program
    for program in "${PROGRAMS[@]}"; do
        is_wrong 64 "there is no option --bogus" "$program" --bogus
        is_wrong 64 "'left' is not an option" "$program" left
    done
    is_wrong 64 "--prefetch: '300'" ipu-dataset-bench --prefetch 300
    is_wrong 64 "--epochs: '0'" ipu-dataset-bench --epochs 0
    is_wrong 64 "--steps: '1x'" ipu-losses --steps 1x
    is_wrong 64 "--per-run 3: it must divide --steps 10" ipu-losses \
        --steps 10 --per-run 3
    is_wrong 64 "--shards: '3'" ipu-replicas --shards 3
    is_wrong 64 "--ipus: '0'" ipu-replicas --ipus 0
    is_wrong 64 "--batch-size needs a value" ipu-replicas --batch-size
}

@test "what cannot be done is one line and status 1" {
    is_wrong 1 "/nowhere" ipu-dataset-bench --data /nowhere
    is_wrong 1 "/nowhere" ipu-losses --data /nowhere
    is_wrong 1 "/nowhere" ipu-replicas --data /nowhere
    is_wrong 1 "3 IPUs are no multiple of the 2 shards" ipu-replicas --ipus 3 \
        --shards 2
}

@test "output that nobody takes is a failure" {
    for program in ipu-feeds "ipu-losses --steps 2" "ipu-replicas --steps 2" \
        "ipu-dataset-bench --epochs 1 --elements 2" "ipu-losses --help"; do
        run bash -c "$BIN/$program 2>&1 >/dev/full"
        [ "$status" -eq 1 ]
        [ "${#lines[@]}" -eq 1 ]
    done
}
