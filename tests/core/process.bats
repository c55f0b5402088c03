# SPDX-License-Identifier: Apache-2.0
# Processes of libhvd begin and end in several environments, with several
# launchers, and in several ways.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    export LEAVE=$BATS_FILE_TMPDIR/leave
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$LEAVE" \
        "$BATS_TEST_DIRNAME/leave.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
}

ranks() { # n argument...
    local n=$1
    shift
    run timeout 30 "$ROOT/mpi-launch.sh" -np "$n" "$LEAVE" "$@"
}

lines_with() { # text: how many lines of the output have it
    grep -c -- "$1" <<<"$output" || true
}

@test "alone, without a launcher, MPI is not touched" {
    run env -u OMPI_COMM_WORLD_SIZE PATH=/nonexistent "$LEAVE"
    [ "$status" -eq 0 ]
    [ "$output" = "1 of 1" ]
}

@test "every rank takes part" {
    ranks 3
    [ "$status" -eq 0 ]
    [ "$(lines_with '^3 of 3')" -eq 3 ]
}

@test "no rank of a job of one host listens to the network" {
    cd "$BATS_TEST_TMPDIR"
    timeout 30 "$ROOT/mpi-launch.sh" -np 3 "$LEAVE" sleep >out 2>&1 3>&- &
    for _ in {1..200}; do
        [ "$(grep -c 'sum: ok' out)" -lt 3 ] || break
        sleep 0.1
    done
    local ranks
    ranks=$(pgrep -f "^$LEAVE sleep")
    [ "$(wc -w <<<"$ranks")" -eq 3 ]
    run grep -F "$(printf 'pid=%s,\n' $ranks)" <(ss -Hltunp)
    echo "$output"
    kill %1
    wait
    [ -z "$output" ]
}

@test "a limited address space is shared out" {
    ulimit -v 4000000
    ranks 2
    [ "$status" -eq 0 ]
    [ "$(lines_with 'of 2')" -eq 2 ]
    [[ $output != *"share no memory"* ]]
}

@test "a process of another launcher that is alone is told so" {
    run env -u OMPI_COMM_WORLD_SIZE PMI_RANK=1 PMI_SIZE=4 "$LEAVE"
    [ "$status" -eq 9 ]
    [[ $output == *"one of 4"* ]]
    [[ $output == *MPICH* ]]
    [[ $output == *"Open MPI"* ]]
    [ "${#lines[@]}" -eq 1 ]
}

@test "a malformed threshold is an error of all ranks, in one line each" {
    HVD_FUSION_THRESHOLD=banana ranks 3
    [ "$status" -eq 9 ]
    [ "$(lines_with "HVD_FUSION_THRESHOLD='banana'")" -ge 1 ]
    [ "$(lines_with 'hvd_init: rank 0: ')" -ge 1 ]
    [ "$(lines_with ' of 3$')" -eq 0 ]
}

@test "UCX carries a world if it is asked for, and says why if it cannot" {
    export HVD_LOG=info HVD_SHM_SIZE=0
    HVD_TRANSPORT=ucx ranks 3
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(lines_with 'of 3, over UCX 1\.')" -eq 3 ]
    # UCX refuses segments to receive that are smaller than those to send.
    HVD_TRANSPORT=ucx UCX_TCP_TX_SEG_SIZE=64K ranks 3
    echo "$output"
    [ "$(lines_with 'of 3, over UCX 1\.')" -eq 3 ]
    ranks 3
    [ "$(lines_with 'of 3, over Open MPI')" -eq 3 ]
    HVD_TRANSPORT=ucx UCX_NET_DEVICES=none0 ranks 3
    echo "$output"
    [ "$status" -eq 9 ]
    [ "$(lines_with 'hvd_init: HVD_TRANSPORT=ucx: UCX knows no way from rank . to rank . .UCX_NET_DEVICES names the networks to use')" -ge 1 ]
}

@test "units of bytes are understood" {
    for good in 0 1 64MB 64mb 1GiB 4K 16777216; do
        HVD_FUSION_THRESHOLD=$good run "$LEAVE"
        [ "$status" -eq 0 ]
    done
    for bad in -1 1.5MB 64XB '64 MB' MB 99999999999999999999 1e6; do
        HVD_FUSION_THRESHOLD=$bad run "$LEAVE"
        [ "$status" -eq 9 ]
        [[ $output == *"such as 64MB"* ]]
    done
}

@test "a log level is checked, and obeyed" {
    HVD_LOG=shout ranks 2
    [ "$status" -eq 9 ]
    [[ $output == *"HVD_LOG='shout'"* ]]
    HVD_LOG=info ranks 2
    [ "$status" -eq 0 ]
    [ "$(lines_with 'hvd: rank [01]: hvd 0.1.0')" -eq 2 ]
    ranks 2
    [ "$(lines_with 'hvd:')" -eq 0 ]
}

@test "returning from main without hvd_shutdown is well" {
    for n in 1 2 4; do
        ranks $n all-return
        [ "$status" -eq 0 ]
    done
}

@test "MPI_Finalize without hvd_shutdown is well" {
    local program=$BATS_TEST_TMPDIR/finalise n how sum
    # shellcheck disable=SC2046 # words
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" $(pkg-config --cflags ompi-c) \
        -o "$program" "$BATS_TEST_DIRNAME/finalise.c" -L"$LIB" -lhvd \
        -Wl,-rpath,"$LIB" $(pkg-config --libs ompi-c)
    for n in 1 2; do
        for how in all alone; do
            sum=$n
            [ $how = all ] || sum=1
            run timeout 30 "$ROOT/mpi-launch.sh" -np $n "$program" $how
            echo "$output"
            [ "$status" -eq 0 ]
            [ "$(grep -c "^$sum, then -20$" <<<"$output")" -eq $n ]
        done
    done
}

@test "a rank that exits fails the others, by name, and the job" {
    ranks 3 one-exits
    [ "$status" -ne 0 ]
    [ "$(lines_with 'rank [01]: sum: .*rank 2 did not submit it')" -eq 2 ]
}

@test "a rank that is killed ends the job" {
    ranks 3 one-is-killed
    # It alone aborts: it is why the others end, whoever is seen first.
    [ "$status" -eq 134 ]
    [[ $output =~ rank\ 2\ .*failed\ first:\ it\ was\ ended\ by\ .*SIGABRT ]]
}

@test "a rank that exits is told from those that abort because of it" {
    ranks 3 others-abort
    [ "$status" -eq 3 ]
    [[ $output =~ rank\ 2\ .*failed\ first:\ it\ exited\ with\ status\ 3 ]]
}

@test "the library needs MPI, two small libraries, and nothing of the device" {
    run ldd "$LIB/libhvd.so"
    [ "$status" -eq 0 ]
    [[ $output == *libmpi* ]]
    [[ $output == *libjansson* ]] # for TF_CONFIG
    [[ $output == *libnettle* ]]  # for proofs between ranks without MPI
    [[ $output != *blas* ]]
}
