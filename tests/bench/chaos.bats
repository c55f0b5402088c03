# SPDX-License-Identifier: Apache-2.0
# hvd-chaos hurts the ranks of any command, takes it back, and says what was
# survived and what is left.

bats_require_minimum_version 1.5.0

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    export GOES_ON=$BATS_FILE_TMPDIR/goes_on
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$GOES_ON" \
        "$ROOT/tests/faults/goes_on.c" -L"$lib" -lhvd -Wl,-rpath,"$lib"
}

setup() {
    PATH=${HVD_BUILD:-$ROOT/build}/bin:$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    unset TF_CONFIG
    # ranks N WORD...: starts N ranks without a launcher, and waits for them.
    cat >ranks <<'END'
#!/bin/bash
n=$1
shift
for ((i = 0; i < n; i++)); do
    OMPI_COMM_WORLD_RANK=$i "$@" &
done
wait
exit 0
END
    chmod +x ranks
}

chaos() {
    run timeout 120 hvd-chaos "$@"
    echo "$output"
}

refused() { # text argument...
    local text=$1
    shift
    chaos "$@"
    [ "$status" -eq 64 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"$text"* ]]
}

# faults FILE: prints the kind and the rank of each.
faults() {
    python3 -c '
import json, sys
for f in json.load(open(sys.argv[1]))["faults"]:
    print(f["kind"], f["rank"], f["done"])' "$1"
}

@test "wrong command lines are one line and status 64" {
    refused "which command?"
    refused "which command?" --kill
    refused "--every: '0' is not above 0" --every 0 true
    refused "--every: 'x' is not a number" --every x true
    refused "--slow: '100' is not a whole number from 1 to 99" --slow 100 true
    refused "--seed: '-1'" --seed -1 true
    refused "--stop: '-1' is not a number of 0 or more" --stop -1 true
    refused "--together: '0'" --together 0 true
    refused "--bogus" --bogus true
    refused "--json" --json
    chaos --help
    [ "$status" -eq 0 ]
    [[ $output == *"hvd-chaos --seed 7 --every 2"* ]]
    chaos --version
    [ "$status" -eq 0 ]
}

@test "a report that cannot be written is refused before the command runs" {
    chaos --json /nowhere/report -- touch ran
    [ "$status" -eq 1 ]
    [ "$output" = "hvd-chaos: /nowhere/report: No such file or directory" ]
    [ ! -e ran ]
}

@test "what hurts nobody says why, and has status 69 or the command's" {
    chaos -- sleep 0.2
    [ "$status" -eq 69 ]
    [[ $output == *"nothing to survive: no process of the command is a rank"* ]]
    chaos --min-left 2 --every 0.2 -- ./ranks 2 sleep 3
    [ "$status" -eq 69 ]
    [[ $output == *"no rank could be hurt (--min-left"* ]]
    chaos --ranks 3 -- ./ranks 2 sleep 2
    [ "$status" -eq 69 ]
    [[ $output == *"ended before all its ranks were there"* ]]
    chaos --every 60 -- ./ranks 2 sleep 3
    [ "$status" -eq 69 ]
    [[ $output == *"before the first fault was due"* ]]
    chaos --cut 1 --every 0.2 --min-left 0 -- ./ranks 1 sleep 3
    [ "$status" -eq 69 ]
    [[ $output == *"not done: it is in this host's own network namespace"* ]]
    # A rank of hvd-chaos itself is everybody's.
    OMPI_COMM_WORLD_RANK=0 chaos -- sleep 0.2
    [ "$status" -eq 69 ]
    run -127 timeout 60 hvd-chaos -- ./missing
    [[ $output == *"hvd-chaos: ./missing: No such file"* ]]
    chaos -- sh -c 'exit 5'
    [ "$status" -eq 5 ]
}

@test "a seed gives the same faults again" {
    local i
    for i in 1 2; do
        chaos --seed 11 --every 0.3 --min-left 2 --ranks 6 --json $i.json -- \
            ./ranks 6 sleep 4
        [ "$status" -eq 0 ]
        [[ $output == *"seed 11: 6 ranks at most; killed 4"* ]]
        [[ $output == *"ended by itself with status 0"* ]]
        [[ $output == *"nothing is left"* ]]
        faults $i.json >$i
    done
    cat 1
    [ "$(wc -l <1)" -eq 4 ]
    [ "$(sort -u 1 | wc -l)" -eq 4 ]
    cmp 1 2
    chaos --seed 12 --every 0.3 --min-left 2 --ranks 6 --json 3.json -- \
        ./ranks 6 sleep 4
    faults 3.json >3
    ! cmp 1 3
}

