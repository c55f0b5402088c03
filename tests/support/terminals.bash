# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # models.bash sets PROGRAM and OUT
#
# Terminals, in which a test types what a person would: a bats file loads it
# after models.bash, and calls terminals_setup after models_setup.

# The programs are in PATH, port has four ports that are free, and the test is in
# a folder of its own.
terminals_setup() {
    PATH=$(dirname "$PROGRAM"):$PATH
    read -r -a port < <("$BATS_TEST_DIRNAME/../tools/free-ports" 4)
    unset TF_CONFIG
    cd "$OUT" || return 1
}

# ports_in_a_row N: the first of N ports in a row that are free.
ports_in_a_row() {
    local row
    until read -r -a row < <("$BATS_TEST_DIRNAME/../tools/free-ports" "$1") &&
        ((row[-1] - row[0] == $1 - 1)); do
        continue
    done
    echo "${row[0]}"
}

started=()

# A shell has its background jobs ignore the interrupts of a terminal.
readonly FOREGROUND='
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("bash", ["bash", "-c", sys.argv[1]])'

# terminal NAME LINE: types a line in a terminal of its own. The ports of the
# documents are replaced by free ones. What the line writes goes to NAME.out and
# NAME.err.
terminal() {
    timeout 100 python3 -c "$FOREGROUND" "$(with_free_ports "$2")" \
        >"$1.out" 2>"$1.err" </dev/null 3>&- &
    started+=($!)
}

with_free_ports() {
    local line=$1 i
    # In two steps, for a port that is free may have 3738 in it.
    for i in 0 1 2 3; do
        line=${line//$((3737 + i))/@port$i@}
    done
    for i in 0 1 2 3; do
        line=${line//@port$i@/${port[i]}}
    done
    echo "$line"
}

# interrupt N: types ^C in the Nth terminal, from 0.
interrupt() {
    pkill -INT -P "${started[$1]}"
}

# expect STATUS...: waits for all terminals, in the order of their start.
expect() {
    local i status statuses=()
    for i in "${!started[@]}"; do
        status=0
        wait "${started[i]}" || status=$?
        statuses[i]=$status
    done
    started=()
    tail -n 20 ./*.{out,err} || true
    [ "${statuses[*]}" = "$*" ]
}

# Nobody stays behind.
teardown() {
    local pid
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
}

# within_60_s COMMAND...: runs it until it succeeds, for at most 60 s.
within_60_s() {
    local i
    for ((i = 0; i < 600; i++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    return 1
}
