#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The subcommands of hvd-bench run with tiny sizes at 1, 2 and 3 ranks, print
# tables, and one line for every mistake.

bats_require_minimum_version 1.5.0
load ../support/commands

setup() {
    BIN="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin"
    PROGRAM=$BIN/hvd-bench
    OUT="$(mktemp -d "$BATS_TEST_TMPDIR/bench.XXXXXX")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
}

# ranks N ARGS...: runs the program on N ranks. The limit of time is for what
# hangs: on a busy machine each message waits for its receiver's turn on a core.
ranks() {
    local n=$1
    shift
    timeout 300 mpirun --oversubscribe --bind-to none -np "$n" "$PROGRAM" "$@" \
        </dev/null
}

# rows PROGRAM: runs Python that sees the CSV of $output as rows.
rows() {
    /usr/bin/python3 -c "
import csv, sys
rows = list(csv.DictReader(sys.argv[1].splitlines()))
assert all(None not in row and None not in row.values() for row in rows), rows
$1" "$output"
}

# -------------------------------------------------------------------- latency

@test "latency has four ways, idle and busy, at 1, 2 and 3 ranks" {
    local n
    for n in 1 2 3; do
        run ranks $n latency -b 4 -e 64 -f 16 -n 40 --format csv
        [ "$status" -eq 0 ]
        rows '
assert len(rows) == 2 * 2 * 4, len(rows)
assert {r["cores"] for r in rows} == {"idle", "busy"}
assert {r["bytes"] for r in rows} == {"4", "64"}
ways = {r["way"] for r in rows}
assert ways == {"hvd_allreduce", "hvd_allreduce_async", "MPI_Allreduce",
                "MPI_Iallreduce"}, ways
for r in rows:
    times = [float(r[k]) for k in ("min_us", "p50_us", "p95_us", "p99_us",
                                   "max_us")]
    assert times == sorted(times) and times[0] >= 0, r
    if r["way"].startswith("MPI"):
        assert float(r["mpi_over_it"]) == 1
'
    done
}

@test "tables are text, csv or json" {
    run ranks 2 latency -e 4 -n 20
    [ "$status" -eq 0 ]
    [ "$(grep -cv '^#' <<<"$output")" -eq 8 ]
    awk '!/^#/ && NF != 10 { exit 1 }' <<<"$output"
    run ranks 2 latency -e 4 -n 20 --format json
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c '
import json, sys
table = json.loads(sys.argv[1])
assert len(table["rows"]) == 8
assert table["rows"][0]["bytes"] == 4
assert table["title"] and table["notes"]' "$output"
}

@test "idle says what a process costs" {
    run ranks 2 idle -s 0.2 --format csv
    [ "$status" -eq 0 ]
    rows '
assert [r["state"] for r in rows] == ["after hvd_init", "after allreduces"]
assert all(float(r["seconds"]) >= .2 for r in rows)
assert all(0 <= float(r["cpu_percent"]) <= 400 for r in rows)'
}

# ------------------------------------------------------------------ gradients

@test "gradients are right by every way, at 1, 2 and 3 ranks" {
    local n
    for n in 1 2 3; do
        run ranks $n gradients -m mnist --rounds 2 --format csv
        [ "$status" -eq 0 ]
        rows '
assert [(r["way"], r["memory"]) for r in rows] == [
    ("hvd", "hvd"), ("hvd", "malloc"), ("MPI each", "malloc"),
    ("MPI packed 1M", "malloc"), ("MPI packed 4M", "malloc"),
    ("MPI flat", "hvd"), ("polling 1ms", "malloc")], rows
assert all(r["wrong"] == "0" for r in rows)
assert all(r["tensors"] == "6" for r in rows)
best = min(float(r["median_ms"]) for r in rows if r["way"].startswith("MPI"))
for r in rows:
    low, middle, high = (float(r[k]) for k in ("min_ms", "median_ms", "max_ms"))
    assert low <= middle <= high
    assert abs(float(r["best_mpi_over_it"]) * middle / best - 1) < 1e-6'
    done
}

@test "161 small tensors fit one pack, and polling takes a millisecond" {
    run ranks 2 gradients -m small161 --rounds 5 -c 0 --format csv
    [ "$status" -eq 0 ]
    rows '
assert all(r["tensors"] == "161" and r["wrong"] == "" for r in rows)
assert [r["way"] for r in rows if "packed" in r["way"]] == ["MPI packed 1M"]
polling = next(r for r in rows if r["way"] == "polling 1ms")
assert float(polling["median_ms"]) > .5, polling'
}

