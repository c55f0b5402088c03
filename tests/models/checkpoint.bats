#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hvd-checkpoint, and the files of checkpoints, beside an independent reader and
# writer in Python (checkpoint.py) and numpy's own.

bats_require_minimum_version 1.5.0

setup() {
    BUILD="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}"
    BUILD=$(cd "$BUILD" && pwd)
    export PATH="$BUILD/bin:$PATH" LD_LIBRARY_PATH="$BUILD/lib" TZ=UTC
    cd "$BATS_TEST_TMPDIR" || return
}

# py: runs the Python of standard input.
py() {
    /usr/bin/python3 -B "$BATS_TEST_DIRNAME/checkpoint.py"
}

@test "what the library saves, Python reads, and the other way round" {
    py <<'END'
save("model", 7, example(), '{"epoch": 2}', 0.25)
tensors, metadata = read("model/ckpt-7.safetensors")
same(tensors, example())
assert json.loads(metadata["state"]) == {"epoch": 2}
beside = json.load(open("model/ckpt-7.json"))
assert beside["step"] == 7 and beside["metric"] == 0.25
assert beside["state"] == {"epoch": 2} and not beside["final"]
assert beside["file"]["crc32"] == metadata["crc32"]
assert {t["name"] for t in beside["tensors"]} == set(tensors)
write("model/ckpt-9.safetensors", example(2), {"step": "9", "metric": "0.125"})
write("model/ckpt-11.safetensors", example(2), {"step": "11"})
data = bytearray(open("model/ckpt-11.safetensors", "rb").read())
data[-1] ^= 1
open("model/ckpt-11.safetensors", "wb").write(data)
END
    run -0 hvd-checkpoint ls model
    [ "${#lines[@]}" -eq 4 ]
    [[ ${lines[1]} =~ ^\ +7\ +[0-9.]+\ [KB].*\ 0.25\ +valid$ ]]
    [[ ${lines[2]} =~ ^\ +9\ .*\ 2023-11-14\ 22:13:20\ +0.125\ +valid$ ]]
    [[ ${lines[3]} =~ ^\ +11\ +damaged:\ .*checksum ]]
    run -0 --separate-stderr hvd-checkpoint show model
    # shellcheck disable=SC2154 # stderr is of bats
    [[ $stderr == *"passed over: "*ckpt-11* ]]
    grep 'step    9' <<<"$output"
    grep -E '^optimizer/m +F64 +\[5\] +-2 +2 +0 +3.1623$' <<<"$output"
    grep -E '^optimizer/count +I64 +\[\] +12 ' <<<"$output"
}

@test "differences are found, and their size" {
    py <<'END'
one, two = example(), example()
two["a/kernel"] = two["a/kernel"].copy()
two["a/kernel"][1, 2] += 0.25
two["optimizer/m"] = two["optimizer/m"].copy()
two["optimizer/m"][0] = np.nan
del two["flag"]
two["more"] = np.zeros((2, 0))
write("one.safetensors", one)
write("two.safetensors", two)
three = example()
three["a/kernel"] = three["a/kernel"].reshape(3, 2)
write("three.safetensors", three)
END
    run -0 hvd-checkpoint diff one.safetensors one.safetensors
    [ "$output" = "4 tensors are equal" ]
    run -1 hvd-checkpoint diff one.safetensors two.safetensors
    [ "${#lines[@]}" -eq 4 ]
    grep '^a/kernel: 1 of 6 elements differ, by at most 0.25, relative 0.259' <<<"$output"
    grep '^optimizer/m: 1 of 5 elements differ, by at most inf' <<<"$output"
    grep '^flag: only in one.safetensors' <<<"$output"
    grep '^more: only in two.safetensors' <<<"$output"
    run -1 hvd-checkpoint diff one.safetensors three.safetensors
    [ "$output" = "a/kernel: F32 [2,3] and F32 [3,2]" ]
    run -1 hvd-checkpoint diff --tolerance 0.3 one.safetensors two.safetensors
    run ! grep kernel <<<"$output"
    run -2 hvd-checkpoint diff one.safetensors none.safetensors
    [ "$output" = "hvd-checkpoint: none.safetensors: No such file or directory" ]
}

