# SPDX-License-Identifier: Apache-2.0
# mpi-launch.sh reads its command line, reports how ranks end, and handles
# signals.

setup() {
    LAUNCH=$BATS_TEST_DIRNAME/../../mpi-launch.sh
    cd "$BATS_TEST_TMPDIR" || return 1
    unset OMP_NUM_THREADS OPENBLAS_NUM_THREADS COLUMNS
}

launch() {
    run timeout 60 "$LAUNCH" "$@"
}

# within_30_s COMMAND...: runs it until it succeeds, for at most 30 s.
within_30_s() {
    for _ in {1..300}; do
        ! "$@" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# lines_in FILE N [WORD]: succeeds if it has N lines, with the word.
lines_in() {
    [ "$(grep -c -- "${3-}" "$1")" -eq "$2" ]
}

refused() { # status text argument...
    local status_wanted=$1 text=$2
    shift 2
    launch "$@"
    [ "$status" -eq "$status_wanted" ]
    [[ $output == *"$text"* ]]
    [ "${#lines[@]}" -eq 1 ]
}

@test "wrong command lines are one line and status 2" {
    refused 2 "-np N" true
    refused 2 "'0'" -np 0 true
    refused 2 "'-3'" -np -3 true
    refused 2 "'two'" -np two true
    refused 2 "'1.5'" -np 1.5 true
    refused 2 "-np needs a value" -np
    refused 2 "program is missing" -np 2
    refused 2 "'--bogus'" -np 2 --bogus true
    refused 2 "'A B'" -np 2 -x 'A B' true
    refused 2 "host" -np 2 -H 'a:b' true
    refused 2 "cannot be read" -np 2 --hostfile nowhere true
    refused 2 "--min-np needs --elastic" -np 2 --min-np 2 true
    refused 2 "--min-np 3 is more than -np 2" -np 2 --elastic --min-np 3 true
    refused 2 "--spare needs --elastic" -np 2 --spare 1 true
    refused 2 "--accelerate and --elastic exclude" -np 2 --elastic --accelerate true
    refused 2 "--spare 'x' is not a number" -np 2 --elastic --spare x true
    refused 2 "--min-np '0'" -np 2 --elastic --min-np 0 true
    refused 2 "--restarts 'x'" -np 2 --restarts x true
    refused 2 "exclude" -np 2 -H a:1 --hostfile "$BATS_TEST_FILENAME" true
}

@test "programs that cannot run are 126 and 127" {
    refused 127 "no program './nothing'" -np 2 ./nothing
    refused 127 "no program 'no-such-program'" -np 2 no-such-program
    touch plain
    refused 126 "not executable" -np 2 ./plain
    refused 126 "is a directory" -np 2 ./
}

@test "a missing mpirun is explained" {
    mkdir bin
    local tool
    for tool in bash env nproc id readlink cat grep; do
        ln -s "$(command -v "$tool")" bin/
    done
    printf '#!/bin/sh\necho "HYDRA build details:"\n' >bin/mpirun
    chmod +x bin/mpirun
    run env PATH="$PWD/bin" "$LAUNCH" -np 2 env
    [ "$status" -eq 127 ]
    [[ $output == *"not Open MPI"* ]]
    [[ $output == *"apt-get install openmpi-bin"* ]]
}

@test "too few open files are a line, and not for ever" {
    ulimit -S -n 35
    launch -np 2 true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    ulimit -n 35
    launch -np 2 true
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"2 ranks take mpirun about 40 open files, and 'ulimit -n' allows 35: raise it"* ]]
}

@test "arguments arrive as they were given" {
    launch -np 1 printf '[%s]' 'a b' '$HOME' "it's" '' '*' '"' $'n\nl' '\'
    [ "$status" -eq 0 ]
    [ "$output" = "[a b][\$HOME][it's][][*][\"][n
l][\\]" ]
}

@test "options of the program are the program's" {
    launch -np 1 -- printf '%s' -np
    [ "$output" = "-np" ]
    launch -np 1 echo --help -x
    [ "$output" = "--help -x" ]
}

