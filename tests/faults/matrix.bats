# SPDX-License-Identifier: Apache-2.0
# tests/faults/matrix makes two minutes of random faults, others each time. A case
# that fails prints the command that repeats it.

@test "random faults: nobody hangs, each is named, nothing is left" {
    run timeout 280 "$BATS_TEST_DIRNAME/matrix" --seconds 120 --jobs 3
    echo "$output"
    [ "$status" -eq 0 ]
}
