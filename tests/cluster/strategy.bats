# SPDX-License-Identifier: Apache-2.0
# An elastic strategy goes on in a program's own loop when workers are killed,
# and when they come back (docs/ELASTIC.md).

load tasks
load growing

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export GROWER=$BATS_FILE_TMPDIR/fitter
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -O1 -Wall -Wextra -I"$ROOT/libhvd/include" -o "$GROWER" \
        "$BATS_TEST_DIRNAME/fitter.c" -L"$lib" -lhvd -Wl,-rpath,"$lib"
    export HVD_ELASTIC=1 HVD_HEARTBEAT_TIME=10s HVD_START_TIME=60s
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    unset TF_CONFIG
    started=()
    # What one process comes to alone, without losses.
    HVD_ELASTIC=0 "$GROWER" 400 0 >alone
    weights=$(sed -n 's/.*\(updates .*\)/\1/p' alone)
}

end_alike() { # name...: all of them end with what one alone comes to
    local name
    for name in "$@"; do
        wait "${pid[$name]}" || echo "$name: $?"
    done
    tail -n 5 ./*.{out,err} alone
    ! grep wrong ./*.out || return 1
    for name in "$@"; do
        grep "of $# step 400 $weights\$" "$name.out"
    done
}

@test "survivors go on with variables, optimizer and learning rate" {
    workers 3
    grow 0 400 20000
    grow 1 400 20000
    grow 2 400 20000
    until_line 0 'committed 250' # the learning rate has fallen
    end_with_signal 0
    end_alike 1 2
}

@test "those who come back get all of it" {
    local victim
    workers 3
    grow 0 400 20000
    grow 1 400 20000
    grow 2 400 20000
    until_line 2 committed
    for victim in 1 0; do
        end_with_signal "$victim"
        NAME=back$victim grow "$victim" 400 20000
        until_line "back$victim" committed
    done
    end_alike back0 back1 2
}

@test "parameter servers are not elastic, and the option is 0 or 1" {
    cat >refused.c <<'END'
#include <hvd_strategy.h>
#include <stdio.h>

static void try(int elastic, int kind)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&options, sizeof options);
    options.elastic = elastic;
    options.kind = kind;
    printf("%d %s\n", hvd_strategy_new(&options, &strategy), hvd_last_error());
}

int main(void)
{
    hvd_init();
    try(2, HVD_STRATEGY_ALL_REDUCE);
    try(1, HVD_STRATEGY_PARAMETER_SERVER);
    return hvd_shutdown();
}
END
    local lib=${HVD_BUILD:-$ROOT/build}/lib
    gcc -I"$ROOT/libhvd/include" -o refused refused.c -L"$lib" -lhvd \
        -Wl,-rpath,"$lib"
    run ./refused
    echo "$output"
    grep -F 'elastic 2 is neither 0 nor 1' <<<"$output"
    grep -F 'a strategy with parameter servers is not elastic' <<<"$output"
}
