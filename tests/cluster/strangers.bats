# SPDX-License-Identifier: Apache-2.0
# Those who are not of the job connect to ranks that train.

load tasks

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export BIN=${HVD_BUILD:-$ROOT/build}/bin
}

# Prints the first record that a rank says to the one that listens there.
record_hello() { # port
    timeout 60 /usr/bin/python3 -c '
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
caller, _ = listener.accept()
caller.settimeout(20)
hello = b""
while len(hello) < 80:
    hello += caller.recv(80 - len(hello))
sys.stdout.buffer.write(hello)' "$1"
}

@test "strangers have no effect on a training but a line that counts them" {
    head -c 32 /dev/urandom >key
    chmod 600 key
    export HVD_JOB_KEY_FILE=key
    local quiet
    local mnist=("$BIN/mnist" -s 2500 -e 100 --eval-every 0 --train-images 4000
        --test-images 500 --model mlp)
    task "$two" worker 0 "${mnist[@]}"
    task "$two" worker 1 "${mnist[@]}"
    expect 0 0
    quiet=$(grep checksum worker0.out)
    # Now somebody else answers first, and remembers what rank 1 says.
    started=()
    task "$two" worker 1 "${mnist[@]}"
    record_hello "${port[0]}" >hello
    [ "$(wc -c <hello)" -eq 80 ]
    task "$two" worker 0 "${mnist[@]}"
    local i
    for ((i = 0; i < 300; i++)); do
        ! grep -q 'network:' worker0.out || break
        sleep 0.1
    done
    timeout 100 "$BATS_TEST_DIRNAME/strangers" "${port[0]}" "${port[1]}" <hello
    # They were there all the time.
    kill -0 "${started[0]}" "${started[1]}"
    expect 0 0
    [ "$(grep checksum worker0.out)" = "$quiet" ]
    for i in 0 1; do
        grep -E "a connection to localhost:${port[i]} was refused \([0-9]+ since the start\)" "worker$i.err"
        [ "$(wc -l <"worker$i.err")" -lt 10 ]
    done
}
