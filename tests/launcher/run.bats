# SPDX-License-Identifier: Apache-2.0
# hvd-run starts tasks of a cluster, passes on what they write and what is sent
# to it, names the one that fails, and leaves nobody behind.

bats_require_minimum_version 1.5.0

setup() {
    ROOT=$BATS_TEST_DIRNAME/../..
    PATH=${HVD_BUILD:-$ROOT/build}/bin:$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    unset TF_CONFIG HVD_JOB_KEY_FILE HVD_JOB_KEY_FD
}

launch() {
    run timeout 60 hvd-run "$@"
}

# index, in the text of a shell, is the number that TF_CONFIG gives to it.
readonly INDEX='index=${TF_CONFIG##*:}; index=${index%%\}*};'

# within_20_s COMMAND...: runs it until it succeeds, for at most 20 s.
within_20_s() {
    for _ in {1..200}; do
        ! "$@" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

refused() { # status text argument...
    local status_wanted=$1 text=$2
    shift 2
    launch "$@"
    [ "$status" -eq "$status_wanted" ]
    [[ $output == *"$text"* ]]
    [ "${#lines[@]}" -eq 1 ]
}

@test "wrong command lines are one line and status 64" {
    refused 64 "which program?"
    refused 64 "which program?" -n 2
    refused 64 "'0' is not a whole number" -n 0 true
    refused 64 "'x' is not a whole number" -n x true
    refused 64 "'65536' is not a whole number" --base-port 65536 true
    refused 64 "--ranks" --ranks 2 true
    refused 64 "'4' is not MIN:MAX" --elastic 4 true
    refused 64 "'0' is not a whole number from 1" --elastic 0:4 true
    refused 64 "'1' is not a whole number from 2" --elastic 2:1 true
    refused 64 "'-1' is not a whole number" --restarts -1 true
    refused 64 "give one of them" -n 2 --elastic 1:2 true
    refused 64 "--host-discovery-script needs --elastic" --host-discovery-script true true
    launch --help
    [ "$status" -eq 0 ]
    [[ $output == *"hvd-run -n 4 mnist"* ]]
    launch --version
    [ "$status" -eq 0 ]
}

@test "what cannot be started is refused in one line" {
    TF_CONFIG='{}' refused 1 "TF_CONFIG describes a cluster already" true
    OMPI_COMM_WORLD_RANK=0 refused 1 "without the launcher" true
    refused 1 "leaves none for 2 tasks" --base-port 65535 -n 2 true
    refused 1 "more than 1024" -n 1024 --ps 1 true
    run -127 timeout 60 hvd-run ./missing
    [[ $output == *"hvd-run: ./missing: No such file"* ]]
    launch /
    [ "$status" -eq 126 ]
}

@test "options after the program are the program's" {
    launch -n 1 echo -n --ps x --help
    [ "$status" -eq 0 ]
    [ "$output" = '--ps x --help' ]
}

@test "each task is one of the cluster, with another index" {
    launch -n 3 --ps 2 --evaluator hvd-info --cluster
    [ "$status" -eq 0 ]
    [ "$(grep -c 'this process' <<<"$output")" -eq 6 ]
    local task
    for task in "worker 0" "worker 1" "worker 2" "ps 0" "ps 1" "evaluator 0"; do
        [ "$(grep -c "$task .*127.0.0.1:.*<- this process" <<<"$output")" -eq 1 ]
    done
    [ "$(grep -o 'Fingerprint.*' <<<"$output" | sort -u | wc -l)" -eq 1 ]
    launch -n 2 --base-port 20100 hvd-info --cluster
    [[ $output == *"worker 1     127.0.0.1:20101"* ]]
}

@test "the first worker writes as it likes, the others line by line with a name" {
    launch -n 2 sh -c "$INDEX"'
        [ $index = 1 ] || sleep 0.5
        printf "out $index"; printf "\nrest $index"; echo "err $index" >&2'
    [ "$status" -eq 0 ]
    echo "$output" | grep -Fx '[worker 1] out 1'
    echo "$output" | grep -Fx '[worker 1] rest 1'
    echo "$output" | grep -Fx '[worker 1] err 1'
    echo "$output" | grep -x 'out 0'
    echo "$output" | grep -x 'rest 0err 0'
    # Errors stay errors.
    hvd-run -n 2 sh -c 'echo err >&2' 2>/dev/null >out
    [ ! -s out ]
    # A line longer than any buffer, and many of them.
    launch -n 2 sh -c "$INDEX"'
        [ $index = 0 ] || { head -c 10000 /dev/zero | tr "\0" x; echo; seq 20000; }'
    [ "$(grep -c '^\[worker 1\] [0-9]*$' <<<"$output")" -eq 20000 ]
    [ "$(tr -cd x <<<"$output" | wc -c)" -eq 10000 ]
}

@test "only the first worker reads, and nobody listening stops nobody" {
    launch -n 2 sh -c "$INDEX"'echo "$index: $(cat)"' <<<words
    [[ $output == *"0: words"* ]]
    [[ $output == *"[worker 1] 1: "* ]]
    hvd-run -n 2 sh -c "$INDEX"'[ $index = 0 ] || { seq 100000; touch done; }' | true
    [ -e done ]
}

@test "each run has a key of its own, which a process may read again" {
    local i
    for i in 1 2; do
        launch -n 3 sh -c 'head -c 100 "/dev/fd/$HVD_JOB_KEY_FD" | od -An -w32 -tx1'
        echo "$output"
        [ "$status" -eq 0 ]
        sed 's/.*] //' <<<"$output" | sort -u >key.$i
        [ "$(wc -l <key.$i)" -eq 1 ]
        [ "$(wc -c <key.$i)" -eq 97 ]
    done
    ! cmp key.1 key.2
    HVD_JOB_KEY_FILE=/nowhere launch -n 2 sh -c 'echo "file ${HVD_JOB_KEY_FILE-none}"'
    [[ $output == *"file none"* ]]
}

@test "the status is that of the first that fails, which is named" {
    launch -n 3 sh -c "$INDEX"'[ $index != 1 ] || exit 7; sleep 1'
    [ "$status" -eq 7 ]
    [[ $output == *"hvd-run: worker 1 (process "*") failed with status 7; the others are ended"* ]]
    launch -n 2 sh -c "$INDEX"'[ $index != 1 ] || kill -KILL $$; sleep 1'
    [ "$status" -eq 137 ]
    [[ $output == *"worker 1 (process "*") was ended by signal 9"* ]]
    # One that ends well ends nobody.
    launch -n 2 sh -c "$INDEX"'[ $index = 1 ] || { sleep 1; echo late; }'
    [ "$status" -eq 0 ]
    [[ $output == *late* ]]
}

@test "after a failure the others are ended, also who refuses" {
    local begin=$SECONDS
    launch -n 2 sh -c "$INDEX"'[ $index = 0 ] || exit 3; exec sleep 100'
    [ "$status" -eq 3 ]
    launch -n 2 sh -c "$INDEX"'[ $index = 0 ] || exit 3; trap "" TERM; sleep 100 & wait; sleep 100'
    [ "$status" -eq 3 ]
    [ $((SECONDS - begin)) -lt 40 ]
}

@test "signals are passed on" {
    local name
    for name in INT TERM HUP USR1; do
        rm -f ready.*
        python3 - "$name" <<'EOF' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job has it ignored
os.execvp("hvd-run", ["hvd-run", "-n", "2", "bash", "-c", """
    trap 'echo got; exit 5' %s
    touch ready.$$
    while :; do sleep 0.1; done""" % sys.argv[1]])
EOF
        local launcher=$! code=0
        within_20_s bash -c '[ $(ls ready.* | wc -l) -eq 2 ]'
        kill -"$name" $launcher
        wait $launcher || code=$?
        [ "$code" -eq 5 ]
    done
}

@test "a signal of the terminal reaches each task once" {
    python3 - <<'EOF'
import os, pty, time
count = """import os, signal, time
got = 0
def count(number, frame):
    global got
    got += 1
signal.signal(signal.SIGINT, count)
print("ready", flush=True)
end = time.time() + 60
while not got and time.time() < end:
    time.sleep(0.05)
time.sleep(0.5)
# One write, so that no other task's words come in between.
os.write(1, b"interrupts: %d\\n" % got)
"""
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("hvd-run", ["hvd-run", "-n", "3", "python3", "-c", count])
text = b""
sent = False
while True:
    try:
        more = os.read(terminal, 1000)
    except OSError:
        break
    if not more:
        break
    text += more
    if not sent and text.count(b"ready") == 3:
        os.write(terminal, b"\x03")
        sent = True
os.waitpid(pid, 0)
print(text.decode())
assert text.count(b"interrupts: 1") == 3, text
EOF
}

@test "nobody is left when the launcher is killed, or a task leaves a process" {
    hvd-run -n 2 sh -c 'echo $$ >>pids; exec sleep 321' &
    local launcher=$! pid
    within_20_s bash -c '[ $(wc -l <pids) -eq 2 ]'
    kill -KILL $launcher
    wait $launcher || true
    for pid in $(cat pids); do
        within_20_s bash -c "! kill -0 $pid"
    done
    launch -n 2 sh -c 'setsid sleep 321 >/dev/null 2>&1 & echo $! >>orphans'
    [ "$status" -eq 0 ]
    # One that has started another one, which then is the launcher's child.
    launch -n 1 sh -c 'sh -c "sleep 321 & echo \$! >>orphans; touch two; wait" >/dev/null 2>&1 &
        until [ -e two ]; do sleep 0.1; done'
    [ "$status" -eq 0 ]
    for pid in $(cat orphans); do
        ! kill -0 "$pid"
    done
}

@test "a worker that dies is named by the others, and by the launcher" {
    launch -n 3 python3 -c "
import ctypes, os, sys, time
hvd = ctypes.CDLL('${HVD_BUILD:-$ROOT/build}/lib/libhvd.so')
hvd.hvd_last_error.restype = ctypes.c_char_p
if hvd.hvd_init() < 0: sys.exit(hvd.hvd_last_error().decode())
if hvd.hvd_barrier() < 0: sys.exit(2)
if hvd.hvd_rank() == 1: os.kill(os.getpid(), 9)
if hvd.hvd_barrier() < 0: sys.exit('others: ' + hvd.hvd_last_error().decode())
"
    [ "$status" -ne 0 ]
    [[ $output == *"worker 1 (process "*") was ended by signal 9"* ]]
    [[ $output == *"[worker 2] "*"rank 1"* ]]
}

@test "a program may shut libhvd down and start it again" {
    launch -n 2 python3 -c "
import ctypes, sys
hvd = ctypes.CDLL('${HVD_BUILD:-$ROOT/build}/lib/libhvd.so')
hvd.hvd_last_error.restype = ctypes.c_char_p
for i in range(2):
    if hvd.hvd_init() < 0: sys.exit(hvd.hvd_last_error().decode())
    sys.stdout.write('size %d\n' % hvd.hvd_size())
    sys.stdout.flush()
    hvd.hvd_shutdown()
"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'size 2' <<<"$output")" -eq 4 ]
}

