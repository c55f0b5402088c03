#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A client on one side, servers on the other: what either does when the other
# ends, fails, or is a stranger. strategies.bats compares the losses.

load ../support/models
load ../support/servers

setup() {
    models_setup mnist
    SHORT=(--global-batch 24 --train-images 240 --test-images 48 --epochs 2
        --model mlp)
    LONG=(--train-images 2400 --test-images 48 --epochs 100000 --eval-every 0
        --model mlp)
    unset TF_CONFIG HVD_JOB_KEY_FILE HVD_JOB_KEY_FD
}

teardown() {
    local pid
    for pid in "${clients[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
    done
    servers_stop
}

clients=()

# client ARGS...: starts a client in the background, and waits until all workers
# are there.
client() {
    local i tries
    "$PROGRAM" --remote "$CLUSTER" "$@" >"$OUT/client.out" 2>"$OUT/client.err" \
        3>&- &
    clients+=($!)
    for i in "${!SERVERS[@]}"; do
        for ((tries = 0; tries < 100; tries++)); do
            workers_of "$i" >/dev/null && break
            sleep 0.1
        done
        workers_of "$i"
    done
    sleep 1
}

# ended_within SECONDS PID
ended_within() {
    local i
    for ((i = 0; i < $1 * 10; i++)); do
        kill -0 "$2" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# trains ARGS...: the servers train, and the client prints what a run does.
trains() {
    run "$PROGRAM" --remote "$CLUSTER" "${SHORT[@]}" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} =~ "weights        equal on all ranks" ]]
    no_workers 5
}

@test "two trainings one after the other have the weights of multi-worker" {
    servers 2
    "$BATS_TEST_DIRNAME/../tools/by-hand" 2 "$PROGRAM" "${SHORT[@]}" \
        --save-weights "$OUT/local" --summary "$OUT/local.json"
    trains --save-weights "$OUT/first" --summary "$OUT/summary.json"
    trains --save-weights "$OUT/second"
    cmp "$OUT/local" "$OUT/first"
    cmp "$OUT/local" "$OUT/second"
    [ "$(field world_size)" = 2 ]
    [ "$(field weights_hash)" = \
        "$(sed -n 's/.*"weights_hash": "\(.*\)",/\1/p' "$OUT/local.json")" ]
    trains --load-weights "$OUT/first" --save-weights "$OUT/third"
    ! cmp -s "$OUT/first" "$OUT/third"
}

@test "char_gpt sends its text, and gets the sample" {
    local shape=(--layers 1 --width 16 --heads 2 --context 16 --steps 20
        --dropout 0.1 --sample 40 --eval-windows 8)
    PROGRAM=$(dirname "$PROGRAM")/char_gpt
    for ((i = 0; i < 200; i++)); do
        echo "line $i of a text, to be learnt by two"
    done >"$OUT/text"
    servers 2
    "$BATS_TEST_DIRNAME/../tools/by-hand" 2 "$PROGRAM" "${shape[@]}" \
        --text "$OUT/text" --save-weights "$OUT/local" >"$OUT/local.out"
    (cd "$OUT" && "$PROGRAM" --remote "$CLUSTER" "${shape[@]}" --text text \
        --save-weights remote >remote.out)
    cmp "$OUT/local" "$OUT/remote"
    # The sample, behind the empty line.
    diff <(sed '1,/^$/d' "$OUT/local.out") <(sed '1,/^$/d' "$OUT/remote.out")
    [ -n "$(sed '1,/^$/d' "$OUT/remote.out")" ]
}

@test "a client that is killed takes its training with it, and no more" {
    servers 2
    client "${LONG[@]}"
    kill -9 "${clients[0]}"
    no_workers 5
    server_says 0 "the connection ended"
    server_says 1 "the connection ended"
    trains
}

@test "a client that is interrupted ends by that signal, as a run here does" {
    local status=0
    servers 2
    # A process in the background of a script would ignore SIGINT.
    timeout -s INT 3 "$PROGRAM" --remote "$CLUSTER" "${LONG[@]}" >/dev/null ||
        status=$?
    [ "$status" -eq 124 ]
    no_workers 5
    trains
}

@test "a client that is heard no more is gone after ten seconds" {
    servers 1
    client "${LONG[@]}"
    kill -STOP "${clients[0]}"
    no_workers 15
    server_says 0 "nothing was heard for 10 seconds"
    kill -CONT "${clients[0]}"
    ended_within 5 "${clients[0]}"
    trains
}