@test "the number of deaths and rank 0 are what was asked for" {
    chaos --every 0.1 --max-dead 2 --spare-rank0 --ranks 4 --json json -- \
        ./ranks 4 sleep 3
    [ "$status" -eq 0 ]
    [ "$(faults json | grep -c '^kill [123] True')" -eq 2 ]
    [ "$(faults json | wc -l)" -eq 2 ]
    chaos --every 0.5 --together 3 --max-dead 3 --ranks 5 --json json -- \
        ./ranks 5 sleep 3
    [ "$(faults json | sort -u | wc -l)" -eq 3 ]
    python3 -c '
import json
at = [f["seconds"] for f in json.load(open("json"))["faults"]]
assert max(at) - min(at) < 0.4, at'
    # No fault after the duration.
    chaos --every 0.2 --duration 1 --ranks 9 --json json -- ./ranks 9 sleep 4
    python3 -c '
import json
j = json.load(open("json"))
assert j["faults"][-1]["seconds"] < j["ranks_there_seconds"] + 1.2, j
assert j["seconds"] > j["ranks_there_seconds"] + 2, j'
}

# Writes the longest pause that a rank has noticed, in ms, if it is above 50.
readonly NOTICES='
import time
end, last, longest, n = time.time() + 6, time.time(), 0, 0
while time.time() < end:
    now = time.time()
    longest, n = max(longest, now - last), n + (now - last > 0.05)
    last = now
    time.sleep(0.005)
print("paused", n, int(longest * 1000), flush=True)'

@test "stopped ranks go on after their time, slow ones run now and then" {
    chaos --seed 1 --stop 1 --every 0.5 --duration 0.8 --min-left 0 -- \
        ./ranks 1 python3 -c "$NOTICES"
    [ "$status" -eq 0 ]
    [[ $output == *"stopped 1 for 1 s each"* ]]
    [[ $output =~ paused\ [0-9]+\ ([0-9]+) ]]
    [ "${BASH_REMATCH[1]}" -ge 950 ]
    chaos --seed 1 --slow 30 --slow-time 2 --every 0.5 --duration 0.8 \
        --min-left 0 -- ./ranks 1 python3 -c "$NOTICES"
    [ "$status" -eq 0 ]
    [[ $output == *"slowed 1 for 2 s each"* ]]
    [[ $output =~ paused\ ([0-9]+)\ ([0-9]+) ]]
    [ "${BASH_REMATCH[1]}" -ge 8 ]
}

@test "ranks that are stopped for ever are continued at the end, and a hang ends" {
    local began=$SECONDS
    chaos --stop 0 --every 0.3 --min-left 0 --ranks 2 --limit 4 -- \
        ./ranks 2 sleep 60
    [ "$status" -eq 124 ]
    [[ $output == *"had not ended after 4 s"*"was ended"* ]]
    [ $((SECONDS - began)) -lt 60 ]
    ! pgrep -f "^sleep 60"
    # The command ends, and has left ranks that are stopped.
    chaos --stop 0 --every 0.3 --min-left 0 --ranks 2 -- \
        sh -c './ranks 2 sleep 61 & sleep 3'
    [ "$status" -eq 1 ]
    [[ $output == *"left behind, and removed: process "*" (sleep)"* ]]
    ! pgrep -f "^sleep 61"
}

@test "what is left behind is named and removed" {
    local memory=/dev/shm/chaos-test-$$
    cat >leaves <<'END'
import mmap, os, subprocess, sys, time
with open(sys.argv[1], "wb+") as file:
    file.truncate(4096)
    kept = mmap.mmap(file.fileno(), 4096)
os.makedirs(os.environ["TMPDIR"] + "/a/b")
open(os.environ["TMPDIR"] + "/a/b/rest", "w").close()
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    subprocess.Popen(["setsid", "sleep", "62"], stdout=subprocess.DEVNULL)
time.sleep(60)
END
    # By the time of the kill, Python has long started and left all of it.
    chaos --every 4 --max-dead 1 --ranks 1 --min-left 0 -- \
        ./ranks 1 python3 leaves "$memory"
    [ "$status" -eq 1 ]
    [[ $output == *"left behind, and removed: $memory"* ]]
    [[ $output == *"left behind, and removed: /"*"/a/b/rest"* ]]
    [[ $output == *"left behind, and removed: process "*" (sleep)"* ]]
    [ ! -e "$memory" ]
    ! pgrep -f "^sleep 62"
    # Other tests run hvd-chaos at the same time, with folders of their own.
    local folder
    folder=$(sed -n 's|.* removed: \(/.*\)/a/b/rest$|\1|p' <<<"$output")
    [ -n "$folder" ]
    [ ! -e "$folder" ]
}

