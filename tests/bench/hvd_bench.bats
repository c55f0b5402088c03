#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hvd-bench on the command line: its tables have the right columns, results are
# right for every type and operation, wrong ones are found, the file is written,
# and every mistake gives one line.

setup() {
    BENCH="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/hvd-bench"
    OUT="$(mktemp -d "$BATS_TEST_TMPDIR/bench.XXXXXX")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
}

# ranks N ARGS...: runs the program on N ranks; one needs no mpirun.
ranks() {
    local n=$1
    shift
    if [ "$n" -eq 1 ]; then
        "$BENCH" "$@" </dev/null
        return
    fi
    mpirun --oversubscribe --bind-to none -np "$n" "$BENCH" "$@" </dev/null
}

# each_rank N ARGS...: does the same, and every rank writes its exit status to
# status.RANK. mpirun itself sees success, so it ends no rank that has yet to
# write.
each_rank() {
    local n=$1
    shift
    rm -f "$OUT"/status.*
    mpirun --oversubscribe --bind-to none -np "$n" sh -c '
        program=$1 out=$2; shift 2
        "$program" "$@" </dev/null
        echo $? >"$out/status.$OMPI_COMM_WORLD_RANK"' \
        rank "$BENCH" "$OUT" "$@"
}

# fails_everywhere N STATUS WORD ARGS...: expects one line with the word, and
# this status on every rank.
fails_everywhere() {
    local n=$1 status_wanted=$2 word=$3 rank
    shift 3
    run each_rank "$n" "$@"
    echo "$* -> $output"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "hvd-bench: "*"$word"* ]]
    for ((rank = 0; rank < n; rank++)); do
        [ "$(cat "$OUT/status.$rank")" = "$status_wanted" ]
    done
}

# first_table: prints its rows, which tools find so: the lines between these two
# that are no comments.
first_table() {
    sed -n '/out-of-place/,/Out of bounds values/{/^#/d;p}' <<<"$output"
}

second_table() {
    sed -n '/# MPI \/ hvd/q;/out of place/,${/^#/d;p}' <<<"$output"
}

# all_right ROWS: expects so many rows, with 13 columns and none wrong.
all_right() {
    first_table | awk -v rows="$1" '
        NF != 13 || $9 != "0" || $13 != "0" { print; bad = 1 }
        END { if (NR != rows) print NR " rows, not " rows
              exit bad || NR != rows }'
}

# Makes a library that is loaded before libhvd.so and spoils its results.
spoiler() { # FUNCTION PARAMETERS STATEMENT
    cat >"$OUT/spoiler.c" <<END
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>
int hvd_rank(void);
int $1($2);
int $1($2)
{
    $3
}
END
    cc -shared -fPIC -o "$OUT/spoiler.so" "$OUT/spoiler.c" -ldl
}

ALLREDUCE='const void *in, void *out, int64_t n, int32_t type, int32_t op'
CALL_ALLREDUCE='int (*next)(const void *, void *, int64_t, int32_t, int32_t) =
    (int (*)(const void *, void *, int64_t, int32_t, int32_t))
        dlsym(RTLD_NEXT, "hvd_allreduce");
    int status = next(in, out, n, type, op);'

# ------------------------------------------------------------------- tables

@test "allreduce prints the table of nccl-tests" {
    run ranks 2 allreduce -b 4 -e 64K -f 4 -n 20
    [ "$status" -eq 0 ]
    all_right 8
    first_table | awk '
        { size = 4 ^ NR }
        $1 != size || $2 != size / 4 || $3 != "float" || $4 != "sum" ||
        $5 != -1 || $6 <= 0 || $10 <= 0 || $7 != $8 || $11 != $12 {
            print; bad = 1 }
        END { exit bad }'
    grep -qx '# Out of bounds values : 0 OK' <<<"$output"
    grep -Eqx '# Avg bus bandwidth    : [0-9.e+-]+ ' <<<"$output"
    grep -qx '# Collective test concluded: allreduce' <<<"$output"
    [ "$(grep -c '^#  Rank' <<<"$output")" -eq 2 ]
}

