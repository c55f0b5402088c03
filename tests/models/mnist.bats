#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# mnist on the command line: options, files, training on 1 to 4 ranks, and runs
# that must give equal weights. The program draws digits, so nothing is
# downloaded.

load ../support/models

setup() {
    models_setup mnist
    MNIST=$PROGRAM
    digits 10000 1000
    # Drawing all digits takes seconds.
    FEW=(--train-images 256 --test-images 10)
}

# be32 N: prints four bytes, big endian.
be32() {
    local n=$1
    printf "\\$(printf %o $((n >> 24 & 255)))\\$(printf %o $((n >> 16 & 255)))"
    printf "\\$(printf %o $((n >> 8 & 255)))\\$(printf %o $((n & 255)))"
}

# idx_images FILE N, idx_labels FILE N: write N blank images, labels 0.
idx_images() {
    {
        be32 2051 && be32 "$2" && be32 28 && be32 28
        head -c $(($2 * 784)) /dev/zero
    } >"$1"
}
idx_labels() {
    {
        be32 2049 && be32 "$2"
        head -c "$2" /dev/zero
    } >"$1"
}

idx_directory() {
    mkdir -p "$1"
    idx_images "$1/train-images-idx3-ubyte" 200
    idx_labels "$1/train-labels-idx1-ubyte" 200
    idx_images "$1/t10k-images-idx3-ubyte" 30
    idx_labels "$1/t10k-labels-idx1-ubyte" 30
}

# ------------------------------------------------------------ command line

