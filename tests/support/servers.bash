# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # bats and models_setup set variables
#
# Servers (hvd-server) for tests of --remote: a bats file loads it after
# models.bash, and calls servers_stop in its teardown.

SERVERS=()

# servers N: starts servers of a cluster of N workers on this host. CLUSTER is
# its file; the process of server i is SERVERS[i], and it writes to
# $OUT/server.i.
servers() {
    local i list=""
    read -r -a PORTS < <("$BATS_TEST_DIRNAME/../tools/free-ports" "$1")
    for ((i = 0; i < $1; i++)); do
        list+="${list:+,}\"localhost:${PORTS[i]}\""
    done
    CLUSTER=$OUT/cluster.json
    echo "{\"cluster\":{\"worker\":[$list]}}" >"$CLUSTER"
    for ((i = 0; i < $1; i++)); do
        server "$i"
    done
}

# server I: starts one of them, and waits until it listens.
server() {
    local i=$1 tries
    # The words of a server that ran here before are not those of this one.
    rm -f "$OUT/server.$i"
    TMPDIR=$OUT "$(dirname "$PROGRAM")/hvd-server" --cluster "$CLUSTER" \
        --task "worker:$i" 2>"$OUT/server.$i" 3>&- &
    SERVERS[i]=$!
    for ((tries = 0; tries < 100; tries++)); do
        grep -qs "waits for clients" "$OUT/server.$i" && return 0
        sleep 0.1
    done
    cat "$OUT/server.$i"
    return 1
}

servers_stop() {
    local pid
    for pid in "${SERVERS[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${SERVERS[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    SERVERS=()
}

# server_says I WORDS [SECONDS]: it has written a line with these words, or does
# so within that time.
server_says() {
    local tries
    for ((tries = 0; tries < ${3:-10} * 10; tries++)); do
        grep -qF -- "$2" "$OUT/server.$1" && return 0
        sleep 0.1
    done
    cat "$OUT/server.$1"
    return 1
}

# workers_of I: prints the processes that a server has started.
workers_of() {
    pgrep -P "${SERVERS[$1]}"
}

# no_workers SECONDS: within that time no server has a worker, and no folder of
# a training is left.
no_workers() {
    local tries i busy
    for ((tries = 0; tries < $1 * 10; tries++)); do
        busy=
        for i in "${!SERVERS[@]}"; do
            workers_of "$i" >/dev/null && busy=y
        done
        compgen -G "$OUT/hvd-remote.*" >/dev/null && busy=y
        [ -n "$busy" ] || return 0
        sleep 0.1
    done
    ls "$OUT"
    return 1
}