@test "a dry run prints what would be run, to be pasted" {
    launch -np 2 --dry-run printf '%s.' 'a b' "it's"
    [ "$status" -eq 0 ]
    [[ $output == *"mpirun -np 2"*"--bind-to none"* ]]
    run bash -c "$output"
    [ "$output" = "a b.it's.a b.it's." ]
}

@test "HVD_ variables and those named with -x reach the ranks" {
    export HVD_SOMETHING='a b' OTHER=1 NAMED=2
    launch -np 2 sh -c 'echo "$HVD_SOMETHING/$NAMED/$GIVEN"' \
        -x ignored-by-sh
    launch -np 2 -x NAMED -x GIVEN='x y' \
        sh -c 'echo "$HVD_SOMETHING/$NAMED/$GIVEN"'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "a b/2/x y" ]
    [ "${lines[1]}" = "a b/2/x y" ]
    launch -np 1 --dry-run true
    [[ $output == *"-x HVD_SOMETHING"* ]]
    [[ $output != *"-x OTHER"* ]]
}

@test "ranks are bound only where that helps" {
    launch -np 2 --dry-run true
    [[ $output == *"--bind-to none"* ]]
    cores=$(grep -o ' --oversubscribe' <<<"$output" || true)
    OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 launch -np 2 --dry-run true
    [ "$(grep -o ' --oversubscribe' <<<"$output" || true)" = "$cores" ]
    OMP_NUM_THREADS=4 launch -np 2 --dry-run true
    [[ $output == *"--bind-to none"* ]]
    launch -np 512 --dry-run true
    [[ $output == *"--oversubscribe"* ]]
    [[ $output == *"--bind-to none"* ]]
    [[ $output == *"take turns"* ]]
    launch -np 3 -H one:2,two:1 --dry-run true
    [[ $output == *'-H one:2\,two:1'* ]]
    [[ $output == *"--bind-to core"* ]]
}

