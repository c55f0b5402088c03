# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # bats and the tests share names
#
# Starts the tasks of a cluster by hand, as in several terminals. ROOT is the
# tree.

setup() {
    cd "$BATS_TEST_TMPDIR"
    read -r -a port < <("$ROOT/tests/tools/free-ports" 3)
    two="\"worker\":[\"localhost:${port[0]}\",\"localhost:${port[1]}\"]"
    unset TF_CONFIG
}

teardown() {
    # Nobody stays behind.
    local pid
    for pid in "${started[@]}"; do
        # It passes the signal on.
        kill "$pid" 2>/dev/null || true
    done
}

started=()

# Starts a task in the background; what it writes goes to files of its name.
task() { # cluster type index command...
    local cluster=$1 type=$2 index=$3
    shift 3
    TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"$type\",\"index\":$index}}" \
        timeout 60 "$@" >"$type$index.out" 2>"$type$index.err" 3>&- &
    started+=($!)
}

# Waits for the tasks, in the order of their start, and expects these statuses.
expect() { # status...
    local i status statuses=()
    for i in "${!started[@]}"; do
        status=0
        wait "${started[i]}" || status=$?
        echo "task $i: $status"
        statuses[i]=$status
    done
    tail -n 20 ./*.{out,err} || true
    [ "${statuses[*]}" = "$*" ]
}

ends_within() { # seconds pid
    local i
    for ((i = 0; i < $1 * 10; i++)); do
        kill -0 "$2" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

until_listening() { # port: a process listens on it
    local i
    for ((i = 0; i < 200; i++)); do
        [ -z "$(ss -Hltn "sport = :$1")" ] || return 0
        sleep 0.1
    done
    return 1
}
