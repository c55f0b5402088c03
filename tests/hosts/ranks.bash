# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tests share whose ranks are lost on the hosts of tests/hosts/net. They set
# ROOT; each rank writes to a file of its own in OUT, for mpirun loses what the
# dead have written.

# Builds a program of tests/faults, and makes hosts. Sets PROGRAM and NET.
make_hosts() { # program hosts
    local libraries=${HVD_BUILD:-$ROOT/build}/lib
    export NET=$BATS_FILE_TMPDIR/net PROGRAM=$BATS_FILE_TMPDIR/$1
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$PROGRAM" \
        "$ROOT/tests/faults/$1.c" -L"$libraries" -lhvd -Wl,-rpath,"$libraries"
    cat >"$BATS_FILE_TMPDIR/rank" <<'RANK'
#!/bin/sh
exec "$@" >"$OUT/$OMPI_COMM_WORLD_RANK.out" 2>&1
RANK
    chmod +x "$BATS_FILE_TMPDIR/rank"
    "$ROOT/tests/hosts/net" up "$NET" "$2"
}

remove_hosts() {
    "$ROOT/tests/hosts/net" down "$NET"
}

# Ends what a test has left, and plugs all hosts in again.
clear_hosts() { # so many
    local i
    "$ROOT/tests/hosts/net" clear "$NET"
    wait
    for ((i = 1; i <= $1; i++)); do
        "$ROOT/tests/hosts/net" join "$NET" "$i"
    done
}

cut_host() { # host
    "$ROOT/tests/hosts/net" cut "$NET" "$1"
}

# Starts PROGRAM by mpirun with so many slots on node1, node2, ..., without
# waiting for it.
start_ranks() { # seconds "slots slots ..." argument...
    local seconds=$1 slots=$2 name variables=(-x OUT)
    shift 2
    for name in $(compgen -e | grep -E '^(HVD|SPARE)_'); do
        variables+=(-x "$name")
    done
    rm -f "$OUT"/*.out
    timeout --kill-after=5 "$seconds" "$ROOT/tests/hosts/net" mpirun "$NET" \
        "$slots" --enable-recovery "${variables[@]}" "$BATS_FILE_TMPDIR/rank" \
        "$PROGRAM" "$@" >"$OUT/mpirun" 2>&1 3>&- &
}

lines_with() { # extended regular expression
    cat "$OUT"/*.out 2>/dev/null | grep -cE -- "$1" || true
}

# Waits until so many lines are like that, and no longer than 60 s.
wait_for_lines() { # extended regular expression, so many
    local tenths
    for ((tenths = 0; tenths < 600 && $(lines_with "$1") < $2; tenths++)); do
        sleep 0.1
    done
}
