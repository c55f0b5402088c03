# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of the programs' command lines, for bash-completion, which looks
# for a file of a program's name: all of these names lead here. The options are
# those that --help prints.

# Completes the name and the words of the program that the launchers start: the
# first word that is a program.
_hvd_started_program() {
    local i
    for ((i = 1; i < cword; i++)); do
        [[ ${words[i]} != -* ]] && type -P -- "${words[i]}" >/dev/null || continue
        _command_offset "$i"
        return 0
    done
    return 1
}

# Prints the words that stand after "Usage: PROGRAM" in the list of subcommands.
_hvd_subcommands() {
    case ${words[0]##*/} in
    hvd-bench) echo allreduce allgather alltoall barrier broadcast reduce \
        reducescatter gather latency idle gradients overlap commit hosts \
        cluster project setting ;;
    hvd-checkpoint) echo ls show diff average convert ;;
    ipu-bench) echo memory exchange links host matmul matvec convolution \
        reduction broadcast stencil networks all ;;
    esac
}

_hvd() {
    local cur prev words cword help=--help
    _init_completion || return
    case ${words[0]##*/} in
    mpi-launch.sh | horovodrun | hvd-run | hvd-chaos) _hvd_started_program && return ;;
    hvd-bench | hvd-checkpoint)
        [[ $cword -lt 2 || ${words[1]} == -* ]] || help="${words[1]} --help" ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_parse_help "${words[0]}" "$help")" -- "$cur")
        [[ ${COMPREPLY-} != *= ]] || compopt -o nospace
        return
    fi
    _filedir
    [[ $cword -ne 1 ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
        compgen -W "$(_hvd_subcommands)" -- "$cur")
}

complete -F _hvd char_gpt horovodrun hvd-bench hvd-bench-cluster \
    hvd-bench-hosts hvd-bench-project hvd-chaos hvd-checkpoint hvd-info hvd-log-page hvd-run \
    hvd-server ipu-bench ipu-dataset-bench ipu-feeds ipu-losses ipu-replicas \
    ipu-report ipu-run memory_tools mnist mpi-launch.sh pipelined train-bench