@test "busbw is 2 (n - 1) / n of algbw for allreduce, all of it for broadcast" {
    local n kind
    for n in 1 2 3; do
        for kind in allreduce broadcast; do
            run ranks $n $kind -b 64K -e 256K -n 4 --no-compare
            [ "$status" -eq 0 ]
            all_right 3
            first_table | awk -v n=$n -v kind=$kind '
                { want = kind == "allreduce" ? 2 * (n - 1) / n : 1 }
                ($8 - want * $7) ^ 2 > .02 ^ 2 ||
                ($12 - want * $11) ^ 2 > .02 ^ 2 { print; bad = 1 }
                END { exit bad }'
        done
    done
}

@test "broadcast names its root, and all roots can be measured" {
    run ranks 3 broadcast -b 1000 -e 1000 -n 2 -r 1
    [ "$status" -eq 0 ]
    all_right 1
    [ "$(first_table | awk '{ print $1, $2, $4, $5 }')" = "1000 250 none 1" ]
    run ranks 3 broadcast -b 1000 -e 1000 -n 2 -r all
    all_right 3
    [ "$(first_table | awk '{ printf "%s ", $5 }')" = "0 1 2 " ]
}

@test "the second table has raw MPI beside each row, unless told not to" {
    run ranks 2 allreduce -b 256 -e 4K -n 20
    [ "$status" -eq 0 ]
    second_table | awk '
        NF != 12 || $1 != 256 * 2 ^ (NR - 1) { print; bad = 1 }
        $5 <= 0 || $6 <= 0 || $8 <= 0 || $9 <= 0 || $11 <= 0 { print; bad = 1 }
        # Times have two decimals, of which ratios know more.
        ($7 - $6 / $5) ^ 2 > (.02 + .04 * $7) ^ 2 { print; bad = 1 }
        END { exit bad || NR != 5 }'
    [[ $output == *"# MPI / hvd "*" out of place, "*" in place"* ]]
    run ranks 2 allreduce -b 256 -e 4K -n 20 --no-compare
    [ "$status" -eq 0 ]
    [[ $output != *MPI* ]]
    all_right 5
}

@test "without mpirun it is one rank" {
    run "$BENCH" allreduce -b 8 -e 32 -n 3
    [ "$status" -eq 0 ]
    all_right 3
    [[ $output == *"One rank"* ]]
}

# ------------------------------------------------------------------ results

@test "every type and operation is right on two ranks" {
    run ranks 2 allreduce -d all -o all -b 8 -e 4K -f 8 -n 1 -w 1 --no-compare
    [ "$status" -eq 0 ]
    all_right $((4 * (11 * 5 - 1)))
}

@test "every type and operation is right on three ranks, at odd sizes" {
    run ranks 3 allreduce -d all -o all -b 9 -e 1001 -i 331 -n 1 -w 1
    [ "$status" -eq 0 ]
    all_right $((3 * (11 * 5 - 1)))
}

@test "every type is broadcast from every root, at odd sizes" {
    run ranks 3 broadcast -d all -r all -b 13 -e 5000 -i 1247 -n 1 -w 0
    [ "$status" -eq 0 ]
    all_right $((4 * 11 * 3))
}

@test "large and odd sizes are right on five ranks" {
    run ranks 5 allreduce -b 1000003 -e 3000009 -f 3 -n 1 -w 0 --no-compare
    [ "$status" -eq 0 ]
    all_right 2
    [ "$(first_table | awk '{ printf "%s ", $1 }')" = "1000000 3000008 " ]
}

@test "ordinary memory is as right as hvd_malloc's" {
    run ranks 2 allreduce --memory malloc -b 4 -e 1M -f 16 -n 2
    [ "$status" -eq 0 ]
    all_right 5
}

@test "a wrong element on one rank is found, and fails" {
    spoiler hvd_allreduce "$ALLREDUCE" "$CALL_ALLREDUCE
        if (type == 7) ((float *)out)[n - 1] += hvd_rank() == 1;
        return status;"
    run mpirun --oversubscribe --bind-to none -np 3 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 4K -e 4K -n 1
    [ "$status" -eq 7 ]
    [ "$(first_table | awk '{ print $9, $13 }')" = "1 1" ]
    [[ $output == *"# Out of bounds values : 2 FAILED"* ]]
}

