# SPDX-License-Identifier: Apache-2.0
# The packages of "make deb": lintian has nothing to say about them; in a Debian
# that has nothing else they install, a program of ten lines is built and runs
# on two ranks, and they go without a trace. That takes a quarter of an hour and
# the network of packages, so it is done with HVD_TEST_FULL only; otherwise what
# the packages hold is compared with what make installs.

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
}

@test "every file that make installs is in one package" {
    cd "$BATS_TEST_TMPDIR"
    make -C "$ROOT" --no-print-directory install DESTDIR="$PWD" PREFIX=/usr \
        LIBDIR=/usr/lib/x86_64-linux-gnu
    find usr ! -type d >files
    /usr/bin/python3 - "$ROOT"/.debian/*.install <<'EOF2'
import fnmatch, sys
patterns = [line.split()[0] for path in sys.argv[1:] for line in open(path)]
files = open("files").read().split()
unused = set(patterns)
assert len(files) > 100
for file in files:
    found = [p for p in patterns
             if fnmatch.fnmatch(file, p) or fnmatch.fnmatch(file, p + "/*")]
    assert len(found) == 1, "%s is in %d packages" % (file, len(found))
    unused -= set(found)
assert not unused, "no file is %s" % unused
EOF2
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
