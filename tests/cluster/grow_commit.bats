# SPDX-License-Identifier: Apache-2.0
# Workers join a training at its commits, die at any moment, and come back
# (docs/ELASTIC.md). committer.c compares each end with a replay; here what all
# of them have written, also those that died, is compared.

load tasks
load growing

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export GROWER=$BATS_FILE_TMPDIR/committer
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -O1 -Wall -Wextra -I"$ROOT/libhvd/include" \
        -I"$ROOT/tests/support" -o "$GROWER" \
        "$BATS_TEST_DIRNAME/committer.c" -L"$lib" -lhvd -Wl,-rpath,"$lib" \
        -lpthread -ldl
    export HVD_ELASTIC=1 HVD_ELASTIC_MIN=2
    export HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

# Starts a worker for the first time, or again. now has the name of each
# worker's files.
begin() { # index [piece]
    local index=$1
    starts=$((starts + 1))
    now[index]=w$index.$starts
    NAME=${now[index]} grow "$index" "$index" 3 "${@:2}"
}
starts=0 now=()

pause() { # ms: less than that, at random
    local ms
    printf -v ms '%03d' $((RANDOM % $1))
    sleep "0.$ms"
}

end_with_signal() { # index
    kill -KILL "${pid[${now[$1]}]}"
    wait "${pid[${now[$1]}]}" || true
}

# Has one die at a place that committer.c knows.
die_at() { # index where number
    local index=$1
    echo "$2 $3" >"die.new"
    mv die.new "die.$index"
}

# It was killed, and not by anything else.
has_died() { # index
    local status=0
    wait "${pid[${now[$1]}]}" || status=$?
    rm "die.$1"
    [ "$status" -eq 137 ]
}

is_in() { # index...: all of them are in a world of three
    local index
    for index in "$@"; do
        until_line "${now[index]}" '^restore .* of 3 old '
    done
}

# Two begin, and the third joins.
begin_all() {
    RANDOM=${HVD_TEST_SEED:-$BASHPID}
    echo "HVD_TEST_SEED=${HVD_TEST_SEED:-$BASHPID}"
    workers 3
    begin 0
    begin 1
    until_line "${now[0]}" '^commit '
    begin 2
    is_in 0 1 2
    grep -E '^restore .* rank 2 of 3 old -1 of 0$' "${now[2]}.out"
}

# Nobody has seen a commit to which a later world has not gone back, or to a
# newer one; and a number is the same state for all.
check_records() {
    cat ./*.out | awk '
        function fail(text) { print text; failed = 1 }
        /^(commit|restore|end) / {
            step = $1 == "end" ? $4 : $6
            state = step " " ($1 == "end" ? $6 : $8)
            if ($2 in states && states[$2] != state)
                fail("commit " $2 " is " state " and " states[$2])
            states[$2] = state
        }
        /^commit / && $2 > newest[$4] { newest[$4] = $2 }
        /^restore / && (!($4 in restored) || $2 < restored[$4]) {
            restored[$4] = $2
        }
        /^commit / { commits++ }
        /^restore / { restores++ }
        END {
            for (world in restored)
                for (before in newest)
                    if (before + 0 < world + 0 &&
                        newest[before] > restored[world])
                        fail("world " before " had commit " newest[before] \
                             ", and world " world " has " restored[world])
            print commits " commits, " restores " restores"
            exit failed || commits == 0 || restores == 0
        }'
}

# All end with the same state, and have made as many steps as they should.
end_all() {
    local index status=0 ends
    touch end
    for index in 0 1 2; do
        wait "${pid[${now[index]}]}" || {
            echo "${now[index]}: $?"
            status=1
        }
    done
    tail -n 5 ./*.{out,err}
    ! grep wrong ./*.out || status=1
    ends=$(grep -h '^end ' ./*.out)
    [ "$(wc -l <<<"$ends")" -eq 3 ] || status=1
    [ "$(sort -u <<<"$ends" | wc -l)" -eq 1 ] || status=1
    grep -q ' ranks 3$' <<<"$ends" || status=1
    check_records || status=1
    return $status
}

@test "each worker is killed at random moments, and comes back" {
    local victim
    begin_all
    for victim in 0 1 2 0 2 1; do
        pause 300
        end_with_signal "$victim"
        pause 100
        begin "$victim"
        is_in "$victim"
    done
    end_all
}

@test "a worker is killed while another one comes back" {
    local first second
    begin_all
    for first in 0 1 2 0; do
        second=$(((first + 1 + RANDOM % 2) % 3))
        pause 100
        end_with_signal "$first"
        begin "$first"
        pause 400
        end_with_signal "$second"
        begin "$second"
        is_in "$first" "$second"
    done
    end_all
}

# The youngest of three comes back, and one of the others, the first rank or the
# second, dies when it is let in.
die_in_growth() { # where number
    local round youngest victim other order=(0 1 2)
    for round in 0 1 2 3; do
        youngest=${order[2]}
        victim=${order[round % 2]}
        other=${order[1 - round % 2]}
        end_with_signal "$youngest"
        die_at "$victim" "$1" $((1 + RANDOM % $2))
        begin "$youngest"
        has_died "$victim"
        begin "$victim"
        is_in "$youngest" "$victim"
        order=("$other" "$youngest" "$victim")
    done
}

@test "one dies when it is about to let others in" {
    begin_all
    die_in_growth before 1
    end_all
}

@test "one dies while it lets others in" {
    begin_all
    die_in_growth within 10000
    end_all
}

@test "one dies when others are in and have no state yet" {
    begin_all
    die_in_growth after 1
    end_all
}

@test "one dies while it gives others the state" {
    begin_all
    die_in_growth restore 7
    end_all
}

@test "one that joins dies while it gets the state" {
    local number
    begin_all
    end_with_signal 1
    for number in 1 2 3 4 5 6 7; do
        die_at 1 restore "$number"
        begin 1
        has_died 1
    done
    begin 1
    is_in 1
    end_all
}

@test "one with other pieces ends alone, in words, and the others go on" {
    local words
    words='the ranks have registered different pieces of the state: '
    words+="number 6 is nothing on rank 0, and 'more' of 4 bytes on rank 2"
    workers 3
    begin 0
    begin 1
    until_line "${now[0]}" '^commit '
    begin 2 more
    fails "${now[2]}"
    tail -n 5 ./*.{out,err}
    grep -F -- "$words" "${now[2]}.err"
    grep -F -- "rank 2, which has joined, is left out: $words" "${now[0]}.err"
    begin 2
    is_in 2
    end_all
}