@test "a result that was never written is found" {
    spoiler hvd_allreduce "$ALLREDUCE" 'return 0;'
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 400 -e 400 -n 1
    [ "$status" -eq 7 ]
    [ "$(first_table | awk '{ print $9 }')" = 200 ]
}

@test "an input that is not left alone is found" {
    spoiler hvd_allreduce "$ALLREDUCE" "$CALL_ALLREDUCE
        if (type == 7 && in != out) ((float *)(uintptr_t)in)[0] += 1;
        return status;"
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 400 -e 400 -n 1
    [ "$status" -eq 7 ]
    [ "$(first_table | awk '{ print $9, $13 }')" = "2 0" ]
}

@test "without a check nothing is claimed" {
    spoiler hvd_allreduce "$ALLREDUCE" 'return 0;'
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 400 -e 400 -n 1 -c 0
    [ "$status" -eq 0 ]
    [ "$(first_table | awk '{ print $9, $13 }')" = "N/A N/A" ]
}

@test "a collective that fails ends all ranks with its reason" {
    spoiler hvd_allreduce "$ALLREDUCE" \
        'static int calls; if (hvd_rank() == 1 && calls++ == 20) n = -1;
        '"$CALL_ALLREDUCE"' return status;'
    run timeout 60 mpirun --oversubscribe --bind-to none -np 3 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 400 -e 400 -w 50
    [ "$status" -eq 1 ]
    [ "$(grep -c '^hvd-bench: ' <<<"$output")" -eq 1 ]
    [[ $output == *"hvd-bench: "*"rank 1"* ]]
}

@test "-a chooses between rank 0, mean, least and most" {
    local a
    spoiler hvd_allreduce "$ALLREDUCE" '
        if (hvd_rank() == 1) usleep(300000);
        return 0;'
    for a in 0 1 2 3; do
        run mpirun --oversubscribe --bind-to none -np 2 -x \
            LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 8 -e 8 -n 1 \
            -w 0 -c 0 -a $a --no-compare
        [ "$status" -eq 0 ]
        first_table | awk -v a=$a '
            { least = a == 3 ? 3e5 : a == 1 ? 1.5e5 : 0 }
            $6 < least || (a != 3 && $6 >= least + 1.5e5) { print; exit 1 }'
    done
}

@test "every collective is right, at 1, 2 and 3 ranks, hot and cold" {
    local kind n
    for kind in allreduce allgather reducescatter broadcast alltoall reduce \
        gather; do
        for n in 1 3; do
            run ranks $n $kind -b 96 -e 9600 -f 10 -n 3 -w 1
            [ "$status" -eq 0 ]
            all_right 3
        done
        run ranks 2 $kind -b 96 -e 96 -n 3 -w 1 -d all
        [ "$status" -eq 0 ]
        all_right 11
        # Each operation is swept for with twice the cache of the machine.
        run ranks 2 $kind -b 96 -e 96 -n 1 -w 0 --cold
        [ "$status" -eq 0 ]
        all_right 1
    done
    run ranks 3 barrier -n 3
    [ "$status" -eq 0 ]
    [ "$(first_table | awk '{ print $1, $3, $5 }')" = "0 none -1" ]
}

@test "reductions to one rank and in parts are right for every operation" {
    local kind
    for kind in reduce reducescatter; do
        run ranks 3 $kind -d all -o all -b 99 -e 1001 -i 902 -n 1 -w 0
        [ "$status" -eq 0 ]
        all_right $((2 * (11 * 5 - 1)))
    done
    run ranks 3 reduce -b 96 -e 96 -n 1 -r all --no-compare
    all_right 3
    [ "$(first_table | awk '{ printf "%s ", $5 }')" = "0 1 2 " ]
}

@test "a part that goes to the wrong rank is found" {
    spoiler hvd_alltoall 'const void *in, void *out, int64_t n, int32_t type' '
        int (*next)(const void *, void *, int64_t, int32_t) =
            (int (*)(const void *, void *, int64_t, int32_t))
                dlsym(RTLD_NEXT, "hvd_alltoall");
        int status = next(in, out, n, type);
        for (int64_t i = 0; type == 7 && i < n / 2; i++) {
            float first = ((float *)out)[i];
            ((float *)out)[i] = ((float *)out)[i + n / 2];
            ((float *)out)[i + n / 2] = first;
        }
        return status;'
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" alltoall -b 4K -e 4K -n 1
    [ "$status" -eq 7 ]
}

