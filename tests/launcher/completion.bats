# SPDX-License-Identifier: Apache-2.0
# bash completes the words of the programs' command lines.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export PATH=$HVD_BUILD/bin:$HVD_BUILD/lib/python/hvd/compat/bin:$ROOT:$PATH
    export PYTHON=/usr/bin/python3
}

setup() {
    # They are not written for -e, and look at variables that are not set.
    set +e
    . /usr/share/bash-completion/bash_completion
    . "$ROOT/libhvd/command/completion.bash"
    set -e
}

# Prints what stands to choose from behind these words.
offered() { # word...
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
    COMP_POINT=${#COMP_LINE} COMPREPLY=()
    compopt() { :; } # only where bash itself completes
    set +e
    _hvd "$1" "${!#}" "${*: -2:1}"
    set -e
    printf '%s\n' "${COMPREPLY[@]}"
}

names() {
    sed -n '/^complete/,$p' "$ROOT/libhvd/command/completion.bash" |
        tr -d '\\' | sed 's/^complete -F _hvd//' | tr -s ' ' '\n' | grep .
}

@test "every installed program with options has its options completed" {
    local program
    for program in $(names); do
        [ "$(offered "$program" --hel)" = --help ] || { echo "$program"; false; }
    done
    for program in "$HVD_BUILD"/bin/*; do
        case ${program##*/} in
        tests-* | hvd-sim* | train-bench-torch) ;;
        *) names | grep -qx -- "${program##*/}" || { echo "$program"; false; } ;;
        esac
    done
}

@test "subcommands are offered, and have options of their own" {
    local word
    [ "$(offered hvd-bench grad)" = gradients ]
    [[ $(offered hvd-bench gradients --mo) == --model* ]]
    [ -z "$(offered hvd-bench latency --mo)" ]
    [ "$(offered hvd-checkpoint conv)" = convert ]
    for word in $(offered hvd-bench ''); do
        [ -e "$word" ] || hvd-bench "$word" --help >/dev/null
    done
    for word in $(hvd-bench --help | sed -n 2,3p | grep -o '[a-z]*|[a-z|]*' |
        tr '|' ' '); do
        offered hvd-bench '' | grep -qx "$word"
    done
}

@test "launchers have the words of the program that they start completed" {
    [[ $(offered mpi-launch.sh -np 2 mnist --epo) == --epochs* ]]
    [[ $(offered hvd-run -n 2 char_gpt --lay) == --layers* ]]
    [[ $(offered hvd-chaos -- mpi-launch.sh -np 2 mnist --epo) == --epochs* ]]
    [ "$(offered mpi-launch.sh --hostf)" = --hostfile ]
    [[ $(offered horovodrun -np 2 mnist --epo) == --epochs* ]]
    [[ $(offered horovodrun --reset-l) == --reset-limit* ]]
}

@test "what is no option is a file" {
    cd "$BATS_TEST_TMPDIR"
    touch weights.safetensors
    [ "$(offered hvd-checkpoint show wei)" = weights.safetensors ]
}