@test "a server that is killed is named, and the others stay" {
    servers 2
    client "${LONG[@]}"
    local worker
    worker=$(workers_of 1)
    kill -9 "${SERVERS[1]}"
    ended_within 10 "${clients[0]}"
    local status=0
    wait "${clients[0]}" || status=$?
    cat "$OUT/client.err"
    [ "$status" -eq 1 ]
    grep "^mnist: worker 1 at localhost:${PORTS[1]}: the connection " \
        "$OUT/client.err"
    ended_within 5 "$worker"
    # Without it, the client says whom it misses.
    run "$PROGRAM" --remote "$CLUSTER" "${SHORT[@]}"
    [ "$status" -eq 1 ]
    assert_one_line "mnist: worker 1 at localhost:${PORTS[1]}" \
        "is hvd-server started?"
    # The folder that it left goes with the next training.
    compgen -G "$OUT/hvd-remote.*"
    server 1
    trains
}

@test "a server that is told to end takes its worker along" {
    servers 2
    client "${LONG[@]}"
    local worker status=0
    worker=$(workers_of 0)
    kill "${SERVERS[0]}"
    wait "${SERVERS[0]}" || status=$?
    [ "$status" -eq 143 ]
    ! kill -0 "$worker" 2>/dev/null
    ended_within 10 "${clients[0]}"
    no_workers 10
}

@test "a worker that crashes is named, and its server stays" {
    servers 2
    client "${LONG[@]}"
    kill -SEGV "$(workers_of 1)"
    ended_within 10 "${clients[0]}"
    cat "$OUT/client.err"
    server_says 1 "the worker was ended by signal 11"
    grep "^mnist: worker 1 at localhost:${PORTS[1]}: .* signal 11" \
        "$OUT/client.err"
    no_workers 10
    trains
}

@test "a second client is refused while the first trains" {
    servers 2
    client "${LONG[@]}"
    run "$PROGRAM" --remote "$CLUSTER" "${SHORT[@]}"
    [ "$status" -eq 1 ]
    assert_one_line "mnist: worker " "this server trains for 127.0.0.1:" \
        "try again"
    kill -0 "${clients[0]}"
    kill "${clients[0]}"
    trains
}

@test "keys must be the same" {
    head -c 32 /dev/urandom >"$OUT/key"
    head -c 32 /dev/urandom >"$OUT/other"
    chmod 600 "$OUT/key" "$OUT/other"
    export HVD_JOB_KEY_FILE=$OUT/key
    servers 2
    trains
    HVD_JOB_KEY_FILE=$OUT/other run "$PROGRAM" --remote "$CLUSTER"
    [ "$status" -eq 1 ]
    assert_one_line "worker 0 at localhost:${PORTS[0]}" "another key"
    unset HVD_JOB_KEY_FILE
    run "$PROGRAM" --remote "$CLUSTER"
    [ "$status" -eq 1 ]
    assert_one_line "another key"
    HVD_JOB_KEY_FD=5 run "$PROGRAM" --remote "$CLUSTER" "${SHORT[@]}" \
        5<"$OUT/key"
    [ "$status" -eq 0 ]
    chmod 644 "$OUT/key"
    HVD_JOB_KEY_FILE=$OUT/key run "$PROGRAM" --remote "$CLUSTER"
    [ "$status" -eq 1 ]
    assert_one_line "chmod 600"
}

@test "another description of the cluster is refused" {
    servers 2
    echo "{\"cluster\":{\"worker\":[\"localhost:${PORTS[0]}\"]}}" >"$OUT/other"
    run "$PROGRAM" --remote "$OUT/other" "${SHORT[@]}"
    [ "$status" -eq 1 ]
    assert_one_line "worker 0 at localhost:${PORTS[0]}" \
        "another description of the cluster"
    echo "{\"cluster\":{\"worker\":[\"localhost:${PORTS[1]}\",\"localhost:${PORTS[0]}\"]}}" >"$OUT/other"
    run "$PROGRAM" --remote "$OUT/other" "${SHORT[@]}"
    [ "$status" -eq 1 ]
    assert_one_line "another description of the cluster"
    run "$PROGRAM" --remote "$OUT/none"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/none"
}

@test "what a server does not find is named" {
    servers 2
    run "$PROGRAM" --remote "$CLUSTER" --data /nowhere
    [ "$status" -eq 1 ]
    [[ $output =~ "worker 0 at localhost:${PORTS[0]}: mnist: " ]]
    [[ $output =~ "/nowhere" ]]
    [[ ${lines[-1]} =~ "the worker ended with status 1" ]]
    no_workers 5
    run "$PROGRAM" --remote "$CLUSTER" --batch-size 9 --train-images 10
    [ "$status" -eq 1 ]
    no_workers 5
    trains
}