@test "a signal ends the command, and is passed on once" {
    hvd-chaos --every 60 -- bash -c \
        'trap "echo got; exit 9" TERM; touch ready; while :; do sleep 0.1; done' \
        >out 2>err &
    local launcher=$! code=0
    for _ in {1..100}; do
        [ ! -e ready ] || break
        sleep 0.1
    done
    kill -TERM $launcher
    wait $launcher || code=$?
    [ "$code" -eq 9 ]
    [ "$(cat out)" = got ]
}

@test "links of a network namespace are cut, and come back" {
    unshare -n true || skip "no network namespace can be made here"
    cat >linked <<'END'
ip link add name veth1 type veth peer name veth2
ip link set veth1 up
ip link set veth2 up
for i in $(seq 40); do
    ip -o link show veth1 | grep -o 'state [A-Z]*'
    sleep 0.1
done | uniq
END
    chaos --cut 1 --every 0.5 --duration 0.8 --ranks 1 --min-left 0 -- \
        ./ranks 1 unshare -n bash linked
    [ "$status" -eq 0 ]
    [[ $output == *"cut off 1 for 1 s each"* ]]
    [ "$(grep '^state' <<<"$output" | tr '\n' ' ')" = 'state UP state DOWN state UP ' ]
}

@test "kills are survived by an elastic program, under any launcher" {
    chaos --seed 5 --every 1 --max-dead 3 --ranks 4 --limit 100 -- \
        "$ROOT/mpi-launch.sh" --elastic -np 4 "$GOES_ON" 8
    [ "$status" -eq 0 ]
    [[ $output == *"ended with 1 ranks"* ]]
    [[ $output == *"survived: 1 of 4 ranks ended well without rank"* ]]
    [[ $output == *"hvd-chaos: survived"* ]]
    [ "$(grep -c ': kill rank [0-3] (process [0-9]*, goes_on)' <<<"$output")" -eq 3 ]
}

@test "a death that is not survived is not, and has the job's status" {
    HVD_ELASTIC=0 chaos --every 0.5 --max-dead 1 --ranks 2 -- \
        "$ROOT/mpi-launch.sh" -np 2 "$GOES_ON" 20
    [ "$status" -eq 137 ]
    [[ $output == *"after the last fault (kill rank"* ]]
    [[ $output == *"hvd-chaos: not survived"* ]]
}

# A rank that was killed before hvd_init would end the others.
@test "faults wait for hvd_init, also of programs that are linked with libhvd.a" {
    local build=${HVD_BUILD:-$ROOT/build}
    # shellcheck disable=SC2046 # several words
    gcc -I"$ROOT/libhvd/include" -o static "$ROOT/tests/faults/goes_on.c" \
        "$build/lib/libhvd.a" \
        $(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --libs ompi-c nettle jansson) \
        -lm -pthread
    chaos --seed 5 --every 0.2 --max-dead 2 --ranks 3 --limit 60 -- \
        "$ROOT/mpi-launch.sh" --elastic -np 3 ./static 3 3
    [ "$status" -eq 0 ]
    [[ $output == *"hvd-chaos: survived"* ]]
    [ "$(grep -c ': kill rank [0-2] (process [0-9]*, static)' <<<"$output")" -eq 2 ]
}

# Both ranks of the first run are killed. Those of the second do something else for
# two seconds before hvd_init, and a second passes before they begin; then one is
# killed. The third run is left alone.
@test "ranks of a job that is started again are hurt from their hvd_init on" {
    export OMPI_MCA_rmaps_base_oversubscribe=1
    chaos --seed 5 --every 0.4 --max-dead 3 --min-left 0 --ranks 2 --limit 60 \
        --json json -- "$ROOT/mpi-launch.sh" --elastic --min-np 2 --restarts 3 \
        -np 2 "$GOES_ON" 3 2
    [ "$status" -eq 0 ]
    [[ $output == *"restart 2 of 3"* ]]
    [[ $output != *"restart 3 of 3"* ]]
    python3 -c '
import json
at = [f["seconds"] for f in json.load(open("json"))["faults"]]
assert len(at) == 3 and at[2] - at[1] > 3, at'
}