@test "a wrong gradient is found, and fails" {
    cat >"$OUT/spoiler.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
int hvd_allreduce_async(const char *, const void *, void *, int64_t, int32_t,
                        int32_t, int64_t *);
int hvd_allreduce_async(const char *name, const void *in, void *out, int64_t n,
                        int32_t type, int32_t op, int64_t *handle)
{
    int (*next)(const char *, const void *, void *, int64_t, int32_t, int32_t,
                int64_t *) =
        (int (*)(const char *, const void *, void *, int64_t, int32_t, int32_t,
                 int64_t *))dlsym(RTLD_NEXT, "hvd_allreduce_async");
    return next(name, in, out, n - 1, type, op, handle);
}
END
    cc -shared -fPIC -o "$OUT/spoiler.so" "$OUT/spoiler.c" -ldl
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$PROGRAM" gradients -m mnist --rounds 1 \
        --format csv
    [ "$status" -eq 7 ]
    output=$(grep -E '^(model|mnist),' <<<"$output")
    rows '
assert [int(r["wrong"]) for r in rows] == [12, 12] + [0] * 5, rows'
}

# -------------------------------------------------------------------- overlap

@test "overlap has four ways for each amount of computing" {
    local n memory
    for n in 1 2 3; do
        for memory in hvd malloc; do
            run ranks $n overlap -b 64K -t 4 --rounds 2 --memory $memory \
                --format csv
            [ "$status" -eq 0 ]
            rows '
assert len(rows) == 4 * 4
assert len({r["way"] for r in rows}) == 4
for r in rows:
    assert float(r["both_ms"]) > 0 and float(r["compute_ms"]) > 0
    assert 0 <= float(r["hidden_percent"]) <= 100'
        done
    done
}

# --------------------------------------------------------------------- commit

@test "commit measures a copy, a commit, a step, and both" {
    local n slots
    for n in 1 2 3; do
        for slots in 0 2; do
            run ranks $n commit -m mnist --slots $slots --step 5 --rounds 3 \
                --format csv
            [ "$status" -eq 0 ]
            rows "
(row,) = rows
assert round(float(row['state_mb']) * 1e6) == 4 * 347146 * (1 + $slots), row
for column in 'copy_ms', 'commit_ms', 'step_ms', 'both_ms':
    assert float(row[column]) > 0, row
added = float(row['both_ms']) - float(row['step_ms'])
assert abs(added - float(row['added_ms'])) < 1e-3, row"
        done
    done
}

# -------------------------------------------------------------------- setting

@test "setting compares two values in one run" {
    local n
    for n in 1 2 3; do
        run ranks $n setting HVD_EXPRESS 1 0 -b 8 -e 8K -f 1024 --rounds 6 \
            --block 1 --format csv
        [ "$status" -eq 0 ]
        rows '
assert [int(r["bytes"]) for r in rows] == [8, 8192]
for r in rows:
    assert float(r["first_us"]) > 0 and float(r["second_us"]) > 0, r
    assert float(r["low"]) <= float(r["added_percent"]) <= float(r["high"]), r'
    done
}

@test "setting starts libhvd with either value in each round" {
    run --separate-stderr ranks 2 setting HVD_LOG error info -e 4 --rounds 7 \
        --block 1
    [ "$status" -eq 0 ]
    # A rank says at that level that it has started.
    [ "$(grep -c 'rank 0: hvd .*, rank 0 of 2' <<<"$stderr")" -eq 7 ]
    [ "$(grep -c 'rank 1: hvd .*, rank 1 of 2' <<<"$stderr")" -eq 7 ]
}

@test "setting passes on that libhvd refuses a value" {
    run ranks 2 setting HVD_LOG error loud --rounds 6
    [ "$status" -ne 0 ]
    [[ $output == *"HVD_LOG='loud' is not a level"* ]]
}

# ---------------------------------------------------------------------- hosts

