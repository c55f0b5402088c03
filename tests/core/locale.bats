# SPDX-License-Identifier: Apache-2.0
# In a locale that writes one half as 0,5, files for other programs have decimal
# points all the same, and so have settings.

# The test makes a locale with a comma: none may be installed.
make_locale() {
    printf '%s\n' LC_NUMERIC 'decimal_point ","' 'thousands_sep ""' \
        'grouping -1' 'END LC_NUMERIC' >comma.source
    {
        printf '%s\n' '<code_set_name> ASCII' '<mb_cur_min> 1' \
            '<mb_cur_max> 1' CHARMAP
        for i in {0..127}; do
            printf '<U%04X> \\x%02x\n' "$i" "$i"
        done
        echo 'END CHARMAP'
    } >ascii
    # It warns of what else a locale might have.
    localedef --no-archive --force --inputfile=./comma.source \
        --charmap=./ascii ./comma 2>warnings || [ -f comma/LC_NUMERIC ]
}

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../..
    export LIB=${HVD_BUILD:-$ROOT/build}/lib
    cd "$BATS_FILE_TMPDIR" || return 1
    make_locale
    gcc -Wall -Wextra -I"$ROOT/libhvd/include" -o comma-hvd \
        "$BATS_TEST_DIRNAME/comma.c" -L"$LIB" -lhvd -Wl,-rpath,"$LIB"
    gcc -Wall -Wextra -I"$ROOT/device/include" -o comma-ipu \
        "$BATS_TEST_DIRNAME/comma_device.c" -L"$LIB" -lipu -Wl,-rpath,"$LIB"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

# The variable is set for the program only: bash does not know the locale.
in_locale() { # command...
    run env LOCPATH="$PWD" LC_ALL=comma "$@"
    echo "$output"
}

@test "settings have points, and so have metrics and the timeline" {
    in_locale HVD_HEARTBEAT_TIME=2.5s HVD_TOPK_RATIO=0.25 \
        HVD_TIMELINE="$PWD/timeline" ./comma-hvd metrics
    [ "$status" -eq 0 ]
    [ "$output" = 0,5 ]
    grep -q '^hvd_waiting_seconds_total{.*} [0-9]*\.[0-9]*$' metrics
    grep -q 'le="0.000128"' metrics
    [ "$(grep -c '[0-9],[0-9]' metrics)" -eq 0 ]
    /usr/bin/python3 - <<'END'
import json
events = json.load(open("timeline"))
events = events if isinstance(events, list) else events["traceEvents"]
assert any(e.get("ph") == "X" and e["ts"] > 0 for e in events), events
END
    in_locale HVD_HEARTBEAT_TIME=2,5s ./comma-hvd metrics
    [ "$status" -eq 1 ]
    [[ $output == *"HVD_HEARTBEAT_TIME='2,5s'"* ]]
}

@test "chips are read, and JSON written, with points" {
    echo '{"clock_hz": 1.5e9}' >chip.json
    in_locale ./comma-ipu chip.json
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "0,5 1" ]
    /usr/bin/python3 - "${lines[1]}" <<'END'
import json, sys
epoch = json.loads(sys.argv[1])["epochs"][0]
assert epoch["elements_processed"] == 3 and len(epoch) == 5
END
}
