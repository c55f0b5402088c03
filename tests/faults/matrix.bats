# SPDX-License-Identifier: Apache-2.0
# tests/faults/matrix makes a minute of random faults, others each time: about as
# many as there are kinds. With HVD_TEST_FULL it makes ten. A case that fails
# prints the command that repeats it.

@test "random faults: nobody hangs, each is named, nothing is left" {
    local seconds=${HVD_TEST_FULL:+600}
    run timeout 1000 "$BATS_TEST_DIRNAME/matrix" --seconds "${seconds:-60}" \
        --jobs 3
    echo "$output"
    [ "$status" -eq 0 ]
}