@test "hosts measures over namespaces, or says why it cannot" {
    local before
    if ! ip netns add hvd-bench-probe-$$ 2>/dev/null; then
        run "$PROGRAM" hosts
        [ "$status" -eq 1 ]
        [[ $output == *"network namespaces cannot be made"* ]]
        return 0
    fi
    ip netns del hvd-bench-probe-$$
    before=$(ip netns list | grep -c '^hvd-bench-[0-9]' || true)
    # The daemons of mpirun may say on stderr that somebody was faster.
    run --separate-stderr timeout 120 "$PROGRAM" hosts -H 3 -n 1 --rate 1gbit \
        --format csv -- allreduce -b 4K -e 256K -f 64 -n 3
    echo "$output" "$stderr"
    [ "$status" -eq 0 ]
    rows '
assert [int(r["bytes"]) for r in rows] == [4096, 4096, 262144, 262144]
for r in rows:
    assert r["hosts"] == "3" and r["ranks_a_host"] == "1"
    limit = int(r["bytes"]) * 4 / 3 * 8 / 1e3 * 1514 / 1448
    assert abs(float(r["limit_us"]) / limit - 1) < 1e-3, r
    assert float(r["hvd_us"]) > 0 and float(r["mpi_us"]) > 0'
    [ "$(ip netns list | grep -c '^hvd-bench-[0-9]' || true)" -le "$before" ]
}

@test "hosts runs any program, and ends with its status" {
    ip netns add hvd-bench-probe-$$ 2>/dev/null ||
        skip "network namespaces cannot be made here"
    ip netns del hvd-bench-probe-$$
    # mpirun ends the others as soon as one has failed, so each waits for both.
    mkdir "$OUT/met"
    run --separate-stderr timeout 120 "$PROGRAM" hosts -H 2 -n 1 \
        --congestion reno --run -- \
        sh -c "cd '$OUT/met'; : > \$(hostname)
        echo \$(cat /proc/sys/net/ipv4/tcp_congestion_control) on \$(hostname)
        until [ -e host0 ] && [ -e host1 ]; do sleep 0.1; done
        sleep 0.5; exit 3"
    [ "$status" -eq 3 ]
    [[ $output == *"reno on host0"* && $output == *"reno on host1"* ]]
}

@test "hosts names the congestion controls that it may use" {
    [ "$(id -u)" -eq 0 ] || return 0
    run "$PROGRAM" hosts --congestion=vegan
    [ "$status" -eq 1 ]
    [[ $output == *"--congestion: 'vegan' is none of those that "*lists:*reno* ]]
}

@test "hosts leaves nothing when it is ended" {
    [ "$(id -u)" -eq 0 ] || return 0
    local pid
    TMPDIR=$OUT "$PROGRAM" hosts -- allreduce -b 64M -e 64M -n 1000 \
        </dev/null >/dev/null 2>&1 3>&- &
    pid=$!
    sleep 3
    kill -TERM $pid
    wait $pid || true
    run ip netns list
    [[ $output != *"hvd-bench-$pid-"* ]]
    [ -z "$(ls "$OUT")" ]
}

@test "hosts without rights says so" {
    run setpriv --reuid=65534 --regid=65534 --clear-groups "$PROGRAM" hosts
    [ "$status" -eq 1 ]
    [[ $output == *"network namespaces cannot be made: this needs root"* ]]
}

# ------------------------------------------------------------------- mistakes

@test "each subcommand has its own help" {
    local subcommand
    for subcommand in latency idle gradients overlap commit setting hosts; do
        run "$PROGRAM" $subcommand --help
        [ "$status" -eq 0 ]
        [[ $output == *"hvd-bench $subcommand"* ]]
        [[ $output == *--format* ]]
    done
}

