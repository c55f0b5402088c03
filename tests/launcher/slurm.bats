# SPDX-License-Identifier: Apache-2.0
# Jobs of Slurm, whose daemons tests/launcher/slurm starts: two nodes of two
# cores each, which are hosts of their own for MPI and for hvd.

setup_file() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export ROOT
    export CLUSTER=$BATS_FILE_TMPDIR/cluster
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o "$BATS_FILE_TMPDIR/ranks" \
        "$BATS_TEST_DIRNAME/ranks.c" -L"$lib" -lhvd -Wl,-rpath,"$lib"
    "$BATS_TEST_DIRNAME/slurm" serve "$CLUSTER" 2 2 \
        >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
    export DAEMONS=$!
    for _ in {1..600}; do
        [ ! -e "$CLUSTER/ready" ] || return 0
        kill -0 "$DAEMONS" 2>/dev/null || break
        sleep 0.1
    done
    cat "$BATS_FILE_TMPDIR/log" "$CLUSTER"/*.log "$CLUSTER"/node*/log || true
    return 1
}

teardown_file() {
    end_cluster
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cp "$BATS_FILE_TMPDIR/ranks" .
    DOCUMENTED=$ROOT/docs/cluster/train.sbatch
    # Both nodes have the addresses of this machine, all of which are local.
    export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
}

end_cluster() {
    kill "$DAEMONS" 2>/dev/null || return 0
    for _ in {1..300}; do
        kill -0 "$DAEMONS" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

slurm() { # command...
    run timeout --kill-after=5 100 "$BATS_TEST_DIRNAME/slurm" use "$CLUSTER" "$@"
    echo "$* -> $status: $output"
}

# submit OPTION... SCRIPT ARGUMENT...: a job; its output is in the file out, and
# its status in status. (sbatch --wait looks only every few seconds.)
submit() {
    local job told
    slurm sbatch --parsable --output=out "$@"
    [ "$status" -eq 0 ]
    job=$output
    for _ in {1..300}; do
        told=$("$BATS_TEST_DIRNAME/slurm" use "$CLUSTER" scontrol --oneliner show job "$job")
        [[ $told =~ JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING)\  ]] || break
        sleep 0.2
    done
    echo "$told"
    cat out
    [[ $told =~ ExitCode=([0-9]+):0\  ]]
    status=${BASH_REMATCH[1]}
}

# All ranks of two nodes with two each say so, in the file or the text.
four_ranks() {
    grep -o '^rank [0-3] of.*' | sort | diff - <(printf '%s\n' \
        'rank 0 of 4, 0 of 2 on node1: 10' 'rank 1 of 4, 1 of 2 on node1: 10' \
        'rank 2 of 4, 0 of 2 on node2: 10' 'rank 3 of 4, 1 of 2 on node2: 10')
}

# Nothing of a job runs any more, and the nodes can have the next one.
nothing_runs() {
    for _ in {1..300}; do
        [ -n "$("$BATS_TEST_DIRNAME/slurm" use "$CLUSTER" squeue -h)" ] ||
            pgrep -f "^$BATS_TEST_TMPDIR/ranks" || return 0
        sleep 0.1
    done
    return 1
}

@test "sbatch runs the documented script, whose srun starts the ranks" {
    submit "$DOCUMENTED" "$PWD/ranks"
    [ "$status" -eq 0 ]
    four_ranks <out
    submit --nodes=1 --ntasks-per-node=2 "$DOCUMENTED" \
        "${HVD_BUILD:-$ROOT/build}/bin/mnist" --model mlp --train-images 960 \
        --test-images 100 --steps 5
    [ "$status" -eq 0 ]
    grep 'mnist: 2 ranks' out
}

@test "a rank that fails ends the job, whose status is its own" {
    submit "$DOCUMENTED" "$PWD/ranks" exit 3 7
    [ "$status" -ne 0 ]
    grep 'task 3: Exited with exit code 7' out
    nothing_runs
    submit "$DOCUMENTED" "$PWD/ranks" kill 0
    [ "$status" -ne 0 ]
    grep 'task 0: Killed' out
    nothing_runs
}

@test "srun --mpi=pmix starts ranks, and another srun is told about it" {
    slurm srun --nodes=2 --ntasks=3 --mpi=pmix "$PWD/ranks"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'rank [012] of 3, .*: 6' <<<"$output")" -eq 3 ]
    slurm srun --nodes=2 --ntasks=2 --mpi=none "$PWD/ranks"
    [ "$status" -eq 1 ]
    [[ $output == *"srun started this process as one of 2 without PMIx"*"srun --mpi=pmix"* ]]
    [[ $output != *MPI_Init* ]]
    # A single task is alone, as a program in the shell of srun --pty is. srun
    # may say before that it waits for the nodes.
    slurm srun --ntasks=1 --mpi=none "$PWD/ranks"
    [ "$status" -eq 0 ]
    grep '^rank 0 of 1,' <<<"$output"
}

@test "mpi-launch.sh has the hosts and the tasks of the job" {
    slurm salloc --quiet --nodes=2 --ntasks=4 "$ROOT/mpi-launch.sh" "$PWD/ranks"
    [ "$status" -eq 0 ]
    four_ranks <<<"$output"
    slurm salloc --quiet --nodes=2 --ntasks=2 "$ROOT/mpi-launch.sh" -np 1 "$PWD/ranks"
    [ "$status" -eq 0 ]
    [[ $output == "rank 0 of 1, 0 of 1 on node1: 1"* ]]
    # Only one rank fails, for those that lose it would fail, too.
    local fails='[ "$OMPI_COMM_WORLD_RANK" != 2 ] || exit 9; sleep 60'
    slurm salloc --quiet --nodes=2 --ntasks=4 "$ROOT/mpi-launch.sh" sh -c "$fails"
    [ "$status" -eq 9 ]
    [[ $output == *"rank 2 on node2 ended with status 9"* ]]
    nothing_runs
    # The nodes see each other's processes, so here the launcher has its reports.
    submit --nodes=2 --ntasks-per-node=2 --wrap \
        "exec '$ROOT/mpi-launch.sh' sh -c '$fails'"
    [ "$status" -eq 9 ]
    grep 'mpi-launch.sh: rank 2 on node2 failed first: it exited with status 9' out
    nothing_runs
}

@test "nothing is left of the cluster" {
    end_cluster
    [ ! -e "$CLUSTER" ]
    run grep -las "SLURM_CONF=$CLUSTER" /proc/[0-9]*/environ
    echo "$output"
    [ -z "$output" ]
}
