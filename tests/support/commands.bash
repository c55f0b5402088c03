# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # bats sets output, status and lines
#
# What the tests of programs for the command line share. PROGRAM is the path of
# the one that is tested.

# is_wrong STATUS WORD ARGS...: one line that begins with the program's name and
# has the word, and this status.
is_wrong() {
    local status_wanted=$1 word=$2
    shift 2
    run "$PROGRAM" "$@"
    echo "$* -> $status: $output"
    [ "$status" -eq "$status_wanted" ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "${PROGRAM##*/}: "*"$word"* ]]
}
