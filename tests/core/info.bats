# SPDX-License-Identifier: Apache-2.0
# hvd-info prints the features and settings, without starting anything.

setup() {
    INFO=${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/hvd-info
}

@test "it tells version, machine and variables, without a launcher" {
    HVD_FUSION_THRESHOLD=1M HOROVOD_LOG_LEVEL=info run "$INFO"
    [ "$status" -eq 0 ]
    [[ $output == *"found        Open MPI"* ]]
    [[ $output == *"may be used"* ]]
    grep -Eq 'HVD_FUSION_THRESHOLD +1M +HVD_FUSION_THRESHOLD ' <<<"$output"
    grep -Eq 'HVD_LOG +info +HOROVOD_LOG_LEVEL ' <<<"$output"
    grep -Eq 'HVD_HEARTBEAT_TIME +10s +default ' <<<"$output"
}

@test "every variable is in the documentation" {
    for variable in $("$INFO" | awk '/^  HVD_/ { print $1 }'); do
        grep -q "^| \`$variable\` " "$BATS_TEST_DIRNAME/../../docs/ENVIRONMENT.md"
    done
}

@test "the transports that there are" {
    run "$INFO"
    [[ $output == *"  transports   self, mpi, ucx 1."* ]]
    HVD_TRANSPORT=pigeon run "$INFO"
    [ "$status" -eq 1 ]
    [[ $output == *"HVD_TRANSPORT='pigeon' is not a transport: give auto, mpi, ucx or tcp"* ]]
}

@test "the kernels in use, and what others there are" {
    HVD_KERNELS=generic run "$INFO"
    [ "$status" -eq 0 ]
    [[ $output == *"  kernels      generic, of generic"* ]]
    HVD_KERNELS=sse9 run "$INFO"
    [ "$status" -eq 1 ]
    [[ $output == *"HVD_KERNELS='sse9' is not a variant of the kernels: give auto, or what this processor can run: generic"* ]]
}

@test "check boxes as horovodrun draws them" {
    run "$INFO" --check-build
    [ "$status" -eq 0 ]
    [[ $output == *"Available Controllers:"*"[X] MPI"* ]]
    [[ $output == *"[ ] NCCL"* ]]
}

@test "what is malformed or misspelt is told" {
    HVD_LOG=loud run "$INFO"
    [ "$status" -eq 1 ]
    [[ $output == *"HVD_LOG='loud' is not a level"* ]]
    HVD_LOGS=info run "$INFO"
    [ "$status" -eq 0 ]
    [[ $output == *"HVD_LOGS is not a variable of libhvd: did you mean HVD_LOG?"* ]]
    run "$INFO" surplus
    [ "$status" -eq 2 ]
    run "$INFO" --no-such-option
    [ "$status" -eq 2 ]
    run "$INFO" --version
    [ "$output" = "hvd-info 0.1.0" ]
}

@test "how a TF_CONFIG is read" {
    export TF_CONFIG='{"cluster": {"chief": ["host0:2222"],
        "worker": ["HOST1:2222", "[0::1]:2222"], "evaluator": ["host5:2222"]},
        "task": {"type": "worker", "index": 1}}'
    run "$INFO" --cluster
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "Cluster of TF_CONFIG:" ]
    [ "${lines[2]}" = "      0  chief 0      host0:2222" ]
    [ "${lines[3]}" = "      1  worker 0     host1:2222" ]
    [ "${lines[4]}" = "      2  worker 1     [::1]:2222  <- this process" ]
    [ "${lines[5]}" = "      -  evaluator 0  host5:2222" ]
    [ "${lines[6]}" = "Training by allreduce: yes, on 3 ranks" ]
    # Other tasks, and other ways to write the same, have the same fingerprint.
    [[ ${lines[7]} == "Fingerprint, the same on all tasks: "* ]]
    echo '{"cluster": {"worker": ["host1:2222","[::1]:2222"], "evaluator":
        ["host5:2222"], "master": ["host0:2222"]}}' >"$BATS_TEST_TMPDIR/cluster"
    wanted=${lines[7]}
    run "$INFO" --cluster "$BATS_TEST_TMPDIR/cluster"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output != *"<- this process"* ]]
    [[ $output == *'This process: the text has no "task"'*"$wanted" ]]
}