@test "options that a client cannot send are refused" {
    run "$PROGRAM" --remote "$OUT/none" --profile text
    [ "$status" -eq 64 ]
    assert_one_line "--profile" "--remote"
    run "$PROGRAM" --remote "$OUT/none" --strategy horovod
    [ "$status" -eq 64 ]
    assert_one_line "--remote" "multi-worker" "horovod"
    run "$(dirname "$PROGRAM")/char_gpt" --remote "$OUT/none" --stages 2
    [ "$status" -eq 64 ]
    assert_one_line "--stages" "--remote"
    run "$PROGRAM" --remote "$OUT/none" --losses /nowhere/losses
    [ "$status" -eq 1 ]
    assert_one_line "--losses /nowhere/losses"
}

@test "a server of names that does not answer holds up neither side" {
    gcc -shared -fPIC -o "$OUT/slow.so" \
        "$BATS_TEST_DIRNAME/../support/slow_names.c"
    servers 1
    export SLOW_PORT=${PORTS[0]}
    SECONDS=0
    LD_PRELOAD=$OUT/slow.so timeout 20 "$(dirname "$PROGRAM")/hvd-server" \
        --cluster "$CLUSTER" --task worker:0 2>"$OUT/late" 3>&- &
    LD_PRELOAD=$OUT/slow.so run timeout 20 "$PROGRAM" --remote "$CLUSTER"
    [ "$status" -eq 1 ]
    assert_one_line "mnist: worker 0 at localhost:$SLOW_PORT" \
        "its name was not found within 10 s"
    status=0
    wait $! || status=$?
    [ "$status" -eq 1 ]
    grep "the address localhost:$SLOW_PORT: its name was not found" "$OUT/late"
    [ "$SECONDS" -lt 15 ]
    trains
}

@test "a server that cannot begin says why" {
    local server
    server=$(dirname "$PROGRAM")/hvd-server
    run "$server"
    [ "$status" -eq 1 ]
    assert_one_line "hvd-server: " "--cluster" "TF_CONFIG"
    servers 1
    run "$server" --cluster "$CLUSTER"
    [ "$status" -eq 1 ]
    assert_one_line "task"
    run "$server" --cluster "$CLUSTER" --task worker:1
    [ "$status" -eq 1 ]
    assert_one_line "--task worker:1" "no such task"
    run "$server" --cluster "$CLUSTER" --task bogus
    [ "$status" -eq 1 ]
    assert_one_line "--task: 'bogus'"
    run "$server" --cluster "$CLUSTER" --task worker:0
    [ "$status" -eq 1 ]
    assert_one_line "localhost:${PORTS[0]}" "a process uses that port"
    echo '{"cluster":{"worker":["192.0.2.1:3737"]}}' >"$OUT/far"
    run "$server" --cluster "$OUT/far" --task worker:0
    [ "$status" -eq 1 ]
    assert_one_line "192.0.2.1:3737" "HVD_JOB_KEY_FILE"
    run "$PROGRAM" --remote "$OUT/far"
    [ "$status" -eq 1 ]
    assert_one_line "192.0.2.1:3737" "HVD_JOB_KEY_FILE"
    run "$server" --job-port 70000
    [ "$status" -eq 64 ]
    TF_CONFIG='{"cluster":{"worker":["localhost:1"],"ps":["localhost:2"]},"task":{"type":"ps","index":0}}' \
        run "$server"
    [ "$status" -eq 1 ]
    assert_one_line "ps"
}

@test "strangers have no effect but a counted line" {
    servers 2
    client "${LONG[@]}"
    "$BATS_TEST_DIRNAME/stranger" "$CLUSTER" 0 garbage half-open truncated \
        wrong-key replay
    kill -0 "${clients[0]}"
    workers_of 0
    server_says 0 "a connection was refused"
    # A line in ten seconds is enough.
    sleep 6
    "$BATS_TEST_DIRNAME/stranger" "$CLUSTER" 0 truncated
    server_says 0 "a connection was refused (4"
    kill "${clients[0]}"
    no_workers 5
    trains
}

@test "a client that has the key and breaks the rules is hung up on" {
    servers 1
    "$BATS_TEST_DIRNAME/stranger" "$CLUSTER" 0 oversized bad-magic bad-kind \
        no-json unknown-option other-program escape file-first too-much \
        early-start bad-start bad-graph
    server_says 0 "no frame"
    server_says 0 "'strategy' is no option that a client may send"
    server_says 0 "more of a file came"
    no_workers 5
    trains
}
