# SPDX-License-Identifier: Apache-2.0
# make install installs all that programs outside of the tree need.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export PREFIX=$BATS_FILE_TMPDIR/prefix
    export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
    make -C "$ROOT" --no-print-directory install PREFIX="$PREFIX"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >program.c <<'EOF'
#include <hvd.h>
#include <hvd_strategy.h>
#include <stdio.h>

int main(void)
{
    double x;

    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 1;
    }
    x = hvd_rank() + 1;
    if (hvd_allreduce(&x, &x, 1, HVD_FLOAT64, HVD_SUM) < 0)
        return 1;
    printf("%g\n", x);
    return hvd_shutdown();
}
EOF
    cp program.c program.cpp
    cat >device.c <<'EOF'
#include <ipu.h>
#include <stdio.h>

int main(void)
{
    const int64_t shape[] = {2, 3};
    float x[6] = {1, -2, 3, -4, 5, -6}, sum = 0;
    ipu_graph *graph = NULL;
    ipu_executable *executable = NULL;
    ipu_engine *engine = NULL;
    int status = ipu_graph_new(&graph);

    if (status >= 0) {
        ipu_tensor t = ipu_input(graph, "x", IPU_FLOAT32, 2, shape);
        ipu_output(graph, "sum", ipu_reduce_sum(graph, ipu_relu(graph, t), 1));
        status = ipu_compile(graph, NULL, &executable);
    }
    if (status >= 0)
        status = ipu_engine_new(executable, &engine);
    if (status >= 0)
        status = ipu_engine_connect(engine, "x", x, sizeof x);
    if (status >= 0)
        status = ipu_engine_connect(engine, "sum", &sum, sizeof sum);
    if (status >= 0)
        status = ipu_engine_run(engine);
    puts(status < 0 ? ipu_last_error() : sum > 8.5f ? "nine" : "less");
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
    return status < 0;
}
EOF
    cp device.c device.cpp
    sed 's|<hvd.h>|<hvd_mpi.h>|; s|hvd_init()|hvd_init()|' program.c >mpi.cpp
}

runs() { # program
    run "$PREFIX/bin/mpi-launch.sh" -np 2 "$1"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 3 ]
    [ "${lines[1]}" = 3 ]
}

@test "a C program compiles by pkg-config, and runs" {
    gcc -std=c99 -pedantic -Wall -Wextra -Werror -o program program.c \
        $(pkg-config --cflags --libs hvd)
    runs ./program
}

@test "a C++ program compiles by pkg-config, and runs" {
    g++ -pedantic -Wall -Wextra -Werror -o program program.cpp \
        $(pkg-config --cflags --libs hvd)
    runs ./program
    g++ -Wall -Wextra -Werror -o mpi mpi.cpp $(pkg-config --cflags --libs hvd)
    runs ./mpi
}

@test "a program that describes a cluster, in C and in C++" {
    cat >cluster.c <<'EOF'
#include <hvd_cluster.h>
#include <stdio.h>

int main(void)
{
    hvd_cluster *cluster;
    int status = hvd_cluster_from_environment(&cluster);

    if (status < 0)
        fprintf(stderr, "%s\n", hvd_last_error());
    else if (status > 0)
        printf("rank %d of %d\n", hvd_cluster_rank(cluster),
               hvd_cluster_size(cluster));
    hvd_cluster_free(cluster);
    return status != 1;
}
EOF
    cp cluster.c cluster.cpp
    gcc -std=c99 -pedantic -Wall -Wextra -Werror -o cluster cluster.c \
        $(pkg-config --cflags --libs hvd)
    g++ -pedantic -Wall -Wextra -Werror -o cluster++ cluster.cpp \
        $(pkg-config --cflags --libs hvd)
    for program in ./cluster ./cluster++; do
        TF_CONFIG='{"cluster": {"worker": ["a:1", "b:1"]},
            "task": {"type": "worker", "index": 1}}' run "$program"
        [ "$status" -eq 0 ]
        [ "$output" = "rank 1 of 2" ]
        TF_CONFIG='{"cluster": {"worker": ["a:1", "b"]}}' run "$program"
        [ "$status" -eq 1 ]
        [[ $output == "TF_CONFIG, line 1, column 32: cluster.worker[1]: 'b' has no port"* ]]
    done
}