@test "the first rank that failed is named, and its status is ours" {
    launch -np 3 sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || exit 7; sleep 20'
    [ "$status" -eq 7 ]
    [[ $output == *"rank 1 on "*"exited with status 7"* ]]
    launch -np 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" != 0 ] || kill -SEGV $$
        sleep 20'
    [ "$status" -eq 139 ]
    [[ $output == *"rank 0 on "*"signal 11 (SIGSEGV)"* ]]
    launch -np 2 true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "a rank that was killed failed before those that noticed" {
    # The other one's end is noted first, but nothing was done to it.
    launch -np 2 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
            until [ -e noticed ]; do sleep 0.01; done
            sleep 0.05; kill -KILL $$
        fi
        : >noticed; exit 3'
    [ "$status" -eq 137 ]
    [[ $output == *"rank 1 on "*"signal 9 (SIGKILL)"* ]]
}

@test "output and input are the program's" {
    run bash -c "echo hello | '$LAUNCH' -np 1 cat 2>/dev/null"
    [ "$output" = hello ]
    run bash -c "'$LAUNCH' -np 1 sh -c 'echo out; echo err >&2' 2>/dev/null"
    [ "$output" = out ]
}

@test "ranks are told that there is no terminal" {
    launch -np 2 sh -c 'echo "$HVD_TTY $COLUMNS"'
    [ "${lines[0]}" = "0 80" ]
    COLUMNS=133 launch -np 1 sh -c 'echo "$COLUMNS"'
    [ "$output" = 133 ]
}

@test "ranks are told that there is a terminal" {
    run script -qec "stty cols 101; '$LAUNCH' -np 1 sh -c 'echo \"\$HVD_TTY \$COLUMNS\"'" \
        /dev/null
    [[ $output == *"1 101"* ]]
}

# This program ignores signals.
stubborn='trap "" INT TERM HUP; echo ready; while :; do sleep 1; done'

@test "signals end everything, also what ignores them" {
    local signal number pid
    for signal in INT:130 TERM:143 HUP:129; do
        number=${signal#*:} signal=${signal%:*}
        rm -f out
        # A shell's background commands have SIGINT ignored.
        env --default-signal=INT timeout -s KILL 60 "$LAUNCH" -np 2 \
            sh -c "$stubborn" "mark-$BATS_TEST_TMPDIR" >out 2>err 3>&- &
        within_30_s lines_in out 2 ready
        pid=$(pgrep -of "^bash .*$LAUNCH")
        kill -s "$signal" "$pid"
        kill -s "$signal" "$pid"
        status=0
        wait $! || status=$?
        [ "$status" -eq "$number" ]
        grep -q "ended by SIG$signal" err
        ! pgrep -f "^sh -c.*mark-$BATS_TEST_TMPDIR"
    done
}

@test "a second signal ends an mpirun that is stuck, and its ranks" {
    export TMPDIR=$PWD/tmp
    mkdir tmp
    env --default-signal=INT timeout -s KILL 60 "$LAUNCH" -np 2 \
        sh -c "$stubborn" "mark-$BATS_TEST_TMPDIR" >out 2>err 3>&- &
    within_30_s lines_in out 2 ready
    launcher=$(pgrep -of "^bash .*$LAUNCH")
    kill -STOP "$(pgrep -P "$launcher" mpirun)"
    kill -INT "$launcher"
    sleep 1.2
    pgrep -f "^sh -c.*mark-$BATS_TEST_TMPDIR"
    kill -INT "$launcher"
    status=0
    wait $! || status=$?
    cat err
    [ "$status" -eq 130 ]
    grep -q 'SIGINT again: mpirun and its ranks are ended by force' err
    grep -q 'ended by SIGINT' err
    ! pgrep -f "^sh -c.*mark-$BATS_TEST_TMPDIR"
    [ -z "$(ls -A tmp)" ]
}

@test "an mpirun that hangs when all ranks have ended is ended" {
    timeout -s KILL 60 "$LAUNCH" -np 2 sh -c \
        'touch "ready$OMPI_COMM_WORLD_RANK"; while [ ! -e go ]; do sleep 0.1; done; exit 5' \
        >out 2>err 3>&- &
    within_30_s [ -e ready0 -a -e ready1 ]
    launcher=$(pgrep -of "^bash .*$LAUNCH")
    kill -STOP "$(pgrep -P "$launcher" mpirun)"
    touch go
    status=0
    wait $! || status=$?
    cat err
    [ "$status" -eq 5 ]
    grep -q 'mpirun hangs, although all ranks of this host have ended' err
    grep -q 'rank [01] on .* failed first: it exited with status 5' err
}

@test "nothing outlives a launcher that is killed outright" {
    local mark="$BATS_TEST_TMPDIR/here" launcher
    touch "$mark"
    TMPDIR=$BATS_TEST_TMPDIR "$LAUNCH" -np 2 sh -c "echo \$\$ >>'$mark'; exec sleep 60" 3>&- &
    launcher=$!
    within_30_s lines_in "$mark" 2
    [ "$(ls -A "$BATS_TEST_TMPDIR" | grep -v '^here$\|^ompi\.')" = '' ]
    kill -9 "$launcher"
    # shellcheck disable=SC2046 # numbers
    within_30_s eval '! kill -0 $(cat "$mark")'
}

@test "with --elastic the ranks that end well decide, and the lost are named" {
    launch -np 3 --elastic sh -c '
        [ "$OMPI_COMM_WORLD_RANK" = 1 ] || touch "gone$OMPI_COMM_WORLD_RANK"
        [ "$OMPI_COMM_WORLD_RANK" != 0 ] || kill -KILL $$
        [ "$OMPI_COMM_WORLD_RANK" != 2 ] || exit 7
        until [ -e gone0 -a -e gone2 ]; do sleep 0.1; done
        sleep 2; echo "elastic $HVD_ELASTIC"'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"elastic 1"* ]]
    [[ $output == *"survived: 1 of 3 ranks ended well without rank 0 on "*"signal 9 (SIGKILL)), rank 2 on "*"exited with status 7"* ]]
    launch -np 2 --elastic sh -c 'sleep 0.$OMPI_COMM_WORLD_RANK; exit 3'
    echo "$output"
    [ "$status" -eq 3 ]
    [[ $output == *"failed first: it exited with status 3"* ]]
    launch -np 2 --elastic --min-np 2 sh -c \
        '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || { touch gone; exit 4; }
        until [ -e gone ]; do sleep 0.1; done; sleep 2'
    echo "$output"
    [ "$status" -eq 4 ]
    [[ $output == *"1 of 2 ranks ended well, and --min-np is 2"* ]]
    launch -np 2 --elastic true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "with --elastic a rank that fails after the others is not survived" {
    launch -np 2 --elastic sh -c \
        '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exit 0; sleep 3; exit 6'
    echo "$output"
    [ "$status" -eq 6 ]
    [[ $output == *"rank 1 on "*" failed after others had ended well: it exited with status 6"* ]]
}

@test "with --spare there are more ranks, and those that were not needed may fail" {
    launch -np 2 --elastic --spare 2 sh -c \
        '[ "$OMPI_COMM_WORLD_RANK" -ge 2 ] || exit 0
        sleep 2; echo "of $OMPI_COMM_WORLD_SIZE, $HVD_SPARES"; exit 6'
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^of 4, 2' <<<"$output")" -eq 2 ]
    [[ $output != *survived* ]]
    # Rank 0 is lost, so rank 2 is needed, and rank 3 is not.
    launch -np 2 --elastic --spare 2 sh -c '
        case $OMPI_COMM_WORLD_RANK in
        0) kill -KILL $$ ;;
        1) sleep 2 ;;
        *) sleep $((2 * OMPI_COMM_WORLD_RANK)); exit $OMPI_COMM_WORLD_RANK ;;
        esac'
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"rank 2 on "*" failed after others had ended well: it exited with status 2"* ]]
    # A signal never counts as an end of its own.
    launch -np 2 --elastic --spare 1 sh -c '
        case $OMPI_COMM_WORLD_RANK in
        2) kill -KILL $$ ;;
        *) sleep 3 ;;
        esac'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"survived: 2 of 3 ranks and spares ended well without rank 2 on "*"signal 9"* ]]
}

