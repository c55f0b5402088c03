# SPDX-License-Identifier: Apache-2.0
# Every operation runs in every language. Python is Debian's own: another one
# that is found first may lack numpy.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
}

# Prints how many ranks came to the end of a program, which then says it has seen
# "every" this or that. It counts occurrences, not lines: mpirun may put the
# lines of two ranks into one.
finished() { # what
    grep -o "every $1" <<<"$output" | wc -l
}

# Runs a program of this folder by the engine of the package hvd that $engine names.
python() { # program launcher...
    local program=$1
    shift
    HVD_LIBRARY=$LIB/libhvd.so.0 HVD_PYTHON=$engine PYTHONDONTWRITEBYTECODE=1 \
        run timeout 60 "$@" /usr/bin/python3 \
        "$BATS_TEST_DIRNAME/$program.py" "$LIB/python"
    echo "$output"
}

python_says() { # what ranks
    python "every_$1" mpirun -np "$2"
    [ "$status" -eq 0 ]
    [ "$(finished "$1")" -eq "$2" ]
}

@test "python" {
    for engine in extension ctypes; do
        for n in 1 2 3; do
            python_says operation $n
        done
    done
}

@test "python: a rank is lost, and the others go on" {
    engine=extension
    for n in 1 3; do
        HVD_ELASTIC=1 HVD_STRAGGLER_TIME=0.3s python every_loss mpirun --enable-recovery -np $n
        [ "$(finished loss)" -eq $((n > 1 ? n - 1 : 1)) ]
    done
    LOSS=exit HVD_ELASTIC=1 HVD_STRAGGLER_TIME=0.3s \
        python every_loss mpirun --enable-recovery -np 3
    [ "$(finished loss)" -eq 2 ]
}

@test "python: the tasks of a cluster, without MPI" {
    for engine in extension ctypes; do
        python cluster "$ROOT/tests/tools/by-hand" 2
        [ "$status" -eq 0 ]
        [ "$(finished task)" -eq 2 ]
    done
}

@test "python: mistakes" {
    for engine in extension ctypes; do
        for n in 1 2; do
            python_says mistake $n
        done
    done
}

@test "python: memory of all sorts, everything asynchronous" {
    for engine in extension ctypes; do
        for n in 2 3; do
            python_says argument $n
        done
    done
}

# Importing PyTorch takes longer than each of these programs, so one process runs all
# of them; and the library starts again in it.
@test "python: tensors of PyTorch, layers that see all ranks, torch.distributed" {
    engine=extension
    for n in 1 2 3; do
        PROGRAMS="tensor layer group" STORE=$BATS_TEST_TMPDIR/store.$n \
            python several mpirun -np $n
        [ "$status" -eq 0 ]
        for what in tensor layer group; do
            [ "$(finished $what)" -eq $n ]
        done
    done
    engine=ctypes
    python_says tensor 2
}

@test "python: torch.distributed starts without a launcher" {
    engine=extension
    for n in 1 3; do
        WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$("$ROOT/tests/tools/free-ports" 1) \
            python every_meeting "$BATS_TEST_DIRNAME/as-torchrun"
        [ "$status" -eq 0 ]
        [ "$(finished meeting)" -eq $n ]
    done
}

@test "python: malloc keeps the memory of PyTorch's trainings" {
    engine=extension
    CASES="settings optimizer group hook unwanted" STORE=$BATS_TEST_TMPDIR/store \
        python every_block env
    [ "$status" -eq 0 ]
    [ "$(finished block)" -eq 5 ]
    # With this setting glibc's library for debugging has a malloc of its own.
    python every_block env CASES=unwanted LD_PRELOAD=libc_malloc_debug.so.0 \
        GLIBC_TUNABLES=glibc.malloc.check=3
    [ "$(finished block)" -eq 1 ]
}

@test "python: PyTorch trains on when a rank is lost" {
    engine=extension
    for n in 1 3; do
        python every_elastic "$ROOT/mpi-launch.sh" --elastic -np $n
        [ "$(finished elastic)" -eq $((n > 1 ? n - 1 : 1)) ]
    done
}

@test "python: PyTorch trains on when a rank is lost, and when it comes back" {
    engine=extension
    HVD_ELASTIC=1 python every_elastic "$LIB/../bin/hvd-run" --elastic 2:3 --restarts 1
    [ "$status" -eq 0 ]
    [ "$(finished elastic)" -eq 3 ]
}

