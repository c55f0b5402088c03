#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# One network, one seed and one global batch under each strategy: the loss of
# every step must be that of one process, but for rounding.

load ../support/models
load ../support/servers

setup() {
    models_setup mnist
    TOOLS=$BATS_TEST_DIRNAME/../tools
    digits 4800 500
    GLOBAL=(--data "$DIGITS" --global-batch 48 --train-images 2400
        --test-images 100 --steps 200 --epochs 10 --eval-every 0
        --optimizer momentum --lr 0.02 --model mlp)
    # The losses are those of one process, which all tests of this file need.
    ONE=$BATS_FILE_TMPDIR/one
    [ -e "$ONE" ] || "$PROGRAM" "${GLOBAL[@]}" --losses "$ONE" >/dev/null
}

teardown() {
    servers_stop
}

# same_losses FILE [STEPS]: every loss differs from that of one process by less
# than rounding explains, and there are as many.
same_losses() {
    [ "$(wc -l <"$1")" -eq "${2:-200}" ]
    paste -d ' ' "$ONE" "$1" | awk -v tolerance="${TOLERANCE:-2e-4}" '
        NF == 4 && $1 == $3 {
            apart = $2 - $4
            if (apart < 0) apart = -apart
            if (apart > worst) { worst = apart; step = $1 }
        }
        END {
            printf "worst: %g at step %d\n", worst, step
            exit !(worst < tolerance)
        }'
}

@test "horovod: 2 and 4 ranks have the losses of one process" {
    local n
    for n in 2 4; do
        ranks "$n" --strategy horovod "${GLOBAL[@]}" --losses "$OUT/losses"
        assert_status_everywhere "$n" 0
        same_losses "$OUT/losses"
    done
}

@test "multi-worker: 2 and 3 processes have the losses of one" {
    local n
    for n in 2 3; do
        "$TOOLS/by-hand" "$n" "$PROGRAM" --strategy multi-worker \
            "${GLOBAL[@]}" --losses "$OUT/losses"
        same_losses "$OUT/losses"
    done
}

@test "mirrored: 2, 3 and 4 replicas have the losses of one device" {
    local n
    for n in 2 3 4; do
        "$PROGRAM" --strategy mirrored --replicas "$n" "${GLOBAL[@]}" \
            --losses "$OUT/losses" >"$OUT/log"
        same_losses "$OUT/losses"
        grep -q "1 rank of $n replicas, 48 images" "$OUT/log"
    done
}

@test "mirrored: the way of sums changes cycles and bytes, and no number" {
    local way n sums all=""
    local -a short=("${GLOBAL[@]}" --steps 5)
    for n in 2 4; do
        rm -f "$OUT/first"
        for way in "" "--cross-device hierarchical" "--cross-device one-device" \
            "--packs 1" "--packs 3 --cross-device one-device"; do
            # shellcheck disable=SC2086
            "$PROGRAM" "${short[@]}" --replicas "$n" $way --losses "$OUT/losses" \
                --save-weights "$OUT/weights" --summary "$OUT/summary.json" >"$OUT/log"
            [ -e "$OUT/first" ] || cat "$OUT/losses" "$OUT/weights" >"$OUT/first"
            cat "$OUT/losses" "$OUT/weights" | cmp - "$OUT/first"
            grep "cycles a step on each modelled IPU, $(field exchange_cycles) of them for $(field exchanges) exchange" "$OUT/log"
            all+="$n $(field exchange_cycles)"$'\n'
            case $way in
            "--packs 1") [ "$(field exchanges)" -eq 1 ] ;;
            "--packs 3"*) [ "$(field exchanges)" -eq 3 ] ;;
            *) [ "$(field exchanges)" -eq 4 ] ;; # a variable each
            esac
            sums=$(field sent_bytes)
            case $way in
            *one-device) [ "$sums" -eq $(((n - 1) * 101770 * 4)) ] ;;
            *) at_least "$sums" $((2 * 101770 * 4 * (n - 1) / n)) ;;
            esac
        done
    done
    echo "$all"
    # Between two replicas a ring and a hierarchy are the same way.
    [ "$(sort -u <<<"$all" | grep -c '^[24]')" -eq 9 ]
}

@test "the way of sums is one of replicas" {
    local words reason
    while IFS='|' read -r words reason; do
        # shellcheck disable=SC2086
        run "$PROGRAM" $words
        [ "$status" -eq 64 ]
        assert_one_line "$reason"
    done <<'END'
--cross-device ring|--cross-device says how the replicas of a process add up: give --replicas
--packs 2 --replicas 1|--packs says how the replicas
--cross-device star --replicas 2|'star' is none of ring, hierarchical, one-device
--packs -1 --replicas 2|'-1' is not a whole number from 0
END
    run "${PROGRAM%/*}/char_gpt" --stages 2 --replicas 2 --packs 1
    [ "$status" -eq 64 ]
    assert_one_line "--packs" "--stages"
}