@test "with --elastic a stopped rank may wake up late, and is ended if it does not" {
    launch -np 2 --elastic sh -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exit 0
        (sleep 5; kill -CONT $$) & kill -STOP $$; exit 6'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"without rank 1 on "*"exited with status 6"* ]]
    launch -np 2 --elastic sh -c \
        '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exit 0; kill -STOP $$'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"the other ranks have ended, and what is left is stopped: it is ended"* ]]
    [[ $output == *"without rank 1 on "*"signal 9 (SIGKILL)"* ]]
}

@test "with --elastic nothing of the dead is left, nor of shells that died with them" {
    cat >rank.c <<'END'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file || fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
        abort();
    fclose(file);
    return parent;
}

int main(int argc, char **argv)
{
    int rank, flag = 0;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (rank == 1)
        kill(getppid(), SIGKILL);
    if (rank == 1 || rank == 2)
        kill(getpid(), SIGKILL);
    sleep(2);
    if (rank == 0 && argc > 1) {
        sleep(2);
        kill(parent_of(getppid()), SIGSTOP);
        kill(getppid(), SIGKILL);
    }
    _exit(0);
}
END
    mpicc -o rank rank.c
    mkdir memory tmp
    TMPDIR=$PWD/tmp OMPI_MCA_btl_vader_backing_directory=$PWD/memory \
        launch -np 4 --elastic ./rank
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"survived: 2 of 4 ranks ended well without rank 1 on "*"(which went without a report), rank 2 on "* ]]
    [ -z "$(ls -A memory)" ]
    [ -z "$(ls -A tmp)" ]
    # mpirun does not clean up, for it is stopped, nor does the shell of rank 0.
    TMPDIR=$PWD/tmp OMPI_MCA_btl_vader_backing_directory=$PWD/memory \
        launch -np 4 --elastic ./rank stop
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"mpirun hangs, although all ranks have ended: it is ended by force"* ]]
    [[ $output == *"survived: 1 of 4 ranks ended well without rank 0 on "*"(which went without a report)"* ]]
    [ -z "$(ls -A memory)" ]
    [ -z "$(ls -A tmp)" ]
}

