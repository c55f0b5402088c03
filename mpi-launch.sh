#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi-launch.sh - start a program on several ranks with Open MPI's mpirun.
#
# The script does what one otherwise has to remember: it allows root and more
# ranks than cores, chooses the binding, passes HVD_* variables to the ranks of
# other hosts, and tells the ranks whether there is a terminal. It passes
# signals on, exits with the status of the rank that failed first, and says
# which rank that was and how it ended.
#
# mpirun does not always say so. Each rank therefore runs below a small shell
# that reports how its program ended, through a pipe that this script holds, or
# on stderr on other hosts. mpirun closes the descriptors that ranks would
# inherit, so the shells open the pipe as /proc/PID/fd/N, after checking that it
# is the right one: nothing has a name, and nothing is left behind, whatever is
# killed. mpirun signals whole process groups: a program that it ends takes its
# shell with it, which then reports nothing. A shell whose program has ended
# therefore ignores signals; if no signal ended the program, the shell waits a
# moment, so that the shells of killed programs, the likely cause, report first.

set -u

readonly name=mpi-launch.sh

usage() {
    cat <<'EOF'
Usage: ./mpi-launch.sh -np N [options] [--] program [argument...]

Start program on N ranks with Open MPI's mpirun.

  -np N, -n N            start N ranks
  -H, --host H1:S1,...   use these hosts, with so many ranks on each
  --hostfile FILE        read the hosts from FILE, one "host slots=S" per line
  -x VAR[=VALUE]         pass a variable to the ranks (HVD_* are always passed)
  --mpi-arg ARG          pass one more argument to mpirun (may be repeated)
  --dry-run              print the command instead of running it
  -v, --verbose          report what was decided, and show the command
  -h, --help             print this text
  --version              print the version

The exit status is that of the rank that failed first; 128 + S if signal S
ended that rank or this script; 2 for a wrong command line; 126 or 127 if the
program cannot be run or found, or mpirun is missing.
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

value() { # option value...: fails if the option has no value
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
    [[ -f $hostfile && -r $hostfile ]] ||
        die 2 "the host file '$hostfile' cannot be read, or is no regular file"
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

# With too few open files mpirun waits for ever. It takes 28, and four per rank
# (measured).
needed=$((32 + 4 * ranks))
[ -z "$hosts$hostfile" ] || needed=64
open_files=$(ulimit -n)
if [ "$open_files" != unlimited ] && [ "$open_files" -lt "$needed" ]; then
    ulimit -S -n "$needed" 2>/dev/null ||
        die 1 "$ranks ranks take mpirun about $needed open files, and 'ulimit -n' allows $open_files: raise it (ulimit -n 1024; limits.conf)"
    say "open files: $needed instead of $open_files"
fi

# On one host mpirun counts the cores. With several hosts it counts their slots;
# too few of them are an error of the command line that mpirun explains itself.
crowded=
if [ -z "$hosts$hostfile" ] && [ "$ranks" -gt "$cores" ]; then
    crowded=1
    command+=(--oversubscribe)
    printf '%s: %d ranks on %d cores: they take turns\n' \
        "$name" "$ranks" "$cores" >&2
    # Ranks that wait must let the others run.
    export OMPI_MCA_mpi_yield_when_idle=1
fi

# When a rank fails, this script says in one line what mpirun says in many. When
# mpirun cannot start ranks, on other hosts, its messages are worth reading.
if [ -z "$verbose$hosts$hostfile" ]; then
    command+=(--quiet)
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

# Under Open MPI a rank's own stdout is a pseudo-terminal, whatever ours is.
HVD_TTY=0
if [ -t 1 ]; then
    HVD_TTY=1
    if [ -z "${COLUMNS-}" ]; then
        { COLUMNS=$(stty size <&3 2>/dev/null | cut -d' ' -f2); } 3>&1
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

# This is the shell of a rank. Its arguments are the path of the pipe, the mark
# by which the pipe is recognised, and the program. If all ranks are on this
# host, they do not need Open MPI's TCP, with which each would listen on all
# interfaces. The shell therefore switches it off, unless Open MPI's shared
# memory (4 MiB per rank, and some) would not fit or the caller has chosen. The
# launcher itself cannot decide this: a scheduler or a default host file may
# place the ranks.
# shellcheck disable=SC2016 # for the shell of the rank
readonly one_rank='
    notes=$1 mark=$2
    shift 2
    if [ -z "${OMPI_MCA_btl-}" ] &&
        [ "${OMPI_COMM_WORLD_LOCAL_SIZE-0}" = "${OMPI_COMM_WORLD_SIZE-1}" ]; then
        free=$(stat -f -c "%a / 1024 * %S / 1024" /dev/shm 2>/dev/null)
        [ $((${free:-0})) -lt $((8 * OMPI_COMM_WORLD_SIZE)) ] ||
            export OMPI_MCA_btl=vader,self
    fi
    "$@"
    status=$?
    [ $status -ne 0 ] || exit 0
    trap "" TERM
    set -- "$(date +%s%N)" "${OMPI_COMM_WORLD_RANK-?}" "$(hostname)" $status
    here=$(cat /proc/sys/kernel/random/boot_id)/$(readlink "$notes")
    if [ "$here" = "$mark" ]; then
        echo "$*" >"$notes"
    else
        echo "rank $2 on $3 ended with status $4" >&2
    fi
    [ $status -gt 128 ] || sleep 0.2
    exit $status'

# This descriptor is both ends of a pipe.
exec {pipe}<> <(:)
readonly notes=/proc/$$/fd/$pipe
mark=$(cat /proc/sys/kernel/random/boot_id)/$(readlink "$notes")

# ------------------------------------------------------------------- signals

# Prints the processes of mpirun, of its descendants and of its session, except
# those that have ended.
# shellcheck disable=SC2317 # traps call it
tree() {
    local found=" $child " before='' file line processes=()
    for file in /proc/[0-9]*/stat; do
        line=''
        { read -r -d '' line <"$file"; } 2>/dev/null
        # Without the name, which may contain anything: process, state,
        # parent, group, session.
        [[ -z $line || ${line##*) } = Z* ]] ||
            processes+=("${line%% *} ${line##*) }")
    done
    while [ "$found" != "$before" ]; do
        before=$found
        for line in "${processes[@]}"; do
            # shellcheck disable=SC2086 # words
            set -- $line
            if [[ $found != *" $1 "* ]] &&
                [[ $5 = "$child" || $found = *" $3 "* ]]; then
                found+="$1 "
            fi
        done
    done
    echo "$found"
}

# Ends mpirun and its ranks, and removes what mpirun would have removed: its
# directory, and Open MPI's files in /dev/shm. On other hosts mpirun's daemons
# notice that it is gone and do the same.
# shellcheck disable=SC2317 # traps call it
end_by_force() { # why
    local pids memory pid sessions
    printf '%s: %s\n' "$name" "$1" >&2
    pids=$(tree)
    memory=$(for pid in $pids; do
        sed -n 's|.* \(/dev/shm/vader_segment\.[^ ]*\)$|\1|p' "/proc/$pid/maps"
    done 2>/dev/null | sort -u)
    # shellcheck disable=SC2086 # a list
    kill -KILL $pids 2>/dev/null
    # shellcheck disable=SC2046 # a list, of processes that have come meanwhile
    kill -KILL $(tree) 2>/dev/null
    [ -z "$memory" ] || xargs -d '\n' rm -f <<<"$memory"
    sessions=${TMPDIR:-/tmp}/ompi.$(hostname -s).$(id -u)
    rm -rf "$sessions/pid.$child"
    rmdir "$sessions" 2>/dev/null || true # other jobs may use it
}

child=''
signal='' since=0
# Passes the first signal on to mpirun, which ends ranks that do not react
# within seconds. A signal that comes a second or more later means that mpirun
# does not react either. (A second signal that comes at once is often the same one:
# timeout(1) and shells that end send two. At a second signal mpirun would leave
# without cleaning up.)
# shellcheck disable=SC2317 # traps call it
pass_on() {
    if [ -z "$signal" ]; then
        signal=$1 since=${EPOCHREALTIME/[^0-9]/}
        [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
    elif [ -n "$child" ] &&
        [ $((${EPOCHREALTIME/[^0-9]/} - since)) -ge 1000000 ]; then
        end_by_force "SIG$1 again: mpirun and its ranks are ended by force"
    fi
}
trap 'pass_on INT' INT
trap 'pass_on TERM' TERM
trap 'pass_on HUP' HUP
trap 'end_by_force "mpirun hangs, although all ranks of this host have ended: it is ended by force"' USR1

# mpirun sometimes hangs when a rank has ended in MPI_Init and no rank is left.
# This function runs in the background. Once a rank has failed, which a line in
# the pipe shows, it ends mpirun if mpirun is alone for this many seconds.
readonly alone_limit=8
watch_mpirun() {
    local alone=0 never
    exec {never}<> <(:)
    while kill -0 $$ 2>/dev/null; do
        read -r -t 1 -u "$never"
        read -r -t 0 -u "$pipe" || continue
        alone=$((alone + 1))
        [ "$(tree)" = " $child " ] || alone=0
        [ "$alone" -lt "$alone_limit" ] || kill -USR1 $$
    done
}

# mpirun runs in the background, so that this shell can pass signals on; with
# our stdin, which a background command would lose; and in a session of its own,
# because a Ctrl-C that reached it twice, from the terminal and from here, would
# make it leave without ending the ranks. If this shell is killed outright, the
# kernel tells mpirun to end.
setsid setpriv --pdeathsig TERM "${command[@]}" sh -c "$one_rank" rank "$notes" "$mark" "$@" <&0 {pipe}>&- &
child=$!
watch_mpirun </dev/null >/dev/null 2>&1 &
watcher=$!
disown

# wait returns early for each signal that is passed on.
while :; do
    wait "$child"
    status=$?
    kill -0 "$child" 2>/dev/null || break
done
kill "$watcher" 2>/dev/null

# ----------------------------------------------------------------- afterwards

describe() { # status
    if [ "$1" -gt 128 ] && kill -l "$(($1 - 128))" >/dev/null 2>&1; then
        echo "was ended by signal $(($1 - 128)) (SIG$(kill -l "$(($1 - 128))"))"
    else
        echo "exited with status $1"
    fi
}

if [ -n "$signal" ]; then
    printf '%s: ended by SIG%s\n' "$name" "$signal" >&2
    exit $((128 + $(kill -l "$signal")))
fi
[ "$status" -ne 0 ] || exit 0
# A rank that ended because it lost another may be reported before that other
# rank, whose shell has to wait for its turn. So of the ranks that ended within a
# second, one that a signal ended counts as the first. SIGABRT is an exception:
# programs that lose a rank send it to themselves, all of them. So the one rank
# that ended with SIGABRT, or the one that did not, counts as the first.
# No more lines will come into the pipe.
ends=$(while read -r -t 0.01 -u "$pipe" line; do echo "$line"; done)
first=$([ -z "$ends" ] || sort -n <<<"$ends" | awk '
    NR == 1 { since = $1; first = $0 }
    $1 >= since + 1e9 { next }
    $4 > 128 && $4 != 134 && !killed { killed = $0 }
    $4 == 134 { aborted = $0; naborted++ }
    $4 < 128 { other = $0; nothers++ }
    END {
        if (killed)
            first = killed
        else if (naborted == 1 && nothers > 1)
            first = aborted
        else if (nothers == 1 && naborted > 1)
            first = other
        if (NR)
            print first
    }')
if [ -n "$first" ]; then
    read -r _ rank host status <<<"$first"
    printf '%s: rank %s on %s failed first: it %s\n' "$name" "$rank" "$host" \
        "$(describe "$status")" >&2
else
    printf '%s: mpirun failed with status %s%s\n' "$name" "$status" \
        "${verbose:+, see above}" >&2
    [ -n "$verbose" ] || printf '%s: -v shows what mpirun says\n' "$name" >&2
fi
exit "$status"