@test "parameter-server: 2 workers and 2 servers have the losses of one process" {
    local -a how=(--strategy parameter-server --servers 2)
    ranks 4 "${how[@]}" "${GLOBAL[@]}" --losses "$OUT/losses"
    assert_status_everywhere 4 0
    same_losses "$OUT/losses"
    ranks 4 "${how[@]}" --ps-placement bytes --ps-part-bytes 20000 \
        "${GLOBAL[@]}" --losses "$OUT/losses"
    assert_status_everywhere 4 0
    same_losses "$OUT/losses"
    ranks 4 "${how[@]}" "${GLOBAL[@]}" --optimizer adam --lr 0.002 \
        --losses "$OUT/losses"
    assert_status_everywhere 4 0
    "$PROGRAM" "${GLOBAL[@]}" --optimizer adam --lr 0.002 \
        --losses "$OUT/one" >/dev/null
    ONE=$OUT/one same_losses "$OUT/losses"
}

@test "parameter-server: a cluster without MPI has the losses of one process" {
    "$TOOLS/by-hand" 4 "$PROGRAM" --strategy parameter-server --servers 2 \
        "${GLOBAL[@]}" --losses "$OUT/losses"
    same_losses "$OUT/losses"
}

@test "parameter-server: workers that do not wait learn, too" {
    local -a settings=(--strategy parameter-server --model mlp
        --data "$DIGITS" --train-images 4000 --test-images 500 --epochs 6 --lr 0.002
        --eval-every 0)
    local mode
    for mode in "--ps-mode async" "--ps-mode stale --staleness 3" "--backups 1"; do
        # shellcheck disable=SC2086
        ranks 3 "${settings[@]}" $mode --summary "$OUT/summary.json"
        assert_status_everywhere 3 0
        grep -q '"world_size": 2,' "$OUT/summary.json"
        grep '"test_accuracy": 0.[89]' "$OUT/summary.json"
    done
}

@test "parameter-server: what does not go together is refused" {
    local words
    while IFS='|' read -r words reason; do
        # shellcheck disable=SC2086
        run --separate-stderr "$PROGRAM" $words
        [ "$status" -ne 0 ]
        [[ $stderr == *"$reason"* ]]
    done <<'END'
--servers 2|are of --strategy parameter-server
--strategy parameter-server --optimizer lamb --ps-part-bytes 64|length of whole variables
--strategy parameter-server --clip 1|does not go together with --clip
--strategy parameter-server --graphs nowhere|does not go together with --graphs
--variables-on-host --clip 1|--variables-on-host does not go together with --clip
--strategy parameter-server --compression fp16|does not go together with --compression
--strategy parameter-server --staleness 2|--staleness is of --ps-mode stale
--strategy parameter-server --ps-mode async --backups 1|--backups are of --ps-mode sync
--strategy parameter-server|leave no worker
END
}

@test "replicas of ranks have the losses of one device, started in both ways" {
    ranks 2 --replicas 2 "${GLOBAL[@]}" --losses "$OUT/losses"
    assert_status_everywhere 2 0
    same_losses "$OUT/losses"
    ranks 3 --strategy mirrored "${GLOBAL[@]}" --losses "$OUT/losses"
    assert_status_everywhere 3 0
    same_losses "$OUT/losses"
    "$TOOLS/by-hand" 2 "$PROGRAM" --strategy multi-worker --replicas 3 \
        "${GLOBAL[@]}" --losses "$OUT/losses"
    same_losses "$OUT/losses"
}

@test "replicas accumulate, clip and compress as ranks do" {
    local -a settings=("${GLOBAL[@]}" --accumulate 4 --clip 0.5 --optimizer adam)
    "$PROGRAM" "${settings[@]}" --losses "$OUT/one" >/dev/null
    ranks 2 --replicas 2 "${settings[@]}" --losses "$OUT/losses"
    assert_status_everywhere 2 0
    ONE=$OUT/one same_losses "$OUT/losses"
    "$PROGRAM" --replicas 2 "${settings[@]}" --losses "$OUT/losses" >/dev/null
    ONE=$OUT/one same_losses "$OUT/losses"
    ranks 4 "${GLOBAL[@]}" --compression bf16 --losses "$OUT/four"
    ranks 2 --replicas 2 "${GLOBAL[@]}" --compression bf16 --losses "$OUT/losses"
    assert_status_everywhere 2 0
    # Other roundings: the gradients of two ranks travel instead of four.
    ! cmp -s "$OUT/four" "$OUT/losses"
    ONE=$OUT/four TOLERANCE=2e-2 same_losses "$OUT/losses"
}

