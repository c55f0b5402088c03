# SPDX-License-Identifier: Apache-2.0
# mnist and char_gpt go on when ranks are killed (--elastic), and what they have
# trained can be repeated from their events.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
    # A text that stays the same between a training and its replay.
    export TEXT=$BATS_FILE_TMPDIR/text
    cat "$ROOT"/docs/[A-D]*.md >"$TEXT"
    # Ranks and those of the replay would each draw the digits again.
    export DIGITS=$BATS_FILE_TMPDIR/digits
    "$BIN/tests-draw-digits" "$DIGITS" 6000 200
}

through() { # argument of trainings...
    run "$BATS_TEST_DIRNAME/trainings" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "mnist trains through the losses of 2 of 4 ranks, and a replay agrees" {
    local full=${HVD_TEST_FULL:+50}
    through --seed 3 --jobs "${full:-2}" --ranks 4 --least 2 --pause 0.1 "$BIN/mnist" --model mlp \
        --data "$DIGITS" --train-images 6000 --test-images 200 --batch-size 8 --epochs 2
}

@test "so does char_gpt, whose data has no epochs" {
    through --seed 4 --jobs 3 --ranks 3 --least 2 --pause 0.1 "$BIN/char_gpt" --text "$TEXT" --layers 1 \
        --width 16 --heads 2 --context 16 --batch-size 2 --steps 300 \
        --eval-windows 8 --sample 0
}

@test "two replicas of each rank, an optimiser on the host, and running means" {
    through --seed 5 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model mlp \
        --replicas 2 --data "$DIGITS" --train-images 3000 --test-images 100 --batch-size 4 \
        --epochs 24
    through --seed 6 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model mlp \
        --variables-on-host --data "$DIGITS" --train-images 3000 --test-images 100 \
        --batch-size 8 --epochs 24
    through --seed 7 --ranks 3 --least 2 --pause 0.1 "$BIN/mnist" --model \
        cnn-bn --data "$DIGITS" --train-images 1000 --test-images 100 --batch-size 8 --epochs 2
}

@test "workers that are killed come back to mnist, and a replay agrees" {
    local full=${HVD_TEST_FULL:+20}
    through --seed 8 --jobs "${full:-1}" --ranks 3 --least 1 --back 3 --pause 0.2 \
        "$BIN/mnist" --model mlp --data "$DIGITS" --train-images 3000 --test-images 200 \
        --batch-size 8 --epochs 40
}

@test "so they do to char_gpt, and to running means and a schedule" {
    through --seed 9 --ranks 2 --least 1 --back 2 --pause 0.1 "$BIN/char_gpt" \
        --text "$TEXT" --layers 1 --width 16 --heads 2 --context 16 --batch-size 2 \
        --steps 6000 --eval-windows 8 --sample 0
    through --seed 10 --ranks 2 --least 2 --back 2 --pause 0.1 "$BIN/mnist" --model \
        mlp --ema 0.9 --lr 0.002 --lr-schedule cosine --data "$DIGITS" --train-images 2000 --test-images 100 \
        --batch-size 8 --epochs 30
}

@test "spares take the places of ranks of mnist and char_gpt, and a replay agrees" {
    local full=${HVD_TEST_FULL:+20}
    through --seed 11 --jobs "${full:-2}" --ranks 3 --least 2 --spare 2 --pause 0.1 \
        "$BIN/mnist" --model mlp --data "$DIGITS" --train-images 3000 --test-images 200 \
        --batch-size 8 --epochs 24
    through --seed 12 --ranks 2 --least 1 --spare 1 --pause 0.1 "$BIN/char_gpt" \
        --text "$TEXT" --layers 1 --width 16 --heads 2 --context 16 --batch-size 2 \
        --steps 600 --eval-windows 8 --sample 0
}

# A training of two ranks that is over in a moment.
readonly SMALL="--model mlp --train-images 400 --test-images 50 --epochs 1"

launch() { # argument of mpirun...
    env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        HVD_HEARTBEAT_TIME=20s timeout 120 mpirun --oversubscribe "$@"
}

@test "a spare that was not needed ends with 0, and says so" {
    # shellcheck disable=SC2086 # several words
    HVD_SPARES=1 run launch -np 3 "$BIN/mnist" --elastic 1:2 $SMALL
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^mnist: not needed: the job has ended' <<<"$output")" -eq 1 ]
}

# Rank 0 waits for somebody to read its summary, and rank 1, which is killed then,
# for rank 0, or for the end. Each rank writes to a file: mpirun may lose the last
# lines when a rank was killed.
@test "a rank that is lost behind the training is missed by nobody, nor replaced" {
    local launcher
    export folder=$BATS_TEST_TMPDIR
    mkfifo "$folder/summary"
    # shellcheck disable=SC2086 # several words
    HVD_SPARES=1 launch --enable-recovery -np 3 sh -c \
        'exec >"$folder/out.$OMPI_COMM_WORLD_RANK" 2>&1
        "$@" & echo $! >"$folder/pid.$OMPI_COMM_WORLD_RANK"
        wait $!; echo "it ended with $?"' sh \
        "$BIN/mnist" --elastic 1:2 --elastic-log "$folder/log" \
        --summary "$folder/summary" $SMALL 3>&- &
    launcher=$!
    until grep -qs '"event":"end"' "$folder/log" || ! kill -0 $launcher; do
        sleep 0.1
    done
    kill -9 "$(cat "$folder/pid.1")"
    exec 7<>"$folder/summary"
    wait $launcher
    cat "$folder"/out.*
    grep -q 'it ended with 137' "$folder/out.1"
    grep -q 'it ended with 0' "$folder/out.0"
    grep -q 'it ended with 0' "$folder/out.2"
    grep -q 'not needed: the job has ended' "$folder/out.2"
    exec 8<"$folder/summary" 7>&- # so that it comes to its end
    grep '"weights_hash"' <&8
    exec 8<&-
}

# Rank 1, which is rank 0 of the world that is left, takes a pipe for the file of
# events: it tells nobody but the test of the loss, and waits for the next reader
# with its next event, until it is killed.
@test "a loss is told, although the rank that was to write of it is lost, too" {
    local launcher event
    export folder=$BATS_TEST_TMPDIR
    mkfifo "$folder/log.1"
    ln -s log.0 "$folder/log.2"
    # shellcheck disable=SC2086 # several words
    launch --enable-recovery -np 3 sh -c 'echo $$ >"$folder/pid.$OMPI_COMM_WORLD_RANK"
        exec "$@" --elastic-log "$folder/log.$OMPI_COMM_WORLD_RANK" \
            >"$folder/out.$OMPI_COMM_WORLD_RANK" 2>&1' sh \
        "$BIN/mnist" --elastic 1:3 $SMALL --epochs 4000 --steps 4000 3>&- &
    launcher=$!
    until grep -qs '"event":"commit","step":20' "$folder/log.0"; do
        kill -0 $launcher
        sleep 0.05
    done
    kill -KILL "$(cat "$folder/pid.0")"
    read -r event <"$folder/log.1"
    [[ $event == *'"event":"loss",'*'"lost":[0],'* ]]
    kill -KILL "$(cat "$folder/pid.1")"
    wait $launcher
    grep -v '"commit"' "$folder/log.0"
    grep '"event":"loss",' "$folder/log.0" | grep '"ranks":\[0,1,2\],"lost":\[0,1\],'
    grep '"event":"restore",' "$folder/log.0" | grep '"ranks":\[2\],'
}

@test "a rank that keeps the others waiting is excluded" {
    export folder=$BATS_TEST_TMPDIR
    gcc -Wall -Wextra -shared -fPIC -o "$folder/slow.so" \
        "$BATS_TEST_DIRNAME/slow_blas.c" -ldl
    SLOW_RANK=1 HVD_STRAGGLER_TIME=0.3s launch --enable-recovery -np 3 sh -c \
        'exec >"$folder/out.$OMPI_COMM_WORLD_RANK" 2>&1
        LD_PRELOAD=$folder/slow.so "$@"; echo "it ended with $?"' sh \
        "$BIN/mnist" --model mlp --elastic 2 --exclude-stragglers 2 \
        --elastic-every 2 --train-images 2000 --test-images 50 --batch-size 8 \
        --epochs 3
    cat "$folder"/out.*
    grep -q 'given up this one: rank 1 .* was excluded' "$folder/out.1"
    grep -q 'it ended with 1$' "$folder/out.1"
    grep -q 'lost     1 of 3 ranks; ' "$folder/out.0"
    grep -q 'it ended with 0' "$folder/out.2"
}

@test "the replay of a training that began anew forgets what was before" {
    local folder=$BATS_TEST_TMPDIR
    # shellcheck disable=SC2086 # several words
    launch -np 2 "$BIN/mnist" --elastic 1:3 --elastic-log "$folder/log" \
        --summary "$folder/first" $SMALL
    # Two that lost a rank before a commit was complete: one of as many ranks
    # as began anew, because a spare came, and one of more.
    sed -n '1,2p' "$folder/log" >"$folder/two"
    sed -n '2s/"commit"/"loss"/;2s/}$/,"lost":[1]}/p' "$folder/log" >>"$folder/two"
    sed 's/\[0,1\]/[0,1,2]/' "$folder/two" >"$folder/three"
    for began in two three; do
        cat "$folder/log" >>"$folder/$began"
        cat "$folder/$began"
    done
    for began in "2 two" "3 three"; do
        # shellcheck disable=SC2086 # several words
        launch --enable-recovery -np "${began% *}" "$BIN/mnist" --elastic 1:3 \
            --elastic-replay "$folder/${began#* }" \
            --summary "$folder/again" $SMALL
        [ "$(grep weights_hash "$folder/again")" = "$(grep weights_hash "$folder/first")" ]
        rm "$folder/again"
    done
    # shellcheck disable=SC2086 # several words
    run launch -np 1 "$BIN/mnist" --elastic 1:3 --elastic-replay "$folder/log" $SMALL
    echo "$output"
    [ "$status" -ne 0 ]
    grep -q 'start the replay by mpirun -np 2, as many ranks as' <<<"$output"
}

# job RANKS STEP RESTARTS: trains with as many ranks as there have to be, 2, of
# which these are killed in the first job, behind the commit of a step.
# mpi-launch.sh starts the job again. The library $slow is loaded into the first one.
job() {
    export victims=$1 step=$2
    cat >"$folder/rank" <<'END'
[ "${HVD_RESTART-0}" != 0 ] || export LD_PRELOAD=$slow
"$@" &
pid=$!
if [ "${HVD_RESTART-0}" = 0 ]; then
    echo $pid >"$folder/pid.$OMPI_COMM_WORLD_RANK"
    # The first one kills all at once: no victim notices the end of another one.
    if [ "$OMPI_COMM_WORLD_RANK" = "${victims%% *}" ]; then
        until grep -qs '"event":"commit","step":'"$step", "$folder/log"; do
            sleep 0.01
        done
        kill -9 $(for victim in $victims; do cat "$folder/pid.$victim"; done)
    fi
fi
wait $pid
END
    env HVD_HEARTBEAT_TIME=20s timeout 120 "$ROOT/mpi-launch.sh" --elastic \
        --restarts "$3" -np 2 sh "$folder/rank" "$BIN/mnist" --model mlp \
        --elastic 2:2 --model-dir "$folder/model" --train-images 400 \
        --test-images 50 --batch-size 8 --epochs 60 --elastic-log "$folder/log" \
        --summary "$folder/first"
}

# value NAME EVENT: prints the number of this name in the events of this name.
value() {
    sed -n 's/.*"event":"'"$2"'".*"'"$1"'":\([0-9]*\).*/\1/p' "$folder/log"
}

# ends_well: the training has counted 60 times 400 samples, whatever was lost, and a
# replay has the same weights.
ends_well() {
    cat "$folder/log" | grep -v '"commit"'
    [ "$(value rows end)" = 24000 ]
    HVD_START_TIME=24h launch --enable-recovery -np 2 "$BIN/mnist" --model mlp \
        --elastic 2:2 --train-images 400 --test-images 50 --batch-size 8 \
        --epochs 60 --elastic-replay "$folder/log" --summary "$folder/again"
    [ "$(grep weights_hash "$folder/again")" = "$(grep weights_hash "$folder/first")" ]
}

@test "when too few are left they save their commit, from which another job goes on" {
    export folder=$BATS_TEST_TMPDIR
    run job 0 130 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"1 rank is left, and --elastic asks for 2 at least: start the training again with more; it goes on from step "* ]]
    [[ $output == *"asks for another start of the job (status 75)"* ]]
    [[ $output == *"goes on after step"* ]]
    [[ $output == *"restarts 1 of the job, with 2 ranks in all, after 2 that began"* ]]
    [ "$(value step stop)" -ge 130 ]
    [ "$(value step stop)" = "$(value step resume)" ]
    grep -q '"event":"resume".*"ranks":\[2,3\]' "$folder/log"
    ends_well
    # Without ranks for it, the status is 75; the folder has a training that is over.
    rm "$folder/log"
    rm -r "$folder/model"
    run job 1 130 0
    [ "$status" -eq 75 ]
    # A training that is not elastic refuses the folder of one that is.
    run "$BIN/mnist" --model mlp --train-images 400 --test-images 50 --batch-size 8 \
        --model-dir "$folder/model"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"it is of a training with --elastic, whose steps have not as many rows"* ]]
}

