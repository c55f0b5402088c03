# SPDX-License-Identifier: Apache-2.0
# Timelines and metrics are files that other programs can read.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export TRACED=$BATS_FILE_TMPDIR/traced
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$TRACED" \
        "$BATS_TEST_DIRNAME/traced.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
}

setup() {
    file=$BATS_TEST_TMPDIR/trace.json
}

traced() { # n argument...
    local n=$1
    shift
    run timeout 30 mpirun -np "$n" "$TRACED" "$@"
    echo "$output" | head -20
}

@test "all ranks are in one file, with every phase" {
    export HVD_TIMELINE=$file
    traced 3
    [ "$status" -eq 0 ]
    python3 - "$file" <<'END'
import json, sys
trace = json.load(open(sys.argv[1], encoding="utf-8"))
events = trace["traceEvents"]
assert trace["otherData"]["ranks"] == 3
assert {e["pid"] for e in events if e["ph"] == "X"} == {0, 1, 2}
for rank in range(3):
    rows = {e["args"]["name"] for e in events
            if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == rank}
    assert {"first/plain", 'first/q"uote', "first/back\\slash",
            "first/\ufffd broken", "first/umlaut \u00e4"} <= rows, rows
    mine = [e for e in events if e["ph"] == "X" and e["pid"] == rank]
    names = [e["name"] for e in mine]
    for phase in ("ALLREDUCE", "NEGOTIATE_ALLREDUCE", "SHM_ALLREDUCE", "BARRIER"):
        assert phase in names, (phase, names)
    whole = {e["tid"]: e for e in mine if e["name"] == "ALLREDUCE"}
    for e in mine:  # phases lie within their operation
        o = whole.get(e["tid"])
        if o and "ALLREDUCE" in e["name"] or "FUSION" in e["name"]:
            assert e["ts"] >= o["ts"] - 0.001
            assert e["ts"] + e["dur"] <= o["ts"] + o["dur"] + 0.001
# There is one clock: an operation of all ranks overlaps in time.
starts = [[e for e in events if e["ph"] == "X" and e["pid"] == r
           and e["name"] == "SHM_ALLREDUCE"][0] for r in range(3)]
first = max(e["ts"] for e in starts)
last = min(e["ts"] + e["dur"] for e in starts)
assert first - last < 1e6
END
}

