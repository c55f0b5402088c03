#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A network with batch normalisation: each replica keeps moving averages of its
# own batches, and whoever reads them gets their mean over all replicas of all
# ranks.

load ../support/models
load ../support/servers

setup() {
    models_setup mnist
    TOOLS=$BATS_TEST_DIRNAME/../tools
    DIGITS=$BATS_FILE_TMPDIR/digits START=$BATS_FILE_TMPDIR/start
    # Statistics that are not what they begin with.
    [ -e "$START" ] || {
        "$TOOLS/norm-statistics" make "$DIGITS"
        "$PROGRAM" --data "$DIGITS" --model cnn-bn --global-batch 48 \
            --epochs 2 --save-weights "$START" >/dev/null
    }
    # Weights stay what they are, and statistics do not.
    STILL=(--data "$DIGITS" --model cnn-bn --optimizer sgd --lr 1e-30
        --load-weights "$START" --eval-every 0 --batch-size 12 --epochs 9
        --steps 7 --save-weights "$OUT/weights")
    TRAIN=(--data "$DIGITS" --model cnn-bn --optimizer momentum --lr 0.01
        --global-batch 24 --epochs 3 --load-weights "$START" --eval-every 0)
}

teardown() {
    servers_stop
}

# has_means SHARDS [--whole]: the weights that were saved have the statistics
# that numpy computes.
has_means() {
    "$TOOLS/norm-statistics" check $2 "$DIGITS" "$START" "$OUT/weights" "$1" \
        12 7
    rm "$OUT/weights"
}

# same_losses FILE FILE [TOLERANCE]
same_losses() {
    [ -s "$1" ] && [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ]
    paste -d ' ' "$1" "$2" | awk -v tolerance="${3:-1e-4}" '
        { apart = $2 - $4; if (apart < 0) apart = -apart
          if (apart > worst) worst = apart }
        END { print "worst:", worst; exit !(worst <= tolerance) }'
}

@test "what is saved are the means over all replicas of all ranks" {
    local n
    "$PROGRAM" "${STILL[@]}"
    has_means 1
    for n in 2 3 4 5 8; do
        ranks "$n" "${STILL[@]}" >/dev/null
        assert_status_everywhere "$n" 0
        has_means "$n"
    done
    for n in 2 3 5; do
        "$PROGRAM" "${STILL[@]}" --replicas "$n" >/dev/null
        has_means "$n"
    done
    ranks 2 "${STILL[@]}" --replicas 2 --variables-on-host >/dev/null
    has_means 4
    "$TOOLS/by-hand" 2 "$PROGRAM" "${STILL[@]}"
    has_means 2
    ranks 2 "${STILL[@]}" --strategy device-collective >/dev/null
    has_means 2
    ranks 2 "${STILL[@]}" --accumulate 3 --check-every 1 >/dev/null
    has_means 2
}

@test "workers of parameter servers have the means, in all modes" {
    local mode
    for mode in "" "--ps-mode async" "--ps-mode stale --staleness 2" \
        "--backups 1" "--replicas 1 --servers 2 --ps-part-bytes 5000"; do
        # shellcheck disable=SC2086
        ranks 4 "${STILL[@]}" --strategy parameter-server $mode \
            --model-dir "$OUT/model" --checkpoint-every 3 >/dev/null
        assert_status_everywhere 4 0
        rm -r "$OUT/model"
        case $mode in
        *"--servers 2"*) has_means 2 ;;
        *) has_means 3 ;;
        esac
    done
}

@test "as many replicas have the same losses and weights, wherever they are" {
    local n
    ranks 2 "${TRAIN[@]}" --losses "$OUT/ranks" --save-weights "$OUT/a"
    "$PROGRAM" "${TRAIN[@]}" --strategy mirrored --losses "$OUT/losses" \
        --save-weights "$OUT/b"
    cmp "$OUT/ranks" "$OUT/losses"
    cmp "$OUT/a" "$OUT/b"
    "$TOOLS/by-hand" 2 "$PROGRAM" "${TRAIN[@]}" --losses "$OUT/losses"
    same_losses "$OUT/ranks" "$OUT/losses"
    ranks 2 "${TRAIN[@]}" --variables-on-host --losses "$OUT/losses"
    same_losses "$OUT/ranks" "$OUT/losses"
    ranks 2 "${TRAIN[@]}" --strategy device-collective --losses "$OUT/losses"
    same_losses "$OUT/ranks" "$OUT/losses"
    ranks 3 "${TRAIN[@]}" --strategy parameter-server --losses "$OUT/losses"
    same_losses "$OUT/ranks" "$OUT/losses"
    ranks 4 "${TRAIN[@]}" --losses "$OUT/ranks"
    ranks 2 "${TRAIN[@]}" --replicas 2 --losses "$OUT/losses"
    same_losses "$OUT/ranks" "$OUT/losses"
    # Batches that are normalised by themselves are not the whole one.
    "$PROGRAM" "${TRAIN[@]}" --losses "$OUT/losses"
    run same_losses "$OUT/ranks" "$OUT/losses" 1e-3
    [ "$status" -ne 0 ]
}

@test "an evaluator has the loss of the training: checkpoints have the means" {
    local -a port
    local cluster task
    read -r -a port < <("$TOOLS/free-ports" 3)
    cluster="\"cluster\":{\"chief\":[\"localhost:${port[0]}\"],\"worker\":[\"localhost:${port[1]}\"],\"evaluator\":[\"localhost:${port[2]}\"]}"
    for task in evaluator worker chief; do
        TF_CONFIG="{$cluster,\"task\":{\"type\":\"$task\",\"index\":0}}" \
            "$PROGRAM" "${TRAIN[@]}" --model-dir "$OUT/model" --steps 30 \
            --checkpoint-every 4 >"$OUT/$task" 2>&1 3>&- &
    done
    wait
    cat "$OUT/chief" "$OUT/evaluator"
    grep -o 'loss [0-9.]*$' "$OUT/chief" | tail -1 >"$OUT/trained"
    grep -o 'step 30  loss [0-9.]*' "$OUT/evaluator" | sed 's/step 30  //' \
        >"$OUT/evaluated"
    [ -s "$OUT/trained" ]
    cmp "$OUT/trained" "$OUT/evaluated"
}

