# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # bats and the tests share names
#
# Starts workers of an elastic cluster, which may come late and come back. The
# program is GROWER, and AGENT, with a worker's index, runs it where that worker is
# to be. tasks.bash is loaded before.

AGENT=()

# Describes the workers at these addresses, of which none runs.
workers_at() { # address...
    cluster="\"worker\":[$(printf '"%s",' "$@")"
    cluster=${cluster%,}]
    rm -f ./*.out ./*.err
}

workers() { # n: describes so many workers of this host
    read -r -a port < <("$ROOT/tests/tools/free-ports" "$1")
    workers_at "${port[@]/#/localhost:}"
}

# Starts a worker, whose files get the name of its start: 0, 1, ..., or what
# NAME says. Those of an earlier one of that name are gone before: until_line must
# not read what that has written.
grow() { # index argument...
    local index=$1 name=${NAME:-$1} agent=()
    shift
    rm -f "$name.out" "$name.err"
    [ "${#AGENT[@]}" -eq 0 ] || agent=("${AGENT[@]}" "$index")
    TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"worker\",\"index\":$index}}" \
        "${agent[@]}" "$GROWER" "$@" >"$name.out" 2>"$name.err" 3>&- &
    pid[$name]=$!
    started+=($!)
}
declare -gA pid

until_line() { # name pattern
    local i ended=
    for ((i = 0; i < 400; i++)); do
        grep -qs -- "$2" "$1.out" && return 0
        [ -z "$ended" ] || break
        sleep 0.1
        kill -0 "${pid[$1]}" 2>/dev/null || ended=1
    done
    tail -n 20 ./*.{out,err}
    return 1
}

until_stopped() { # name
    local i
    for ((i = 0; i < 400; i++)); do
        grep -q '^State:.*T' "/proc/${pid[$1]}/status" && return 0
        sleep 0.1
    done
    return 1
}

fails() { # name: it ends with an error
    ! wait "${pid[$1]}" || return 1
}

# Waits until all have ended. Fails, and says which, if one of them has failed.
wait_for_all() { # name...
    local name status=0
    for name in "$@"; do
        wait "${pid[$name]}" || {
            echo "$name: $?"
            status=1
        }
    done
    return $status
}

ends_well() { # name...: all of them, and no sum was wrong
    local name status=0
    wait_for_all "$@" || status=1
    tail -n 20 ./*.{out,err}
    for name in "$@"; do
        grep -q '^end: ' "$name.out" || status=1
    done
    ! grep wrong ./*.out || status=1
    return $status
}

until_event() { # n pattern: there are n such lines
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(cat events 2>/dev/null | grep -c -- "$2")" -lt "$1" ] || return 0
        sleep 0.05
    done
    cat events
    return 1
}

end_with_signal() { # name
    kill -KILL "${pid[$1]}"
    wait "${pid[$1]}" || true
}

# All have the same in the end, and the epochs have all samples but those that
# make no step.
end_alike() { # name...
    local status=0
    wait_for_all "$@" || status=1
    tail -n 5 ./*.{out,err}
    grep -v '"commit"' events
    ! grep wrong ./*.out || status=1
    [ "$(cat ./*.out | grep -c '^end ')" -eq $# ] || status=1
    [ "$(grep -h '^end ' ./*.out | sed 's/rank [0-9]* //' | sort -u | wc -l)" \
        -eq 1 ] || status=1
    python3 - "$#" <<'END' || status=1
import json, sys
events = [json.loads(line) for line in open("events")]
last = events[-1]
assert last["event"] == "end", last
assert len(last["ranks"]) == int(sys.argv[1]), last
assert 20 * (240 - 11) <= last["rows"] <= 20 * 240, last
END
    return $status
}
