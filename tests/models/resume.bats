#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A training that is started again with the same --model-dir goes on, on the
# same devices with the same bits, and on others to rounding.

load ../support/models

setup() {
    models_setup mnist
    PATH="$(dirname "$PROGRAM"):$PATH"
    cd "$OUT" || return
    digits 1200 200
    MNIST=(mnist --quiet --data "$DIGITS" --model mlp --train-images 1200
        --test-images 200 --epochs 4 --global-batch 48 --checkpoint-every 10)
    # The rate of a step must not follow from how many there are in all.
    GPT=(char_gpt --quiet --text text --layers 3 --width 16 --heads 2 --context 16
        --dropout 0.1 --accumulate 12 --global-batch 4 --sample 0 --eval-every 12
        --lr-schedule constant --checkpoint-every 6)
    seq 2000 >text
}

# same FILE FILE: the losses of the same steps, of which one file may have fewer,
# are equal to 0.1 %, and there are such.
same() {
    awk 'NR == FNR { of[$1] = $2; next }
        $1 in of { n++; d = of[$1] - $2; if (d < 0) d = -d
                   if (d > 0.001 * $2) { print $1, of[$1], $2; bad = 1 } }
        END { exit bad || n < 6 }' "$1" "$2"
}

@test "a training goes on with the same bits" {
    local how
    for how in '' '--strategy mirrored' '--optimizer momentum --lr-schedule one-cycle' \
        '--accumulate 3 --clip 0.5' '--model cnn-bn' '--variables-on-host' \
        '--variables-on-host --replicas 2 --accumulate 3 --optimizer lamb'; do
        rm -rf model
        # shellcheck disable=SC2086
        "${MNIST[@]}" $how --model-dir model --save-weights whole
        # Those of the last steps, which every third step updates.
        rm model/ckpt-9[0-9].* model/ckpt-100.*
        # shellcheck disable=SC2086
        "${MNIST[@]}" $how --model-dir model --save-weights resumed
        cmp whole resumed
    done
}

@test "a training of servers goes on with the same bits" {
    local how
    for how in '' '--servers 2 --ps-part-bytes 5000' \
        '--replicas 2 --accumulate 3 --optimizer rmsprop'; do
        rm -rf model
        # shellcheck disable=SC2086
        mpirun -np 4 "${MNIST[@]}" --strategy parameter-server $how \
            --model-dir model --save-weights whole
        rm model/ckpt-9[0-9].* model/ckpt-100.*
        # shellcheck disable=SC2086
        mpirun -np 4 "${MNIST[@]}" --strategy parameter-server $how \
            --model-dir model --save-weights resumed
        cmp whole resumed
    done
}

# on PLACE ARGS...: mnist with its optimizer there.
on() {
    local place=$1
    shift
    case $place in
    device) "${MNIST[@]}" "$@" ;;
    host) "${MNIST[@]}" --variables-on-host "$@" ;;
    hosts) mpirun -np 3 "${MNIST[@]}" --variables-on-host "$@" ;;
    server) mpirun -np 3 "${MNIST[@]}" --strategy parameter-server "$@" ;;
    parts) mpirun -np 4 "${MNIST[@]}" --strategy parameter-server --servers 2 \
        --ps-placement bytes --ps-part-bytes 5000 --replicas 2 "$@" ;;
    esac
}

@test "a training goes on where its optimizer is elsewhere" {
    local from to
    on device --losses whole
    for from in device host server parts; do
        on "$from" --steps 52 --model-dir "of.$from"
        for to in device hosts server parts; do
            cp -r "of.$from" model
            on "$to" --model-dir model --losses losses
            same whole losses
            [ "$(head -1 losses | cut -d ' ' -f 1)" -eq 53 ]
            rm -r model
        done
    done
}

@test "every optimizer has the same state on the device, the host and servers" {
    local optimizer
    MNIST+=(--epochs 1 --checkpoint-every 0)
    for optimizer in sgd momentum nesterov adam adamw lamb lion rmsprop adagrad \
        adadelta lars; do
        rm -rf of.device of.host
        on device --optimizer $optimizer --losses whole
        on device --optimizer $optimizer --steps 12 --model-dir of.device
        on host --optimizer $optimizer --model-dir of.device --losses hosts
        same whole hosts
        on host --optimizer $optimizer --steps 12 --model-dir of.host
        on device --optimizer $optimizer --model-dir of.host --losses devices
        same whole devices
    done
}

@test "a training of workers that do not wait goes on anywhere, and from anywhere" {
    local how
    "${MNIST[@]}" --steps 30 --model-dir of.device
    for how in '--ps-mode async' '--ps-mode stale --staleness 1 --replicas 2' \
        '--backups 1 --servers 2 --ps-part-bytes 5000'; do
        cp -r of.device model
        # shellcheck disable=SC2086
        mpirun -np 4 "${MNIST[@]}" --strategy parameter-server $how \
            --steps 60 --model-dir model
        rm -r model
    done
}