@test "python: trainings in PyTorch are timed" {
    local times=$ROOT/bench/pytorch/trainings
    export PYTHONPATH=$LIB/python HVD_LIBRARY=$LIB/libhvd.so.0
    run "$times" --rounds 1 --turns 1 --models many,mlp --format csv --no-calls
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -cE '^(mlp,4|many,200)(,[0-9.]+){8}$' <<<"$output")" -eq 2 ]
    grep -qE '^model,parameters,alone_us,barrier_us,hvd_us,ddp_us,' <<<"$output"
    run "$times" -n 1
    [ "$status" -eq 2 ]
    [[ $output == *"--ranks: at least 2" ]]
    run "$times" --models lenet
    [ "$status" -eq 2 ]
    [[ $output == *"--models: 'lenet' is none of mlp, cnn, transformer, many" ]]
}

@test "python: a model's gradients are summed and timed, also in C" {
    local sums=$ROOT/bench/pytorch/gradients
    PYTHONPATH=$LIB/python HVD_LIBRARY=$LIB/libhvd.so.0 run mpirun -np 2 \
        "$sums" --rounds 2 --model small161 --format csv
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -cE '^small161,161,(C|hvd|hvd\.torch)(,[0-9.]+){3}$' <<<"$output")" -eq 3 ]
    PYTHONPATH=$LIB/python HVD_LIBRARY=$LIB/libhvd.so.0 run "$sums" --model lenet
    [ "$status" -eq 1 ]
    [[ $output == *"--model: 'lenet' is unknown to hvd-bench gradients"* ]]
}

@test "python: a program for Horovod finds its names" {
    engine=extension
    for n in 1 2 3; do
        python every_name "$ROOT/mpi-launch.sh" --horovod -np $n
        [ "$status" -eq 0 ]
        [ "$(finished name)" -eq $n ]
    done
}

@test "horovodrun starts programs, with what Horovod's options mean here" {
    local run=$LIB/python/hvd/compat/bin/horovodrun
    PYTHON=/usr/bin/python3 HVD_LIBRARY=$LIB/libhvd.so.0 run timeout 60 "$run" -np 2 \
        --cycle-time-ms 5 --fusion-threshold-mb 32 -x HVD_TEST_X=7 /usr/bin/python3 -c '
import horovod, hvd, os
hvd.init()
assert os.environ["HVD_FUSION_THRESHOLD"] == "32MB" and os.environ["HVD_TEST_X"] == "7"
os.write(1, b"every option of %d\n" % hvd.size())'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"--cycle-time-ms has no effect here: nothing polls"* ]]
    [ "$(finished 'option of 2')" -eq 2 ]
    run "$run" -np 3 --mpi-args='--map-by node' -H a:2,b:1 -p 22 --dry-run \
        --timeline-filename t.json ./train.py -np 5
    [[ $output == "HVD_TIMELINE=t.json "*"/mpi-launch.sh --horovod -np 3 -H a:2,b:1 "* ]]
    [[ $output == *" --mpi-arg '-p 22' -- ./train.py -np 5" ]]
    run "$run" --min-np 2 --max-np 4 --host-discovery-script ./hosts -p 2222 --dry-run ./train.py
    [[ $output == *"/hvd-run --elastic=2:4 --restarts=100 --host-discovery-script=./hosts '--rsh=ssh -o BatchMode=yes -o ServerAliveInterval=5 -p 2222' -- ./train.py" ]]
    run "$run" -np 2 /usr/bin/python3 -c 'raise SystemExit(7)'
    [ "$status" -eq 7 ]
}

# says WORDS OPTION...: the command of horovodrun with these options has the words.
says() {
    local words=$1
    shift
    run "$LIB/python/hvd/compat/bin/horovodrun" "$@" --dry-run ./train.py
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"$words"* ]]
}

