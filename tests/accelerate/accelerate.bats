# SPDX-License-Identifier: Apache-2.0
# Programs of MPI give the same results under mpi-launch.sh --accelerate.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    local p
    for p in collectives requests dying; do
        mpicc -O1 -Wall -Wextra -Werror -pthread -o "$BATS_FILE_TMPDIR/$p" \
            "$BATS_TEST_DIRNAME/$p.c"
    done
    # -rdynamic: its functions stand before those of Open MPI.
    mpicc -O1 -Wall -Wextra -Werror -rdynamic -o "$BATS_FILE_TMPDIR/progress" \
        "$BATS_TEST_DIRNAME/progress.c"
    mpifort -O1 -Wall -Wno-unused-variable -o "$BATS_FILE_TMPDIR/fortran" \
        "$BATS_TEST_DIRNAME/fortran.f90"
    # Open MPI's sums of unsigned short by vector instructions stop at 65535
    # instead of going round, as its plain ones and libhvd's do.
    export OMPI_MCA_op=^avx
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    unset HVD_MPI HVD_MPI_SUMMARY
}

accelerated() { # n program...
    local n=$1
    shift
    run timeout 120 "$ROOT/mpi-launch.sh" -np "$n" --accelerate "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"0 wrong"* ]]
}

# calls_of COLLECTIVE: how many of them libhvd has done.
calls_of() {
    awk -v name="$1" '$1 == name { print $2 }' <<<"$output"
}

@test "all collectives give what MPI gives, by the rules of speed" {
    local n
    for n in 2 3 5; do
        accelerated "$n" ./collectives
    done
}

@test "all collectives give what MPI gives if libhvd does all that it can" {
    export HVD_MPI=all HVD_MPI_SUMMARY=1
    local n name
    for n in 2 3 4 5 8; do
        accelerated "$n" ./collectives
        for name in Allreduce Reduce Bcast Allgather Allgatherv Reduce_scatter \
            Reduce_scatter_block Alltoall Alltoallv Barrier; do
            [ "$(calls_of $name)" -gt 0 ]
        done
    done
    accelerated 1 ./collectives
    [ "$(calls_of all)" -eq 0 ]
}

@test "requests, progress, communicators and errors are as MPI says" {
    export HVD_MPI=all HVD_MPI_SUMMARY=1
    local n
    for n in 1 2 3 5; do
        accelerated "$n" ./requests
        # Two ranks of three make 600 on communicators that they free again.
        [ "$n" -ne 3 ] || [ "$(calls_of Allreduce)" -gt 500 ]
    done
    unset HVD_MPI HVD_MPI_SUMMARY
    accelerated 2 ./requests
}

@test "so they are in a program with several threads" {
    export HVD_MPI=all
    accelerated 2 ./requests 3
    accelerated 5 ./requests 3
    accelerated 2 ./collectives 3
    accelerated 5 ./collectives 3
}

@test "MPI looks for messages as fast as without libhvd" {
    run "$ROOT/mpi-launch.sh" -np 2 ./progress
    local alone=$output
    accelerated 2 ./progress
    [ "$output" = "$alone" ]
    HVD_MPI=0 accelerated 2 ./progress
    [ "$output" = "$alone" ]
}

@test "programs in Fortran" {
    export HVD_MPI=all HVD_MPI_SUMMARY=1
    accelerated 3 ./fortran
    # Four of the module mpi, and one of mpi_f08.
    [ "$(calls_of Allreduce)" -eq 5 ]
    [ "$(calls_of Bcast)" -eq 1 ]
}

@test "mpi4py against numpy" {
    export HVD_MPI=all HVD_MPI_SUMMARY=1
    accelerated 2 python3 "$BATS_TEST_DIRNAME/numpy_check.py"
    [ "$(calls_of Allgather)" -gt 0 ]
}

@test "large blocks are MPI's where a rank must pack them" {
    export HVD_MPI_SUMMARY=1
    local n
    for n in 2 3; do
        accelerated $n python3 "$BATS_TEST_DIRNAME/packed.py"
        [ "$(grep -c '^0 wrong' <<<"$output")" -eq $n ]
        # By libhvd and, after its bytes and seconds, by MPI.
        [ "$(awk '$1 == "Alltoall" { print $2, $5 }' <<<"$output")" = "3 3" ]
    done
}

@test "HVD_MPI=0 leaves all to MPI, and the summary counts it" {
    HVD_MPI=0 HVD_MPI_SUMMARY=1 accelerated 2 ./fortran
    [ "$(calls_of all)" -eq 0 ]
    [[ $output == *"by libhvd"* ]]
}

@test "if libhvd cannot start, one line says so, and MPI does all" {
    HVD_FUSION_THRESHOLD=nonsense accelerated 2 ./fortran
    [ "$(grep -c 'libhvd-mpi: all collectives are left to MPI' <<<"$output")" -eq 1 ]
    [[ $output == *HVD_FUSION_THRESHOLD* ]]
}

@test "MPI_Abort and a rank that dies end the job as without libhvd" {
    run timeout 60 "$ROOT/mpi-launch.sh" -np 2 --accelerate ./dying abort
    echo "$output"
    [ "$status" -eq 7 ]
    run timeout 60 "$ROOT/mpi-launch.sh" -np 2 --accelerate ./dying kill
    echo "$output"
    [ "$status" -eq 137 ]
}

@test "a program that uses libhvd itself has another one" {
    cat >both.c <<'END'
#include <hvd.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int x = 1, y = 1;
    MPI_Init(&argc, &argv);
    if (hvd_init() < 0)
        return 1;
    for (int i = 0; i < 20; i++) {
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (hvd_allreduce(&y, &y, 1, HVD_INT32, HVD_SUM) < 0)
            return 1;
        y = 1;
    }
    if (hvd_shutdown() < 0)
        return 1;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (hvd_rank() >= 0 || x != 2)
        return 1;
    MPI_Finalize();
    puts("0 wrong");
    return 0;
}
END
    mpicc -I"$ROOT/libhvd/include" -o both both.c -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    accelerated 2 ./both
}