@test "a program links statically with libhvd" {
    gcc -o program program.c $(pkg-config --cflags hvd) -Wl,-Bstatic \
        -L"$PREFIX/lib" -lhvd -Wl,-Bdynamic \
        $(pkg-config --libs ompi-c jansson nettle) -lm -pthread
    [[ $(pkg-config --static --libs hvd) == *-lnettle*-ljansson* ]]
    run ldd ./program
    [[ $output != *libhvd* ]]
    runs ./program
}

says_nine() { # program
    run "$1"
    [ "$status" -eq 0 ]
    [ "$output" = nine ]
}

@test "a program of the device alone, in C and in C++, without MPI" {
    gcc -std=c11 -Wall -Wextra -Werror -o device device.c \
        $(pkg-config --cflags --libs ipu)
    says_nine ./device
    run ldd ./device
    [[ $output == *"$PREFIX/lib/libipu.so.0"* && $output != *libmpi* ]]
    g++ -Wall -Wextra -Werror -o device++ device.cpp \
        $(pkg-config --cflags --libs ipu)
    says_nine ./device++
}

@test "a program links statically with libipu" {
    gcc -o device device.c $(pkg-config --cflags ipu) -Wl,-Bstatic \
        -L"$PREFIX/lib" -lipu -Wl,-Bdynamic \
        $(pkg-config --libs openblas jansson) -lm -pthread
    run ldd ./device
    [[ $output != *libipu* ]]
    says_nine ./device
}

@test "one program may use both" {
    sed 's/int main(void)/int hvd(void)/' program.c >both.c
    sed 's/return status < 0;/return status < 0 || hvd() < 0;/
        s/^int main/int hvd(void);\n&/' device.c >main.c
    gcc -Wall -Wextra -Werror -o both main.c both.c \
        $(pkg-config --cflags --libs hvd ipu)
    run ./both
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = 1 ]
}

@test "the version is the header's" {
    [ "$(pkg-config --modversion hvd)" = 0.1.0 ]
    [ "$(pkg-config --modversion ipu)" = 0.1.0 ]
}

@test "installed programs find their library" {
    run "$PREFIX/bin/mpi-launch.sh" -np 2 "$PREFIX/bin/mnist" --steps 2 \
        --train-images 500 --test-images 100
    [ "$status" -eq 0 ]
    run "$PREFIX/bin/hvd-bench" --version
    [ "$status" -eq 0 ]
    # And the documentation, which is what it learns.
    run "$PREFIX/bin/char_gpt" --steps 1 --layers 1 --heads 1 --width 8 \
        --context 8 --batch-size 1 --eval-windows 1 --sample 5
    [ "$status" -eq 0 ]
    [[ $output == *"hvd's documentation"* ]]
}

