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
# therefore ignores signals; unless the program was killed, the likely cause, the
# shell waits a moment, so that other shells can report before mpirun ends them.
#
# With --elastic ranks may be lost, and the others go on. mpirun then says
# nothing and always returns 0, so every shell reports when its rank begins and
# how it ends, also if it ends well, and the reports decide the exit status. On
# other hosts a shell writes its report to stderr, out of which the launcher
# takes it. A shell whose rank has ended removes Open MPI's file in /dev/shm.

set -u

readonly name=mpi-launch.sh

usage() {
    cat <<'EOF'
Usage: ./mpi-launch.sh -np N [options] [--] program [argument...]

Start program on N ranks with Open MPI's mpirun.

  -np N, -n N            start N ranks; not needed in a job of Slurm, of PBS or
                         of Kubernetes' MPI operator, which has hosts and slots
  -H, --host H1:S1,...   use these hosts, with so many ranks on each
  --hostfile FILE        read the hosts from FILE, one "host slots=S" per line
  -x VAR[=VALUE]         pass a variable to the ranks (HVD_* are always passed)
  --elastic              ranks may be lost, and the others go on (HVD_ELASTIC)
  --min-np N             with --elastic: at least N ranks must end well (1)
  --spare N              with --elastic: start N more ranks, which wait and
                         replace lost ones
  --horovod              "import horovod.torch" in Python is hvd.torch
  --accelerate           libhvd does collectives that the program calls from MPI
  --restarts N           start the job again when it has failed, at most N times
  --mpi-arg ARG          pass one more argument to mpirun (may be repeated)
  --dry-run              print the command instead of running it
  -v, --verbose          report what was decided, and show the command
  -h, --help             print this text
  --version              print the version

The exit status is that of the rank that failed first; 128 + S if signal S
ended that rank or this script; 2 for a wrong command line; 126 or 127 if the
program cannot be run or found, or mpirun is missing. With --elastic it is 0 if
enough ranks end well, and none fails after that.
EOF
}

die() { # status message
    printf '%s: %s\n' "$name" "$2" >&2
    exit "$1"
}

wrong() { die 2 "$1; see $name --help"; }

# ------------------------------------------------------------- command line

ranks='' hosts='' hostfile='' dry_run='' verbose=''
elastic='' least=1 spares=0 restarts=0 horovod='' accelerate=''
passed=() extra=()

value() { # option value...: fails if the option has no value
    [ $# -ge 2 ] || wrong "$1 needs a value"
}

number() { # option text least what: prints the number
    [[ $2 =~ ^[0-9]{1,6}$ && $((10#$2)) -ge $3 ]] ||
        wrong "$1 '$2' is not a number of $4"
    echo $((10#$2))
}

while [ $# -gt 0 ]; do
    case $1 in
    -np | -n) value "$@"; ranks=$2; shift 2 ;;
    -H | --host) value "$@"; hosts=$2; shift 2 ;;
    --hostfile | --machinefile) value "$@"; hostfile=$2; shift 2 ;;
    -x) value "$@"; passed+=("$2"); shift 2 ;;
    --elastic) elastic=1; shift ;;
    --min-np) value "$@"; least=$2; shift 2 ;;
    --spare) value "$@"; spares=$2; shift 2 ;;
    --horovod) horovod=1; shift ;;
    --accelerate) accelerate=1; shift ;;
    --restarts) value "$@"; restarts=$2; shift 2 ;;
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

