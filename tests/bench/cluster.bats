#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hvd-bench cluster starts processes without MPI, and measures them and Gloo.

bats_require_minimum_version 1.5.0
load ../support/commands

setup() {
    ROOT=$BATS_TEST_DIRNAME/../..
    BIN="${HVD_BUILD:-$ROOT/build}/bin"
    PROGRAM=$BIN/hvd-bench
    unset TF_CONFIG
}

cluster() {
    timeout 200 "$PROGRAM" cluster "$@" </dev/null
}

# rows PROGRAM: runs Python that sees the CSV of $output as rows.
rows() {
    /usr/bin/python3 -c "
import csv, sys
rows = list(csv.DictReader(sys.argv[1].splitlines()))
assert all(None not in row for row in rows), rows
$1" "$output"
}

@test "libhvd and Gloo sum at 2, 3 and 4 processes, in turn" {
    local n
    for n in 2 3 4; do
        run cluster -n $n -b 4 -e 64K -f 128 --rounds 1 --format csv
        echo "$output"
        [ "$status" -eq 0 ]
        rows '
assert [r["bytes"] for r in rows] == ["4", "512", "65536"]
for r in rows:
    assert float(r["hvd_us"]) > 0 and float(r["hvd_tcp_us"]) > 0
    gloo = [float(v) for k, v in r.items()
            if k.startswith("gloo_") and k.endswith("_us") and v]
    # All of its backends, or none where it was not built in.
    assert len(gloo) in (0, 4) and all(v > 0 for v in gloo), r
    if gloo:
        ratio = float(r["gloo_over_hvd"])
        assert abs(ratio * float(r["hvd_us"]) / min(gloo) - 1) < 0.01, r
'
    done
}

@test "nothing is left behind in the directory of temporary files" {
    mkdir "$BATS_TEST_TMPDIR/own"
    TMPDIR=$BATS_TEST_TMPDIR/own run cluster -e 4 --rounds 1
    [ "$status" -eq 0 ]
    [ -z "$(ls -A "$BATS_TEST_TMPDIR/own")" ]
    TMPDIR=$BATS_TEST_TMPDIR/none run --separate-stderr cluster -e 4 --rounds 1
    [ "$status" -eq 1 ]
    [[ $stderr == *"no directory can be made in $BATS_TEST_TMPDIR/none"* ]]
}

@test "a backend that cannot start says which and why" {
    HVD_LOG=nonsense run --separate-stderr cluster -e 4 --rounds 1
    [ "$status" -eq 1 ]
    [[ $stderr == *"hvd_us: process 0: "*HVD_LOG* ]]
}

@test "members that mpirun or TF_CONFIG started measure alike" {
    local how
    for how in "$ROOT/mpi-launch.sh -np" "$ROOT/tests/tools/by-hand"; do
        # shellcheck disable=SC2086 # a command and its flag
        run --separate-stderr timeout 100 $how 2 "$PROGRAM" cluster --member \
            -b 4 -e 4K -f 32 --rounds 3 --format csv
        [ "$status" -eq 0 ]
        rows '
assert [r["bytes"] for r in rows] == ["4", "128", "4096"]
assert all(0 < float(r["min_us"]) <= float(r["p50_us"]) for r in rows), rows
'
    done
}

@test "hosts compares ranks of mpirun with ranks of TF_CONFIG" {
    run --separate-stderr timeout 200 "$PROGRAM" hosts -H 2 -n 2 --rate none \
        --format csv --turns 2 --starts -- -b 4 -e 4K -f 32 --rounds 3
    echo "$output" "$stderr"
    [ "$status" -eq 0 ]
    rows '
assert [r["bytes"] for r in rows] == ["4", "128", "4096"], rows
for r in rows:
    assert (r["hosts"], r["ranks_a_host"], r["rate"]) == ("2", "2", "none")
    mpi, own = float(r["mpirun_us"]), float(r["tf_config_us"])
    assert mpi > 0 and own > 0
    assert abs(float(r["mpirun_over_tf_config"]) * own / mpi - 1) < 0.01
'
}

@test "hosts starts a program by TF_CONFIG, and ends with its status" {
    run timeout 100 "$PROGRAM" hosts -H 2 -n 2 --start cluster --run -- \
        sh -c 'echo "$(hostname) ${HVD_JOB_KEY_FILE:+key} $TF_CONFIG"'
    [ "$status" -eq 0 ]
    [ "$(grep -c '^host[01] key ' <<<"$output")" -eq 4 ]
    [[ $output == *'"10.99.0.2:3740"'*'"index":3'* ]]
    run timeout 100 "$PROGRAM" hosts -H 2 -n 1 --start cluster --run -- \
        sh -c 'case $TF_CONFIG in *\"index\":1*) exit 5 ;; esac; sleep 90'
    [ "$status" -eq 5 ]
}

@test "a mistake on the command line is one line" {
    local arguments
    for arguments in '-n 1' '-n 17' '-b 6' '-b 8 -e 4' '-e 2G' '-f 1' \
        '--rounds 0' '--format xml' 'allreduce'; do
        # shellcheck disable=SC2086 # a list
        run --separate-stderr cluster $arguments
        [ "$status" -eq 64 ]
        # shellcheck disable=SC2154 # run sets it
        [ "${#stderr_lines[@]}" -eq 1 ]
        [[ $stderr == "hvd-bench: cluster: "* ]]
    done
    run --separate-stderr timeout 60 "$ROOT/mpi-launch.sh" -np 1 "$PROGRAM" \
        cluster
    [ "$status" -eq 64 ]
}
