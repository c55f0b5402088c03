# SPDX-License-Identifier: Apache-2.0
# mpi-launch.sh in the jobs of batch systems: it takes the hosts and the number of
# ranks from them. The systems themselves are played by their variables and
# files; slurm.bats has a real one.

setup() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    LAUNCH=$ROOT/mpi-launch.sh
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!SLURM_@}" "${!PBS_@}" OMPI_MCA_orte_default_hostfile
}

would_run() { # words of the command, in their order
    run "$LAUNCH" --dry-run "${options[@]}" true
    echo "$output"
    [ "$status" -eq 0 ]
    local word pattern='*'
    for word in "$@"; do
        pattern+="$word*"
    done
    # shellcheck disable=SC2053 # a pattern
    [[ $output == $pattern ]]
}

is_wrong_here() { # text option...
    local text=$1
    shift
    run "$LAUNCH" --dry-run "$@" true
    echo "$output"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"$text"* ]]
}

@test "a job of Slurm has as many ranks as it has tasks" {
    local options=()
    export SLURM_JOB_ID=7 SLURM_TASKS_PER_NODE='16(x3),2,1(x2)'
    would_run "-np 52 "
    [[ $output != *--oversubscribe* && $output != *--quiet* ]]
    options=(-np 3)
    would_run "-np 3 "
    options=(--elastic --spare 2)
    would_run HVD_SPARES=2 "-np 52 "
    SLURM_TASKS_PER_NODE=none is_wrong_here "-np N"
    SLURM_STEP_NUM_TASKS=4 is_wrong_here "srun started this launcher 4 times"
    # Hosts of the command line count more.
    is_wrong_here "-np N" -H one:2
    options=(-np 2 -H one:2)
    would_run "-np 2 -H one:2 "
}

@test "a job of PBS has the hosts of its file, and as many ranks" {
    local options=()
    printf '%s\n' node1.site node1.site node2.site >"the nodes"
    export PBS_JOBID=12.server PBS_NODEFILE="$PWD/the nodes"
    would_run "-np 3 --hostfile" "the\\\\\\ nodes "
    options=(-np 2 -v)
    would_run "job 12.server of PBS has the hosts, with 3 slots" "-np 2 --hostfile"
    PBS_NODEFILE=$PWD/gone is_wrong_here "-np N"
    PBS_NODEFILE=$PWD/gone is_wrong_here "'$PWD/gone' cannot be read" -np 2
}

@test "a job of the MPI operator has as many ranks as its file has slots" {
    local options=()
    printf '%s\n' '# workers' '' 'mnist-worker-0.mnist.default.svc slots=4 max_slots=8' \
        'mnist-worker-1.mnist.default.svc slots = 2 # two' one >hostfile
    export OMPI_MCA_orte_default_hostfile=$PWD/hostfile
    would_run "-np 7 "
    [[ $output != *" --hostfile"* && $output != *--oversubscribe* ]]
}

@test "the script for PBS starts its program on the nodes, by PBS" {
    local net=$BATS_TEST_TMPDIR/net
    "$ROOT/tests/hosts/net" up "$net" 2
    mkdir bin
    # The nodes of tests/hosts/net, which PBS's own command starts programs on.
    printf '#!/bin/sh\necho "$1" >>%q\nexec %q "$@"\n' "$PWD/started" "$net/agent" >bin/pbs_tmrsh
    chmod +x bin/pbs_tmrsh
    ln -s "$LAUNCH" bin/
    printf '%s\n' 10.77.0.1 10.77.0.1 10.77.0.2 >nodes
    PATH=$PWD/bin:$PATH PBS_NODEFILE=$PWD/nodes PBS_JOBID=1 PBS_O_WORKDIR=$PWD \
        PROGRAM="sh $PWD/program 4" OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 \
        OMPI_MCA_orte_tmpdir_base=$net run timeout 60 "$ROOT/tests/hosts/net" run \
        "$net" sh -c 'echo "echo \$OMPI_COMM_WORLD_RANK of \$OMPI_COMM_WORLD_SIZE on \$(hostname) \$OPENBLAS_NUM_THREADS \$1" >program
            exec bash "$0"' "$ROOT/docs/cluster/train.pbs"
    "$ROOT/tests/hosts/net" down "$net"
    echo "$output"
    [ "$status" -eq 0 ]
    # Open MPI may warn of a setpgid that its child has made before.
    [ "$(grep -o '[0-9] of 3 on .*' <<<"$output" | sort)" = "$(printf '%s\n' '0 of 3 on node1 1 4' \
        '1 of 3 on node1 1 4' '2 of 3 on node2 1 4')" ]
    [ "$(sort started)" = "$(printf '%s\n' 10.77.0.1 10.77.0.2)" ]
}
