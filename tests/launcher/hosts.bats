# SPDX-License-Identifier: Apache-2.0
# mpi-launch.sh --elastic on several hosts, which tests/hosts/net makes: ranks
# report from there, and a host that is gone keeps nobody.

setup_file() {
    # Not the name by which launch.bats, beside this, looks for its launcher.
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export ROOT
    export NET=$BATS_FILE_TMPDIR/net
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$BATS_FILE_TMPDIR/goes_on" \
        "$ROOT/tests/faults/goes_on.c" -L"$lib" -lhvd -Wl,-rpath,"$lib"
    "$ROOT/tests/hosts/net" up "$NET" 3
    # The hosts share this machine's boot id, by which a rank sees that the
    # launcher is on its host. Each gets one of its own.
    cat >"$NET/agent.boot" <<END
#!/bin/sh
exec unshare --mount sh -c '
    echo "boot \$1" >"$NET/boot.\$1"
    mount --bind "$NET/boot.\$1" /proc/sys/kernel/random/boot_id
    exec "$NET/agent" "\$@"' agent "\$@"
END
    chmod +x "$NET/agent.boot"
}

teardown_file() {
    "$ROOT/tests/hosts/net" down "$NET"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    local node
    for node in 1 2 3; do
        "$ROOT/tests/hosts/net" join "$NET" "$node"
    done
    sleep 2 # until the switch forwards to them again
}

# Starts two ranks on each of three hosts.
launch() {
    run timeout --kill-after=5 150 "$ROOT/tests/hosts/net" run "$NET" \
        "$ROOT/mpi-launch.sh" --elastic -np 6 \
        -H 10.77.0.1:2,10.77.0.2:2,10.77.0.3:2 \
        --mpi-arg --mca --mpi-arg plm_rsh_agent --mpi-arg "$NET/agent.boot" \
        --mpi-arg --mca --mpi-arg oob_tcp_if_include --mpi-arg 10.77.0.0/24 \
        --mpi-arg --mca --mpi-arg orte_tmpdir_base --mpi-arg "$NET" "$@"
    echo "$output"
}

@test "ranks of other hosts report, and what they write is theirs" {
    launch sh -c '[ "$OMPI_COMM_WORLD_RANK" != 3 ] || { touch gone3; kill -KILL $$; }
        [ "$OMPI_COMM_WORLD_RANK" != 4 ] || { touch gone4; printf "no end" >&2; exit 5; }
        until [ -e gone3 -a -e gone4 ]; do sleep 0.1; done
        sleep 2; echo "on $(hostname)" >&2'
    [ "$status" -eq 0 ]
    [[ $output == *"survived: 4 of 6 ranks ended well without rank 3 on node2 (which was ended by signal 9 (SIGKILL)), rank 4 on node3 (which exited with status 5)"* ]]
    [[ $output == *"no end"* ]]
    [ "$(grep -c '^on node[123]$' <<<"$output")" -eq 4 ]
    [[ $output != *boot* ]]
    launch sh -c '[ "$OMPI_COMM_WORLD_RANK" != 0 ] || { touch first; exit 4; }
        until [ -e first ]; do sleep 0.1; done
        sleep 3; exit 4'
    [ "$status" -eq 4 ]
    [[ $output == *"rank 0 on node1 failed first: it exited with status 4"* ]]
}

@test "a host that is cut off for ever keeps nobody" {
    launch sh -c 'touch "$PWD/ready$OMPI_COMM_WORLD_RANK"
        if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
            until [ "$(ls ready* | wc -l)" = 6 ]; do sleep 0.1; done
            '"'$ROOT/tests/hosts/net' cut '$NET' 3"'
        fi
        sleep 3; echo "end $OMPI_COMM_WORLD_RANK"'
    [ "$status" -eq 0 ]
    [ "$(grep -c '^end [0-3]$' <<<"$output")" -eq 4 ]
    [[ $output == *"nothing is heard of rank 4 on node3, rank 5 on node3, and the other ranks have ended: mpirun is ended by force"* ]]
    [[ $output == *"survived: 4 of 6 ranks ended well without rank 4 on node3 (which went without a report), rank 5 on node3"* ]]
}

@test "a training goes on without a host that is cut off" {
    cat >rank <<END
[ "\$OMPI_COMM_WORLD_RANK" != 0 ] || (sleep 6; "$ROOT/tests/hosts/net" cut "$NET" 2) &
exec "$BATS_FILE_TMPDIR/goes_on" 35
END
    HVD_HEARTBEAT_TIME=8s HVD_START_TIME=60s launch \
        --mpi-arg --mca --mpi-arg btl_tcp_if_include --mpi-arg 10.77.0.0/24 \
        --mpi-arg --mca --mpi-arg btl --mpi-arg tcp,self,vader \
        --mpi-arg --mca --mpi-arg pml --mpi-arg ob1 sh "$PWD/rank"
    [ "$status" -eq 0 ]
    [[ $output == *"ended with 4 ranks"* ]]
    [[ $output == *"ended well without rank 2 on node2 (which went without a report), rank 3 on node2"* ]]
}
