# SPDX-License-Identifier: Apache-2.0
# The packages of "make deb": lintian has nothing to say about them; in a Debian
# that has nothing else they install, a program of ten lines is built and runs
# on two ranks, and they go without a trace. That takes a quarter of an hour and
# the network of packages, so it is done with HVD_TEST_FULL only; otherwise what
# the packages hold is compared with what make installs.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
}

# Prints the files that the packages take from what make has installed.
packaged() {
    local list
    for list in "$ROOT"/.debian/*.install; do
        awk '{ print $1 }' "$list"
    done
}

@test "every file that make installs is in one package" {
    local file pattern found patterns
    cd "$BATS_TEST_TMPDIR"
    make -C "$ROOT" --no-print-directory install DESTDIR="$PWD" PREFIX=/usr \
        LIBDIR=/usr/lib/x86_64-linux-gnu
    find usr ! -type d | sort >files
    [ "$(wc -l <files)" -gt 100 ]
    mapfile -t patterns < <(packaged)
    while read -r file; do
        found=0
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2254
            case $file in
            $pattern | $pattern/*) found=$((found + 1)) ;;
            esac
        done
        [ "$found" -eq 1 ] || { echo "$file is in $found packages"; false; }
    done <files
    for pattern in "${patterns[@]}"; do
        compgen -G "$pattern" >/dev/null || { echo "no file is $pattern"; false; }
    done
}

@test "packages are built, are clean, and work in a Debian without anything else" {
    [ -n "${HVD_TEST_FULL-}" ] || return 0
    "$ROOT/tests/tools/install-packages" lintian mmdebstrap
    make -C "$ROOT" --no-print-directory deb B="$BATS_TEST_TMPDIR/build"
    run lintian --fail-on error,warning "$BATS_TEST_TMPDIR"/build/deb/*.changes
    echo "$output"
    [ "$status" -eq 0 ]
    "$BATS_TEST_DIRNAME/in-a-debian" "$BATS_TEST_TMPDIR/build/deb" \
        "$ROOT/.debian/tests/two-ranks"
}