@test "each rank marks where it begins a batch, if that is wanted" {
    local variable marks
    for variable in HVD_TIMELINE_MARK_CYCLES=0 HVD_TIMELINE_MARK_CYCLES=1 \
        HOROVOD_TIMELINE_MARK_CYCLES=1; do
        export HVD_TIMELINE=$file "${variable?}"
        traced 2
        unset "${variable%=*}"
        [ "$status" -eq 0 ]
        marks=$(python3 - "$file" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
marks = [e for e in events if e["name"] == "CYCLE_START"]
for rank in {e["pid"] for e in marks}:
    times = [e["ts"] for e in marks if e["pid"] == rank]
    begun = {e["ts"] for e in events if e["pid"] == rank and e["ph"] == "X"}
    assert len(set(times)) == len(times) and set(times) <= begun, (times, begun)
print(len({e["pid"] for e in marks}))
END
)
        [ "$marks" -eq $((${variable#*=} * 2)) ]
    done
}

@test "what goes over MPI is called so" {
    HVD_TIMELINE=$file HVD_SHM_SIZE=0 traced 2
    [ "$status" -eq 0 ]
    grep -q '"MPI_ALLREDUCE"' "$file"
    run grep '"SHM_ALLREDUCE"' "$file"
    [ "$status" -eq 1 ]
}

@test "it starts and stops at run time" {
    traced 2 start "$file"
    [ "$status" -eq 0 ]
    python3 - "$file" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
rows = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert "second/plain" in rows, rows
assert not any(r.startswith(("first/", "third/")) for r in rows), rows
END
}

# A time namespace gives a process a clock of its own, here 5,000 s ahead; a
# name of its own makes it another host.
@test "clocks of different hosts are aligned" {
    local userns=()
    [ "$(id -u)" -eq 0 ] || userns=(--map-root-user)
    ahead="hostname other && exec \"\$0\" \"\$@\""
    for how in "" "start $file"; do
        [ -n "$how" ] || export HVD_TIMELINE=$file
        [ -z "$how" ] || unset HVD_TIMELINE
        # shellcheck disable=SC2086 # words are wanted
        run timeout 60 mpirun -np 1 "$TRACED" $how : -np 1 unshare "${userns[@]}" --fork \
            --time --monotonic 5000 --boottime 5000 --uts \
            sh -c "$ahead" "$TRACED" $how
        echo "$output" | grep -v '^hvd_' | head -20
        [ "$status" -eq 0 ]
        python3 - "$file" <<'END'
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
# All have been in the same barrier.
ends = {}
for e in events:
    if e["name"] == "BARRIER":
        ends.setdefault(e["pid"], []).append(e["ts"] + e["dur"])
assert set(ends) == {0, 1}, ends
assert abs(ends[0][0] - ends[1][0]) < 100000, ends  # of 5,000,000,000
END
    done
}

@test "an abort leaves valid JSON with what had happened" {
    export HVD_TIMELINE=$file
    traced 2 die
    [ "$status" -ne 0 ]
    python3 - "$file" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
assert sum(e["name"] == "SHM_ALLREDUCE" for e in events) >= 10
END
}

@test "DYNAMIC is no file, but a timeline that the program starts" {
    cd "$BATS_TEST_TMPDIR"
    HOROVOD_TIMELINE=DYNAMIC traced 2
    [ "$status" -eq 0 ]
    [ -z "$(ls)" ]
    HOROVOD_TIMELINE=DYNAMIC traced 2 start "$PWD/later.json"
    [ "$status" -eq 0 ]
    [ "$(ls)" = later.json ]
}

@test "a file that cannot be written is an error of all ranks" {
    HVD_TIMELINE=/nonexistent/trace.json traced 2
    [ "$status" -eq 9 ]
    [[ $output == *"cannot write the timeline '/nonexistent/trace.json': No such file"* ]]
    traced 2 start "$BATS_TEST_TMPDIR"
    [ "$status" -eq 8 ]
    [[ $output == *"Is a directory"* ]]
}

# Prints the names in the folder, as ls -F shows them.
things() {
    (cd "$BATS_TEST_TMPDIR" && ls -F | tr '\n' ' ')
}

@test "nothing but a file is replaced, and nothing makes a run wait" {
    cd "$BATS_TEST_TMPDIR"
    mkfifo fifo
    ln -s nothing dangling
    echo old >kept
    ln -s kept link
    before=$(things)
    for what in fifo dangling /dev/null /dev/full; do
        HVD_TIMELINE=$what traced 2
        [ "$status" -eq 9 ]
        [[ $output == *"cannot write the timeline '$what': it is "* ]]
        traced 2 start "$what"
        [ "$status" -eq 8 ]
        [[ $output == *"cannot write the timeline '$what': it is "* ]]
    done
    for what in fifo dangling /dev/full; do
        HVD_METRICS=$what traced 2
        [ "$status" -eq 0 ]
        [[ $output == *"cannot write metrics to '$what': "*"; no more of them"* ]]
    done
    HVD_METRICS=/dev/stderr traced 1
    [[ $output == *"# HELP hvd_submitted_total"* ]]
    # Where older versions wrote first, to the target of a link that is there.
    ln -s kept planted.$$.tmp
    HVD_METRICS=link HVD_TIMELINE=link traced 2
    [ "$status" -eq 0 ]
    rm planted.$$.tmp
    grep -q '^hvd_completed_total' kept
    [ "$(things)" = "$before" ]
    [ -c /dev/full ] && [ -c /dev/null ]
}

# The file behind standard output is not replaced: its text stays.
@test "metrics to standard output, which goes to a file" {
    cd "$BATS_TEST_TMPDIR"
    HVD_METRICS=/dev/stdout timeout 30 "$TRACED" >log
    [ "$(grep -c '^# HELP hvd_submitted_total' log)" -ge 2 ]
    [ "$(things)" = "log " ]
}

@test "a full disk ends the timeline, and the run is told once" {
    cd "$BATS_TEST_TMPDIR"
    mkdir disk
    # shellcheck disable=SC2016 # for the inner shell
    run timeout 60 unshare --mount --map-root-user sh -c '
        mount -t tmpfs -o size=16k hvd disk &&
        HVD_TIMELINE=disk/t.json mpirun -np 3 "$0" many &&
        python3 -m json.tool disk/t.json >whole && ls disk' "$TRACED"
    echo "$output" | tail -20
    [ "$status" -eq 0 ]
    [ "$(grep -c 'it ends here, for all ranks' <<<"$output")" -eq 1 ]
    [[ $output == *"No space left on device"* ]]
    [ "${lines[-1]}" = t.json ]
    grep -q 'rank 2' whole
}

@test "metrics are text that Prometheus reads" {
    traced 2
    [ "$status" -eq 0 ]
    python3 - <<END
import re
text = """$output"""
samples, types = {}, {}
for line in text.splitlines():
    if line.startswith("# TYPE"):
        types[line.split()[2]] = line.split()[3]
    elif line and not line.startswith("#"):
        m = re.fullmatch(r'(\w+)\{([^}]*)\} ([0-9.e+-]+)', line)
        assert m, line
        samples[m[1] + "{" + m[2] + "}"] = float(m[3])
assert types["hvd_latency_seconds"] == "histogram"
assert samples['hvd_completed_total{rank="0",op="allreduce"}'] == 5
assert samples['hvd_completed_total{rank="0",op="barrier"}'] == 1
assert samples['hvd_refused_total{rank="0"}'] == 1
assert samples['hvd_latency_seconds_count{rank="0",op="allreduce"}'] == 5
assert samples['hvd_latency_seconds_bucket{rank="0",op="allreduce",le="+Inf"}'] == 5
assert samples['hvd_bytes_total{rank="0",op="allreduce"}'] == 4 * (5 * 1000 - 70)
END
}

@test "metrics go to a file a rank, whole at any time" {
    HVD_METRICS="$BATS_TEST_TMPDIR/m.%r.prom" HVD_METRICS_INTERVAL=100ms traced 2
    [ "$status" -eq 0 ]
    grep -q '^hvd_completed_total{rank="1",op="allreduce"} 5$' \
        "$BATS_TEST_TMPDIR/m.1.prom"
    [ "$(ls "$BATS_TEST_TMPDIR")" = "m.0.prom
m.1.prom" ]
    HVD_METRICS=$BATS_TEST_TMPDIR/one.prom traced 2
    grep -q 'rank="0"' "$BATS_TEST_TMPDIR/one.prom"
    HVD_METRICS=/nonexistent/m.prom traced 1
    [ "$status" -eq 0 ]
    [[ $output == *"cannot write metrics to '/nonexistent/m.prom'"* ]]
}