@test "a training of servers has the statistics of one here" {
    servers 2
    "$TOOLS/by-hand" 2 "$PROGRAM" "${TRAIN[@]}" --save-weights "$OUT/local" \
        --summary "$OUT/summary.json" >/dev/null
    local here
    here=$(field test_loss)
    "$PROGRAM" --remote "$CLUSTER" "${TRAIN[@]}" --save-weights "$OUT/remote" \
        --summary "$OUT/summary.json"
    cmp "$OUT/local" "$OUT/remote"
    [ "$here" = "$(field test_loss)" ]
}

@test "synchronised: any number of replicas or ranks has the losses of one" {
    local -a together=("${TRAIN[@]}" --sync-batch-norm --losses "$OUT/losses")
    local n
    "$PROGRAM" "${TRAIN[@]}" --losses "$OUT/one"
    for n in 1 2 3 4 8; do
        "$PROGRAM" "${together[@]}" --replicas "$n" >/dev/null
        same_losses "$OUT/one" "$OUT/losses"
        ranks "$n" "${together[@]}" >/dev/null
        assert_status_everywhere "$n" 0
        same_losses "$OUT/one" "$OUT/losses"
    done
    for n in 2 3; do
        ranks "$n" "${together[@]}" --strategy device-collective --pack-bytes 0
        assert_status_everywhere "$n" 0
        same_losses "$OUT/one" "$OUT/losses"
    done
    "$TOOLS/by-hand" 2 "$PROGRAM" "${together[@]}"
    same_losses "$OUT/one" "$OUT/losses"
    ranks 2 "${together[@]}" --variables-on-host --serial
    same_losses "$OUT/one" "$OUT/losses"
    for n in 2 3 4; do
        ranks "$n" "${together[@]}" --replicas 2 >/dev/null
        assert_status_everywhere "$n" 0
        same_losses "$OUT/one" "$OUT/losses"
    done
    "$TOOLS/by-hand" 2 "$PROGRAM" "${together[@]}" --replicas 3 \
        --variables-on-host
    same_losses "$OUT/one" "$OUT/losses"
    "$PROGRAM" "${TRAIN[@]}" --accumulate 3 --losses "$OUT/one"
    ranks 2 "${together[@]}" --accumulate 3 --check-every 2
    same_losses "$OUT/one" "$OUT/losses"
}

# A rank that is killed in the middle of a step is named by the other.
@test "synchronised: a rank that dies ends the training of all" {
    local -a port worker
    local i cluster
    read -r -a port < <("$TOOLS/free-ports" 2)
    cluster="\"cluster\":{\"worker\":[\"localhost:${port[0]}\",\"localhost:${port[1]}\"]}"
    for i in 0 1; do
        TF_CONFIG="{$cluster,\"task\":{\"type\":\"worker\",\"index\":$i}}" \
            "$PROGRAM" "${TRAIN[@]}" --epochs 100000 --sync-batch-norm \
            --replicas 2 --model-dir "$OUT/model" --checkpoint-every 5 \
            >"$OUT/worker.$i" 2>&1 3>&- &
        worker+=($!)
    done
    for ((i = 0; i < 600; i++)); do
        compgen -G "$OUT/model/ckpt-*.json" >/dev/null && break
        sleep 0.1
    done
    kill -KILL "${worker[1]}"
    local status=0
    wait "${worker[0]}" || status=$?
    [ "$status" -eq 1 ]
    cat "$OUT/worker.0"
    grep 'mnist: rank 0 .*rank 1 ' "$OUT/worker.0"
}

@test "synchronised: the statistics are those of the batches of all" {
    local -a together=("${STILL[@]}" --sync-batch-norm)
    "$PROGRAM" "${together[@]}" --replicas 3 >/dev/null
    has_means 3 --whole
    ranks 2 "${together[@]}" >/dev/null
    has_means 2 --whole
    ranks 4 "${together[@]}" --strategy device-collective >/dev/null
    has_means 4 --whole
    ranks 2 "${together[@]}" --replicas 2 >/dev/null
    has_means 4 --whole
}

@test "synchronised: what does not go together is refused" {
    local words reason
    while IFS='|' read -r words reason; do
        # shellcheck disable=SC2086
        run "$PROGRAM" --sync-batch-norm $words
        [ "$status" -eq 64 ]
        assert_one_line "--sync-batch-norm" "$reason"
    done <<'END'
--model mlp|the network mlp has no batch normalisation: give --model cnn-bn
--model cnn-bn --graphs nowhere|--graphs
--model cnn-bn --strategy parameter-server|--strategy parameter-server
--model cnn-bn --remote nowhere|does not go together with --remote
END
    run "$PROGRAM" --strategy device-collective --variables-on-host
    [ "$status" -eq 64 ]
    assert_one_line "--variables-on-host" "--strategy device-collective"
}

@test "weights of a network without statistics are refused" {
    "$PROGRAM" --data "$DIGITS" --global-batch 48 --epochs 1 \
        --save-weights "$OUT/cnn" >/dev/null
    run "$PROGRAM" --data "$DIGITS" --model cnn-bn --load-weights "$OUT/cnn"
    [ "$status" -eq 1 ]
    assert_one_line "--load-weights" "norm1/offset" "another network"
}