# ------------------------------------------------------------------- restarts

@test "a worker that fails is started again, at most so often, later and later" {
    launch -n 2 --restarts 3 sh -c "$INDEX"'
        echo "start $index $HVD_RESTART"
        [ $index = 0 ] && { sleep 4; exit 0; }
        [ $HVD_RESTART = 2 ]'
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'start 0 0' <<<"$output")" -eq 1 ]
    [ "$(grep -c 'start 1 [012]' <<<"$output")" -eq 3 ]
    [[ $output == *"worker 1 (process "*") failed with status 1; it is started again in 1 s: restart 1 of 3"* ]]
    [[ $output == *"it is started again in 2 s: restart 2 of 3"* ]]
    launch -n 2 --restarts 1 sh -c "$INDEX"'[ $index = 0 ] || kill -KILL $$; sleep 20'
    echo "$output"
    [ "$status" -eq 137 ]
    [[ $output == *"signal 9 (Killed); it is started again in 1 s: restart 1 of 1"* ]]
    [[ $output == *"signal 9 (Killed); the others are ended"* ]]
    # What the first start has left of a line comes out, and a new one begins.
    launch -n 2 --restarts 1 sh -c "$INDEX"'[ $index = 0 ] && { sleep 3; exit 0; }
        printf "half $HVD_RESTART"; [ $HVD_RESTART = 1 ]'
    echo "$output"
    echo "$output" | grep -Fx '[worker 1] half 0'
    echo "$output" | grep -Fx '[worker 1] half 1'
}