# ------------------------------------------------------------------ formats

@test "csv has a line for each size, placement and implementation" {
    run ranks 2 allgather -b 1K -e 4K -f 4 -n 20 --format csv
    [ "$status" -eq 0 ]
    /usr/bin/python3 - <(echo "$output") <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 2 * 2 * 3, len(rows)
for row in rows:
    assert None not in row and None not in row.values(), row
    assert row["collective"] == "allgather" and row["ranks"] == "2"
    assert row["memory"] == "hvd" and row["cache"] == "hot"
    low, middle, high = (float(row[k]) for k in ("min_us", "median_us", "max_us"))
    assert 0 < low <= middle <= high
    assert row["p50_us"] == ""
    assert (row["implementation"] == "hvd") == (row["wrong"] == "0")
hvd, mpi, copy = rows[:3]
assert [r["implementation"] for r in rows[:3]] == ["hvd", "mpi", "copy"]
ratio = float(mpi["median_us"]) / float(hvd["median_us"])
assert abs(float(hvd["mpi_over_hvd"]) / ratio - 1) < 1e-6
assert abs(float(hvd["busbw_gbs"]) / float(hvd["algbw_gbs"]) - .5) < 1e-6
END
}

@test "json on standard output is the document of the file, and nothing else" {
    run ranks 2 reduce -b 1K -e 4K -f 4 -n 3 -I --cold --apart --memory malloc \
        --format json --json "$OUT/run.json"
    [ "$status" -eq 0 ]
    /usr/bin/python3 - <(echo "$output") "$OUT/run.json" <<'END'
import json, sys
shown, written = (json.load(open(path)) for path in sys.argv[1:3])
shown["end_time"] = written["end_time"]
assert shown == written
assert [r["size"] for r in shown["results"]] == [1024, 4096]
assert shown["config"]["cold"] is True
assert shown["config"]["apart"] is True
assert shown["config"]["memory"] == "malloc"
each = shown["results"][0]["in_place"]["per_iter"]
assert each["min_us"] <= each["p50_us"] <= each["p95_us"] <= each["p99_us"]
assert each["p99_us"] <= each["max_us"]
END
}

@test "osu has the columns of osu" {
    run ranks 2 allreduce -b 4 -e 1K -f 16 -n 10 --format osu
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "# Size         Avg Latency(us)     Min Latency(us)\
     Max Latency(us)  Iterations          Validation" ]
    awk '/^#/ || !NF { next }
        NF != 6 || $1 != 4 * 16 ^ n++ || $3 > $2 || $2 > $4 || $5 != 10 ||
        $6 != "Pass" { print; bad = 1 }
        END { exit bad || n != 3 }' <<<"$output"
    run ranks 2 allreduce -b 4 -e 4 -n 10 --format osu -I -c 0 --in-place
    awk '/^#/ || !NF { next } NF != 8 || $6 > $7 || $7 > $8 { exit 1 }' \
        <<<"$output"
    [[ $output == *"in place"* ]]
}

@test "percentiles are a table of their own" {
    run ranks 2 allreduce -b 4 -e 64 -f 16 -n 50 -I
    [ "$status" -eq 0 ]
    all_right 2
    awk '/Single operations/ { on = 1 } !on || /^#/ { next }
        NF != 16 || $6 > $7 || $7 > $8 || $8 > $9 || $9 > $10 ||
        $12 > $13 || $13 > $14 || $14 > $15 || $15 > $16 { print; bad = 1 }
        { n++ } END { exit bad || n != 4 }' <<<"$output"
}

