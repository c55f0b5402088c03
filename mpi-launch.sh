#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi-launch.sh - start a program on several ranks with Open MPI's mpirun.
#
# It adds what one otherwise has to remember: permission for root, more ranks
# than cores, binding, HVD_* variables for the ranks of other hosts, whether
# there is a terminal. It passes signals on, ends with the status of the rank
# that failed first, and says which one that was and how, in one line after
# mpirun's own words, from which it knows. Nothing is written anywhere.

set -u

readonly name=mpi-launch.sh

usage() {
    cat <<'EOF'
Usage: ./mpi-launch.sh -np N [options] [--] program [argument...]

Start program on N ranks with Open MPI's mpirun.

  -np N, -n N            number of ranks
  -H, --host H1:S1,...   hosts, and how many ranks each takes
  --hostfile FILE        the same from a file, a "host slots=S" a line
  -x VAR[=VALUE]         pass a variable to the ranks (HVD_* always are)
  --mpi-arg ARG          one more argument for mpirun (may be repeated)
  --dry-run              print the command instead of running it
  -v, --verbose          say what was decided, and the command
  -h, --help             this text
  --version              the version

Exit status: that of the first rank that failed, 128 + S if signal S ended it
or this script, 2 for a wrong command line, 126 or 127 if the program cannot
be run or found, or mpirun is missing.
EOF
}

die() { # status message
    printf '%s: %s\n' "$name" "$2" >&2
    exit "$1"
}

wrong() { die 2 "$1; see $name --help"; }

# ------------------------------------------------------------- command line

ranks='' hosts='' hostfile='' dry_run='' verbose=''
passed=() extra=()

value() { # option value...: the value, or an error
    [ $# -ge 2 ] || wrong "$1 needs a value"
}

while [ $# -gt 0 ]; do
    case $1 in
    -np | -n) value "$@"; ranks=$2; shift 2 ;;
    -H | --host) value "$@"; hosts=$2; shift 2 ;;
    --hostfile | --machinefile) value "$@"; hostfile=$2; shift 2 ;;
    -x) value "$@"; passed+=("$2"); shift 2 ;;
    --mpi-arg) value "$@"; extra+=("$2"); shift 2 ;;
    --dry-run) dry_run=1; shift ;;
    -v | --verbose) verbose=1; shift ;;
    -h | --help) usage; exit 0 ;;
    --version) echo "$name 0.1.0"; exit 0 ;;
    --) shift; break ;;
    -*) wrong "there is no option '$1'" ;;
    *) break ;;
    esac
done

[ -n "$ranks" ] || wrong "the number of ranks is missing: -np N"
[[ $ranks =~ ^0*[1-9][0-9]{0,5}$ ]] ||
    wrong "-np '$ranks' is not a number of ranks (1, 2, ...)"