@test "a worker whose command line is wrong is not started again" {
    local code
    for code in 64 126 127; do
        launch -n 1 --restarts 5 sh -c "exit $code"
        echo "$output"
        [ "$status" -eq "$code" ]
        [[ $output != *"again"* ]]
    done
}

@test "a job that is about to end starts nobody again, and a signal ends restarts" {
    launch -n 2 --restarts 5 sh -c "$INDEX"'[ $index = 1 ] || exit 0; sleep 1; exit 6'
    echo "$output"
    [ "$status" -eq 6 ]
    [[ $output != *"again"* ]]
    hvd-run -n 1 --restarts 9 sh -c 'exit 3' 2>err &
    local launcher=$! code=0
    within_20_s grep -q 'restart 3 of 9' err
    kill -TERM $launcher
    wait $launcher || code=$?
    cat err
    [ "$code" -ne 0 ]
    ! grep 'restart 4 of 9' err
}

@test "ranks that fail meet again when they are started again" {
    launch -n 3 --restarts 2 python3 -c "
import ctypes, os, sys
hvd = ctypes.CDLL('${HVD_BUILD:-$ROOT/build}/lib/libhvd.so')
hvd.hvd_last_error.restype = ctypes.c_char_p
if hvd.hvd_init() < 0: sys.exit(hvd.hvd_last_error().decode())
if hvd.hvd_rank() == 1 and os.environ['HVD_RESTART'] == '0': os.kill(os.getpid(), 9)
if hvd.hvd_barrier() < 0: sys.exit('others: ' + hvd.hvd_last_error().decode())
sys.stdout.write('met %d\\n' % hvd.hvd_size())
sys.stdout.flush()
hvd.hvd_shutdown()
"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'met 3' <<<"$output")" -eq 3 ]
}