@test "a training goes on on other ranks, replicas and devices" {
    local how
    "${MNIST[@]}" --losses whole
    "${MNIST[@]}" --steps 52 --model-dir model
    for how in alone mirrored spawned collective ranks both; do
        cp -r model "model.$how"
        local again=("${MNIST[@]}" --model-dir "model.$how" --losses "$how")
        case $how in
        alone) "${again[@]}" ;;
        mirrored) "${again[@]}" --strategy mirrored --replicas 3 ;;
        spawned) "${again[@]}" --spawn 2 ;;
        collective) "${again[@]}" --spawn 2 --strategy device-collective ;;
        ranks) mpirun -np 3 "${again[@]}" ;;
        both) mpirun -np 2 "${again[@]}" --replicas 2 ;;
        esac
        same whole "$how"
        [ "$(wc -l <"$how")" -eq 48 ]
        [ "$(head -1 "$how" | cut -d ' ' -f 1)" -eq 53 ]
    done
    # And back again: what ranks and replicas have written.
    mpirun -np 2 "${MNIST[@]}" --replicas 2 --steps 52 --model-dir back
    "${MNIST[@]}" --model-dir back --losses back.losses
    same whole back.losses
}

@test "a training goes on in stages, and from stages" {
    "${GPT[@]}" --steps 48 --losses whole
    "${GPT[@]}" --steps 48 --stages 3 --losses staged
    "${GPT[@]}" --steps 24 --model-dir of.one
    "${GPT[@]}" --steps 24 --stages 3 --model-dir of.stages
    cp -r of.one of.one.2
    for n in 2 3 4; do
        cp -r of.stages of.stages.$n
    done
    "${GPT[@]}" --steps 48 --model-dir of.one --losses one.one
    "${GPT[@]}" --steps 48 --stages 3 --model-dir of.one.2 --losses one.staged
    "${GPT[@]}" --steps 48 --model-dir of.stages --losses staged.one
    mpirun -np 2 "${GPT[@]}" --steps 48 --stages 2 --model-dir of.stages.2 \
        --losses staged.staged
    "${GPT[@]}" --steps 48 --variables-on-host --model-dir of.stages.3 \
        --losses staged.host
    mpirun -np 2 "${GPT[@]}" --steps 48 --strategy parameter-server \
        --model-dir of.stages.4 --losses staged.server
    same whole one.one
    same whole staged.one
    same whole staged.host
    same whole staged.server
    # With stages, a line is the mean of an update.
    tail -n 2 staged >last
    for how in one.staged staged.staged; do
        [ "$(wc -l <$how)" -eq 2 ]
        awk 'NR == FNR { of[$1] = $2; next }
            { d = of[$1] - $2; if (d < 0) d = -d; if (d > 0.001 * $2) bad = 1 }
            END { exit bad }' last $how
    done
}

@test "a training that is killed again and again ends with the same bits" {
    local kills=0 most=${HVD_TEST_FULL:+300} delay
    most=${most:-8}
    "${MNIST[@]}" --epochs 40 --save-weights whole
    while [ "$kills" -lt "$most" ]; do
        rm -rf model
        until [ -e model/ckpt-1000.safetensors ] || [ "$kills" -ge "$most" ]; do
            delay=$(awk "BEGIN { srand($RANDOM); print 0.1 + rand() * 0.9 }")
            timeout -s KILL "$delay" "${MNIST[@]}" --epochs 40 \
                --model-dir model 2>err || true
            cat err
            [ ! -s err ]
            kills=$((kills + 1))
        done
    done
    "${MNIST[@]}" --epochs 40 --model-dir model --save-weights resumed
    cmp whole resumed
}

@test "a checkpoint that is damaged is passed over, and that is said" {
    "${MNIST[@]}" --steps 30 --model-dir model
    truncate -s -5 model/ckpt-30.safetensors
    mnist "${MNIST[@]:2}" --model-dir model --steps 40 >out
    grep 'goes on after step 20, from model/ckpt-20.safetensors; .*ckpt-30' out
}

@test "a training that has ended is evaluated, and no more" {
    "${MNIST[@]}" --steps 30 --model-dir model --save-weights first
    mnist "${MNIST[@]:2}" --steps 30 --model-dir model --summary again \
        --save-weights second >out
    grep 'all 30 steps have been made before' out
    cmp first second
    "${PYTHON:-python3}" -c '
import json
r = json.load(open("again"))
assert r["steps"] == 30 and r["images"] == 0 and r["test_accuracy"] > 0.1, r'
}

@test "a checkpoint of another training is refused" {
    "${MNIST[@]}" --steps 30 --model-dir model
    for wrong in '--seed 2' '--train-images 600' '--global-batch 24' \
        '--optimizer lamb' '--model cnn' '--variables-on-host --seed 2'; do
        # shellcheck disable=SC2086
        run "${MNIST[@]}" --model-dir model $wrong
        [ "$status" -eq 1 ]
        assert_one_line "--model-dir model"
    done
    run "${GPT[@]}" --model-dir model
    [ "$status" -eq 1 ]
    assert_one_line "--model-dir model" "no checkpoint of char_gpt"
}
