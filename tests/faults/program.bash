# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The program of a bats file, and Open MPI's shared memory for its jobs: that
# lies apart from other jobs' of the machine, and a test that leaves something
# there, or a process of the program, has failed.

# Compiles NAME.c of this folder.
program_open() { # name [gcc's options]: for setup_file
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export PROGRAM=$BATS_FILE_TMPDIR/$1
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" "${@:2}" -o "$PROGRAM" \
        "$BATS_TEST_DIRNAME/$1.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    memory_open "$1"
}

# Does so for a program of libhvd-train.
program_open_estimator() { # name
    local root=$BATS_TEST_DIRNAME/../..
    program_open "$1" -I"$root/models/include" -I"$root/device/include" \
        -L"${HVD_BUILD:-$root/build}/lib" -Wl,--no-as-needed -lhvd-train -lipu -lm
}

teardown() {
    memory_check || return 1
    ! pgrep -f "$PROGRAM"
}

teardown_file() {
    memory_close
}

lines_with() { # text: how many lines of the output have it
    grep -c -- "$1" <<<"$output" || true
}

memory_open() { # name
    MEMORY=$(mktemp -d "/dev/shm/hvd-$1.XXXXXXXX")
    export MEMORY OMPI_MCA_btl_vader_backing_directory=$MEMORY
}

memory_check() {
    local left
    left=$(ls -A "$MEMORY")
    [ -z "$left" ] || {
        echo "left in /dev/shm: $left"
        rm -rf "${MEMORY:?}"/*
        return 1
    }
}

memory_close() {
    rm -rf "$MEMORY"
}