# -------------------------------------------------------------------- elastic

@test "with --elastic workers may be lost, as long as enough are left" {
    launch --elastic 2:4 sh -c "$INDEX"'
        echo "elastic $HVD_ELASTIC"
        [ $index != 0 ] || kill -KILL $$; [ $index != 2 ] || exit 7; sleep 2'
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'elastic 1' <<<"$output")" -eq 4 ]
    [[ $output == *"worker 0 (process "*") was ended by signal 9 (Killed); the others go on"* ]]
    [[ $output == *"survived: 2 of 4 workers ended well without worker 0, worker 2"* ]]
    launch --elastic 2:3 sh -c "$INDEX"'sleep 0.$index; [ $index = 2 ] || exit 7; sleep 60'
    echo "$output"
    [ "$status" -eq 7 ]
    [[ $output == *"worker 0 "*"failed with status 7; the others go on"* ]]
    [[ $output == *"worker 1 "*"failed with status 7; the others are ended"* ]]
    # One that fails when others have ended well.
    launch --elastic 1:2 sh -c "$INDEX"'[ $index = 1 ] || exit 0; sleep 1; exit 6'
    [ "$status" -eq 6 ]
}

@test "with --elastic a stopped worker may wake up late, and is ended if it does not" {
    launch --elastic 1:2 sh -c "$INDEX"'[ $index = 1 ] || exit 0
        (sleep 3; kill -CONT $$) & kill -STOP $$; exit 6'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"survived: 1 of 2 workers ended well without worker 1"* ]]
    launch --elastic 1:2 sh -c "$INDEX"'[ $index = 1 ] || exit 0; kill -STOP $$'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"the others have ended, and worker 1 is stopped: it is ended"* ]]
}

