# SPDX-License-Identifier: Apache-2.0
# The library works across several hosts, which tests/hosts/net makes, and ranks
# watch those of other hosts. Each rank writes to a file of its own: mpirun loses
# the output of a host that fails.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BUILD=${HVD_BUILD:-$ROOT/build}
    export NET=$BATS_FILE_TMPDIR/net
    local program source
    for source in hosts/where hosts/flood faults/victim faults/lingers; do
        program=$BATS_FILE_TMPDIR/${source##*/}
        gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$program" \
            "$ROOT/tests/$source.c" -L"$BUILD/lib" -lhvd \
            -Wl,-rpath,"$BUILD/lib"
    done
    cat >"$BATS_FILE_TMPDIR/rank" <<'RANK'
#!/bin/sh
"$@" >"$LOGS/$OMPI_COMM_WORLD_RANK" 2>&1
echo "status $?" >>"$LOGS/$OMPI_COMM_WORLD_RANK"
RANK
    chmod +x "$BATS_FILE_TMPDIR/rank"
    "$BATS_TEST_DIRNAME/net" up "$NET" 3
}

teardown_file() {
    "$BATS_TEST_DIRNAME/net" down "$NET"
}

setup() {
    export LOGS=$BATS_TEST_TMPDIR/logs
    export HVD_HEARTBEAT_TIME=3s HVD_EXIT_GRACE_TIME=2s
    export HVD_TRANSPORT=${TEST_TRANSPORT:-mpi}
}

teardown() {
    clear
}

net() { # verb argument...
    local verb=$1
    shift
    "$BATS_TEST_DIRNAME/net" "$verb" "$NET" "$@"
}

clear() {
    net clear
    wait
    net join 2
}

# Runs mpirun with so many slots on node1, node2, ...
on() { # "slots slots ..." argument...
    local slots=$1 name variables=(-x LOGS)
    shift
    for name in $(compgen -e HVD_); do
        variables+=(-x "$name")
    done
    # What Open MPI leaves behind when its hosts are cleared goes with them.
    timeout --kill-after=5 120 "$BATS_TEST_DIRNAME/net" mpirun "$NET" "$slots" \
        "${variables[@]}" "$@"
}

ended() { # how many ranks have
    ranks_with '^status '
}

# Starts a job of which a rank fails; finish waits for the others' reports and
# ends. mpirun, which lets the survivors run, may wait for ever for the failed
# rank: it is killed before the next job, and not at once, because it would wake
# stopped ranks.
begin() { # "slots..." what how victim
    clear
    rm -rf "$LOGS"
    mkdir "$LOGS"
    on "$1" --enable-recovery "$BATS_FILE_TMPDIR/rank" \
        "$BATS_FILE_TMPDIR/victim" "$2" "$3" "$4" >"$BATS_TEST_TMPDIR/mpirun" \
        2>&1 3>&- &
}

finish() { # number of ranks that end
    wait_for "$1" '^status '
    [ "$(ended)" -eq "$1" ]
}