@test "a wrong command line is one line and status 64" {
    is_wrong 64 "'-b' is not an option, or lacks its value; see --help" \
        latency -b
    is_wrong 64 "-b: 6 is not a multiple of 4" latency -b 6
    is_wrong 64 "the smallest size, 65536, is above the largest, 4096" \
        latency -b 64K
    is_wrong 64 "-e: 4294967296 is more than 2147483647" latency -e 4G
    is_wrong 64 "--format: 'xml' is none of text, csv, json" \
        latency --format xml
    is_wrong 64 "'allreduce' is one word too many; see --help" \
        latency allreduce
    is_wrong 64 "-s: '0' is not between 0.01 and 3600" idle -s 0
    is_wrong 64 "--model: 'alexnet' is none of resnet50, vgg16, bert-base, \
gpt2-small, mnist, small161" gradients -m alexnet
    is_wrong 64 "--rounds: '0' is not a whole number from 1 to 1000000" \
        gradients --rounds 0
    is_wrong 64 "--slots: 'two' is not a whole number from 0 to 16" \
        commit --slots two
    local which='which setting, and which two values of it? Like HVD_EXPRESS 1 0'
    is_wrong 64 "$which" setting
    is_wrong 64 "$which" setting HVD_EXPRESS 1
    is_wrong 64 "'-e' is not an option, or lacks its value; see --help" \
        setting HVD_EXPRESS 1 0 -e
    is_wrong 64 "'x' is one word too many; see --help" \
        setting HVD_EXPRESS 1 0 x
    is_wrong 64 "'EXPRESS' is not the name of a setting; hvd-info lists all" \
        setting EXPRESS 1 0
    is_wrong 64 "--rounds: '5' is not a whole number from 6 to 10000" \
        setting HVD_EXPRESS 1 0 --rounds 5
    is_wrong 64 "-b: 6 is not a multiple of 4" setting HVD_EXPRESS 1 0 -b 6
    is_wrong 64 "-e: 1099511627777 is more than 1099511627776" \
        setting HVD_EXPRESS 1 0 -e 1099511627777
    is_wrong 64 "-t: 'many' is not a whole number from 1 to 1024" \
        overlap -t many
    is_wrong 64 "-b 64: less than 64 bytes for each of 2 tensors" \
        overlap -b 64 -t 2
    is_wrong 64 "-b 8589934592: more than 2147483647 bytes a tensor" \
        overlap -b 8G -t 2
    local help='; see hvd-bench hosts --help'
    is_wrong 64 "hosts: -H: '17' is not a whole number from 2 to 16$help" \
        hosts -H 17
    is_wrong 64 "hosts: --rate: 'fast' is not a rate (like 1gbit, 100mbit) or \
none$help" hosts --rate fast
    is_wrong 64 "hosts: --burst: '1kb' is not 16kb to 99999kb$help" \
        hosts --burst 1kb
    is_wrong 64 "hosts: --congestion: '../x' is not the name of a congestion \
control$help" hosts --congestion ../x
    is_wrong 64 "hosts: 'allreduce' is not an option; what is the collective's \
stands after --$help" hosts allreduce
    is_wrong 64 "hosts: 'barrier' is not a collective that moves data$help" \
        hosts -- barrier
    is_wrong 64 "hosts: --hosts needs a value$help" hosts --hosts
    is_wrong 64 "hosts: which program? It stands after --$help" hosts --run
    is_wrong 64 "hosts: --start: 'ssh' is neither mpi nor cluster$help" \
        hosts --start ssh
    is_wrong 64 "hosts: --start cluster is for --run$help" \
        hosts --start cluster -- allreduce
    is_wrong 64 "hosts: --turns: '0' is not a whole number from 1 to 99$help" \
        hosts --turns 0
    is_wrong 64 "hosts: which program? It is missing after --$help" \
        hosts --run --
}

@test "hosts is not started by mpirun" {
    run ranks 1 hosts
    [ "$status" -eq 1 ]
    [[ $output == *"without mpirun"* ]]
}

# --------------------------------------------------------------------- report

@test "the report is one page of what was measured" {
    command -v gnuplot >/dev/null || return 0
    local root=$BATS_TEST_DIRNAME/../..
    ranks 2 allreduce -b 64 -e 4K -f 8 -n 5 --format csv \
        >"$OUT/sweep-1-allreduce.csv"
    ranks 2 latency -e 4 -n 20 --format csv >"$OUT/latency.csv"
    ranks 2 gradients -m mnist --rounds 1 --format csv \
        >"$OUT/gradients-mnist.csv"
    ranks 2 overlap -b 64K -t 4 --rounds 1 --format csv >"$OUT/overlap.csv"
    for file in "$OUT"/*.csv; do
        echo "hvd-bench" >"${file%.csv}.command"
    done
    run "$root/bench/report/page" "$OUT"
    [ "$status" -eq 0 ]
    [ "$output" = "$OUT/report.html" ]
    [ "$(grep -o 'data:image/svg+xml' "$OUT/report.html" | wc -l)" -eq 3 ]
    [ "$(grep -Ec '(src|href)="?https?:' "$OUT/report.html")" -eq 0 ]
    grep -q 'Gradients of mnist: 6 tensors' "$OUT/report.html"
    mkdir "$OUT/empty"
    run "$root/bench/report/page" "$OUT/empty"
    [ "$status" -eq 1 ]
    [[ $output == *"nothing was measured"* ]]
}
