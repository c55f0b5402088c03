# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # bats and the tests share names
#
# Starts workers of an elastic cluster, which may come late and come back. The
# program is GROWER. tasks.bash is loaded before.

workers() { # n: describes so many workers
    local i list=
    read -r -a port < <("$ROOT/tests/tools/free-ports" "$1")
    for ((i = 0; i < $1; i++)); do
        list+="${list:+,}\"localhost:${port[i]}\""
    done
    cluster="\"worker\":[$list]"
}

# Starts a worker, whose files get the name of its start: 0, 1, ..., or what
# NAME says.
grow() { # index argument...
    local index=$1 name=${NAME:-$1}
    shift
    TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"worker\",\"index\":$index}}" \
        "$GROWER" "$@" >"$name.out" 2>"$name.err" 3>&- &
    pid[$name]=$!
    started+=($!)
}
declare -gA pid

until_line() { # name pattern
    local i ended=
    for ((i = 0; i < 400; i++)); do
        grep -q -- "$2" "$1.out" && return 0
        [ -z "$ended" ] || break
        sleep 0.1
        kill -0 "${pid[$1]}" 2>/dev/null || ended=1
    done
    tail -n 20 ./*.{out,err}
    return 1
}

fails() { # name: it ends with an error
    ! wait "${pid[$1]}" || return 1
}