# Prints how many ranks' files have a line like this.
ranks_with() { # extended regular expression
    grep -lE -- "$1" "$LOGS"/* 2>/dev/null | wc -l
}

wait_for() { # number of ranks, extended regular expression
    local tenths
    for ((tenths = 0; tenths < 400 && $(ranks_with "$2") < $1; tenths++)); do
        sleep 0.1
    done
    tail -n +1 "$LOGS"/* "$BATS_TEST_TMPDIR/mpirun"
}

# Expects that all ranks that report the age of the last operation say less than
# the heartbeat's time and a second, and two more, for other tests run beside this.
said_in_time() {
    grep -hoE '[0-9.]+ s ago' "$LOGS"/* |
        awk '$1 >= 6 { print "late: " $0; bad = 1 } END { exit bad }'
}

@test "collectives over two and three hosts" {
    local each
    for each in '1 2:operations' '2 1 1:operations' '1 2:join' \
        '2 2 1:allreduce' '2 2 1:broadcast' '2 2:compression' '2 2 1:compression' \
        '2 2 1:groups' '2 2 1:process_sets' '2 2 1:join' '2 2 2:allreduce'; do
        run on "${each%:*}" "$BUILD/bin/tests-mpi-${each#*:}"
        echo "$each: $output"
        [ "$status" -eq 0 ]
        [[ $output != *'hvd: '* ]]
    done
}

@test "UCX is taken between hosts if it is not slower, and MPI otherwise" {
    export HVD_TRANSPORT=auto HVD_LOG=info
    run on '1 1 1' "$BATS_FILE_TMPDIR/where"
    echo "$output"
    [ "$(grep -cE 'over (UCX 1|Open MPI)' <<<"$output")" -eq 3 ]
    [ "$(grep -oE ', over (UCX|Open MPI)' <<<"$output" | sort -u | wc -l)" -eq 1 ]
    # One rank has no UCX.
    run on '1 1 1' sh -c \
        '[ $OMPI_COMM_WORLD_RANK != 2 ] || export UCX_TLS=none; exec "$0"' \
        "$BATS_FILE_TMPDIR/where"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *'not over UCX: rank 2: UCX: ucp_init: '* ]]
    [ "$(grep -c 'over Open MPI' <<<"$output")" -eq 3 ]
}

@test "costs that are measured follow the link" {
    local name each kib within found fixed
    name=$(cat "$NET/name")
    for each in 1 2; do
        ip netns exec "$name-$each" tc qdisc add dev eth0 root tbf \
            rate 200mbit burst 64kb latency 50ms
    done
    run on '1 2' "$BUILD/bin/hvd-info" --topology --measure \
        --output "$BATS_TEST_TMPDIR/costs"
    found=$(on '1 2' "$BUILD/bin/hvd-info" --topology)
    fixed=$(HVD_DETERMINISTIC=1 on '1 2' "$BUILD/bin/hvd-info" --topology)
    for each in 1 2; do
        ip netns exec "$name-$each" tc qdisc delete dev eth0 root
    done
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"  ranks        3 on 2 hosts"*": rank 0, "*": ranks 1,2, "* ]]
    kib=$(sed -n 's/^between_kib_ns=//p' "$BATS_TEST_TMPDIR/costs")
    # 41 us a KiB; of some the rate is not limited, and a busy machine adds to it.
    [ "$kib" -gt 33000 ]
    [ "$kib" -lt 400000 ]
    # No link limits what stays on a host.
    within=$(sed -n 's/^within_kib_ns=//p' "$BATS_TEST_TMPDIR/costs")
    [ $((4 * within)) -lt "$kib" ]
    # Unasked, only one of two rates is taken, and none if bits must not differ.
    echo "$found $fixed"
    [[ $found == *"Costs, of 1 Gbit/s between hosts:"*" 8.600 us a KiB"* ]]
    [[ $fixed == *"Costs, default:"* ]]
    # All ranks choose by rank 0's.
    HVD_COSTS=$BATS_TEST_TMPDIR/costs run on '1 2' \
        "$BUILD/bin/tests-mpi-allreduce"
    [ "$status" -eq 0 ]
}

@test "collectives over UCX" {
    export HVD_TRANSPORT=ucx
    local each
    for each in '1 2:operations' '2 2 1:allreduce' '2 2 1:process_sets' \
        '1 1 1:soak' '2 2 1:join'; do
        run on "${each%:*}" "$BUILD/bin/tests-mpi-${each#*:}"
        echo "$each: $output"
        [ "$status" -eq 0 ]
        [[ $output != *UCX* ]]
    done
}

# hvd-bench compares every element. Blocks pass through other hosts, go straight
# to their receivers, or wait for a round, by their size.
@test "blocks of all sizes over hosts of one rank" {
    local kind each
    for kind in alltoall allgather reducescatter; do
        for each in 'mpi:1 1 1' 'ucx:1 1'; do
            HVD_TRANSPORT=${each%:*} run on "${each#*:}" \
                "$BUILD/bin/hvd-bench" "$kind" -b 1K -e 1M -f 2 -n 2 -w 1
            echo "$kind, $each: $output"
            [ "$status" -eq 0 ]
        done
    done
}

@test "networks of bridges within a host are not UCX's" {
    local name node
    name=$(cat "$NET/name")
    for node in 1 2; do
        ip -n "$name-$node" link add docker0 type bridge
        ip -n "$name-$node" address add 172.17.0.1/16 dev docker0
        ip -n "$name-$node" link add port0 type veth peer name inner0
        ip -n "$name-$node" link set port0 master docker0
        for each in docker0 port0 inner0; do
            ip -n "$name-$node" link set "$each" up
        done
    done
    HVD_TRANSPORT=ucx run on '1 1' "$BUILD/bin/tests-mpi-operations"
    for node in 1 2; do
        ip -n "$name-$node" link delete port0
        ip -n "$name-$node" link delete docker0
    done
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "over UCX, who is killed, stopped or cut off is named as over MPI" {
    export HVD_TRANSPORT=ucx
    local each what how victim
    for each in 'loop kill 0' 'wait kill 3' 'bye kill 2' 'idle kill 4' \
        'loop exit0 1'; do
        read -r what how victim <<<"$each"
        begin '2 2 1' "$what" "$how" "$victim"
        finish 5
        [ "$(ranks_with "rank $victim \(process [0-9]+ on node$((victim / 2 + 1))\) ")" -eq 4 ]
        [ "$(ranks_with 'UCX')" -eq 0 ]
        said_in_time
    done
    begin '2 2 1' loop stop 2
    finish 4
    [ "$(ranks_with "rank 2 \(process [0-9]+ on node2\) is stopped .*no heartbeat for 3\.")" -eq 4 ]
    begin '1 2' loop none 9
    wait_for 3 '^rank . runs$'
    net cut 2
    finish 3
    [ "$(ranks_with 'is silent, as is all of its host')" -eq 3 ]
    [ "$(ranks_with '^status (3|70)$')" -eq 3 ]
}

@test "a connection of UCX that breaks between ranks that live ends the world" {
    HVD_TRANSPORT=ucx begin '1 1' loop none 9
    wait_for 2 '^rank . runs$'
    ip netns exec "$(cat "$NET/name")-2" ss -K dst 10.77.0.1
    finish 2
    [ "$(ranks_with 'a rank is dead or frozen: .*the connection to rank [01] over UCX broke \(.*\), and the rank was not found dead')" -eq 2 ]
}

@test "a wait for another host in MPI_Finalize is reported" {
    HVD_STALL_CHECK_TIME=1s run on '2 1' "$BATS_FILE_TMPDIR/lingers" 3 before
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"rank 0: warning: MPI_Finalize, for which all processes of the job meet, has taken "*" s: nothing is known of 1 process on another host, or without hvd_init"* ]]
    [[ $output != *"rank "[12]": warning: MPI_Finalize"* ]]
}

@test "ranks know which of them share a host" {
    run on '2 2 1' "$BATS_FILE_TMPDIR/where"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep '^rank' <<<"$output" | sort)" = "rank 0 local 0/2 cross 0/3
rank 1 local 1/2 cross 0/2
rank 2 local 0/2 cross 1/3
rank 3 local 1/2 cross 1/2
rank 4 local 0/1 cross 2/3" ]
}

@test "who leaves in an orderly way is not missed" {
    for victim in 0 2; do
        begin '1 2' late none "$victim"
        finish 3
        [ "$(ranks_with '^status 0$')" -eq 3 ]
        [ "$(ranks_with 'hvd: ')" -eq 0 ]
    done
}

@test "a killed rank of another host is named: at work, waiting, leaving" {
    local each what victim
    # The first rank, one that speaks for its host, another there, and one alone.
    for each in 'loop 0' 'loop 2' 'loop 3' 'loop 4' 'wait 0' 'wait 2' 'bye 3' 'bye 4'; do
        read -r what victim <<<"$each"
        begin '2 2 1' "$what" kill "$victim"
        finish 5
        [ "$(ranks_with "error: a rank is dead or frozen: rank $victim \(process [0-9]+ on node.\) .*; its last operation: allreduce 'gradient'")" -eq 4 ]
        [ "$(ranks_with "node$((victim / 2 + 1))\) ")" -eq 4 ]
        [ "$(ranks_with '^status (3|70)$')" -eq 4 ]
        said_in_time
    done
}

@test "a killed rank of another host is named by a program that is idle" {
    local victim
    for victim in 0 2; do
        begin '1 2' idle kill "$victim"
        finish 3
        [ "$(ranks_with "rank $victim \(process .*; its last operation: allreduce 'gradient'")" -eq 2 ]
        [ "$(ranks_with 'ending this process with status 70')" -eq 2 ]
        said_in_time
    done
}

@test "so is one that crashes, or exits without a word" {
    local how
    for how in segv exit0; do
        begin '1 1 1' loop "$how" 1
        finish 3
        [ "$(ranks_with 'rank 1 \(process .* on node2\) (is gone|was killed|exited)')" -eq 2 ]
        said_in_time
    done
}

@test "a stopped rank is named on all hosts by those of its host" {
    local victim
    for victim in 2 3; do # the one that speaks for its host, and another
        begin '2 2 1' loop stop "$victim"
        finish 4
        [ "$(ranks_with "rank $victim \(process [0-9]+ on node2\) is stopped .*no heartbeat for 3\.")" -eq 4 ]
        [ "$(ranks_with '^status (3|70)$')" -eq 4 ]
    done
}

@test "a stopped rank that is alone on its host is missed by the others" {
    begin '1 2' idle stop 0
    finish 2
    [ "$(ranks_with 'rank 0 \(process [0-9]+ on node1\) is silent, as is all of its host \(rank 0\).*no heartbeat for 3\.')" -eq 2 ]
    [ "$(ranks_with '^status 70$')" -eq 2 ]
}

@test "a host without network is missed, and misses the others" {
    begin '1 2' loop none 9
    wait_for 3 '^rank . runs$'
    net cut 2
    finish 3
    [ "$(ranks_with 'rank 1 \(process [0-9]+ on node2\) is silent, as is all of its host \(ranks 1,2\)')" -eq 1 ]
    [ "$(ranks_with 'rank 0 \(process [0-9]+ on node1\) is silent, as is all of its host \(rank 0\)')" -eq 2 ]
    [ "$(ranks_with '^status (3|70)$')" -eq 3 ]
}

@test "a network that comes back in time is not missed" {
    HVD_HEARTBEAT_TIME=20s begin '1 2' late none 2
    wait_for 3 '^rank . runs$'
    net cut 2
    sleep 2
    net join 2
    finish 3
    [ "$(ranks_with '^status 0$')" -eq 3 ]
    [ "$(ranks_with 'hvd: ')" -eq 0 ]
}

@test "mpirun, left to itself, ends with a status, whatever has happened" {
    local how
    for how in kill stop; do
        run on '1 2' "$BATS_FILE_TMPDIR/victim" loop "$how" 2
        echo "$output"
        [ "$status" -ne 0 ]
        [ "$status" -ne 124 ]
        [[ $output == *'rank 2 (process '* ]]
    done
}

@test "a stall tells what ranks of other hosts are doing, once" {
    HVD_STALL_CHECK_TIME=1s HVD_STALL_SHUTDOWN_TIME=3s \
        begin '2 2 1' wait none 3
    finish 4
    [ "$(ranks_with "rank 0: warning: stalled: 'never' \(allreduce sum float32 \[10\]\) has waited 1 s for rank 3; rank 3 is alive, last operation: allreduce 'gradient', 1\.. s ago")" -eq 1 ]
    [ "$(ranks_with 'warning: stalled')" -eq 1 ]
    [ "$(ranks_with 'error: .*never.* has waited 3 s for rank 3')" -eq 5 ]
    [ "$(ranks_with '^status (3|70)$')" -eq 4 ]
}

@test "hosts that cannot hear each other say so, and the job runs" {
    local name node
    name=$(cat "$NET/name")
    for node in 1 2; do
        ip -n "$name-$node" rule add ipproto udp prohibit
    done
    begin '2 2' loop none 9
    wait_for 2 'warning: .* cannot be watched from here'
    for node in 1 2; do
        ip -n "$name-$node" rule delete ipproto udp prohibit
    done
    [ "$(ranks_with 'rank 0: warning: 1 of 1 other hosts \(node2\)')" -eq 1 ]
    [ "$(ranks_with 'rank 2: warning: 1 of 1 other hosts \(node1\)')" -eq 1 ]
    [ "$(ranks_with 'error')" -eq 0 ]
    [ "$(ended)" -eq 0 ]
}

# Prints the ports that the rank processes of a host listen on.
ports_of() { # node
    ip netns exec "$(cat "$NET/name")-$1" awk '
        NR > 1 { split($2, at, ":"); print at[2] }' /proc/net/udp |
        while read -r port; do echo $((16#$port)); done
}

@test "a flood of garbage does no harm" {
    local port floods=()
    HVD_HEARTBEAT_TIME=2s begin '1 2' late none 2
    while [ "$(ports_of 2 | wc -l)" -lt 2 ]; do
        sleep 0.1
    done
    for port in $(ports_of 2); do
        net run "$BATS_FILE_TMPDIR/flood" 10.77.0.2 "$port" 4 \
            >>"$BATS_TEST_TMPDIR/flood" 3>&- &
        floods+=($!)
    done
    wait "${floods[@]}"
    finish 3
    cat "$BATS_TEST_TMPDIR/flood"
    [ "$(ranks_with '^status 0$')" -eq 3 ]
    [ "$(ranks_with 'hvd: ')" -eq 0 ]
}

# Each process finds out under which address others reach it, and rank 0 makes a key.
@test "torch.distributed starts on two hosts without a launcher" {
    local node rank command pids=()
    mkdir "$LOGS"
    for rank in 2 1 0; do
        node=$((rank / 2 + 1))
        command="HVD_TRANSPORT=auto RANK=$rank WORLD_SIZE=3 MASTER_ADDR=10.77.0.1 MASTER_PORT=29400"
        "$NET/agent" "10.77.0.$node" "$command exec timeout 60 /usr/bin/python3 -B \
            $ROOT/tests/bindings/every_meeting.py $BUILD/lib/python" >"$LOGS/$rank" 2>&1 3>&- &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || true
    done
    tail -v "$LOGS"/*
    [ "$(cat "$LOGS"/* | grep -c 'every meeting')" -eq 3 ]
}