@test "ranks on one host look for no devices that are not there" {
    local devices found='^cm'
    devices=$(ls /sys/class/infiniband 2>/dev/null) || true
    [ -z "$devices" ] || found=
    unset OMPI_MCA_pml OMPI_MCA_mtl HWLOC_PLUGINS_BLACKLIST
    launch -np 2 sh -c 'echo "pml $OMPI_MCA_pml, without $HWLOC_PLUGINS_BLACKLIST"'
    echo "$output"
    [ "$(grep -cxF "pml $found, without hwloc_opencl.so,hwloc_gl.so" \
        <<<"$output")" -eq 2 ]
    HWLOC_PLUGINS_BLACKLIST= launch -np 2 --mpi-arg --mca --mpi-arg pml --mpi-arg ob1 \
        sh -c 'echo "pml $OMPI_MCA_pml, without $HWLOC_PLUGINS_BLACKLIST"'
    echo "$output"
    [ "$(grep -cx "pml ob1, without " <<<"$output")" -eq 2 ]
}

@test "--restarts starts a job again, at most so often" {
    launch -np 2 --restarts 3 sh -c 'echo "run $HVD_RESTART"; [ "$HVD_RESTART" = 2 ]'
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^run 2$' <<<"$output")" -eq 2 ]
    [[ $output == *"the job is started again in 1 s: restart 1 of 3"* ]]
    [[ $output == *"the job is started again in 2 s: restart 2 of 3"* ]]
    launch -np 1 --restarts 1 sh -c 'exit 5'
    [ "$status" -eq 5 ]
    [[ $output == *"the job has run 2 times, and is not started again"* ]]
    # A program may ask for it, at once.
    launch -np 1 --restarts 1 sh -c '[ "$HVD_RESTART" = 1 ] || exit 75'
    [ "$status" -eq 0 ]
    [[ $output == *"the job is started again: restart 1 of 1"* ]]
    # One that cannot be run, or has got a wrong command line, is not run again.
    local code
    for code in 126 127 64; do
        launch -np 1 --restarts 5 sh -c "exit $code"
        [ "$status" -eq "$code" ]
        [[ $output != *"again"* ]]
    done
    # With ranks that are lost.
    launch -np 2 --elastic --restarts 1 sh -c \
        '[ "$HVD_RESTART" = 1 ] || exit 9
        [ "$OMPI_COMM_WORLD_RANK" = 1 ] || { touch left; exit 8; }
        until [ -e left ]; do sleep 0.1; done; sleep 2'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"survived: 1 of 2 ranks ended well without rank 0"* ]]
}

# Whoever was lost first has another status.
@test "survivors who ask for it have an elastic job started again at once" {
    cat >rank <<'END'
[ "$HVD_RESTART" = 0 ] || exit 0
[ "$OMPI_COMM_WORLD_RANK" = 1 ] || { touch lost; kill -9 $$; }
until [ -e lost ]; do sleep 0.1; done
sleep 0.5
exit 75
END
    launch -np 2 --elastic --restarts 1 bash rank
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"rank 1 on "*" asks for another start of the job (status 75)"* ]]
    [[ $output == *"the job is started again: restart 1 of 1"* ]]
    HVD_RESTART=0 launch -np 2 --elastic bash rank
    [ "$status" -eq 75 ]
}

@test "a signal ends a job that waits to be started again" {
    env --default-signal=INT timeout -s KILL 60 "$LAUNCH" -np 1 --restarts 9 \
        sh -c 'exit 5' >out 2>err 3>&- &
    within_30_s lines_in err 1 'in 4 s: restart 3 of 9'
    kill -INT "$(pgrep -of "^bash .*$LAUNCH")"
    status=0
    wait $! || status=$?
    cat err
    [ "$status" -eq 130 ]
    grep -q 'ended by SIGINT' err
}