@test "headers, library, manual pages: where they belong" {
    local header library page
    for header in "$ROOT"/libhvd/include/*.h "$ROOT"/device/include/*.h; do
        [ -f "$PREFIX/include/${header##*/}" ]
    done
    for library in libhvd libipu; do
        [ -L "$PREFIX/lib/$library.so" ]
        [ "$(readlink "$PREFIX/lib/$library.so")" = $library.so.0 ]
        [ -f "$PREFIX/lib/$library.a" ]
    done
    for page in "$ROOT"/docs/man/*; do
        [ -f "$PREFIX/share/man/man${page##*.}/${page##*/}" ]
    done
    for page in "$PREFIX"/share/man/man3/*; do
        [ -f "$page" ] # a link leads to a page
    done
}

@test "DESTDIR comes before, and uninstall leaves nothing" {
    make -C "$ROOT" --no-print-directory install PREFIX=/usr DESTDIR="$PWD/d"
    [ -f d/usr/include/hvd.h ]
    grep -q '^prefix=/usr$' d/usr/lib/pkgconfig/hvd.pc
    grep -q '^prefix=/usr$' d/usr/lib/pkgconfig/ipu.pc
    make -C "$ROOT" --no-print-directory uninstall PREFIX=/usr DESTDIR="$PWD/d"
    [ -z "$(find d -type f -o -type l)" ]
}

# Builds the program of a stranger, who has the installed library alone.
spirals() {
    [ "$(wc -l <"$BATS_TEST_DIRNAME/spirals.c")" -lt 100 ]
    # shellcheck disable=SC2046 # flags
    gcc -std=c99 -pedantic -Wall -Wextra -Werror -o spirals \
        "$BATS_TEST_DIRNAME/spirals.c" $(pkg-config --cflags --libs hvd-train) -lm
}

# example NAME: builds another program of a stranger.
example() {
    # shellcheck disable=SC2046 # flags
    gcc -std=c99 -pedantic -Wall -Wextra -Werror -o "$1" \
        "$BATS_TEST_DIRNAME/$1.c" $(pkg-config --cflags --libs hvd-train) -lm
}

@test "a program links statically with libhvd-train" {
    local flags
    spirals
    ./spirals 2 20 >expected
    # All that pkg-config names, of which ours are static.
    flags=$(pkg-config --static --cflags --libs hvd-train |
        sed -E 's/-l(hvd-train|hvd|ipu)( |$)/-l:lib\1.a /g')
    # shellcheck disable=SC2086 # flags
    gcc -std=c99 -o static "$BATS_TEST_DIRNAME/spirals.c" $flags
    run ldd ./static
    [[ $output != *libhvd* && $output != *libipu* ]]
    ./static 2 20 >out
    cmp expected out
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./static 1 20 >ranks
    same expected ranks
}

@test "one dense unit learns as it can be computed by hand" {
    local how
    example dense1
    ./dense1 >alone
    ./dense1 3 >mirrored
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./dense1 2 >ranks
    by_hand ./dense1 >workers
    for how in alone mirrored ranks workers; do
        echo "$how"
        cat $how
        # With 1 for x and y, a step of 0.2 leaves 1 - 2 * 2 * 0.2 of the error.
        awk '/^step/ { if (last && last > 1e-5 && ($4 / last < 0.0399 ||
                $4 / last > 0.0401)) bad = 1
                last = $4; n++ }
            /^evaluation/ && $3 < 1e-9 { n++ }
            /^1 gives 1.00000/ { n++ }
            END { exit bad || n != 12 }' $how
    done
}

@test "a training loop of one's own finds what it shall, on any number of ranks" {
    local n
    example custom_loop
    ./custom_loop >1
    cat 1
    [ "$(wc -l <1)" -eq 20 ]
    grep -q '^step 400: y = 2.00000 a + -3.00000 b + 1.00000$' 1
    ! grep -q '^step 20: y = 2.00000' 1
    for n in 2 3 4 8; do
        "$PREFIX/bin/mpi-launch.sh" -np $n ./custom_loop >$n
        # To rounding: sums are added in another order.
        paste 1 $n | awk '{ for (i = 5; i <= 11; i += 3) {
                d = $i - $(i + 11); if (d * d > 1e-9) bad = 1 } }
            NF != 22 { bad = 1 } END { exit bad }'
    done
    by_hand ./custom_loop >workers
    cmp workers 2
}

# same A B: the losses that two runs printed differ by rounding alone.
same() {
    grep '^step' "$1" >a
    grep '^step' "$2" >b
    [ -s a ]
    paste a b | awk '{ d = $4 - $8; if ($2 != $6 || d * d > 1e-8) { print; bad = 1 } }
        END { exit bad }'
}

# Two processes that a TF_CONFIG describes.
by_hand() {
    "$BATS_TEST_DIRNAME/../tools/by-hand" 2 "$@"
}

@test "a network and data of one's own train alike under every strategy" {
    spirals
    ./spirals 1 100 >alone
    ./spirals 2 100 >mirrored
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./spirals 1 100 >ranks
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./spirals 2 100 >both
    by_hand ./spirals 1 100 >workers
    "$PREFIX/bin/mpi-launch.sh" -np 3 ./spirals 1 100 folder 1 >servers
    for how in mirrored ranks both workers servers; do
        same alone $how
        grep '600 points' $how
    done
    # A pipeline takes four mini-batches for an update.
    ./spirals 1 100 folder1 0 2 >stages
    ./spirals 2 100 folder2 0 2 >pipelines
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./spirals 1 100 folder3 0 2 >ranks
    for how in pipelines ranks; do
        same stages $how
        grep '600 points' $how
    done
}

@test "a checkpoint of one strategy is taken up by the others" {
    local from
    spirals
    ./spirals 1 100 >whole
    grep '^step' whole | tail -n 5 >expected
    for from in alone mirrored ranks; do
        case $from in
        alone) ./spirals 1 50 of.$from >first ;;
        mirrored) ./spirals 3 50 of.$from >first ;;
        ranks) "$PREFIX/bin/mpi-launch.sh" -np 2 ./spirals 1 50 of.$from >first ;;
        esac
        cp -r of.$from of.$from.2
        cp -r of.$from of.$from.3
        cp -r of.$from of.$from.4
        ./spirals 1 100 of.$from >alone
        ./spirals 2 100 of.$from.2 >mirrored
        "$PREFIX/bin/mpi-launch.sh" -np 3 ./spirals 1 100 of.$from.3 >ranks
        by_hand ./spirals 1 100 of.$from.4 >workers
        for how in alone mirrored ranks workers; do
            [ "$(grep -c '^step' $how)" -eq 5 ]
            same expected $how
        done
    done
}

@test "a training that is killed again and again ends with the same bits" {
    local kills=0 most=${HVD_TEST_FULL:+300} delay
    most=${most:-15}
    spirals
    ./spirals 1 2000 whole >out
    while [ "$kills" -lt "$most" ]; do
        rm -rf killed
        until [ -e killed/ckpt-2000.safetensors ] || [ "$kills" -ge "$most" ]; do
            delay=$(awk "BEGIN { srand($RANDOM); print 0.03 + rand() * 0.3 }")
            timeout -s KILL "$delay" ./spirals 1 2000 killed >out 2>err || true
            cat err
            [ ! -s err ]
            kills=$((kills + 1))
        done
    done
    ./spirals 1 2000 killed >out
    "$PREFIX/bin/hvd-checkpoint" diff whole/ckpt-2000.safetensors \
        killed/ckpt-2000.safetensors
}

# Several processes write to one file: whole lines, not what a buffer holds.
watched_by_hand() { # argument of by-hand...
    stdbuf -oL "$BATS_TEST_DIRNAME/../tools/by-hand" "$@"
}

# The evaluator tells the workers by a file of the model_dir, and they stop.
@test "workers train until their evaluator finds no improvement" {
    example watched
    watched_by_hand --evaluator 2 ./watched folder >out
    cat out
    has_stopped 1
    [ "$(grep -c '"eval/loss"' folder/evaluations.jsonl)" -ge 3 ]
    # Without one, the workers evaluate themselves.
    watched_by_hand 2 ./watched other >out
    cat out
    has_stopped 2
    [ ! -e other/evaluations.jsonl ]
}

# has_stopped N: so many processes have the results of an early end.
has_stopped() {
    [ "$(grep -c '^evaluated step .*: loss 0.0' out)" -eq "$1" ]
    [ "$(grep -vc '^step' out)" -eq "$1" ]
    awk '/^evaluated/ && $3 + 0 >= 1000000 { bad = 1 } END { exit bad }' out
}

# The same with a chief and parameter servers.
@test "chief, worker, parameter server and evaluator train together" {
    example watched
    [ "$(wc -l <"$BATS_TEST_DIRNAME/watched.c")" -lt 100 ]
    watched_by_hand --chief --ps 1 --evaluator 2 ./watched folder >out
    cat out
    has_stopped 1
    # By steps, and the evaluator ends by itself. The losses are those of two
    # ranks that average their gradients.
    watched_by_hand --chief --ps 2 --evaluator 2 ./watched short 200 >servers
    cat servers
    [ "$(grep -c '^evaluated step 200: loss ' servers)" -eq 1 ]
    "$PREFIX/bin/mpi-launch.sh" -np 2 ./watched horovod 200 >ranks
    [ "$(grep -c '^step' ranks)" -eq 20 ]
    same servers ranks
    # Nobody evaluates beside the workers, and the server has their results.
    watched_by_hand --chief --ps 1 2 ./watched other 200 >out
    same out ranks
    [ "$(grep -c '^evaluated step 200: loss ' out)" -eq 3 ]
}