@test "horovodrun: what each option becomes" {
    says "HVD_TIMELINE_MARK_CYCLES=1 " -np 2 --timeline-mark-cycles
    says "HVD_TIMELINE_MARK_CYCLES=0 " -np 2 --no-timeline-mark-cycles
    says "HVD_AUTOTUNE=1 HVD_AUTOTUNE_LOG=log " -np 2 --autotune --autotune-log-file log
    says "HVD_AUTOTUNE=0 " -np 2 --no-autotune
    says "HVD_STALL_CHECK_TIME=0 " -np 2 --no-stall-check
    says "HVD_STALL_CHECK_TIME=7s HVD_STALL_SHUTDOWN_TIME=9s " -np 2 \
        --stall-check-warning-time-seconds 7 --stall-check-shutdown-time-seconds 9
    says "HVD_LOG=error " -np 2 --log-level FATAL
    says "HVD_LOG=warning " -np 2 --log-level WARNING
    says " -np 3 --hostfile names " -np 3 -hostfile names
    says " -np 3 --elastic --min-np 2 -H a:2,b:1 " -np 3 --min-np 2 -H a:2,b:1
    HOROVOD_X=1 says " -x A=1 -x HOROVOD_X " -np 3 -H a:2,b:1 -x A=1
    says " --mpi-arg --mca --mpi-arg plm_rsh_args --mpi-arg '-i key' " -np 2 \
        --ssh-identity-file key
    says "--mpi-arg btl_tcp_if_include --mpi-arg eth0 --mpi-arg --mca --mpi-arg \
oob_tcp_if_include --mpi-arg eth0 " -np 2 --network-interfaces eth0
    says " -np 2 --verbose -- ./train.py" -np 2 --verbose
    says "/hvd-run --elastic=1:2 --restarts=5 -- ./train.py" --max-np 2 --min-np 1 \
        --reset-limit 5
    says "no effect here" -np 2 --hierarchical-allreduce
    run "$LIB/python/hvd/compat/bin/horovodrun" --check-build
    [ "$status" -eq 0 ]
    [[ $output == *"Available Frameworks:"* ]]
}

@test "horovodrun: mistakes" {
    local run=$LIB/python/hvd/compat/bin/horovodrun wrong
    for wrong in "" "-np 0 true" "-np 2" "-np 2 --bad true" "-np 3 --max-np 2 true" \
        "-np 2 -H a:1 --host-discovery-script x true" "true" "-np 2 -H a:1 --hostfile b true"; do
        # shellcheck disable=SC2086 # words
        run "$run" $wrong
        [ "$status" -eq 2 ]
        [[ $output == "horovodrun: "*"; see horovodrun --help" ]]
    done
}

@test "python: the names of Horovod are there only if they are asked for" {
    run "$ROOT/mpi-launch.sh" -np 1 /usr/bin/python3 -c "import horovod"
    [ "$status" -ne 0 ]
    [[ $output == *"No module named 'horovod'"* ]]
    cp "$ROOT/mpi-launch.sh" "$BATS_TEST_TMPDIR"
    [ -d /usr/lib/python3/dist-packages/hvd ] || {
        run "$BATS_TEST_TMPDIR/mpi-launch.sh" --horovod -np 1 true
        [ "$status" -eq 2 ]
        [[ $output == *"there is no package hvd for Python near"* ]]
    }
}

@test "python: stubs have the types of all public names" {
    engine=extension python stubs env
    [ "$status" -eq 0 ]
    [[ $output == *" names have types" ]]
    # mypy compares more, and takes a minute.
    [ -n "${HVD_TEST_FULL-}" ] && /usr/bin/python3 -c "import mypy.stubtest" || return 0
    (cd "$BATS_TEST_TMPDIR" && MYPYPATH=$LIB/python /usr/bin/python3 -m mypy --strict \
        "$ROOT/tests/bindings/typed.py")
    local only=$BATS_TEST_TMPDIR/only
    (cd "$LIB/python" && find hvd ipu -name "*.pyi" -exec cp --parents {} "$BATS_TEST_TMPDIR" \;)
    mkdir "$only" && mv "$BATS_TEST_TMPDIR"/{hvd,ipu} "$only"
    # PyTorch's types name the arguments of a group's collectives otherwise than any group.
    printf '%s\n' 'ipu\.Graph\.__init__' 'hvd\.torch\.distributed\.ProcessGroupHvd(\..*)?' \
        '.*\.ObjectState\.__getattr__' '.*\._Cast\..*' >"$BATS_TEST_TMPDIR/allowed"
    MYPYPATH=$only PYTHONPATH=$LIB/python HVD_LIBRARY=$LIB/libhvd.so.0 /usr/bin/python3 \
        -m mypy.stubtest hvd ipu --ignore-missing-stub --allowlist "$BATS_TEST_TMPDIR/allowed"
}

@test "python: models of ONNX files" {
    engine=extension python_says onnx 1
}

@test "python: networks are trained" {
    "$LIB/../bin/tests-draw-digits" "$BATS_TEST_TMPDIR/digits" 2000 400
    engine=extension
    for n in 1 2; do
        DIGITS=$BATS_TEST_TMPDIR/digits python_says network $n
    done
}