@test "tasks that do not train, and clusters that cannot" {
    TF_CONFIG='{"cluster": {"worker": ["a:1"], "ps": ["b:1"]},
        "task": {"type": "evaluator", "index": 0}}' run "$INFO" --cluster
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[3]}" = "      -  ps 0         b:1" ]
    [ "${lines[4]}" = "      -  evaluator 0  (not in the cluster)  <- this process" ]
    [[ ${lines[5]} == "Training by allreduce: no, the cluster has tasks of type ps (1)"* ]]
}

@test "a wrong TF_CONFIG, and none" {
    TF_CONFIG='{"cluster": {"worker": ["a:1", "b"]}}' run "$INFO" --cluster
    [ "$status" -eq 1 ]
    [ "$output" = "hvd-info: error: TF_CONFIG, line 1, column 32: cluster.worker[1]: 'b' has no port: give host:port" ]
    unset TF_CONFIG
    run "$INFO" --cluster
    [ "$status" -eq 1 ]
    [ "$output" = "hvd-info: error: TF_CONFIG is not set: set it, or name a file" ]
    run "$INFO" --cluster /no/such/file
    [ "$status" -eq 1 ]
    [[ $output == *"cannot read '/no/such/file': No such file"* ]]
    run "$INFO" --cluster one two
    [ "$status" -eq 2 ]
    [[ $output == *"--cluster takes one file"* ]]
}

# Everything that follows starts a world.
world() { # ranks argument...
    local ranks=$1
    shift
    OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe --allow-run-as-root \
        -np "$ranks" "$INFO" --topology "$@"
}

@test "a world, its costs and what is chosen by them" {
    run world 4
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"  ranks        4 on 1 host"* ]]
    [[ $output == *": ranks 0-3, "*", shared memory"* ]]
    [[ $output == *"Costs, default:"*"between hosts    10.00 us a step,   8.00 us a message,  1.000 us a KiB (1.02 GB/s)"* ]]
    grep -Eq '^  allreduce +1 MiB  shared +$' <<<"$output"
    run "$INFO" --topology
    [ "$status" -eq 0 ]
    [[ $output == *"  ranks        1 on 1 host"*"transport    none: one rank"* ]]
    grep -Eq '^  allreduce +4 B  local ' <<<"$output"
}

@test "costs by which algorithms are chosen come from a file" {
    run world 3 --measure --output "$BATS_TEST_TMPDIR/costs"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"Costs, measured at start:"* ]]
    [ "$(grep -cE '^[a-z_]+_ns=[1-9][0-9]*$' "$BATS_TEST_TMPDIR/costs")" -eq 7 ]
    # Two hosts were not there to be measured.
    grep -qx 'between_step_ns=10000' "$BATS_TEST_TMPDIR/costs"
    HVD_COSTS=$BATS_TEST_TMPDIR/costs run world 3
    [[ $output == *"Costs, from '$BATS_TEST_TMPDIR/costs':"* ]]
    # Messages that cost nothing, and then much, where bytes cost the same.
    export HVD_SHM_SIZE=0 HVD_COSTS=$BATS_TEST_TMPDIR/mine
    sed 's/^within_step_ns=.*/within_step_ns=0/
        s/^within_message_ns=.*/within_message_ns=0/
        s/^within_kib_ns=.*/within_kib_ns=1000/' \
        "$BATS_TEST_TMPDIR/costs" >"$HVD_COSTS"
    run world 8 --csv
    echo "$output"
    [ "${lines[0]}" = collective,bytes,algorithm,expected_us ]
    grep -q '^allreduce,65536,scatter-gather,11' <<<"$output"
    sed -i 's/^within_message_ns=.*/within_message_ns=100000/' "$HVD_COSTS"
    run world 8 --csv
    echo "$output"
    grep -q '^allreduce,65536,direct,11' <<<"$output"
}

@test "a wrong file of costs is told on all ranks" {
    export HVD_COSTS=$BATS_TEST_TMPDIR/costs
    run world 3
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(grep -c "error: rank 0: HVD_COSTS: cannot read '$HVD_COSTS': No such file" <<<"$output")" -eq 3 ]
    echo speed=fast >"$HVD_COSTS"
    run world 2
    [ "$status" -eq 1 ]
    [[ $output == *"rank 0: '$HVD_COSTS', line 1: 'speed' is not a cost"* ]]
    HVD_COSTS=default run world 2 --output /no/such/folder/costs
    [ "$status" -eq 1 ]
    [[ $output == *"cannot write '/no/such/folder/costs': No such file"* ]]
    run "$INFO" --measure
    [ "$status" -eq 2 ]
}