ranks=$((10#$ranks))
[ $# -gt 0 ] || wrong "the program is missing"
for variable in ${passed[@]+"${passed[@]}"}; do
    [[ $variable =~ ^[A-Za-z_][A-Za-z_0-9]*(=.*)?$ ]] ||
        wrong "-x '$variable' is not VAR or VAR=VALUE"
done
if [ -n "$hostfile" ]; then
    [ -z "$hosts" ] || wrong "-H and --hostfile exclude each other"
    [ -r "$hostfile" ] || die 2 "the host file '$hostfile' cannot be read"
fi
if [ -n "$hosts" ]; then
    [[ $hosts =~ ^[^:,[:space:]]+(:[0-9]+)?(,[^:,[:space:]]+(:[0-9]+)?)*$ ]] ||
        wrong "-H '$hosts' is not host:slots,host:slots,..."
fi

program=$1
case $program in
*/*)
    [ -e "$program" ] || die 127 "there is no program '$program'"
    [ ! -d "$program" ] || die 126 "'$program' is a directory"
    [ -x "$program" ] || die 126 "'$program' is not executable"
    ;;
*)
    type -P -- "$program" >/dev/null ||
        die 127 "there is no program '$program' in PATH (./$program?)"
    ;;
esac

mpirun=$(type -P mpirun || type -P mpiexec || true)
[ -n "$mpirun" ] || [ ! -x /usr/bin/mpirun ] || mpirun=/usr/bin/mpirun
[ -n "$mpirun" ] ||
    die 127 "mpirun is missing: apt-get install openmpi-bin (or make deps)"
is_open_mpi() { "$mpirun" --version 2>/dev/null | grep -q 'Open MPI'; }
is_open_mpi ||
    die 127 "'$mpirun' is not Open MPI's, which hvd is linked with: apt-get install openmpi-bin, and have it first in PATH"

# ----------------------------------------------------------------- decisions

say() { [ -z "$verbose" ] || printf '%s: %s\n' "$name" "$1" >&2; }

command=("$mpirun" -np "$ranks")
cores=$(nproc)

if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    say "running as root: Open MPI is told to allow it"
fi

[ -z "$hosts" ] || command+=(-H "$hosts")
[ -z "$hostfile" ] || command+=(--hostfile "$hostfile")

# On one host mpirun counts the cores; with hosts, their slots, of which too
# few are an error of the command line that mpirun explains itself.
crowded=
if [ -z "$hosts$hostfile" ] && [ "$ranks" -gt "$cores" ]; then
    crowded=1
    command+=(--oversubscribe)
    printf '%s: %d ranks on %d cores: they take turns\n' \
        "$name" "$ranks" "$cores" >&2
    # Waiting ranks must let the others run.
    export OMPI_MCA_mpi_yield_when_idle=1
fi

threaded=
for count in "${OMP_NUM_THREADS-1}" "${OPENBLAS_NUM_THREADS-1}"; do
    [ "$count" = 1 ] || threaded=1
done
if [ "$ranks" -le 2 ] || [ -n "$threaded$crowded" ]; then
    command+=(--bind-to none)
    say "ranks are not bound to cores"
else
    command+=(--bind-to core)
    say "each rank is bound to a core"
fi

# A rank's own stdout is a pseudo-terminal under Open MPI whatever ours is.
HVD_TTY=0
if [ -t 1 ]; then
    HVD_TTY=1
    if [ -z "${COLUMNS-}" ]; then
        COLUMNS=$(stty size <&1 2>/dev/null | cut -d' ' -f2)
    fi
fi
export HVD_TTY COLUMNS="${COLUMNS:-80}"

for variable in $(compgen -e HVD_) COLUMNS; do
    command+=(-x "$variable")
done
for variable in ${passed[@]+"${passed[@]}"}; do
    command+=(-x "$variable")
done
command+=(${extra[@]+"${extra[@]}"})

quoted() { printf '%q ' "$@"; }

if [ -n "$dry_run" ]; then
    for variable in $(compgen -e OMPI_) $(compgen -e HVD_) COLUMNS; do
        printf '%s=%q ' "$variable" "${!variable}"
    done
    quoted "${command[@]}" "$@"
    echo
    exit 0
fi
say "$(quoted "${command[@]}" "$@")"

# ------------------------------------------------------------------- running

# Read a copy of mpirun's stderr to its end; say which rank failed first.
find_culprit() {
    local line rank='' host='' how=''
    while IFS= read -r line; do
        [ -z "$how" ] || continue
        if [[ $line =~ ^\ *Process\ name:\ *\[\[.*\],([0-9]+)\] ]]; then
            rank=${BASH_REMATCH[1]}
        elif [[ $line =~ ^\ *Exit\ code:\ *([0-9]+) && -n $rank ]]; then
            how="exited with status ${BASH_REMATCH[1]}"
        elif [[ $line =~ rank\ ([0-9]+)\ with\ PID\ [0-9]+\ on\ node\ ([^ ]+)\ exited\ on\ signal\ ([0-9]+) ]]; then
            rank=${BASH_REMATCH[1]} host=${BASH_REMATCH[2]}
            how="was ended by signal ${BASH_REMATCH[3]}"
            how+=" (SIG$(kill -l "${BASH_REMATCH[3]}" 2>/dev/null || echo '?'))"
        elif [[ $line =~ ^MPI_ABORT\ was\ invoked\ on\ rank\ ([0-9]+) ]]; then
            rank=${BASH_REMATCH[1]} how='called MPI_Abort'
        fi
    done
    [ -z "$how" ] || echo "rank $rank${host:+ on $host} failed first: it $how"
}
trap '' INT TERM HUP # for the children that read and copy
coproc CULPRIT { tee >(find_culprit) >&2; }
exec {copy}>&"${CULPRIT[1]}" {hear}<&"${CULPRIT[0]}"
eval "exec ${CULPRIT[1]}>&- ${CULPRIT[0]}<&-"

# In the background, so that this shell can pass signals on; with our stdin
# and usual signals, which a shell takes from its background commands.
child=
signal=
# shellcheck disable=SC2317 # traps call it
pass_on() {
    signal=$1
    [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
}
trap 'pass_on INT' INT
trap 'pass_on TERM' TERM
trap 'pass_on HUP' HUP
(
    trap - INT TERM HUP QUIT
    exec {hear}<&-
    exec "${command[@]}" "$@" 2>&"$copy" {copy}>&-
) <&0 &
child=$!
exec {copy}>&-

# wait returns early for each signal passed on.
while :; do
    wait "$child"
    status=$?
    kill -0 "$child" 2>/dev/null || break
done

# ----------------------------------------------------------------- afterwards

culprit=$(cat <&"$hear") # ends when the copying has
if [ -n "$signal" ]; then
    printf '%s: ended by SIG%s\n' "$name" "$signal" >&2
    exit $((128 + $(kill -l "$signal")))
fi
[ "$status" -ne 0 ] || exit 0
printf '%s: %s\n' "$name" \
    "${culprit:-mpirun failed with status $status, see above}" >&2
exit "$status"
