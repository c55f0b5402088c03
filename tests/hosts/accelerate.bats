# SPDX-License-Identifier: Apache-2.0
# Programs of MPI give the same results with libhvd-mpi.so on several hosts, which
# tests/hosts/net makes.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export NET=$BATS_FILE_TMPDIR/net
    local p
    for p in collectives requests away dying; do
        mpicc -O1 -pthread -o "$BATS_FILE_TMPDIR/$p" \
            "$ROOT/tests/accelerate/$p.c"
    done
    export OMPI_MCA_op=^avx # as in tests/accelerate
    export EVERY=${HVD_TEST_FULL:+1}
    export EVERY=${EVERY:-3} # of the cases of collectives
    "$BATS_TEST_DIRNAME/net" up "$NET" 2
}

teardown_file() {
    "$BATS_TEST_DIRNAME/net" down "$NET"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export HVD_MPI=1 HVD_MPI_SUMMARY=1 HVD_TRANSPORT=mpi
}

on_hosts() { # "slots-of-node1 slots-of-node2" program...
    local slots=$1
    shift
    run timeout --kill-after=5 240 "$BATS_TEST_DIRNAME/net" mpirun "$NET" \
        "$slots" -x LD_PRELOAD="$LIB/libhvd-mpi.so" -x HVD_MPI \
        -x HVD_MPI_SUMMARY -x HVD_TRANSPORT "$@"
    echo "$output"
}

accelerated() { # "slots-of-node1 slots-of-node2" program...
    on_hosts "$@"
    [ "$status" -eq 0 ]
    [[ $output == *"0 wrong"* ]]
}

# calls_of COLLECTIVE: how many of them libhvd has done, in the mean of all ranks.
calls_of() {
    awk -v name="$1" '$1 == name { print $2 }' <<<"$output"
}

@test "over MPI communicators of one host are libhvd's, those of several MPI's" {
    accelerated '2 2' ./collectives # 20 calls of a communicator come first
    [ "$(calls_of Allreduce)" -gt 0 ]
    accelerated '1 1' ./collectives 0 "$EVERY"
    [ "$(calls_of all)" -eq 0 ]
}

@test "over UCX communicators of several hosts are libhvd's, too" {
    export HVD_TRANSPORT=ucx
    accelerated '1 1' ./collectives 0 "$EVERY"
    [ "$(calls_of Allreduce)" -gt 0 ]
    accelerated '2 1' ./collectives 0 "$EVERY"
    [ "$(calls_of Allreduce)" -gt 0 ]
}

@test "all collectives give what MPI gives if libhvd does all that it can" {
    export HVD_MPI=all
    local name
    for HVD_TRANSPORT in mpi ucx; do
        accelerated '2 1' ./collectives 0 "$EVERY"
        for name in Allreduce Reduce Bcast Allgather Allgatherv \
            Reduce_scatter Reduce_scatter_block Alltoall Alltoallv Barrier; do
            [ "$(calls_of $name)" -gt 0 ]
        done
    done
}

@test "requests, progress, communicators and errors are as MPI says" {
    for HVD_TRANSPORT in mpi ucx; do
        HVD_MPI=1 accelerated '2 2' ./requests
        HVD_MPI=all accelerated '2 2' ./requests
        HVD_MPI=all accelerated '2 2' ./requests 3
    done
}

@test "over UCX a rank that left a collective and computes owes nothing" {
    export HVD_TRANSPORT=ucx HVD_MPI=all
    accelerated '1 1' ./away
    accelerated '2 2' ./away
}

@test "over UCX MPI_Abort and a rank that dies end the job as without libhvd" {
    export HVD_TRANSPORT=ucx
    on_hosts '1 1' ./dying abort
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] # which is timeout's
    [[ $output == *"MPI_ABORT was invoked on rank 1"* ]]
    on_hosts '1 1' ./dying kill
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
    [[ $output == *"rank 1"*"Killed"* ]]
}
