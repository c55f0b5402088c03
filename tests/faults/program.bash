# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Open MPI's shared memory for the tests of a file: it lies apart from that of
# other jobs of the machine, and a test that leaves something there has failed.

memory_open() { # name: for setup_file
    MEMORY=$(mktemp -d "/dev/shm/hvd-$1.XXXXXXXX")
    export MEMORY OMPI_MCA_btl_vader_backing_directory=$MEMORY
}

memory_check() { # for teardown
    local left
    left=$(ls -A "$MEMORY")
    [ -z "$left" ] || {
        echo "left in /dev/shm: $left"
        rm -rf "${MEMORY:?}"/*
        return 1
    }
}

memory_close() { # for teardown_file
    rm -rf "$MEMORY"
}
