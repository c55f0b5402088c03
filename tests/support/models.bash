# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # bats sets output and lines
#
# What the tests of training programs share: a bats file loads it and calls
# models_setup in its own setup.

# models_setup PROGRAM: PROGRAM is the path of the program, OUT a directory of
# the test's own.
models_setup() {
    PROGRAM="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/$1"
    OUT="$(mktemp -d "$BATS_TEST_TMPDIR/$1.XXXXXX")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
    unset HVD_TTY COLUMNS NO_COLOR
}

# digits TRAIN TEST: draws so many digits, once for all tests of a file. DIGITS is
# their folder, for --data: each process would otherwise draw them again, which
# takes longer than a short training.
digits() {
    DIGITS=$BATS_FILE_TMPDIR/digits
    [ -e "$DIGITS" ] || "$(dirname "$PROGRAM")/tests-draw-digits" "$DIGITS" "$1" "$2"
}

# ranks N ARGS...: the program on N ranks. Every rank writes its exit status
# to status.RANK. mpirun itself sees success, so it ends no rank that has yet to
# write. Its line about forwarding a SIGCONT is left out.
ranks() {
    local n=$1
    shift
    rm -f "$OUT"/status.*
    # shellcheck disable=SC2016 # for the inner shell
    mpirun --oversubscribe --bind-to none -np "$n" sh -c '
        program=$1 out=$2; shift 2
        "$program" "$@" </dev/null
        echo $? >"$out/status.$OMPI_COMM_WORLD_RANK"' \
        rank "$PROGRAM" "$OUT" "$@" \
        2> >(grep -v "^mpirun: Forwarding signal" >&2)
}

# assert_status_everywhere N STATUS: every one of N ranks ended with it.
assert_status_everywhere() {
    local rank
    for ((rank = 0; rank < $1; rank++)); do
        [ "$(cat "$OUT/status.$rank")" = "$2" ] || {
            echo "rank $rank: status $(cat "$OUT/status.$rank"), not $2"
            return 1
        }
    done
}

# assert_one_line WORD...: the output is one line, and it has all the words. Lines
# of progress, which a program that takes long prints before, do not count.
assert_one_line() {
    local word line told=()
    for line in "${lines[@]}"; do
        [[ $line =~ ^(starting|reading|drawing|compiling)[a-z\ ]*(  |$) ]] ||
            told+=("$line")
    done
    [ "${#told[@]}" -eq 1 ] || {
        printf 'not one line: %s\n' "${lines[@]}"
        return 1
    }
    for word in "$@"; do
        case ${told[0]} in
        *"$word"*) ;;
        *)
            echo "'${told[0]}' does not say '$word'"
            return 1
            ;;
        esac
    done
}

# field NAME: prints a number or a word of the summary; of several, the last.
field() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([-0-9a-z.e+]*\)\"\{0,1\},*\$/\1/p" \
        "$OUT/summary.json" | tail -1
}

# at_least A B: A >= B
at_least() {
    [[ $1 =~ ^[0-9] && $2 =~ ^[0-9] ]] || {
        echo "'$1' and '$2' are not two numbers"
        return 1
    }
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 >= b + 0) }' || {
        echo "$1 is less than $2"
        return 1
    }
}

# floats FILE: prints the values of a safetensors file, one a line.
floats() {
    local header
    header=$(od -An -N8 -t u8 "$1")
    tail -c +$((header + 9)) "$1" | od -An -v -w4 -t f4
}

# difference A B: prints the length of the difference of two files' values, as
# vectors, relative to that of the first.
difference() {
    paste <(floats "$1") <(floats "$2") | awk '
        NF != 2 { print "lengths differ"; exit 1 }
        { sum += $1 * $1; apart += ($1 - $2) * ($1 - $2) }
        END { if (sum > 0) print sqrt(apart / sum); else print "nothing" }'
}