@test "python: signals are handled while a rank waits" {
    for engine in extension ctypes; do
        python_says signal 2
    done
}

@test "python: numbers and structs are those of the headers" {
    engine=extension
    python_says number 1
}

# The interpreter frees its arrays before the library has stopped. mpirun may
# print that it forwards a signal, which is no rank's line.
@test "python: exit with requests under way" {
    for engine in extension ctypes; do
        python leave mpirun -np 2
        [ "$status" -eq 3 ]
        [[ $output != *"received signal"* && $output != *"on signal"* ]]
    done
}

@test "c++" {
    local mpi
    mpi=$(pkg-config --cflags-only-I ompi-c)
    echo '#include <hvd.hpp>' | g++ -std=c++17 -Wall -Wextra -pedantic \
        -fsyntax-only -I"$ROOT/libhvd/include" -I"$ROOT/libhvd/bindings" -x c++ -
    # shellcheck disable=SC2046,SC2086 # words
    g++ -std=c++17 -Wall -Wextra -Wconversion -pedantic -DOMPI_SKIP_MPICXX \
        ${mpi//-I/-isystem } -I"$ROOT/libhvd/include" \
        -I"$ROOT/libhvd/bindings" \
        -o "$BATS_TEST_TMPDIR/program" \
        "$BATS_TEST_DIRNAME/every_operation.cpp" -L"$LIB" -lhvd \
        -Wl,-rpath,"$LIB" $(pkg-config --libs ompi-c)
    for n in 1 2 3; do
        run timeout 60 mpirun -np $n "$BATS_TEST_TMPDIR/program"
        echo "$output"
        [ "$status" -eq 0 ]
        [ "$(finished operation)" -eq $n ]
    done
}

@test "c++: the tasks of a cluster, without MPI" {
    g++ -std=c++17 -Wall -Wextra -Wconversion -pedantic \
        -I"$ROOT/libhvd/include" -I"$ROOT/libhvd/bindings" \
        -o "$BATS_TEST_TMPDIR/program" "$BATS_TEST_DIRNAME/cluster.cpp" \
        -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    run timeout 60 "$ROOT/tests/tools/by-hand" 2 "$BATS_TEST_TMPDIR/program"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(finished task)" -eq 2 ]
}

@test "fortran: the tasks of a cluster, without MPI" {
    gfortran -std=f2018 -Wall -J"$BATS_TEST_TMPDIR" \
        -o "$BATS_TEST_TMPDIR/program" "$ROOT/libhvd/bindings/hvd.f90" \
        "$BATS_TEST_DIRNAME/cluster.f90" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    local ports others=() pid
    read -r -a ports < <("$ROOT/tests/tools/free-ports" 3)
    for i in 2 1 0; do
        timeout 60 "$BATS_TEST_TMPDIR/program" $i \
            "${ports[@]/#/localhost:}" >"$BATS_TEST_TMPDIR/$i" 2>&1 3>&- &
        others+=($!)
    done
    for pid in "${others[@]}"; do
        wait "$pid" || { cat "$BATS_TEST_TMPDIR"/[012]; false; }
    done
    output=$(cat "$BATS_TEST_TMPDIR"/[012])
    [ "$(finished task)" -eq 3 ]
}

@test "fortran: a training goes on when a rank dies" {
    gfortran -std=f2018 -Wall -J"$BATS_TEST_TMPDIR" \
        -o "$BATS_TEST_TMPDIR/program" "$ROOT/libhvd/bindings/hvd.f90" \
        "$BATS_TEST_DIRNAME/elastic.f90" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    for n in 1 3; do
        HVD_ELASTIC=1 run timeout 60 mpirun --enable-recovery -np $n \
            "$BATS_TEST_TMPDIR/program"
        echo "$output"
        [ "$(finished elastic)" -eq $((n == 1 ? 1 : n - 1)) ]
    done
}

@test "fortran" {
    gfortran -std=f2018 -Wall -J"$BATS_TEST_TMPDIR" \
        -o "$BATS_TEST_TMPDIR/program" "$ROOT/libhvd/bindings/hvd.f90" \
        "$BATS_TEST_DIRNAME/every_operation.f90" -L"$LIB" -lhvd \
        -Wl,-rpath,"$LIB"
    export STATE=$BATS_TEST_TMPDIR/state
    for n in 1 2 3; do
        run timeout 60 mpirun -np $n "$BATS_TEST_TMPDIR/program"
        echo "$output"
        [ "$status" -eq 0 ]
        [ "$(finished operation)" -eq $n ]
    done
}
