#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# An evaluator measures the checkpoints that the chief writes, while the chief
# and the workers train: each process in a terminal of its own.

load ../support/models
load ../support/terminals

setup() {
    models_setup mnist
    terminals_setup
    export TRAIN='--model mlp --train-images 2400 --test-images 100 --global-batch 24 --steps 230 --eval-every 0 --epochs 10 --optimizer momentum --lr 0.02 --model-dir model --checkpoint-every 50'
    CLUSTER='"cluster":{"chief":["localhost:3737"],"worker":["localhost:3738"],"evaluator":["localhost:3739"]}'
}

# role TYPE INDEX [ARGS]: types the line of a task.
role() {
    terminal "$1" "TF_CONFIG='{$CLUSTER,\"task\":{\"type\":\"$1\",\"index\":$2}}' mnist $TRAIN $3"
}

# The last loss of the training is that of the evaluator's last checkpoint.
same_loss() {
    grep -o 'loss [0-9.]*$' chief.out | tail -1 >trained
    grep -o 'step 230  loss [0-9.]*' evaluator.out | sed 's/step 230  //' >evaluated
    [ -s trained ]
    cmp trained evaluated
}

@test "chief, worker and evaluator, in any order" {
    role evaluator 0
    sleep 0.5
    role worker 0
    role chief 0
    expect 0 0 0
    grep 'mnist: 2 ranks' chief.out
    same_loss
    [ ! -s worker.out ]
    ! grep 'was over before' evaluator.out
    # The evaluator comes when the training is over, and writes no files.
    rm evaluator.out
    role evaluator 0 "--summary summary --save-weights weights --losses losses"
    expect 0
    same_loss
    grep 'the training in model was over before .* of step 230, written at 20' \
        evaluator.out
    [ "$(grep -c '^step' evaluator.out)" -eq 1 ]
    [ ! -e summary ] && [ ! -e weights ] && [ ! -e losses ]
}

@test "an earlier training's last checkpoint is called that, and is all there is" {
    # shellcheck disable=SC2086
    mnist $TRAIN >first.out
    role evaluator 0
    role worker 0
    role chief 0
    expect 0 0 0
    grep 'the training in model was over before' evaluator.out
    grep 'all 230 steps have been made before' chief.out
    grep -o 'loss [0-9.]*$' first.out | tail -1 >first
    grep -o 'loss [0-9.]*$' chief.out | tail -1 | cmp - first
}

@test "the evaluator sees checkpoints while the training runs" {
    TRAIN="$TRAIN --steps 100000000 --epochs 100000"
    role chief 0
    role worker 0
    role evaluator 0
    within_60_s grep '^step 50 ' evaluator.out ||
        within_60_s grep '^step' evaluator.out
    within_60_s bash -c '[ $(grep -c "^step" evaluator.out) -ge 3 ]'
    kill -0 "${started[0]}"
}

@test "one command starts a training and its evaluator" {
    # shellcheck disable=SC2086
    hvd-run -n 2 --evaluator mnist $TRAIN >out
    cat out
    grep -F '[evaluator 0] step 230' out
    grep 'mnist: 2 ranks' out
}

@test "a checkpoint that is not whole is left out, and the next one is not" {
    # shellcheck disable=SC2086
    mnist $TRAIN --model-dir whole >chief.out
    mkdir model
    head -c 5000 whole/ckpt-230.safetensors >model/ckpt-230.safetensors
    role evaluator 0
    within_60_s grep 'a checkpoint is left out: .*truncated' evaluator.out
    cp whole/ckpt-230.safetensors other
    printf 'x' | dd of=other bs=1 seek=9000 conv=notrunc 2>/dev/null
    mv other model/ckpt-230.safetensors
    within_60_s grep 'a checkpoint is left out: .*checksum' evaluator.out
    head -c 100 /dev/zero >model/other
    mv model/other model/ckpt-230.safetensors
    within_60_s bash -c '[ $(grep -c "left out" evaluator.out) -eq 3 ]'
    cp whole/ckpt-230.safetensors model/other
    mv model/other model/ckpt-230.safetensors
    expect 0
    same_loss
}

@test "an evaluator waits for a stated time, and says for what" {
    role evaluator 0 "--checkpoint-wait 1"
    expect 1
    grep 'waits for checkpoints in model, for at most 1 s' evaluator.out
    grep 'no checkpoint came to --model-dir model in 1 s' evaluator.err
    # shellcheck disable=SC2086
    mnist $TRAIN --steps 100000000 --epochs 100000 >/dev/null &
    started+=($!)
    within_60_s bash -c 'ls model/ckpt-*.safetensors'
    kill $!
    wait $! || true
    started=()
    role evaluator 0 "--checkpoint-wait 1"
    expect 1
    grep '^step' evaluator.out
    grep 'no checkpoint after that of step .*did the training fail' evaluator.err
}

@test "what cannot be evaluated, or would be lost, is refused" {
    TRAIN=${TRAIN/--model-dir model/}
    role evaluator 0
    expect 1
    grep 'give both the same --model-dir' evaluator.err
    mkdir full
    touch full/ckpt-7.safetensors
    # shellcheck disable=SC2086
    run mnist --quiet $TRAIN --model-dir full
    [ "$status" -eq 1 ]
    assert_one_line "--model-dir full" "no checkpoint can be used: full/ckpt-7"
    # shellcheck disable=SC2086
    run mnist $TRAIN --model-dir full/ckpt-7.safetensors
    [ "$status" -eq 1 ]
    assert_one_line "--model-dir full/ckpt-7.safetensors"
    # shellcheck disable=SC2086
    TF_CONFIG='{"cluster":{"worker":["localhost:1"]},"task":{"type":"evaluator","index":0}}' \
        OMPI_COMM_WORLD_RANK=0 run mnist $TRAIN --model-dir model --strategy multi-worker
    [ "$status" -eq 1 ]
    assert_one_line "evaluator" "not by mpirun"
}
