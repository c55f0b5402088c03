# tests: one program a file of tests/unit and tests/mpi, linked with what the
# file needs. Programs land in $(B)/bin/tests-*, and are not installed.

CFLAGS_tests = -Ilibhvd/include -Idevice/include -Itests/support