# A batch system that this is a job of has chosen the hosts, unless the command
# line does: mpirun asks Slurm and reads Kubernetes' file, but not that of PBS.
slots_of_slurm() { # "2(x3),1": the tasks of each node
    local part sum=0
    for part in ${1//,/ }; do
        [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || return 1
        sum=$((sum + BASH_REMATCH[1] * ${BASH_REMATCH[3]:-1}))
    done
    echo "$sum"
}

slots_of_file() { # a host without a number of slots has one
    awk '$1 == "" || $1 ~ /^#/ { next }
    match($0, /[ \t]slots *= *[0-9]+/) {
        $0 = substr($0, RSTART, RLENGTH)
        sub(/.*=/, "")
        sum += $1
        next
    }
    { sum++ }
    END { print sum + 0 }' "$1"
}

allocation='' slots=''
if [ -z "$hosts$hostfile" ]; then
    if [ -r "${OMPI_MCA_orte_default_hostfile-}" ]; then
        allocation="the host file $OMPI_MCA_orte_default_hostfile"
        slots=$(slots_of_file "$OMPI_MCA_orte_default_hostfile")
    elif [ -n "${SLURM_JOB_ID-}" ]; then
        [ "${SLURM_STEP_NUM_TASKS-1}" -eq 1 ] ||
            wrong "srun started this launcher $SLURM_STEP_NUM_TASKS times: start it once, by salloc or sbatch, or the program itself by srun --mpi=pmix"
        allocation="job $SLURM_JOB_ID of Slurm"
        slots=$(slots_of_slurm "${SLURM_TASKS_PER_NODE-}")
    elif [ -n "${PBS_NODEFILE-}" ]; then
        allocation="job ${PBS_JOBID-} of PBS"
        hostfile=$PBS_NODEFILE
        [ ! -r "$hostfile" ] || slots=$(slots_of_file "$hostfile")
    fi
fi
if [[ -z $ranks && $slots =~ ^[1-9] && $spares =~ ^[0-9]{1,6}$ ]]; then
    ranks=$((slots - 10#$spares))
fi

[ -n "$ranks" ] || wrong "the number of ranks is missing: -np N"
ranks=$(number -np "$ranks" 1 'ranks (1, 2, ...)') || exit
least=$(number --min-np "$least" 1 'ranks (1, 2, ...)') || exit
spares=$(number --spare "$spares" 0 'ranks (0, 1, ...)') || exit
restarts=$(number --restarts "$restarts" 0 'times (0, 1, ...)') || exit
[ -n "$elastic" ] || [ "$least" -eq 1 ] || wrong "--min-np needs --elastic"
[ -n "$elastic" ] || [ "$spares" -eq 0 ] || wrong "--spare needs --elastic"
[ -z "$elastic" ] || [ -z "$accelerate" ] ||
    wrong "--accelerate and --elastic exclude each other"
[ "$least" -le "$ranks" ] ||
    wrong "--min-np $least is more than -np $ranks"
readonly wanted=$ranks
ranks=$((ranks + spares))
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

# The package hvd is in the build of this tree, or below the prefix that this
# script was installed to, or where Debian has packages for Python.
if [ -n "$horovod" ]; then
    here=$(dirname "$(readlink -f "$0")")
    for packages in "$here/build/lib/python" "$here/../lib/hvd" \
        /usr/lib/python3/dist-packages; do
        [ ! -d "$packages/hvd/compat/horovod" ] || break
    done
    [ -d "$packages/hvd/compat/horovod" ] ||
        die 2 "--horovod: there is no package hvd for Python near $here"
    export PYTHONPATH=$packages/hvd/compat:$packages${PYTHONPATH:+:$PYTHONPATH}
    passed+=(PYTHONPATH)
fi

# So is libhvd-mpi.so, which is loaded before MPI. The loader takes a space or a
# colon for the end of a path.
preload=''
if [ -n "$accelerate" ]; then
    here=$(dirname "$(readlink -f "$0")")
    for preload in "$here/build/lib/libhvd-mpi.so" \
        "$here/../lib/hvd/libhvd-mpi.so" "$here"/../lib/*/hvd/libhvd-mpi.so; do
        [ ! -f "$preload" ] || break
    done
    [ -f "$preload" ] ||
        die 2 "--accelerate: there is no libhvd-mpi.so near $here"
    [[ ! $preload =~ [[:space:]:] ]] ||
        die 2 "--accelerate: the loader takes no path with a space or a colon: '$preload'"
    preload=$(readlink -f "$preload")
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
# The cores of the machine: nproc obeys variables that are about threads.
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)

if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    say "running as root: Open MPI is told to allow it"
fi

if [ -n "$elastic" ]; then
    command+=(--enable-recovery)
    export HVD_ELASTIC=1
    [ "$spares" -eq 0 ] || export HVD_SPARES=$spares
    say "ranks may be lost: the others go on"
fi
[ -z "$hosts" ] || command+=(-H "$hosts")
[ -z "$hostfile" ] || command+=(--hostfile "$hostfile")
[ -z "$allocation" ] || say "$allocation has the hosts, with ${slots:-?} slots"
# The ranks may be on other hosts.
readonly elsewhere=$hosts$hostfile$allocation

# With too few open files mpirun waits for ever. It takes 28, and four per rank
# (measured).
needed=$((32 + 4 * ranks))
[ -z "$elsewhere" ] || needed=64
open_files=$(ulimit -n)
if [ "$open_files" != unlimited ] && [ "$open_files" -lt "$needed" ]; then
    ulimit -S -n "$needed" 2>/dev/null ||
        die 1 "$ranks ranks take mpirun about $needed open files, and 'ulimit -n' allows $open_files: raise it (ulimit -n 1024; limits.conf)"
    say "open files: $needed instead of $open_files"
fi

# hwloc would look for graphics cards in each process, by OpenCL, with a compiler,
# and by X. Open MPI needs them for nothing.
: "${HWLOC_PLUGINS_BLACKLIST=hwloc_opencl.so,hwloc_gl.so}"
export HWLOC_PLUGINS_BLACKLIST

# On one host mpirun counts the cores. With several hosts it counts their slots;
# too few of them are an error of the command line that mpirun explains itself.
crowded=
if [ -z "$elsewhere" ] && [ "$ranks" -gt "$cores" ]; then
    crowded=1
    command+=(--oversubscribe)
    if [ "$wanted" -gt "$cores" ]; then # spares take no turn
        printf '%s: %d ranks on %d cores: they take turns\n' \
            "$name" "$wanted" "$cores" >&2
    fi
    # Ranks that wait must let the others run.
    export OMPI_MCA_mpi_yield_when_idle=1
fi

# When a rank fails, this script says in one line what mpirun says in many. When
# mpirun cannot start ranks, on other hosts, its messages are worth reading.
if [ -z "$verbose$elsewhere" ]; then
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
[ "$restarts" -eq 0 ] || export HVD_RESTART=0
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
    [ -z "$preload" ] || command+=(-x "LD_PRELOAD=$preload")
    quoted "${command[@]}" "$@"
    echo
    exit 0
fi
say "$(quoted "${command[@]}" "$@")"

# ------------------------------------------------------------------- running

# This is the shell of a rank. Its arguments are the path of the pipe, the mark
# by which the pipe is recognised, whether ranks may be lost (1, or nothing),
# the library to load before others (or nothing), and the program. A report is
# the time, the rank, its host and its status; if ranks may be lost also the
# number of the job in the names of its files, the process of the shell, if it
# is on this host, and a status "+" when the rank begins. mpirun is told then
# that all ranks end well: it has nothing to decide, and complains otherwise.
# If all ranks are on this host, they do not need Open MPI's TCP, with which
# each would listen on all interfaces. The shell therefore switches it off,
# unless Open MPI's shared memory (4 MiB per rank, and some) would not fit or
# the caller has chosen. Nor do they need its component cm, whose libraries wait
# for network devices for 0.2 s if there are none. The launcher itself cannot
# decide this: a scheduler or a default host file may place the ranks.
# shellcheck disable=SC2016 # for the shell of the rank
readonly one_rank='
    notes=$1 mark=$2 elastic=$3 preload=$4
    shift 4
    if [ "${OMPI_COMM_WORLD_LOCAL_SIZE-0}" = "${OMPI_COMM_WORLD_SIZE-1}" ]; then
        if [ -z "${OMPI_MCA_btl-}" ]; then
            free=$(stat -f -c "%a / 1024 * %S / 1024" /dev/shm 2>/dev/null)
            [ $((${free:-0})) -lt $((8 * OMPI_COMM_WORLD_SIZE)) ] ||
                export OMPI_MCA_btl=vader,self
        fi
        if [ -z "${OMPI_MCA_pml-}${OMPI_MCA_mtl-}" ] &&
            [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
            export OMPI_MCA_pml=^cm
        fi
    fi
    report() {
        set -- "$(date +%s%N)" "${OMPI_COMM_WORLD_RANK-?}" "$(hostname)" "$1" $job
        here=$(cat /proc/sys/kernel/random/boot_id)/$(readlink "$notes")
        if [ "$here" = "$mark" ]; then
            echo "$* $$" >"$notes"
        elif [ -n "$elastic" ]; then
            echo "$mark $*" >&2
        else
            echo "rank $2 on $3 ended with status $4" >&2
        fi
    }
    job=
    if [ -n "$elastic" ]; then
        job=$(printf %x "${PMIX_NAMESPACE-0}" 2>/dev/null)
        report +
    fi
    if [ -n "$preload" ] && [ ! -f "$preload" ]; then
        echo "mpi-launch.sh: --accelerate: $(uname -n) has no $preload" >&2
        exit 1
    fi
    if [ -n "$preload" ]; then
        LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD} "$@"
    else
        "$@"
    fi
    status=$?
    [ -n "$elastic" ] || [ $status -ne 0 ] || exit 0
    trap "" TERM
    report $status
    if [ -n "$elastic" ]; then
        folder=${OMPI_MCA_btl_vader_backing_directory-/dev/shm}
        rm -f "$folder"/vader_segment.*."$(id -u).$job.${OMPI_COMM_WORLD_RANK-?}"
        exit 0
    fi
    if [ $status -lt 129 ] || [ $status -eq 134 ]; then # not killed: it aborted
        sleep 0.2
    fi
    exit $status'

pipe=''
# Makes a pipe, both ends of which are one descriptor. A pipe of an earlier run
# goes, so that late reports of it count no more.
open_pipe() {
    [ -z "$pipe" ] || exec {pipe}>&-
    exec {pipe}<> <(:)
    notes=/proc/$$/fd/$pipe
    mark=$(cat /proc/sys/kernel/random/boot_id)/$(readlink "$notes")
}

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

# Starts mpirun in the background, so that this shell can pass signals on; with
# our stdin, which a background command would lose; and in a session of its own,
# because a Ctrl-C that reached it twice, from the terminal and from here, would
# make it leave without ending the ranks. If this shell is killed outright, the
# kernel tells mpirun to end.
start_mpirun() { # program argument...
    setsid setpriv --pdeathsig TERM "${command[@]}" sh -c "$one_rank" rank \
        "$notes" "$mark" "$elastic" "$preload" "$@" <&0 {pipe}>&- &
    child=$!
}

# Prints what is in the pipe, into which no more will come.
rest_of_pipe() {
    local line
    echo end >&"$pipe"
    while read -r -u "$pipe" line && [ "$line" != end ]; do
        printf '%s\n' "$line"
    done
}

# Runs the job until mpirun has ended. wait returns early for each signal that
# is passed on.
run_job() { # program argument...
    local watcher
    start_mpirun "$@"
    watch_mpirun </dev/null >/dev/null 2>&1 &
    watcher=$!
    disown
    while :; do
        wait "$child"
        status=$?
        kill -0 "$child" 2>/dev/null || break
    done
    kill "$watcher" 2>/dev/null
    reports=$(rest_of_pipe)
}

# ------------------------------------------------- a job that may lose ranks

# Passes on what comes, except the reports of ranks of other hosts.
take_reports() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        if [[ $line == *"$mark "* ]]; then
            [ "${line%%"$mark "*}" = '' ] || printf '%s\n' "${line%%"$mark "*}"
            printf '%s\n' "${line#*"$mark "}" >"$notes"
        else
            printf '%s\n' "$line"
        fi
    done
}

# Finds the stopped processes below one, and adds them to stopped.
find_stopped() { # process
    local pid line children=''
    { read -r children <"/proc/$1/task/$1/children"; } 2>/dev/null
    for pid in $children; do
        line=''
        { read -r -d '' line <"/proc/$pid/stat"; } 2>/dev/null
        [[ ${line##*) } != [Tt]* ]] || stopped+=("$pid")
        find_stopped "$pid"
    done
}

# A rank that is stopped for longer than the others wait for it is given up. It
# would keep mpirun for ever, and fails if it goes on. So ranks of this host that
# are seen to be stopped are noted as given up. When others have ended well, and
# all that are left are stopped, they are ended after this many seconds.
#
# mpirun is ended when all ranks have ended and it has been alone for its limit;
# and when others have ended well, and nothing is heard of the rest, which are
# all on hosts of which nothing was heard at all, because mpirun waits for a
# host that is cut off for ever.
readonly stopped_limit=10 silence_limit=60
declare -A shells=() hosts_of=() heard=()
began=0 ended=0 well=0 given_up=' '
alone_since='' stopped_since='' well_since=''

take_report() { # report
    local rank host code pid
    reports+=$1$'\n'
    read -r _ rank host code _ pid <<<"$1"
    case $code in
    +)
        began=$((began + 1))
        hosts_of[$rank]=$host
        [ -z "$pid" ] || shells[$rank]=$pid
        return
        ;;
    0)
        well=$((well + 1))
        well_since=$SECONDS
        ;;
    esac
    ended=$((ended + 1))
    heard[$host]=1
    unset "shells[$rank]" "hosts_of[$rank]"
}

# Ends what would be waited for without end. This is called once a second.
look_after() {
    local rank line stopped=() all=() nstopped=0 nshells=0 silent=''
    for rank in "${!shells[@]}"; do
        line=''
        { read -r -d '' line <"/proc/${shells[$rank]}/stat"; } 2>/dev/null
        [[ -z $line || ${line##*) } = Z* ]] || nshells=$((nshells + 1))
        stopped=()
        find_stopped "${shells[$rank]}"
        [ ${#stopped[@]} -gt 0 ] || continue
        nstopped=$((nstopped + 1))
        all+=("${stopped[@]}")
        [[ $given_up = *" $rank "* ]] || given_up+="$rank "
    done
    if [ "$well" -eq 0 ] || [ "$nstopped" -eq 0 ] ||
        [ "$nstopped" -lt $((began - ended)) ]; then
        stopped_since=''
    elif [ $((SECONDS - ${stopped_since:=$SECONDS})) -ge "$stopped_limit" ]; then
        printf '%s: the other ranks have ended, and what is left is stopped: it is ended\n' \
            "$name" >&2
        kill -KILL "${all[@]}" 2>/dev/null
    fi
    if [ "$nshells" -gt 0 ] || [ "$began" -eq 0 ] ||
        [ -n "$elsewhere" ] || [ "$(tree)" != " $child " ]; then
        alone_since=''
    elif [ $((SECONDS - ${alone_since:=$SECONDS})) -ge "$alone_limit" ]; then
        end_by_force "mpirun hangs, although all ranks have ended: it is ended by force"
    fi
    [ "$well" -gt 0 ] && [ "$ended" -lt "$began" ] || return
    [ $((SECONDS - well_since)) -ge "$silence_limit" ] || return
    for ((rank = 0; rank < ranks; rank++)); do
        [ -n "${hosts_of[$rank]-}" ] || continue
        if [ -n "${heard[${hosts_of[$rank]}]-}${shells[$rank]-}" ]; then
            return
        fi
        silent+=${silent:+, }"rank $rank on ${hosts_of[$rank]}"
    done
    end_by_force "nothing is heard of $silent, and the other ranks have ended: mpirun is ended by force"
}

# Runs the job until mpirun has ended, and takes the reports as they come.
run_elastic_job() { # program argument...
    local line partial='' filter='' looked=$SECONDS
    shells=() hosts_of=() heard=() reports=''
    began=0 ended=0 well=0 given_up=' '
    alone_since='' stopped_since='' well_since=''
    if [ -n "$elsewhere" ]; then
        exec {errors}> >(take_reports >&2)
        filter=$!
        start_mpirun "$@" 2>&"$errors"
        exec {errors}>&-
    else
        start_mpirun "$@"
    fi
    while kill -0 "$child" 2>/dev/null; do
        if read -r -t 0.2 -u "$pipe" line; then
            take_report "$partial$line"
            partial=''
            continue
        fi
        partial+=$line # of a line whose rest comes later
        [ "$looked" -eq "$SECONDS" ] || look_after
        looked=$SECONDS
    done
    wait "$child" 2>/dev/null
    status=$?
    for _ in {1..20}; do # the last reports of other hosts
        if [ -z "$filter" ] || ! kill -0 "$filter" 2>/dev/null; then
            break
        fi
        sleep 0.1
    done
    reports+=$partial$(rest_of_pipe)
    remove_files
}

# Removes what ranks that were killed together with their shells have left.
remove_files() {
    local job folder=${OMPI_MCA_btl_vader_backing_directory-/dev/shm}
    while read -r job; do
        [[ ! $job =~ ^[0-9a-f]{5,}$ ]] ||
            rm -f "$folder"/vader_segment.*."$(id -u).$job".*
    done < <(awk '{ print $5 }' <<<"$reports" | sort -u)
}

# ----------------------------------------------------------------- afterwards

describe() { # status
    if [ "$1" -gt 128 ] && kill -l "$(($1 - 128))" >/dev/null 2>&1; then
        echo "was ended by signal $(($1 - 128)) (SIG$(kill -l "$(($1 - 128))"))"
    else
        echo "exited with status $1"
    fi
}

# Prints the report of the rank that failed first. A rank that ended because it
# lost another may be reported before that other rank, whose shell has to wait
# for its turn. So of the ranks that ended within a second, one that a signal
# ended counts as the first. SIGABRT is an exception: programs that lose a rank
# send it to themselves, all of them. So the one rank that ended with SIGABRT, or
# the one that did not, counts as the first.
first_failure() {
    sort -n <<<"$reports" | awk '
    NF < 4 || $4 == "+" || $4 == 0 { next }
    !n++ { since = $1; first = $0 }
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
        if (n)
            print first
    }'
}

# Says who failed first, and sets the status to that rank's.
say_failure() {
    local first rank host
    first=$(first_failure)
    if [ -n "$first" ]; then
        read -r _ rank host status _ <<<"$first"
        printf '%s: rank %s on %s failed first: it %s\n' "$name" "$rank" \
            "$host" "$(describe "$status")" >&2
        return
    fi
    [ "$status" -ne 0 ] || status=1
    printf '%s: mpirun failed with status %s%s\n' "$name" "$status" \
        "${verbose:+, see above}" >&2
    [ -n "$verbose" ] || printf '%s: -v shows what mpirun says\n' "$name" >&2
}

# Prints what became of the ranks: "well N", a line "lost RANK HOST STATUS" for
# each that did not end well, and "late RANK HOST STATUS" for the first that
# failed after others had ended well, which nobody has survived. A report may
# come late: a second if a signal ended the rank, a tenth otherwise. Ranks that
# were given up may fail whenever they go on. So may spares that were not needed,
# because enough of the ranks before them were not lost: hvd_init has failed
# there.
results() {
    sort -n <<<"$reports" | awk -v given_up="$given_up" -v wanted="$wanted" '
    function needed(rank,    before, lost) {
        for (before = 0; before < rank; before++)
            lost += status[before] != "0"
        return rank < wanted || rank - lost < wanted
    }
    NF < 4 { next }
    { host[$2] = $3; status[$2] = $4 == "+" ? "?" : $4 }
    $4 == 0 && !well++ { since = $1 }
    $4 != "+" && $4 != 0 && well && !index(given_up, " " $2 " ") {
        is_late[$2] = $1 > since + ($4 > 128 ? 1e9 : 1e8)
        order[++nlate] = $2
    }
    END {
        print "well", well + 0
        for (rank in status)
            if (status[rank] != "0" && status[rank] != "?" &&
                status[rank] < 128 && well && !needed(rank))
                spared[rank] = 1
        for (rank in status)
            if (status[rank] != "0" && !spared[rank])
                print "lost", rank, host[rank], status[rank]
        for (i = 1; i <= nlate; i++)
            if (is_late[order[i]] && !spared[order[i]]) {
                late = order[i]
                print "late", late, host[late], status[late]
                exit
            }
    }' | sort -k1,1r -k2,2n
}

# Finds a rank that has survived the others, and asks for another start: it knows
# more than the status of whoever was lost first. Sets rank and host.
wants_again() {
    local code
    while read -r _ rank host code _; do
        [ "$code" != "$again" ] || [[ $given_up = *" $rank "* ]] || return 0
    done <<<"$reports"
    return 1
}

# Decides the status of a job that may have lost ranks, and says who they were.
judge() {
    local word rank host code well=0 nlost=0 lost='' late='' and_spares=''
    [ "$spares" -eq 0 ] || and_spares=' and spares'
    while read -r word rank host code; do
        case $word in
        well) well=$rank ;;
        lost)
            nlost=$((nlost + 1))
            lost+="${lost:+, }rank $rank on $host "
            if [ "$code" = '?' ]; then
                lost+="(which went without a report)"
            else
                lost+="(which $(describe "$code"))"
            fi
            ;;
        late) late="$rank $host $code" ;;
        esac
    done < <(results)
    if [ -n "$late" ]; then
        read -r rank host status <<<"$late"
        printf '%s: rank %s on %s failed after others had ended well: it %s\n' \
            "$name" "$rank" "$host" "$(describe "$status")" >&2
    elif [ "$well" -lt "$least" ] && wants_again; then
        status=$again
        printf '%s: rank %s on %s asks for another start of the job (status %d)\n' \
            "$name" "$rank" "$host" "$again" >&2
    elif [ "$well" -ge "$least" ]; then
        status=0
        [ "$nlost" -eq 0 ] ||
            printf '%s: survived: %d of %d ranks%s ended well without %s\n' \
                "$name" "$well" "$ranks" "$and_spares" "$lost" >&2
    else
        say_failure
        [ "$well" -eq 0 ] ||
            printf '%s: %d of %d ranks%s ended well, and --min-np is %d\n' \
                "$name" "$well" "$ranks" "$and_spares" "$least" >&2
    fi
}

# --------------------------------------------------------------------- a run

# A program that ends with this status (EX_TEMPFAIL) wants to be started again. With
# the others it would only fail again: its command line is wrong (EX_USAGE), or it
# cannot be run.
readonly again=75 wrong_line=64

# Ends this script if a signal has asked for it.
obey() {
    [ -n "$signal" ] || return 0
    printf '%s: ended by SIG%s\n' "$name" "$signal" >&2
    exit $((128 + $(kill -l "$signal")))
}

# Sleeps, unless a signal comes.
pause() { # seconds
    local never i
    exec {never}<> <(:)
    for ((i = 0; i < 10 * $1; i++)); do
        [ -z "$signal" ] || break
        read -r -t 0.1 -u "$never"
    done
    exec {never}>&-
}

restart=0 delay=1
while :; do
    open_pipe
    if [ -n "$elastic" ]; then
        run_elastic_job "$@"
        obey
        judge
    else
        run_job "$@"
        obey
        [ "$status" -eq 0 ] || say_failure
    fi
    if [ "$restart" -ge "$restarts" ]; then
        [ "$restarts" -eq 0 ] || [ "$status" -eq 0 ] ||
            printf '%s: the job has run %d times, and is not started again\n' \
                "$name" $((restart + 1)) >&2
        exit "$status"
    fi
    case $status in 0 | "$wrong_line" | 126 | 127) exit "$status" ;; esac
    restart=$((restart + 1))
    export HVD_RESTART=$restart
    [ "$status" -ne "$again" ] || delay=0
    printf '%s: the job is started again%s: restart %d of %d\n' "$name" \
        "$([ $delay -eq 0 ] || echo " in $delay s")" "$restart" "$restarts" >&2
    pause "$delay"
    obey
    child=''
    delay=$((delay == 0 ? 1 : delay < 16 ? 2 * delay : 30))
done
