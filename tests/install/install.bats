# SPDX-License-Identifier: Apache-2.0
# make install, and programs outside of the tree that use what it installed.

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

@test "a program links statically with libhvd" {
    gcc -o program program.c $(pkg-config --cflags hvd) -Wl,-Bstatic \
        -L"$PREFIX/lib" -lhvd -Wl,-Bdynamic \
        $(pkg-config --libs ompi-c) -lm -pthread
    run ldd ./program
    [[ $output != *libhvd* ]]
    runs ./program
}

@test "the version is the header's" {
    [ "$(pkg-config --modversion hvd)" = 0.1.0 ]
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
    [ -f "$PREFIX/include/hvd.h" ]
    [ -f "$PREFIX/include/hvd_mpi.h" ]
    [ -f "$PREFIX/include/hvd_strategy.h" ]
    [ -L "$PREFIX/lib/libhvd.so" ]
    [ "$(readlink "$PREFIX/lib/libhvd.so")" = libhvd.so.0 ]
    [ -f "$PREFIX/lib/libhvd.a" ]
    local page
    for page in "$ROOT"/docs/man/*; do
        [ -f "$PREFIX/share/man/man${page##*.}/${page##*/}" ]
    done
}

@test "DESTDIR comes before, and uninstall leaves nothing" {
    make -C "$ROOT" --no-print-directory install PREFIX=/usr DESTDIR="$PWD/d"
    [ -f d/usr/include/hvd.h ]
    grep -q '^prefix=/usr$' d/usr/lib/pkgconfig/hvd.pc
    make -C "$ROOT" --no-print-directory uninstall PREFIX=/usr DESTDIR="$PWD/d"
    [ -z "$(find d -type f -o -type l)" ]
}