@test "replicas of char_gpt drop other activations, and learn" {
    local program=${PROGRAM%/*}/char_gpt
    local -a small=(--layers 1 --heads 2 --width 16 --context 16 --batch-size 4
        --eval-windows 8 --sample 0 --steps 30 --eval-every 0)
    "$program" "${small[@]}" --replicas 3 --dropout 0.2 --losses "$OUT/losses" \
        >/dev/null
    awk 'NR == 1 { first = $2 } END { exit !($2 < first - 0.3) }' "$OUT/losses"
}

@test "--remote: 1, 2 and 3 servers have the losses of one process" {
    local n
    for n in 1 2 3; do
        servers "$n"
        "$PROGRAM" --remote "$CLUSTER" "${GLOBAL[@]}" --losses "$OUT/losses"
        servers_stop
        same_losses "$OUT/losses"
    done
}

@test "variables on the host: every way to start has the losses of one device" {
    local -a host=("${GLOBAL[@]}" --variables-on-host --accumulate 2
        --optimizer adam --lr 0.002)
    "$PROGRAM" "${host[@]/--variables-on-host/--threads=1}" \
        --losses "$OUT/one" >/dev/null
    "$PROGRAM" "${host[@]}" --losses "$OUT/losses" >/dev/null
    ONE=$OUT/one same_losses "$OUT/losses"
    "$PROGRAM" --strategy mirrored --replicas 3 "${host[@]}" \
        --losses "$OUT/losses" >/dev/null
    ONE=$OUT/one same_losses "$OUT/losses"
    ranks 2 --replicas 2 "${host[@]}" --losses "$OUT/losses"
    assert_status_everywhere 2 0
    ONE=$OUT/one same_losses "$OUT/losses"
    "$TOOLS/by-hand" 2 "$PROGRAM" "${host[@]}" --losses "$OUT/losses"
    ONE=$OUT/one same_losses "$OUT/losses"
}

@test "variables on the host, on servers: every optimizer is the device's" {
    local name
    for name in momentum nesterov adamw lamb rmsprop adagrad adadelta lion \
        lars; do
        local -a few=(--global-batch 48 --data "$DIGITS" --train-images 960
            --test-images 10 --epochs 1 --model mlp --optimizer $name --weight-decay 0.02)
        "$PROGRAM" "${few[@]}" --losses "$OUT/one" >/dev/null
        "$PROGRAM" "${few[@]}" --variables-on-host --losses "$OUT/losses" \
            >/dev/null
        ONE=$OUT/one same_losses "$OUT/losses" 20
        ranks 3 "${few[@]}" --strategy parameter-server --losses "$OUT/losses"
        assert_status_everywhere 3 0
        ONE=$OUT/one TOLERANCE=2e-3 same_losses "$OUT/losses" 20
    done
}

@test "one-cycle: the momentum of each step is the same everywhere" {
    local name how
    local -a few=(--global-batch 48 --data "$DIGITS" --train-images 4800 --test-images 10
        --epochs 1 --model mlp --lr-schedule one-cycle)
    servers 2
    for name in momentum adamw; do
        "$PROGRAM" "${few[@]}" --optimizer $name --losses "$OUT/one" >/dev/null
        for how in "2 --strategy horovod" "1 --replicas 3" \
            "2 --variables-on-host" "3 --strategy parameter-server" \
            "2 --strategy device-collective"; do
            # shellcheck disable=SC2086
            ranks $how "${few[@]}" --optimizer $name --losses "$OUT/losses"
            ONE=$OUT/one same_losses "$OUT/losses" 100
        done
        "$PROGRAM" --remote "$CLUSTER" "${few[@]}" --optimizer $name \
            --losses "$OUT/losses"
        ONE=$OUT/one same_losses "$OUT/losses" 100
    done
    # Optimisers without a momentum have the rate of the cycle alone.
    "$PROGRAM" "${few[@]}" --optimizer sgd --losses "$OUT/one" >/dev/null
    ranks 2 --variables-on-host "${few[@]}" --optimizer sgd \
        --losses "$OUT/losses"
    ONE=$OUT/one same_losses "$OUT/losses" 100
}

@test "parameter-server: tasks of type ps serve, in any order of starting" {
    local -a port
    local cluster index task
    read -r -a port < <("$TOOLS/free-ports" 4)
    cluster="\"cluster\":{\"worker\":[\"localhost:${port[0]}\",\"localhost:${port[1]}\"],\"ps\":[\"localhost:${port[2]}\",\"localhost:${port[3]}\"]}"
    for task in ps:1 worker:1 ps:0 worker:0; do
        index=${task#*:}
        TF_CONFIG="{$cluster,\"task\":{\"type\":\"${task%:*}\",\"index\":$index}}" \
            "$PROGRAM" --strategy parameter-server "${GLOBAL[@]}" \
            --losses "$OUT/losses" >"$OUT/$task" 2>&1 3>&- &
    done
    wait
    cat "$OUT"/*:*
    same_losses "$OUT/losses"
    export TF_CONFIG="{$cluster,\"task\":{\"type\":\"ps\",\"index\":0}}"
    run "$PROGRAM"
    [ "$status" -eq 1 ]
    assert_one_line "tasks of type ps (2)" "--strategy parameter-server"
    run "$PROGRAM" --strategy parameter-server --servers 1
    [ "$status" -eq 1 ]
    assert_one_line "--servers 1" "2 tasks of type ps"
}

@test "parameter-server: workers of several replicas have the losses of one" {
    ranks 3 --strategy parameter-server --replicas 2 "${GLOBAL[@]}" \
        --losses "$OUT/losses"
    assert_status_everywhere 3 0
    same_losses "$OUT/losses"
}

@test "device-collective: 1 to 4 processes have the losses of one, started in all ways" {
    local n
    for n in 1 2 3 4; do
        ranks "$n" --strategy device-collective "${GLOBAL[@]}" \
            --losses "$OUT/losses"
        assert_status_everywhere "$n" 0
        same_losses "$OUT/losses"
    done
    "$TOOLS/by-hand" 2 "$PROGRAM" --strategy device-collective \
        --pack-bytes 2000 "${GLOBAL[@]}" --losses "$OUT/losses"
    same_losses "$OUT/losses"
}

@test "device-collective rounds what a recipe converts, and reports the network" {
    ranks 2 --strategy device-collective "${GLOBAL[@]}" --bf16-recipe full \
        --losses "$OUT/half" --profile "$OUT/profile"
    assert_status_everywhere 2 0
    run same_losses "$OUT/half"
    [ "$status" -ne 0 ]
    TOLERANCE=0.02 same_losses "$OUT/half"
    grep -q '"network_bytes": *[1-9]' "$OUT/profile/profile.json"
    run "$PROGRAM" --quiet --strategy device-collective \
        --bf16-recipe "$OUT/none.json"
    [ "$status" -eq 1 ]
    assert_one_line "none.json" "cannot be read"
    run "$PROGRAM" --pack-bytes 5
    [ "$status" -eq 64 ]
    assert_one_line "--pack-bytes" "--strategy device-collective"
    run "$PROGRAM" --strategy device-collective --compression fp16
    [ "$status" -eq 64 ]
    assert_one_line "--compression" "--bf16-recipe"
}

@test "losses of other batches are others" {
    # The comparison above can fail.
    "$PROGRAM" "${GLOBAL[@]}" --seed 2 --losses "$OUT/losses" >/dev/null
    run same_losses "$OUT/losses"
    [ "$status" -ne 0 ]
}

@test "a strategy that does not fit how the process was started is refused" {
    run "$PROGRAM" --strategy multi-worker
    [ "$status" -eq 1 ]
    assert_one_line "--strategy multi-worker" "TF_CONFIG" "--cluster" "mpirun"
    TF_CONFIG='{"cluster":{"worker":["localhost:1"]},"task":{"type":"worker","index":0}}' \
        run "$PROGRAM" --strategy horovod
    [ "$status" -eq 1 ]
    assert_one_line "--strategy horovod" "TF_CONFIG"
    run "$PROGRAM" --strategy bogus
    [ "$status" -eq 64 ]
    assert_one_line "--strategy" "bogus" "horovod" "multi-worker"
    run "$PROGRAM" --strategy mirrored --replicas 1
    [ "$status" -eq 64 ]
    assert_one_line "--strategy mirrored" "--replicas"
}

@test "a global batch is shared out evenly, or refused" {
    run ranks 3 --global-batch 64
    assert_status_everywhere 3 1
    assert_one_line "--global-batch 64" "3 replicas" "multiple of 3"
    run "$PROGRAM" --global-batch 64 --batch-size 64
    [ "$status" -eq 64 ]
    assert_one_line "--batch-size" "--global-batch"
}