@test "a worker that comes back too late is ended" {
    launch --elastic 1:2 --restarts 1 sh -c "$INDEX"'[ $index = 1 ] || { sleep 3; exit 0; }
        [ $HVD_RESTART = 0 ] || sleep 100; exit 5'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"the others have ended, and worker 1 came back too late: it is ended"* ]]
}

# ------------------------------------------------------------------- discovery

@test "a script says how many workers may run" {
    echo localhost:1 >hosts
    hvd-run --elastic 1:3 --host-discovery-script 'cat hosts' sh -c "$INDEX"'
        echo "worker $index"; trap "echo term $index; exit 0" TERM
        while [ ! -e stop ]; do sleep 0.1; done' >out 2>err &
    local launcher=$! code=0
    within_20_s grep -q 'worker 0' out
    sleep 1.5
    ! grep 'worker 1$' out
    printf '127.0.0.1:2\nelsewhere:7\n\n' >hosts
    within_20_s grep -q 'worker 1$' out
    grep -q '2 workers may run now, not 1' err
    # One word more, and too many.
    echo "$(hostname):9" >hosts
    within_20_s grep -q 'worker 2$' out
    # A script that fails changes nothing, and says so once.
    rm hosts
    within_20_s grep -q "the script 'cat hosts' failed with status 1; its last answer stays" err
    echo localhost:2 >hosts
    within_20_s grep -q 'term 2$' out
    grep -q 'worker 2 may no longer run: it is ended' err
    # And back.
    echo localhost:3 >hosts
    within_20_s eval '[ "$(grep -c "worker 2$" out)" -eq 2 ]'
    touch stop
    wait $launcher || code=$?
    cat out err
    [ "$code" -eq 0 ]
    [ "$(grep -c 'failed with status' err)" -eq 1 ]
}

@test "a job with a script begins with as many workers as it needs" {
    launch --elastic 2:4 --host-discovery-script '
        if [ -e asked ]; then echo localhost:2; else touch asked; echo elsewhere:4; fi' \
        python3 -c "
import ctypes
hvd = ctypes.CDLL('${HVD_BUILD:-$ROOT/build}/lib/libhvd.so')
print(f'began: {hvd.hvd_init()}, {hvd.hvd_size()} ranks', flush=True)
hvd.hvd_shutdown()"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'began: 0, 2 ranks' <<<"$output")" -eq 2 ]
    [[ $output == *"0 workers may run now: the job waits for 2"* ]]
    # Also if the script takes long, which ends with the job.
    launch --elastic 1:2 --host-discovery-script \
        'if [ -e first ]; then sleep 322; else touch first; echo localhost:1; fi; :' sleep 3
    [ "$status" -eq 0 ]
    ! pgrep -f 'sleep 322'
}

@test "a script that never answers, or answers nonsense, is named" {
    launch --elastic 1:1 --host-discovery-script 'exit 3' sleep 60
    [ "$status" -eq 1 ]
    [ "$output" = "hvd-run: the script 'exit 3' failed with status 3" ]
    launch --elastic 1:1 --host-discovery-script 'echo localhost:many' sleep 60
    [ "$status" -eq 1 ]
    [[ $output == *"has written 'localhost:many', which is no host or host:workers"* ]]
    launch --elastic 1:1 --host-discovery-script 'kill $$' sleep 60
    [ "$status" -eq 1 ]
    [[ $output == *"was ended by signal 15"* ]]
}

