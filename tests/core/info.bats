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
    [[ $output == *"HVD_TRANSPORT='pigeon' is not a transport: give auto, mpi or ucx"* ]]
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
