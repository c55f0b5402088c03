# SPDX-License-Identifier: Apache-2.0
# make wheel packs the package for Python and libhvd into one file, which pip
# unpacks. Debian's Python has no pip: the record is compared with the files as
# pip would, and the file is unpacked by hand.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    make -C "$ROOT" --no-print-directory wheel >/dev/null
    export WHEEL=$(echo "$ROOT"/build/wheel/hvd-*.whl)
}

@test "the record of the wheel names every file with its hash and its size" {
    /usr/bin/python3 - "$WHEEL" <<'EOF2'
import base64, csv, hashlib, io, re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
name, version, tag = re.fullmatch(r".*/(hvd)-([\d.]+)-(.*)\.whl", sys.argv[1]).groups()
info = "%s-%s.dist-info/" % (name, version)
rows = list(csv.reader(io.StringIO(wheel.read(info + "RECORD").decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist())
for path, digest, size in rows:
    if path == info + "RECORD":
        assert digest == size == ""
        continue
    data = wheel.read(path)
    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    assert digest == "sha256=" + want and int(size) == len(data), path
assert "Tag: %s\n" % tag in wheel.read(info + "WHEEL").decode()
assert "Version: %s\n" % version in wheel.read(info + "METADATA").decode()
assert {"hvd/libhvd.so.0", "ipu/libipu.so.0", "ipu/libhvd-train.so.0", "hvd/py.typed",
        "hvd/__init__.pyi", "ipu/py.typed", "ipu/layers.pyi"} < set(wheel.namelist())
EOF2
}

@test "what is unpacked runs on two ranks, with no other library" {
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 -m zipfile -e "$WHEEL" unpacked
    cat >sum.py <<'EOF2'
import hvd, ipu, numpy, sys
hvd.init()
labels = numpy.arange(8) % 2
model = ipu.Model([ipu.layers.Dense(2)])
model.fit(numpy.eye(2)[labels], labels, batch_size=4, verbose=False)
assert model.predict(numpy.eye(2)).shape == (2, 2)
model.close()
# One write: mpirun may put what two ranks write between each other.
sys.stdout.write("sum %d\n" % hvd.allreduce(numpy.array([hvd.rank() + 1]), op=hvd.Sum)[0])
hvd.shutdown()
EOF2
    PYTHONPATH=$PWD/unpacked run "$ROOT/mpi-launch.sh" -np 2 \
        env -u HVD_LIBRARY /usr/bin/python3 sum.py
    [ "$status" -eq 0 ]
    echo "$output"
    [ "$(grep -c "^sum 3$" <<<"$output")" -eq 2 ]
}
