# SPDX-License-Identifier: Apache-2.0
# Programs of MPI give the same results with libhvd-mpi.so on several hosts, which
# tests/hosts/net makes.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export NET=$BATS_FILE_TMPDIR/net
    local p
    for p in collectives requests; do
        mpicc -O1 -pthread -o "$BATS_FILE_TMPDIR/$p" \
            "$ROOT/tests/accelerate/$p.c"
    done
    export OMPI_MCA_op=^avx # as in tests/accelerate
    "$BATS_TEST_DIRNAME/net" up "$NET" 2
}

teardown_file() {
    "$BATS_TEST_DIRNAME/net" down "$NET"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export HVD_MPI=1 HVD_MPI_SUMMARY=1
}

accelerated() { # slots-of-node1 slots-of-node2 program...
    local a=$1 b=$2
    shift 2
    run timeout --kill-after=5 120 "$BATS_TEST_DIRNAME/net" run "$NET" \
        mpirun --mca plm_rsh_agent "$NET/agent" \
        --mca orte_tmpdir_base "$NET" --mca btl_vader_backing_directory "$NET" \
        --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca pml ob1 \
        --mca btl tcp,self,vader --bind-to none \
        -x LD_PRELOAD="$LIB/libhvd-mpi.so" -x HVD_MPI -x HVD_MPI_SUMMARY \
        -np $((a + b)) -H "10.77.0.1:$a,10.77.0.2:$b" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"0 wrong"* ]]
}

# calls_of COLLECTIVE: how many of them libhvd has done, in the mean of all ranks.
calls_of() {
    awk -v name="$1" '$1 == name { print $2 }' <<<"$output"
}

@test "communicators of one host are libhvd's, those of several are MPI's" {
    accelerated 2 2 ./collectives
    [ "$(calls_of Allreduce)" -gt 0 ]
    accelerated 1 1 ./collectives
    [ "$(calls_of all)" -eq 0 ]
}

@test "all collectives give what MPI gives if libhvd does all that it can" {
    export HVD_MPI=all
    local name
    accelerated 2 1 ./collectives
    for name in Allreduce Reduce Bcast Allgather Allgatherv Reduce_scatter \
        Reduce_scatter_block Alltoall Alltoallv Barrier; do
        [ "$(calls_of $name)" -gt 0 ]
    done
}

@test "requests, progress, communicators and errors are as MPI says" {
    accelerated 2 2 ./requests
    export HVD_MPI=all
    accelerated 2 2 ./requests 3
}