@test "help and version are printed once, and succeed" {
    run ranks 2 --help
    assert_status_everywhere 2 0
    [ "$(grep -c -- --save-weights <<<"$output")" -eq 1 ]
    run ranks 2 --version
    assert_status_everywhere 2 0
    [[ $output =~ ^mnist\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    run "$MNIST" --version
    [ "$status" -eq 0 ]
}

@test "a wrong command line is one line and status 64 on every rank" {
    local -a wrong=("--bogus" "--epochs=-1" "--epochs=0" "--epochs=ten"
        "--steps=1.5" "--batch-size=0" "--lr=fast" "--optimizer=best" "--model=rnn" "--clip=0"
        "--seed=x" "--eval-every=-1" "--threads=0" "--serial=1"
        "--train-images=-5" "--test-images=0" "stray" "--data=")
    local option
    for option in "${wrong[@]}"; do
        run "$MNIST" "$option"
        [ "$status" -eq 64 ]
        assert_one_line "mnist: " "${option%%=*}"
    done
    run ranks 2 --bogus
    assert_status_everywhere 2 64
    assert_one_line "mnist: " --bogus
}

@test "a wrong command line ends mpirun with its status" {
    run mpirun --oversubscribe -np 2 "$MNIST" --epochs banana
    [ "$status" -eq 64 ]
    [ "$(grep -c "^mnist: --epochs: 'banana'" <<<"$output")" -eq 1 ]
}

@test "ranks with different command lines do not wait for each other" {
    run mpirun --oversubscribe -np 1 "$MNIST" "${FEW[@]}" --epochs 1 : \
        -np 1 "$MNIST" "${FEW[@]}" --epochs 2
    [ "$status" -ne 0 ]
    [ "$(grep -c "^mnist: the ranks differ in --epochs" <<<"$output")" -eq 1 ]
}

# ------------------------------------------------------------------- files

@test "MNIST files are read, plain and compressed" {
    idx_directory "$OUT/data"
    run ranks 2 --data "$OUT/data" --steps 1
    assert_status_everywhere 2 0
    [[ $output == *"200 training and 30 test digits"* ]]
    gzip "$OUT"/data/*
    run ranks 2 --data "$OUT/data" --steps 1
    assert_status_everywhere 2 0
}

@test "broken MNIST files are one line naming the file, on any number of ranks" {
    local images=train-images-idx3-ubyte labels=train-labels-idx1-ubyte

    run ranks 2 --data "$OUT/none"
    assert_status_everywhere 2 1
    assert_one_line "$OUT/none" "No such file"

    idx_directory "$OUT/data" # missing
    rm "$OUT/data/$labels"
    run "$MNIST" --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "$labels"

    idx_directory "$OUT/data" # truncated
    truncate -s -1 "$OUT/data/$images"
    run "$MNIST" --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/data/$images" "truncated"

    idx_directory "$OUT/data" # oversized
    printf x >>"$OUT/data/$images"
    run "$MNIST" --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/data/$images" "goes on after"

    idx_directory "$OUT/data" # mislabelled
    idx_labels "$OUT/data/$images" 200
    run "$MNIST" --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/data/$images" "00000801" "00000803"

    idx_directory "$OUT/data" # counts differ
    idx_labels "$OUT/data/$labels" 199
    run "$MNIST" --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/data/$labels" "199 labels" "200 images"

    idx_directory "$OUT/data" # a test label out of range
    printf '\12' | dd of="$OUT/data/t10k-labels-idx1-ubyte" bs=1 seek=20 \
        conv=notrunc status=none
    run ranks 2 --data "$OUT/data"
    assert_status_everywhere 2 1
    assert_one_line "t10k-labels-idx1-ubyte" "label 10 of item 12"
}

@test "a file missing on one rank's host ends every rank" {
    idx_directory "$OUT/data"
    run mpirun --oversubscribe -np 3 sh -c '
        data=$2/data
        [ "$OMPI_COMM_WORLD_RANK" = 1 ] && data=$2/missing
        "$1" --data "$data"
        echo $? >"$2/status.$OMPI_COMM_WORLD_RANK"' rank "$MNIST" "$OUT"
    assert_status_everywhere 3 1
    assert_one_line "mnist: rank 1 " "$OUT/missing"
}

@test "too few images for the ranks is an error before training" {
    run ranks 3 --train-images 191 --test-images 10
    assert_status_everywhere 3 1
    assert_one_line "--batch-size 64 on 3 ranks" "192" "191"
}

@test "result files that cannot be written are found before training" {
    local option
    for option in --summary --save-weights; do
        run ranks 2 "${FEW[@]}" $option "$OUT/no/such/file" --epochs 1000
        assert_status_everywhere 2 1
        assert_one_line "$option" "$OUT/no/such/file"
    done
}

@test "a path that leads to a FIFO or a link makes nobody wait" {
    mkfifo "$OUT/fifo"
    mkdir "$OUT/data"
    ln -s ../fifo "$OUT/data/train-images-idx3-ubyte"
    run timeout 20 "$MNIST" --steps 1 --data "$OUT/data"
    [ "$status" -eq 1 ]
    assert_one_line "train-images-idx3-ubyte" "no regular file"
    run timeout 20 "$MNIST" "${FEW[@]}" --steps 1 --load-weights "$OUT/fifo"
    [ "$status" -eq 1 ]
    assert_one_line "$OUT/fifo" "no regular file"
    run timeout 20 "$MNIST" "${FEW[@]}" --steps 1 --profile "$OUT/fifo"
    [ "$status" -eq 1 ]
    ln -s nothing "$OUT/dangling"
    run timeout 20 "$MNIST" "${FEW[@]}" --steps 1 --summary "$OUT/dangling"
    [ "$status" -eq 1 ]
    assert_one_line "--summary $OUT/dangling" "a symbolic link to nothing"
    cat "$OUT/fifo" >"$OUT/got" &
    timeout 20 "$MNIST" --steps 1 --train-images 64 --test-images 1 \
        --summary "$OUT/fifo"
    wait
    python3 -m json.tool "$OUT/got" >/dev/null
    [ -p "$OUT/fifo" ] && [ -L "$OUT/dangling" ]
    rm -r "$OUT/fifo" "$OUT/data" "$OUT/dangling" "$OUT/got"
}

@test "a summary to where the report goes is behind the report" {
    "$MNIST" --steps 1 --train-images 64 --test-images 1 --summary /dev/stdout \
        >"$OUT/log"
    grep -q '^mnist: ' "$OUT/log"
    sed -n '/^{/,/^}/p' "$OUT/log" | python3 -m json.tool >/dev/null
    rm "$OUT/log"
}

@test "output that goes nowhere is an error" {
    run sh -c "'$MNIST' --steps 1 --train-images 64 --test-images 1 >/dev/full"
    [ "$status" -eq 1 ]
    assert_one_line "mnist: standard output"
}

@test "results are written whole and nothing else is left" {
    run ranks 2 --steps 2 --train-images 200 --test-images 20 \
        --summary "$OUT/files/summary.json" --save-weights "$OUT/files/weights"
    assert_status_everywhere 2 1 # no such directory
    mkdir "$OUT/files"
    run ranks 2 --steps 2 --train-images 200 --test-images 20 \
        --summary "$OUT/files/summary.json" --save-weights "$OUT/files/weights"
    assert_status_everywhere 2 0
    [ "$(cd "$OUT/files" && echo *)" = "summary.json weights" ]
    [ "$(floats "$OUT/files/weights" | wc -l)" -eq 347146 ]
    mv "$OUT/files/summary.json" "$OUT"
    [ "$(field world_size)" -eq 2 ]
    [ "$(field steps)" -eq 2 ]
    local name
    for name in test_accuracy test_loss images_per_second seconds \
        comm_wait_fraction; do
        at_least "$(field $name)" 0
    done
}

# -------------------------------------------------------------- the output

@test "a log has plain lines from one rank" {
    run ranks 3 --epochs 2 --train-images 600 --test-images 50
    assert_status_everywhere 3 0
    [ "$(grep -c '^epoch ' <<<"$output")" -eq 2 ]
    [[ $output != *$'\033'* ]]
    [[ $output == *"waiting for communication"* ]]
    [[ $output == *"weights        equal on all ranks"* ]]
}

@test "a terminal has a bar that is erased" {
    HVD_TTY=1 COLUMNS=60 run ranks 2 --epochs 1 --train-images 8000 \
        --test-images 50
    assert_status_everywhere 2 0
    [[ $output == *$'\r\033[K'* ]]
    [[ $output == *"=>"* ]]
    TERM=dumb HVD_TTY=1 run ranks 1 --epochs 1 --train-images 8000 \
        --test-images 50
    [[ $output != *$'\033'* ]]
}

@test "a terminal shows how far the drawing of digits is" {
    HVD_TTY=1 COLUMNS=60 run ranks 1 --steps 1 --test-images 50 --model mlp
    assert_status_everywhere 1 0
    [[ $output == *"drawing digits"* ]]
    HVD_TTY=0 run ranks 1 --steps 1 --train-images 64 --test-images 50 \
        --model mlp
    [[ $output != *"drawing digits"* ]]
}

@test "evaluation counts every test image once, on any number of ranks" {
    local n
    for n in 1 2 3 4; do
        run ranks $n --steps 1 --train-images 256 --test-images 97
        assert_status_everywhere $n 0
        [[ $output == *" of 97)"* ]]
    done
}

@test "a training that diverges says so on one line" {
    run ranks 2 --optimizer sgd --lr 1e38 --epochs 50 \
        --train-images 1280 --test-images 10
    assert_status_everywhere 2 1
    [ "$(grep -c '^mnist: the loss is no longer a number' <<<"$output")" -eq 1 ]
    [[ $output == *"smaller --lr"* ]]
}

@test "gradients leave the device only if there are other ranks" {
    local n
    for n in 1 2; do
        run ranks $n --steps 2 --train-images 256 --test-images 10 \
            --profile "$OUT/profile$n"
        assert_status_everywhere $n 0
    done
    [ "$(grep -c '"kind": "call"' "$OUT/profile1/profile.json")" -eq 0 ]
    [ "$(grep -c '"kind": "call"' "$OUT/profile2/profile.json")" -gt 0 ]
    # What is compressed is another number, for one rank too.
    run ranks 1 --steps 2 --train-images 256 --test-images 10 \
        --compression fp16 --profile "$OUT/profile3"
    assert_status_everywhere 1 0
    [ "$(grep -c '"kind": "call"' "$OUT/profile3/profile.json")" -gt 0 ]
}

# ---------------------------------------------------------------- training

@test "two ranks reach 98 % on drawn digits" {
    run ranks 2 --epochs 2 --train-images 30000 --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    at_least "$(field test_accuracy)" 0.98
    at_least 0.9999 "$(field test_accuracy)" # there is something to learn
}

@test "1, 3 and 4 ranks learn as well" {
    local n
    for n in 1 3 4; do
        run ranks $n --data "$DIGITS" --train-images 5001 --test-images 500 --epochs 2 \
            --eval-every 0 --summary "$OUT/summary.json"
        assert_status_everywhere $n 0
        [ "$(field world_size)" -eq $n ]
        at_least "$(field test_accuracy)" 0.85
    done
}

@test "compressed gradients learn as well" {
    local compression
    for compression in fp16 bf16; do
        ranks 2 --compression $compression --data "$DIGITS" --train-images 8000 \
            --test-images 1000 --epochs 1 --summary "$OUT/summary.json"
        at_least "$(field test_accuracy)" 0.89
    done
    # What is left out of one step takes part in a later one.
    ranks 2 --compression topk --model mlp --data "$DIGITS" --train-images 10000 \
        --test-images 1000 --epochs 6 --summary "$OUT/summary.json"
    at_least "$(field test_accuracy)" 0.9
}

@test "weights that are compared while they are trained" {
    run ranks 3 --steps 12 --train-images 2000 --test-images 10 \
        --check-every 2
    assert_status_everywhere 3 0
}

@test "every optimizer learns" {
    local name
    for name in sgd momentum adam adamw lamb nesterov rmsprop adagrad \
        adadelta lion lars; do
        ranks 2 --model mlp --data "$DIGITS" --train-images 6000 \
            --test-images 500 --epochs 4 --optimizer $name --summary "$OUT/summary.json"
        at_least "$(field test_accuracy)" 0.8
    done
}

@test "every schedule of the rate learns" {
    local name
    for name in constant step cosine one-cycle; do
        "$PROGRAM" --model mlp --data "$DIGITS" --train-images 6000 --test-images 500 \
            --epochs 2 --lr-schedule $name --warmup 9 --lr 0.004 \
            --summary "$OUT/summary.json"
        at_least "$(field test_accuracy)" 0.8
    done
    run "$PROGRAM" --lr-schedule polynomial
    [ "$status" -eq 64 ]
    [[ $output == *"none of constant, step, cosine, one-cycle" ]]
}

@test "the MLP learns, and its ranks are like one with all of the batch" {
    local -a common=(--model mlp --steps 5 --data "$DIGITS" --train-images 1500
        --test-images 10 --optimizer sgd --lr 0.05)
    run ranks 2 --model mlp --data "$DIGITS" --train-images 10000 --test-images 500 \
        --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    at_least "$(field test_accuracy)" 0.94
    [ "$(field parameters)" -eq 101770 ]
    ranks 1 "${common[@]}" --batch-size 64 --save-weights "$OUT/whole"
    ranks 2 "${common[@]}" --batch-size 32 --save-weights "$OUT/half"
    ranks 2 "${common[@]}" --batch-size 31 --save-weights "$OUT/less"
    at_least 1e-4 "$(difference "$OUT/whole" "$OUT/half")"
    at_least "$(difference "$OUT/whole" "$OUT/less")" 5e-4
}

@test "accumulated gradients are like those of a larger batch" {
    local -a common=(--model mlp --data "$DIGITS" --train-images 1500 --test-images 10
        --optimizer sgd --lr 0.05)
    local of op
    ranks 1 "${common[@]}" --steps 5 --batch-size 64 --save-weights "$OUT/whole"
    HVD_METRICS="$OUT/each" ranks 2 "${common[@]}" --steps 20 --batch-size 8 \
        --save-weights "$OUT/less"
    HVD_METRICS="$OUT/half" ranks 2 "${common[@]}" --steps 20 \
        --batch-size 8 --accumulate 2
    assert_status_everywhere 2 0
    HVD_METRICS="$OUT/fourth" ranks 2 "${common[@]}" --steps 20 \
        --batch-size 8 --accumulate 4 --save-weights "$OUT/parts"
    assert_status_everywhere 2 0
    at_least 1e-4 "$(difference "$OUT/whole" "$OUT/parts")"
    at_least "$(difference "$OUT/whole" "$OUT/less")" 5e-4
    # 4 variables, averaged in 10 steps and in 5 instead of 20.
    for of in each half fourth; do
        op=$(grep 'hvd_submitted_total{.*op="allreduce"' "$OUT/$of")
        echo "${op##* }" >"$OUT/$of.count"
    done
    [ $(($(cat "$OUT/each.count") - $(cat "$OUT/half.count"))) -eq 40 ]
    [ $(($(cat "$OUT/each.count") - $(cat "$OUT/fourth.count"))) -eq 60 ]
}

@test "every optimizer with half of the batch on each of two ranks" {
    local name
    local -a common=(--model mlp --steps 5 --data "$DIGITS" --train-images 1500
        --test-images 10 --lr 0.001 --clip 0.5)
    for name in momentum adam adamw lamb; do
        ranks 1 "${common[@]}" --optimizer $name --batch-size 64 \
            --save-weights "$OUT/whole"
        ranks 2 "${common[@]}" --optimizer $name --batch-size 32 \
            --save-weights "$OUT/half"
        at_least 1e-3 "$(difference "$OUT/whole" "$OUT/half")"
    done
}

@test "training goes on from saved weights" {
    run ranks 2 --model mlp --data "$DIGITS" --train-images 4000 \
        --test-images 500 --epochs 2 --save-weights "$OUT/weights" --summary "$OUT/summary.json"
    assert_status_everywhere 2 0
    local before
    before=$(field test_accuracy)
    # So small a rate that nothing changes: the weights are those loaded.
    run ranks 3 --model mlp --data "$DIGITS" --train-images 4000 \
        --test-images 500 --steps 1 --lr 1e-30 --optimizer sgd --load-weights "$OUT/weights" \
        --save-weights "$OUT/again" --summary "$OUT/summary.json"
    assert_status_everywhere 3 0
    [ "$(field test_accuracy)" = "$before" ]
    cmp "$OUT/weights" "$OUT/again"
}

@test "weights that cannot be loaded are one line on every rank" {
    run ranks 2 "${FEW[@]}" --load-weights "$OUT/none"
    assert_status_everywhere 2 1
    assert_one_line "$OUT/none" "No such file"
    run ranks 2 "${FEW[@]}" --load-weights "$OUT"
    assert_status_everywhere 2 1
    assert_one_line "no regular file"
    head -c 5 /dev/zero >"$OUT/short"
    run ranks 2 "${FEW[@]}" --load-weights "$OUT/short"
    assert_one_line "too short"
    head -c 100 /dev/urandom >"$OUT/noise"
    run ranks 2 "${FEW[@]}" --load-weights "$OUT/noise"
    assert_status_everywhere 2 1
    assert_one_line "no safetensors file"
    ranks 1 --model mlp --steps 1 --train-images 64 --test-images 1 \
        --save-weights "$OUT/mlp"
    run ranks 2 "${FEW[@]}" --model cnn --load-weights "$OUT/mlp"
    assert_status_everywhere 2 1
    assert_one_line "in this network"
    truncate -s -4 "$OUT/mlp"
    run ranks 2 "${FEW[@]}" --model mlp --load-weights "$OUT/mlp"
    assert_status_everywhere 2 1
    assert_one_line "truncated"
}

@test "overlapped and serial reduction give the same bits" {
    local n
    for n in 2 3; do
        ranks $n --steps 12 --train-images 2000 --test-images 10 \
            --save-weights "$OUT/overlapped"
        ranks $n --steps 12 --train-images 2000 --test-images 10 --serial \
            --save-weights "$OUT/serial"
        cmp "$OUT/overlapped" "$OUT/serial"
    done
}

@test "the same run gives the same bits, another seed others" {
    ranks 2 --steps 5 --train-images 700 --test-images 5 \
        --save-weights "$OUT/a"
    ranks 2 --steps 5 --train-images 700 --test-images 5 \
        --save-weights "$OUT/b"
    ranks 2 --steps 5 --train-images 700 --test-images 5 --seed 2 \
        --save-weights "$OUT/c"
    cmp "$OUT/a" "$OUT/b"
    run cmp -s "$OUT/a" "$OUT/c"
    [ "$status" -eq 1 ]
}

@test "ranks with half, a quarter of the batch equal one with all of it" {
    # A few steps: where rounding decides which side of a ReLU's kink or which
    # maximum of a pooling window is taken, a difference grows with each.
    local -a common=(--steps 5 --train-images 1500 --test-images 10
        --optimizer sgd --lr 0.05)
    ranks 1 "${common[@]}" --batch-size 64 --save-weights "$OUT/whole"
    ranks 2 "${common[@]}" --batch-size 32 --save-weights "$OUT/half"
    ranks 4 "${common[@]}" --batch-size 16 --save-weights "$OUT/quarter"
    ranks 2 "${common[@]}" --batch-size 31 --save-weights "$OUT/less"
    at_least 1e-4 "$(difference "$OUT/whole" "$OUT/half")"
    at_least 1e-4 "$(difference "$OUT/whole" "$OUT/quarter")"
    # The comparison can fail: two images less in a batch show.
    at_least "$(difference "$OUT/whole" "$OUT/less")" 5e-4
}

# ----------------------------------------------------------------- signals

# trains PROCESS LOG: waits until a training has begun.
trains() {
    until grep -q '^epoch ' "$2"; do
        kill -0 "$1"
        sleep 0.1
    done
}

@test "an interrupted run dies by the signal and leaves nothing" {
    mkdir "$OUT/files"
    local signal
    for signal in INT TERM; do
        # Bash starts what is in the background without SIGINT.
        env --default-signal=INT "$MNIST" "${FEW[@]}" --epochs 100000 \
            --summary "$OUT/files/summary.json" >"$OUT/log" 3>&- &
        trains $! "$OUT/log"
        kill -s $signal $!
        status=0
        wait $! || status=$?
        [ "$status" -eq $((128 + $(kill -l $signal))) ]
    done
    [ -z "$(ls -A "$OUT/files")" ]
}

@test "an interrupted mpirun leaves no rank" {
    mkdir "$OUT/files"
    mpirun --oversubscribe -np 2 "$MNIST" "${FEW[@]}" --epochs 100000 \
        --summary "$OUT/files/summary.json" >"$OUT/log" 3>&- &
    trains $! "$OUT/log"
    kill -s TERM $!
    status=0
    wait $! || status=$?
    [ "$status" -ne 0 ]
    [ -z "$(ls -A "$OUT/files")" ]
    local tries
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        pgrep -f -- "--summary $OUT/files" >/dev/null || return 0
        sleep 0.5
    done
    echo "still running: $(pgrep -af -- "--summary $OUT/files")"
    return 1
}