@test "when too few are left before the first step another job begins with it" {
    export folder=$BATS_TEST_TMPDIR slow=$BATS_TEST_TMPDIR/slow.so SLOW_MS=20
    gcc -Wall -Wextra -shared -fPIC -o "$slow" "$BATS_TEST_DIRNAME/slow_blas.c" -ldl
    run job 1 0 1
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(value step stop)" = 0 ]
    [ "$(value step resume)" = 0 ]
    ends_well
}

@test "when too few are left before the training begins another job begins it" {
    export folder=$BATS_TEST_TMPDIR
    cat >"$folder/rank" <<'END'
exec >>"$folder/out.$OMPI_COMM_WORLD_RANK" 2>&1
"$@" &
pid=$!
if [ "${HVD_RESTART-0}" = 0 ] && [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    until grep -qs '^drawing digits' "$folder"/out.0; do
        sleep 0.01
    done
    kill -9 $pid
fi
wait $pid
END
    run env HVD_HEARTBEAT_TIME=20s timeout 120 "$ROOT/mpi-launch.sh" --elastic \
        --restarts 1 -np 2 sh "$folder/rank" "$BIN/mnist" --model mlp \
        --elastic 2:2 --train-images 60000 --test-images 50 --epochs 1 \
        --elastic-log "$folder/log"
    echo "$output"
    cat "$folder"/out.* "$folder/log" | grep -v '"commit"'
    [ "$status" -eq 0 ]
    [[ $output == *"asks for another start of the job (status 75)"* ]]
    grep -q 'mnist: 1 rank is left, and --elastic asks for 2 at least: start the training again with more$' "$folder/out.0"
    # Its event counts the lost rank, and has none of its own.
    head -n 1 "$folder/log" |
        grep '"event":"stop","step":0,.*"ranks":\[\],"newcomers":1}'
    sed -n 2p "$folder/log" | grep '"event":"start",.*"ranks":\[0,1\]'
    grep '"event":"end"' "$folder/log"
}

@test "when all are killed at once another job goes on from the last checkpoint" {
    export folder=$BATS_TEST_TMPDIR
    run job '0 1' 330 1
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$(value step stop)" ]
    [ "$(value step resume)" -ge 200 ]
    [ "$(($(value step resume) % 10))" -eq 0 ]
    # The second job names those that no other one could.
    grep -B 1 '"resume"' "$folder/log" |
        grep -q '"event":"loss".*"ranks":\[0,1\],"lost":\[0,1\],"left":0'
    [ "$(grep -c '"event":"loss"' "$folder/log")" -eq 1 ]
    ends_well
}

@test "a replay with other data is refused in words" {
    local folder=$BATS_TEST_TMPDIR
    # shellcheck disable=SC2086 # several words
    launch -np 2 "$BIN/mnist" --elastic 1 --elastic-log "$folder/log" $SMALL
    grep -q '^{"event":"start".*"data":"[0-9a-f]\{16\}"}$' "$folder/log"
    # shellcheck disable=SC2086 # several words
    run launch -np 2 "$BIN/mnist" --elastic 1 \
        --elastic-replay "$folder/log" $SMALL --seed 2
    echo "$output"
    [ "$status" -ne 0 ]
    grep -q -- '--elastic-replay .*log: that training had other data (mark [0-9a-f]*, here [0-9a-f]*): give it the same' <<<"$output"
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
    for more in "--global-batch 12" "--stages 2" "--losses x" "--log-dir x"; do
        # shellcheck disable=SC2086 # two words
        run "$BIN/char_gpt" --elastic 1 $more
        echo "$output"
        [ "$status" -ne 0 ]
        grep -q -- "--elastic does not go together with ${more% *}" <<<"$output"
    done
    for more in parameter-server device-collective; do
        run "$BIN/mnist" --elastic 1:2 --strategy "$more"
        echo "$output"
        [ "$status" -eq 64 ]
        [ "${#lines[@]}" -eq 1 ]
        grep -q -- "--elastic does not go together with --strategy parameter-server" <<<"$output"
    done
    run "$BIN/mnist" --elastic-log x
    grep -q -- 'give --elastic, too' <<<"$output"
    run "$BIN/mnist" --exclude-stragglers 2
    grep -q -- '--exclude-stragglers .*: give --elastic, too' <<<"$output"
    run "$BIN/mnist" --elastic 1 --exclude-stragglers 1.1
    grep -q -- '--exclude-stragglers 1.1: give 1.25 or more' <<<"$output"
    run "$BIN/mnist" --elastic 0
    grep -q -- "--elastic '0': give" <<<"$output"
    run "$BIN/mnist" --elastic 1 --elastic-replay /nowhere
    grep -q -- '--elastic-replay /nowhere: cannot be read' <<<"$output"
    printf '%s\n' '{"event":"start"}' '{"event":"restore","step":2,"ranks":[0]}' >"$BATS_TEST_TMPDIR/events"
    run "$BIN/mnist" --elastic 1 --elastic-replay "$BATS_TEST_TMPDIR/events" --data "$DIGITS"
    [ "$status" -eq 1 ] && [ "${#lines[@]}" -eq 1 ]
    grep -q -- "--elastic-replay .*events: an event 'start' has no ranks: give a file" <<<"$output"
    sed -i 1d "$BATS_TEST_TMPDIR/events"
    run "$BIN/mnist" --elastic 1 --elastic-replay "$BATS_TEST_TMPDIR/events" --data "$DIGITS"
    [ "$status" -eq 1 ] && [ "${#lines[@]}" -eq 1 ]
    grep -q -- '--elastic-replay .*events: no event is a start: give a file' <<<"$output"
}
