# SPDX-License-Identifier: Apache-2.0
# Ranks die, freeze or never come; the others report it and end. Where mpirun
# would end the job by itself, --enable-recovery makes it leave the survivors
# alone; its own exit status then means nothing.

load program

setup_file() {
    program_open victim
    gcc -Wall -Wextra -o "$BATS_FILE_TMPDIR/names" "$BATS_TEST_DIRNAME/names.c"
    export HVD_HEARTBEAT_TIME=3s HVD_EXIT_GRACE_TIME=2s
}

alone=(--enable-recovery)

lose() { # n what how victim [mpirun's options]
    local n=$1 what=$2 how=$3 victim=$4
    shift 4
    run timeout 40 mpirun -np "$n" "$@" "$PROGRAM" "$what" "$how" "$victim"
    echo "$output"
    [ "$status" -ne 124 ]
    [[ " $* " == *" --enable-recovery "* ]] || [ "$status" -ne 0 ]
}

@test "a rank killed in the middle of allreduces is named, with what it did" {
    for n in 2 4 5; do
        for victim in 0 $((n / 2)) $((n - 1)); do
            lose "$n" loop kill "$victim" "${alone[@]}"
            [ "$(lines_with '^rank [0-9]: -26: ')" -eq $((n - 1)) ]
            [ "$(lines_with "^rank .* rank $victim (process .* last operation: allreduce 'gradient'")" -eq $((n - 1)) ]
        done
    done
}

@test "a rank killed in the middle of a reduction in shared memory" {
    for memory in heap blocks; do
        for victim in 0 1 2; do
            lose 3 $memory kill $victim "${alone[@]}"
            [ "$(lines_with "^rank .* rank $victim (process .* last operation: allreduce 'gradient'")" -eq 2 ]
        done
    done
}

@test "one that is stopped there" {
    for memory in heap blocks; do
        lose 3 $memory stop 1
        [ "$(lines_with '^rank [02]: -26: rank 1 (process .* no heartbeat for 3')" -eq 2 ]
    done
}

@test "a crash is a death" {
    lose 3 loop segv 1 "${alone[@]}"
    [ "$(lines_with '^rank [02]: -26: rank 1 (')" -eq 2 ]
}

@test "so is an exit that runs no handlers" {
    lose 3 loop exit0 2 "${alone[@]}"
    [ "$(lines_with '^rank [01]: -26: rank 2 (')" -eq 2 ]
}

@test "a rank that exits without hvd_shutdown says so" {
    lose 3 loop exit1 1 "${alone[@]}"
    [ "$(lines_with "'gradient' cannot complete: rank 1 did not submit it")" -eq 2 ]
}

@test "a rank killed while the others wait for it" {
    lose 4 wait kill 3 "${alone[@]}"
    [ "$(lines_with '^rank [012]: -26: rank 3 (')" -eq 3 ]
}

@test "a worker or a parameter server that is killed is named by all, in each mode" {
    for mode in push backups async stale; do
        for victim in 0 3; do
            lose 4 $mode kill "$victim" "${alone[@]}"
            [ "$(lines_with "^rank [0-9]: -26: .*rank $victim (")" -eq 3 ]
        done
    done
    lose 2 push kill 0 "${alone[@]}"
    [ "$(lines_with "^rank 1: -26: .*rank 0 (")" -eq 1 ]
}

@test "a rank killed while the others shut down" {
    lose 3 bye kill 1 "${alone[@]}"
    [ "$(lines_with '^rank [02]: -26: rank 1 (')" -eq 2 ]
}

@test "a program that does not look is ended" {
    lose 3 idle kill 0 "${alone[@]}"
    [ "$(lines_with 'error: a rank is dead')" -eq 2 ]
    [ "$(lines_with 'ending this process with status 70')" -eq 2 ]
}

@test "a program that computes, and asks now and then, ends by itself" {
    lose 3 ask kill 0 "${alone[@]}"
    [ "$(lines_with '^rank [12]: -26: rank 0 (')" -eq 2 ]
    [ "$(lines_with 'ending this process')" -eq 0 ]
}

@test "mpirun, left to itself, ends the job too, and the survivors have told" {
    lose 3 loop kill 1
    [ "$(lines_with 'rank 1 (process')" -ge 2 ]
}

@test "a stopped rank is found by its heartbeat" {
    for victim in 0 2; do
        lose 3 loop stop "$victim"
        [ "$(lines_with "^rank .*: -26: rank $victim (process .* is stopped")" -eq 2 ]
        [ "$(lines_with 'no heartbeat for 3')" -ge 2 ]
    done
}

@test "a rank that computes for long is not frozen" {
    HVD_HEARTBEAT_TIME=1s run timeout 30 mpirun -np 2 "$PROGRAM" late none 1
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(lines_with 'error')" -eq 0 ]
}

@test "who waits too long for whom is told, again and again" {
    HVD_STALL_CHECK_TIME=1s HVD_STALL_SHUTDOWN_TIME=3s \
        lose 3 wait none 1
    [ "$(lines_with "rank 0: warning: stalled: 'never' (allreduce sum float32 \[10\]) has waited 1 s for rank 1; rank 1 is alive, last operation: allreduce 'gradient'")" -eq 1 ]
    [ "$(lines_with 'has waited 2 s for rank 1')" -eq 1 ]
    [ "$(lines_with '^rank [02]: -27: .*never.* has waited 3 s for rank 1')" -eq 2 ]
}

# Runs a command with a /dev/shm of its own, in which Open MPI keeps nothing.
with_shm() { # options of the file system, number of ranks, command...
    local userns=()
    [ "$(id -u)" -eq 0 ] || userns=(--map-root-user)
    run timeout 60 unshare "${userns[@]}" --mount sh -c '
        mount -t tmpfs -o "$0" none /dev/shm && exec "$@"' "$@"
    echo "$output"
}

# Memory without a name is never left behind, whatever kills a rank, and when.
@test "the ranks of a host share memory that never has a name" {
    local names=$BATS_FILE_TMPDIR/names
    with_shm size=1g "$names" /dev/shm touch /dev/shm/seen
    [ "$output" = "named seen" ]
    with_shm size=1g "$names" /dev/shm \
        mpirun -np 3 --mca btl tcp,self --mca shmem mmap \
        "${LIB%/lib}/bin/tests-mpi-order"
    [ "$status" -eq 0 ]
    [ "$(lines_with '^named')" -eq 0 ]
    [ "$(lines_with 'warning')" -eq 0 ]
}

# Each rank has a user namespace, as in a container that a user starts. The names
# that the ranks need are removed at once; so are those of a killed process, but
# not those of one that lives.
@test "ranks of several user namespaces share memory" {
    local dead=/dev/shm/hvd-share-000000000000000000000001
    local living=/dev/shm/hvd-share-000000000000000000000002
    export dead living LIB
    with_shm size=1g bash -c '
        touch "$dead" "$living"
        exec 9<"$living"
        flock -s 9
        mpirun -np 3 --mca btl tcp,self --mca shmem mmap \
            unshare --user --map-root-user "${LIB%/lib}/bin/tests-mpi-order" &&
            ls /dev/shm | sed "s/^/left: /"'
    [ "$status" -eq 0 ]
    [ "$(lines_with 'warning')" -eq 0 ]
    [ "$(grep '^left: ' <<<"$output")" = "left: ${living##*/}" ]
}

@test "they share memory without a /dev/shm that can be written" {
    with_shm ro mpirun -np 3 --mca btl tcp,self "${LIB%/lib}/bin/tests-mpi-order"
    [ "$status" -eq 0 ]
    [ "$(lines_with 'warning')" -eq 0 ]
}

@test "without shared memory there is a warning, and the job runs" {
    with_shm size=4k mpirun -np 3 --mca btl tcp,self "$PROGRAM" late none 1
    [ "$status" -eq 0 ]
    [ "$(lines_with 'the ranks of this host do not watch each other')" -eq 1 ]
    [ "$(lines_with 'the ranks of this host do not watch each other: .* No space left on device')" -eq 1 ]
    [ "$(lines_with 'share no memory.*HVD_SHM_SIZE, /dev/shm or ulimit -v leave a rank 4096 bytes')" -eq 1 ]
}