@test "averages are those of double precision" {
    py <<'END'
for i in range(3):
    save("model", i, {**example(i + 1), "optimizer/count": np.int64(i)})
END
    hvd-checkpoint average model/ckpt-*.safetensors -o mean.safetensors
    py <<'END'
tensors, metadata = read("mean.safetensors")
assert "crc32" not in metadata and metadata["step"] == "0"
all = [example(i + 1) for i in range(3)]
for name in "a/kernel", "optimizer/m":
    mean = sum(a[name].astype("f8") for a in all) / 3
    assert np.array_equal(tensors[name], mean.astype(tensors[name].dtype)), name
assert tensors["optimizer/count"] == 2
write("other.safetensors", {"x": np.zeros(3)})
END
    run -1 hvd-checkpoint average model other.safetensors -o no.safetensors
    [[ $output == *"other.safetensors: it has 1 tensors, and the first file 4" ]]
    [ ! -e no.safetensors ]
}

@test "numpy reads our archives, and we its" {
    py <<'END'
write("in.safetensors", {**example(), "h": np.arange(-2, 3).astype("<f2") / 3})
np.savez("stored", a=np.arange(6, dtype=">f4").reshape(2, 3),
         f=np.asfortranarray(np.arange(24.).reshape(2, 3, 4)),
         s=np.int64(7), e=np.zeros((0, 4)))
np.savez_compressed("deflated", **{"x/y": np.arange(1000, dtype="<i4")})
END
    hvd-checkpoint convert in.safetensors out.npz
    hvd-checkpoint convert out.npz back.safetensors
    hvd-checkpoint diff in.safetensors back.safetensors
    hvd-checkpoint convert stored.npz stored.safetensors
    hvd-checkpoint convert deflated.npz deflated.safetensors
    py <<'END'
same(dict(np.load("out.npz")), read("in.safetensors")[0])
for name in "stored", "deflated":
    same(dict(np.load(name + ".npz")), read(name + ".safetensors")[0])
END
}

@test "floating dtypes are converted as numpy does it" {
    py <<'END'
random = np.random.default_rng(18)
bits = random.integers(0, 2**32, 20000, dtype="u4").view("<f4")
near = (random.standard_normal(20000) * 10.0 ** random.integers(-9, 6, 20000))
write("in.safetensors", {"b": bits[np.isfinite(bits)], "n": near.astype("<f4"),
                         "i": np.arange(3), "d": near})
END
    hvd-checkpoint convert in.safetensors half.safetensors --dtype float16
    hvd-checkpoint convert in.safetensors brain.safetensors --dtype bfloat16
    hvd-checkpoint convert half.safetensors wide.safetensors --dtype float32
    hvd-checkpoint convert brain.safetensors brain.npz
    py <<'END'
given = read("in.safetensors")[0]
half, brain = read("half.safetensors")[0], read("brain.safetensors")[0]
wide, archive = read("wide.safetensors")[0], np.load("brain.npz")
with np.errstate(over="ignore"):
    for name in "b", "n", "d":
        assert np.array_equal(half[name], given[name].astype("<f2")), name
        assert np.array_equal(wide[name], half[name].astype("<f4")), name
for name in "b", "n":
    raw = given[name].view("<u4").astype("u8")
    rounded = (raw + 0x7fff + (raw >> 16 & 1)) >> 16
    assert np.array_equal(brain[name], rounded.astype("<u2")), name
    assert np.array_equal(archive[name].view("<u4") >> 16, brain[name]), name
assert np.array_equal(half["i"], given["i"]) and half["i"].dtype == np.int64
END
}

@test "wrong command lines and files are one line" {
    py <<'END'
write("in.safetensors", example())
np.savez("objects", x=np.array([{}, None], dtype=object))
END
    mkdir empty
    while IFS='|' read -r status arguments text; do
        # shellcheck disable=SC2086 # several words
        run "-$status" hvd-checkpoint $arguments </dev/null
        echo "$arguments: $output"
        [ "${#lines[@]}" -eq 1 ]
        [[ $output == "hvd-checkpoint: "*"$text"* ]]
    done <<'END'
64||the command is one of
64|frob|there is no frob
64|ls|usage: hvd-checkpoint ls FOLDER
64|ls a b|usage: hvd-checkpoint ls FOLDER
64|average in.safetensors|usage: hvd-checkpoint average
64|show in.safetensors -o x|usage: hvd-checkpoint show PATH
64|convert in.safetensors x.npz --dtype int8|--dtype: 'int8'
64|diff --tolerance=-1 a b|--tolerance: '-1'
1|ls none|none: there is no checkpoint in it
1|show empty|empty: there is no checkpoint in it
1|show objects.npz|'x': its header is not that of an array of numbers
1|show in.txt|No such file
1|convert in.safetensors out.txt|its name must end with .safetensors or .npz
1|convert in.safetensors /nowhere/x.npz|cannot be written
END
}