@test "a line of the script that counts for nothing is named once" {
    printf 'localhost:1\nelsewhere:7\nelsewhere:8\n' >hosts
    launch --elastic 1:2 --host-discovery-script 'cat hosts' sleep 2.5
    [ "$status" -eq 0 ]
    [ "$output" = "hvd-run: the host 'elsewhere' is left out: without --rsh workers run on this host only" ]
    printf '127.0.0.1:1\nno.such.host.invalid:1\n' >hosts
    launch --elastic 1:2 --rsh false --host-discovery-script 'cat hosts' true
    [ "$status" -eq 0 ]
    [ "$output" = "hvd-run: the host 'no.such.host.invalid' is left out: its address is not known here" ]
    printf '10.77.9.9:0\n127.0.0.1:1\n' >hosts
    launch --elastic 1:2 --rsh false --host-discovery-script 'cat hosts; kill $$' true
    [ "$status" -eq 1 ]
    [[ $output == *"was ended by signal 15"* ]]
    refused 64 "--rsh needs --elastic and --host-discovery-script" --rsh ssh -n 2 true
    refused 64 "--rsh starts workers only" --rsh ssh --elastic 1:2 --ps 1 \
        --host-discovery-script 'cat hosts' true
}

@test "a worker on a named host has the words, variables, directory and key of all" {
    # This host is named, so no remote shell is needed.
    printf '127.0.0.1:1\n127.0.0.2:2\n' >hosts
    mkdir 'a directory'
    cd 'a directory'
    export WORDS=$'two\nlines' HVD_LOG=error
    launch --elastic 1:4 --base-port 4100 --rsh false \
        --host-discovery-script 'cat ../hosts' sh -c "$INDEX"'
            echo "$1|$WORDS|$PWD|$HVD_ELASTIC$HVD_ELASTIC_MIN|$HVD_LOG"
            echo "key $(wc -c <"$HVD_JOB_KEY_FILE") of $(stat -L -c %a "$HVD_JOB_KEY_FILE")"
            grep "worker-$index " "$HVD_HOSTS_FILE"
            grep "worker-3 " "$HVD_HOSTS_FILE"
            echo "$TF_CONFIG"' sh "it's  one"
    [ "$status" -eq 0 ]
    for worker in 0 1 2; do
        echo "$output" | grep -F "[worker $worker] it's  one|two"
        echo "$output" | grep -F "[worker $worker] lines|$PWD|11|error"
        echo "$output" | grep -F "[worker $worker] key 32 of 400"
        echo "$output" | grep "^\[worker $worker\] 127.0.0.$((worker > 0 ? 2 : 1)) worker-$worker *$"
        echo "$output" | grep "^\[worker $worker\] 127.0.0.1 worker-3 *$"
        echo "$output" | grep -F "[worker $worker] " |
            grep -F '"worker":["worker-0:4100","worker-1:4101","worker-2:4102","worker-3:4103"]'
    done
}

@test "an agent ends its program with its input, and refuses what it does not know" {
    records() { printf '%s\0' "$@"; }
    # The program survives SIGTERM, and what it starts survives it.
    { records Ash A-c 'Atrap "" TERM; sleep 300 & echo $! $$ >pids; wait' R
        until [ -s pids ]; do sleep 0.1; done; } | run -137 timeout 60 hvd-run --agent
    read -r child program <pids
    ! kill -0 "$program" 2>/dev/null || return 1
    ! kill -0 "$child" 2>/dev/null || return 1
    { records 'EX=a b' Ash A-c 'Akill -USR1 $$' R; sleep 5; } |
        run -138 timeout 60 hvd-run --agent
    records Zero >input
    run -1 timeout 60 hvd-run --agent <input
    [ "$output" = "hvd-run: the agent of a worker: standard input: Protocol error" ]
    for record in H3 'H-1 x' 'H1024 x' "H3 $(printf '%080d' 1)" R; do
        records "$record" >input
        run -1 timeout 60 hvd-run --agent <input
        [[ $output == *": Protocol error" ]]
    done
    run -1 timeout 60 hvd-run --agent </dev/null
}