@test "--min-bw decides the status, and wrong results come first" {
    run ranks 2 allreduce -b 4K -e 4K -n 5 --min-bw 0.000001
    [ "$status" -eq 0 ]
    grep -Eq '^# Avg bus bandwidth    : [0-9.e+-]+ OK' <<<"$output"
    run each_rank 2 allreduce -b 4K -e 4K -n 5 --min-bw 1e6
    [ "$(cat "$OUT"/status.*)" = "8
8" ]
    grep -Eq '^# Avg bus bandwidth    : [0-9.e+-]+ FAILED' <<<"$output"
    run "$BENCH" allreduce -b 4K -e 4K -n 5 --min-bw 1e6 --format csv
    [ "$status" -eq 8 ]
    spoiler hvd_allreduce "$ALLREDUCE" 'return 0;'
    run mpirun --oversubscribe --bind-to none -np 2 -x \
        LD_PRELOAD="$OUT/spoiler.so" "$BENCH" allreduce -b 4K -e 4K -n 1 \
        --min-bw 1e6
    [ "$status" -eq 7 ]
}

# --------------------------------------------------------------------- file

@test "the file has every row, and nothing else is left" {
    run ranks 2 allreduce -b 4 -e 1K -f 4 -n 10 --json "$OUT/run.json"
    [ "$status" -eq 0 ]
    [ "$(ls "$OUT")" = run.json ]
    [ "$(grep -c '"size":' "$OUT/run.json")" -eq 5 ]
    grep -q '"ranks": 2,' "$OUT/run.json"
    grep -q '"okay": true' "$OUT/run.json"
    [ "$(tail -c 2 "$OUT/run.json")" = "}" ]
}

@test "a file that cannot be written is said before anything is measured" {
    fails_everywhere 2 1 /nonexistent/run.json \
        allreduce --json /nonexistent/run.json
    fails_everywhere 2 1 "Is a directory" allreduce --json "$OUT"
}

@test "a full disk is an error" {
    run "$BENCH" allreduce -b 8 -e 8 -n 1 --json /dev/full
    [ "$status" -eq 1 ]
    [[ $output == *"hvd-bench: --json /dev/full: cannot be written: No space"* ]]
    run sh -c '"$1" allreduce -b 8 -e 8 -n 1 >/dev/full' sh "$BENCH"
    [ "$status" -eq 1 ]
    [ "$output" = "hvd-bench: standard output cannot be written" ]
}

# ----------------------------------------------------------------- mistakes

@test "help and version are printed once, and succeed" {
    run each_rank 2 --help
    [ "$(cat "$OUT/status.0" "$OUT/status.1")" = "0
0" ]
    [ "$(grep -c -- --minbytes <<<"$output")" -eq 1 ]
    run each_rank 2 --version
    [[ $output =~ ^hvd-bench\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ "$(cat "$OUT/status.0" "$OUT/status.1")" = "0
0" ]
}

@test "a wrong command line is one line and status 64 on every rank" {
    fails_everywhere 2 64 "which collective"
    fails_everywhere 2 64 "'frob'" frob
    fails_everywhere 2 64 "'banana'" allreduce -b banana
    fails_everywhere 2 64 "'-1'" allreduce -n -1
    fails_everywhere 2 64 "'--frob'" allreduce --frob
    fails_everywhere 2 64 "'xml'" allreduce --format xml
    fails_everywhere 2 64 "'fast'" allreduce --min-bw fast
    fails_everywhere 2 64 "above the largest" allreduce -b 1M -e 1K
}

@test "a root that does not exist is one line and status 1" {
    fails_everywhere 2 1 "no rank 2, only 0 to 1" broadcast -r 2
}

@test "sizes without an element of each rank are refused" {
    fails_everywhere 3 1 "element of each rank" allgather -b 4 -e 8
}

@test "a size that does not fit is refused" {
    fails_everywhere 2 1 "do not fit" allreduce -e 100000G
}

@test "an unusable environment is one line on every number of ranks" {
    export HVD_FUSION_THRESHOLD=banana
    fails_everywhere 2 1 HVD_FUSION_THRESHOLD allreduce -e 8
    fails_everywhere 1 1 HVD_FUSION_THRESHOLD allreduce -e 8
}

@test "ranks with different arguments are told, and do not wait" {
    run timeout 60 mpirun --oversubscribe --bind-to none \
        -np 1 "$BENCH" allreduce -e 8 : -np 1 "$BENCH" allreduce -e 16
    [ "$status" -eq 1 ]
    [[ $output == *"different arguments"* ]]
}
