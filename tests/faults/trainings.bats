# SPDX-License-Identifier: Apache-2.0
# mnist and char_gpt go on when ranks are killed (--elastic), and what they have
# trained can be repeated from their events.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
}

through() { # argument of trainings...
    run "$BATS_TEST_DIRNAME/trainings" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "mnist trains through the losses of 2 of 4 ranks, and a replay agrees" {
    local full=${HVD_TEST_FULL:+50}
    through --seed 3 --jobs "${full:-2}" --ranks 4 --least 2 --pause 0.1 "$BIN/mnist" --model mlp --train-images \
        6000 --test-images 200 --batch-size 8 --epochs 2
}

@test "so does char_gpt, whose data has no epochs" {
    through --seed 4 --jobs 3 --ranks 3 --least 2 --pause 0.1 "$BIN/char_gpt" --layers 1 \
        --width 16 --heads 2 --context 16 --batch-size 2 --steps 300 \
        --eval-windows 8 --sample 0
}

@test "two replicas of each rank, an optimiser on the host, and running means" {
    through --seed 5 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model mlp \
        --replicas 2 --train-images 3000 --test-images 100 --batch-size 4 \
        --epochs 8
    through --seed 6 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model mlp \
        --variables-on-host --train-images 3000 --test-images 100 \
        --batch-size 8 --epochs 8
    through --seed 7 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model \
        cnn-bn --train-images 1000 --test-images 100 --batch-size 8 --epochs 2
}

@test "workers that are killed come back to mnist, and a replay agrees" {
    local full=${HVD_TEST_FULL:+20}
    through --seed 8 --jobs "${full:-1}" --ranks 3 --least 1 --back 3 --pause 0.2 \
        "$BIN/mnist" --model mlp --train-images 3000 --test-images 200 \
        --batch-size 8 --epochs 40
}

@test "so they do to char_gpt, and to running means and a schedule" {
    through --seed 9 --ranks 2 --least 1 --back 2 --pause 0.1 "$BIN/char_gpt" \
        --layers 1 --width 16 --heads 2 --context 16 --batch-size 2 \
        --steps 1500 --eval-windows 8 --sample 0
    through --seed 10 --ranks 2 --least 1 --back 2 --pause 0.1 "$BIN/mnist" --model \
        mlp --ema 0.9 --lr 0.002 --lr-schedule cosine --train-images 2000 --test-images 100 \
        --batch-size 8 --epochs 30
}

@test "spares take the places of ranks of mnist and char_gpt, and a replay agrees" {
    local full=${HVD_TEST_FULL:+20}
    through --seed 11 --jobs "${full:-2}" --ranks 3 --least 2 --spare 2 --pause 0.1 \
        "$BIN/mnist" --model mlp --train-images 3000 --test-images 200 \
        --batch-size 8 --epochs 8
    through --seed 12 --ranks 2 --least 1 --spare 1 --pause 0.1 "$BIN/char_gpt" \
        --layers 1 --width 16 --heads 2 --context 16 --batch-size 2 \
        --steps 600 --eval-windows 8 --sample 0
}

@test "too few ranks end it in words" {
    run timeout 120 "$BATS_TEST_DIRNAME/trainings" --ranks 3 --least 4 \
        "$BIN/mnist" --model mlp --train-images 100 --test-images 10
    echo "$output"
    grep -q -- "--elastic '4:3': give the ranks that must be left" <<<"$output"
    run timeout 60 env OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 2 "$BIN/mnist" --elastic 3
    echo "$output"
    [ "$status" -ne 0 ]
    grep -q -- '--elastic 3: there are 2 ranks: start 3 at least' <<<"$output"
}

@test "options that do not go with it are named" {
    for more in "--stages 2" "--model-dir x" "--losses x" "--log-dir x"; do
        # shellcheck disable=SC2086 # two words
        run "$BIN/char_gpt" --elastic 1 $more
        echo "$output"
        [ "$status" -ne 0 ]
        grep -q -- "--elastic does not go together with ${more% *}" <<<"$output"
    done
    run "$BIN/mnist" --elastic-log x
    grep -q -- 'give --elastic, too' <<<"$output"
    run "$BIN/mnist" --elastic 0
    grep -q -- "--elastic '0': give" <<<"$output"
    run "$BIN/mnist" --elastic 1 --elastic-replay /nowhere
    grep -q -- '--elastic-replay /nowhere: cannot be read' <<<"$output"
}
