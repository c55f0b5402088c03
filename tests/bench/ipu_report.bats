#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipu-report shows and compares profiles, writes pages that browsers open, and
# prints one line for every mistake. The training programs write these profiles
# with --profile.

load ../support/commands

setup_file() {
    local build="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}"
    MNIST="$build/bin/mnist"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
    train -b 16 --profile "$BATS_FILE_TMPDIR/a"
    train -b 32 --profile "$BATS_FILE_TMPDIR/b"
}

setup() {
    local build="${HVD_BUILD:-$BATS_TEST_DIRNAME/../../build}"
    PROGRAM="$build/bin/ipu-report"
    MNIST="$build/bin/mnist"
    A="$BATS_FILE_TMPDIR/a"
    B="$BATS_FILE_TMPDIR/b"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
}

train() {
    "$MNIST" --steps 3 --train-images 400 --test-images 50 "$@"
}

# absent PATTERN FILE: expects that no line matches.
absent() {
    if grep -nE "$1" "$2"; then
        return 1
    fi
}

# dom FILE: prints the page as a browser builds it, and its console on stderr.
dom() {
    timeout 120 chromium --headless --no-sandbox --disable-gpu \
        --enable-logging=stderr --user-data-dir="$BATS_TEST_TMPDIR/browser" \
        --virtual-time-budget=2000 --dump-dom "file://$1" \
        2>"$BATS_TEST_TMPDIR/log"
}

# ---------------------------------------------------------------- the programs

@test "a training program writes both files, and says where" {
    run train --profile "$BATS_TEST_TMPDIR/new"
    [ "$status" -eq 0 ]
    [[ $output == *"profile"*"$BATS_TEST_TMPDIR/new/report.html"* ]]
    [ "$(ls -A "$BATS_TEST_TMPDIR/new")" = "profile.json
report.html" ]
}

@test "a profile is what was trained and evaluated, as often as that was" {
    /usr/bin/python3 -c "
import json, sys
profile = json.load(open(sys.argv[1]))
assert profile['format'] == 'ipu-profile' and profile['version'] == 1
assert profile['name'] == 'mnist'
runs = {p['name']: p['measured']['runs'] for p in profile['programs']}
assert runs == {'training': 3, 'evaluation': 4}, runs
training = profile['programs'][0]
assert sum(t['count'] for t in training['tiles']) == training['target']['tiles']
assert any(s['file'] and s['line'] > 0 for s in training['steps'])
" "$A/profile.json"
}

@test "--profile text is a report of 80 columns" {
    run train --profile text
    [ "$status" -eq 0 ]
    [[ $output == *"mnist: training"*"-bound: "*"cycles of a run"* ]]
    sed -n '/^mnist: training/,$p' <<<"$output" >"$BATS_TEST_TMPDIR/text"
    [ -s "$BATS_TEST_TMPDIR/text" ]
    absent '^.{81,}| $' "$BATS_TEST_TMPDIR/text"
    [ ! -e text ]
}

@test "one rank of several writes" {
    run mpirun --oversubscribe --bind-to none -np 2 "$MNIST" --steps 3 \
        --train-images 400 --test-images 50 --profile "$BATS_TEST_TMPDIR/two"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c report.html <<<"$output")" -eq 1 ]
    [ "$(ls -A "$BATS_TEST_TMPDIR/two" | wc -l)" -eq 2 ]
    "$PROGRAM" "$BATS_TEST_TMPDIR/two" >/dev/null
}

@test "a directory that cannot be is found before training starts" {
    for where in "$A/profile.json" "$BATS_TEST_TMPDIR/far/away" /proc ""; do
        run train --profile "$where"
        echo "$where: $output"
        [ "$status" -ne 0 ]
        [[ $output == *"--profile"*"$where"* ]]
        [[ $output != *epoch* ]]
    done
}

# --------------------------------------------------------------- the reports

@test "a profile is shown" {
    run "$PROGRAM" "$A"
    [ "$status" -eq 0 ]
    [[ $output == *"mnist: training"*"what would make it faster"* ]]
    [ "$("$PROGRAM" "$A/profile.json")" = "$output" ]
    "$PROGRAM" "$A" --format json | cmp - "$A/profile.json"
}

@test "two profiles are compared" {
    run "$PROGRAM" "$A" "$B"
    [ "$status" -eq 0 ]
    [[ $output == *"cycles of a run"*"+"*"%"* ]]
    absent '^.{81,}| $' - <<<"$output"
    run "$PROGRAM" "$A" "$B" --format json
    /usr/bin/python3 -c "
import json, sys
document = json.loads(sys.argv[1])
assert document['format'] == 'ipu-profile-comparison'
training = document['programs'][0]
flops = [f for f in training['in_all'] if f['name'] == 'operations'][0]
# The batch is twice as large; the update of the weights costs the same.
assert 60 < flops['percent'] < 101, flops
" "$output"
}

@test "who keeps watch is told of growth" {
    run "$PROGRAM" "$A" "$B" --fail-if-over 1
    [ "$status" -eq 1 ]
    [[ ${lines[-1]} == "ipu-report: grew by more than 1 %: cycles by "* ]]
    run "$PROGRAM" "$A" "$B" --fail-if-over 1000
    [ "$status" -eq 0 ]
    run "$PROGRAM" "$B" "$A" --fail-if-over 0 # it shrank
    [ "$status" -eq 0 ]
}

@test "pages are written whole, and need nothing else" {
    run "$PROGRAM" "$A" "$B" --html "$BATS_TEST_TMPDIR/both.html"
    [ "$status" -eq 0 ]
    [ "$(ls -A "$BATS_TEST_TMPDIR" | grep -c html)" -eq 1 ]
    for page in "$A/report.html" "$BATS_TEST_TMPDIR/both.html"; do
        absent 'https?://|<link|<img|src=|@import|url\(|fetch\(' "$page"
        /usr/bin/python3 -c "
import json, re, sys
page = open(sys.argv[1], encoding='utf-8').read()
json.loads(re.search(r'id=\"profile\">(.*?)</script>', page, re.S)[1])
assert page.rstrip().endswith('</html>')
" "$page"
    done
}

@test "scripts of pages are JavaScript" {
    command -v node >/dev/null || skip "node is not installed"
    sed -n '/^<script>$/,/^<\/script>$/p' "$A/report.html" | sed '1d;$d' \
        >"$BATS_TEST_TMPDIR/page.js"
    [ -s "$BATS_TEST_TMPDIR/page.js" ]
    node --check "$BATS_TEST_TMPDIR/page.js"
}

@test "a browser draws the page, and its console is silent" {
    command -v chromium >/dev/null || skip "chromium is not installed"
    dom "$A/report.html" >"$BATS_TEST_TMPDIR/dom"
    for words in 'Memory per tile' 'Liveness' 'Timeline' 'largest savings' \
        '1,472 tiles' 'digit_networks.c:' 'conv2d:0'; do
        grep -qF "$words" "$BATS_TEST_TMPDIR/dom" || {
            echo "'$words' is not drawn"
            return 1
        }
    done
    [ "$(grep -c '<canvas' "$BATS_TEST_TMPDIR/dom")" -ge 1 ]
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
    "$PROGRAM" "$A" "$B" --html "$BATS_TEST_TMPDIR/both.html" >/dev/null
    dom "$BATS_TEST_TMPDIR/both.html" >"$BATS_TEST_TMPDIR/dom"
    grep -qF 'cycles of a run' "$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
}

# play FILE: prints the page with a script that uses everything on it: each
# choice, each button, the mouse over each drawing.
play() {
    cat "$1"
    cat <<'EOF'
<script>
const wrong = [];
addEventListener("error", (event) => wrong.push(event.message));
function mouse(node, type, x, y) {
    const box = node.getBoundingClientRect();
    node.dispatchEvent(new PointerEvent(type, {
        bubbles: true, ctrlKey: true, pointerId: 1,
        clientX: box.left + x, clientY: box.top + y,
    }));
}
function play() {
    let tips = 0;
    for (const node of document.querySelectorAll("select"))
        for (const option of node.options) {
            node.value = option.value;
            node.dispatchEvent(new Event("change"));
        }
    for (const node of document.querySelectorAll("main button"))
        node.click();
    for (const node of document.querySelectorAll("canvas"))
        for (let x = 1; x < node.clientWidth; x += 31) {
            mouse(node, "mousemove", x, node.clientHeight / 3);
            tips += !document.getElementById("tip").hidden;
            mouse(node, "click", x, node.clientHeight / 3);
            node.dispatchEvent(new WheelEvent("wheel",
                {deltaY: x % 2 ? 9 : -9, ctrlKey: true, cancelable: true}));
        }
    for (const node of document.querySelectorAll("main tr.choice"))
        node.click();
    return tips;
}
setTimeout(() => {
    let programs = 0, tips = 0;
    for (const tab of document.querySelectorAll("#programs tbody tr")) {
        tab.click();
        programs++;
        try {
            tips += play();
        } catch (error) {
            wrong.push(String(error));
        }
    }
    const canvases = [...document.querySelectorAll("canvas")];
    const drawn = canvases.filter((node) => node.getContext("2d")
        .getImageData(0, 0, node.width, node.height).data
        .some((value) => value > 0)).length;
    document.body.append(`played ${programs} programs, ` +
        `${drawn} of ${canvases.length} drawn, ` +
        `tips ${tips > 20}, wrong: ${wrong.join("; ") || "nothing"}`);
}, 200);
</script>
EOF
}

@test "all that can be clicked on the page works" {
    command -v chromium >/dev/null || skip "chromium is not installed"
    play "$A/report.html" >"$BATS_TEST_TMPDIR/play.html"
    dom "$BATS_TEST_TMPDIR/play.html" >"$BATS_TEST_TMPDIR/dom"
    grep -o 'played .*' "$BATS_TEST_TMPDIR/dom" || true
    grep -qF 'played 2 programs, 5 of 5 drawn, tips true, wrong: nothing' \
        "$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
    "$PROGRAM" "$A" "$B" --html "$BATS_TEST_TMPDIR/both.html" >/dev/null
    play "$BATS_TEST_TMPDIR/both.html" >"$BATS_TEST_TMPDIR/play.html"
    dom "$BATS_TEST_TMPDIR/play.html" >"$BATS_TEST_TMPDIR/dom"
    grep -o 'played .*' "$BATS_TEST_TMPDIR/dom" || true
    grep -qF 'played 2 programs, 3 of 3 drawn, tips true, wrong: nothing' \
        "$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
}

# find_on FILE WORD: prints the page with a script that opens all modules, searches
# for a word, clicks the first tensor, and says what is there.
find_on() {
    cat "$1"
    cat <<EOF
<script>
const at = (what) => [...document.querySelectorAll(what)];
at("#modules .controls button").pop().click();
const names = at("#modules tbody td:nth-child(2)");
const steps = at("#modules tbody td:nth-child(3)");
const field = at("#search input")[0];
field.value = "$2";
field.dispatchEvent(new Event("input"));
const heads = at("#search h3").map((h) => h.textContent.match(/\\d+/)[0]);
at("#search table").pop().querySelector("tbody tr").click();
document.body.append(
    \`found \${names.length} modules, \${steps[0].textContent} steps in \` +
    \`all, \${at("#modules td.flow path").length > 0 ? "flow" : "none"}, \` +
    \`\${heads.join(" and ")} of $2, shown: \` +
    at("#memory select")[0].value
);
</script>
EOF
}

@test "the page has the tree of modules, and finds steps and tensors" {
    command -v chromium >/dev/null || skip "chromium is not installed"
    find_on "$A/report.html" dense1 >"$BATS_TEST_TMPDIR/find.html"
    dom "$BATS_TEST_TMPDIR/find.html" >"$BATS_TEST_TMPDIR/dom"
    /usr/bin/python3 - "$A/profile.json" >"$BATS_TEST_TMPDIR/wanted" <<'EOF'
import json, sys
p = json.load(open(sys.argv[1]))['programs'][0]
paths = {()}
for x in p['steps'] + [b for b in p['blocks']
                       if b['category'] in ('variables', 'constants')]:
    path = tuple(filter(None, (x['module'] or '').split('/')))
    if 'flops' in x and not path:
        path = ('(no module)',)
    paths |= {path[:n] for n in range(len(path) + 1)}
def has(x):
    return 'dense1' in ' '.join(str(x.get(k)) for k in (
        'op', 'parts', 'tensor', 'module', 'file', 'type', 'category'))
steps = sum(map(has, p['steps']))
tensors = sum(b['bytes'] > 0 and has(b) for b in p['blocks'])
assert len(paths) > 4 and steps > 3 and tensors > 3, (paths, steps, tensors)
print(f"found {len(paths)} modules, {len(p['steps'])} steps in all, flow, "
      f"{steps} and {tensors} of dense1, shown: tensor")
EOF
    cat "$BATS_TEST_TMPDIR/wanted"
    grep -o 'found [0-9].*' "$BATS_TEST_TMPDIR/dom" || true
    grep -qFf "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
}

@test "one chip is compared with a pipeline" {
    "$(dirname "$PROGRAM")/pipelined" --stages 2 --profile "$BATS_TEST_TMPDIR/two" >/dev/null
    for pair in "$A $BATS_TEST_TMPDIR/two" "$BATS_TEST_TMPDIR/two $A"; do
        # shellcheck disable=SC2086
        run "$PROGRAM" $pair
        [ "$status" -eq 0 ]
        absent '^.{81,}| $' - <<<"$output"
        # shellcheck disable=SC2086
        run "$PROGRAM" $pair --format json
        /usr/bin/python3 - "$output" $pair <<'EOF'
import json, re, sys
document = json.loads(sys.argv[1])
profiles = [json.load(open(f"{path}/profile.json")) for path in sys.argv[2:]]
run = [p.get("pipeline_run") for p in profiles]
assert [p["name"] for p in profiles[run.index(None)]["programs"]] == [
    pair["name" if run[0] is None else "after_name"] for pair in document["programs"]]
for n, pair in enumerate(document["programs"]):
    want = {"operations": [], "cycles of a run": [], "fullest tile": []}
    steps = {}
    for side, profile in zip(("before", "after"), profiles):
        whole = profile.get("pipeline_run")
        one = profile["programs"] if whole else [profile["programs"][n]]
        times = [1 if not whole else whole["updates"] if p["name"].startswith("update on")
                 else whole["mini_batches"] for p in one]
        assert sum(pair["executions"][side]) == sum(times)
        want["operations"].append(sum(p["cycles"]["flops"] * t for p, t in zip(one, times)))
        want["cycles of a run"].append(whole["total"] if whole else one[0]["cycles"]["total"])
        want["fullest tile"].append(max(c["tile_bytes"] for c in whole["ipus"]) if whole
                                    else one[0]["memory"]["fullest_tile_bytes"])
        for p, t in zip(one, times):
            for s in p["steps"]:
                steps.setdefault(s["op"], {}).setdefault(side, 0)
                steps[s["op"]][side] += s["total"] * s["times"] * t
    for figure in pair["in_all"]:
        if figure["name"] in want:
            assert [figure["before"], figure["after"]] == want.pop(figure["name"]), figure
    assert not want, want
    assert {f["name"]: (f["before"], f["after"]) for f in pair["ops"]} == {
        op: (of.get("before"), of.get("after")) for op, of in steps.items()}
    assert len(pair["sentences"]) == 4 and "8 mini-batches" in " ".join(pair["sentences"])
EOF
    done
    command -v chromium >/dev/null || skip "chromium is not installed"
    "$PROGRAM" "$A" "$BATS_TEST_TMPDIR/two" --html "$BATS_TEST_TMPDIR/both.html" >/dev/null
    dom "$BATS_TEST_TMPDIR/both.html" >"$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
    for what in 'id="schedules"' 'id="modules"' 'Memory by chip' 'Vertices by type' \
        'a pipeline of 2 stages on 2 IPUs'; do
        grep -qF "$what" "$BATS_TEST_TMPDIR/dom"
    done
}

# compared FILE WORD: prints the page of a comparison with a script that reads
# the tables of modules and of vertices, searches for a word, and clicks the first
# tensor that is found.
compared() {
    cat "$1"
    cat <<EOF
<script>
const at = (what) => [...document.querySelectorAll(what)];
const text = (row, columns) =>
    columns.map((i) => row.cells[i].textContent).join(" ");
at("#modules .controls button").pop().click();
const lines = at("#modules tbody tr").map((row) =>
    "module " + text(row, [0, 2, 3]).replace(/[▾▸] /, ""));
for (const row of at("#time .scroll").pop().querySelectorAll("tbody tr"))
    lines.push("vertex " + text(row, [0, 1, 2]));
const field = at("#search input")[0];
field.value = "$2";
field.dispatchEvent(new Event("input"));
for (const head of at("#search h3"))
    lines.push(head.textContent.replace(/ \\(.*/, ""));
const row = at("#search table").pop().querySelector("tbody tr");
lines.push("bytes " + text(row, [0, 3, 4]));
row.click();
lines.push("shown " + at("#memory select")[0].value);
document.body.append(el("pre", { id: "read" }, lines.sort().join("\\n")));
</script>
EOF
}

@test "a comparison shows modules, vertices and tensors before and after" {
    command -v chromium >/dev/null || skip "chromium is not installed"
    "$PROGRAM" "$A" "$B" --html "$BATS_TEST_TMPDIR/both.html" >/dev/null
    compared "$BATS_TEST_TMPDIR/both.html" dense1 >"$BATS_TEST_TMPDIR/read.html"
    dom "$BATS_TEST_TMPDIR/read.html" >"$BATS_TEST_TMPDIR/dom"
    absent CONSOLE "$BATS_TEST_TMPDIR/log"
    /usr/bin/python3 - "$A" "$B" "$BATS_TEST_TMPDIR/dom" <<'EOF'
import collections, html, json, re, sys
programs = [json.load(open(f'{x}/profile.json'))['programs'][0]
            for x in sys.argv[1:3]]
paths = {}
vertices = {}
found = [collections.Counter(), collections.Counter()]
WORDS = 'op', 'parts', 'tensor', 'module', 'file', 'type', 'category'
bytes_of = {}
for side, p in enumerate(programs):
    def add(table, key, amount):
        table.setdefault(key, [None, None])
        table[key][side] = (table[key][side] or 0) + amount
    for s in p['steps']:
        path = tuple(filter(None, (s['module'] or '').split('/'))) or (
            '(no module)',)
        for n in range(len(path) + 1):
            add(paths, path[:n], s['total'] * s['times'])
        if s['busy_tiles']:
            add(vertices, s['parts'] or s['op'], s['total'] * s['times'])
        if 'dense1' in ' '.join(str(s.get(k)) for k in WORDS):
            found[0][s['tensor']] += 1
    for b in p['blocks']:
        if b['category'] in ('variables', 'constants'):
            path = tuple(filter(None, (b['module'] or '').split('/')))
            for n in range(len(path) + 1):
                add(paths, path[:n], 0)
        if b['bytes'] and 'dense1' in ' '.join(str(b.get(k)) for k in WORDS):
            found[1][b['tensor']] += 1
            add(bytes_of, b['tensor'], b['bytes'])
def number(n):
    return '' if n is None else f'{n:,}'
wanted = [f'module {path[-1] if path else "training"} '
          f'{number(a)} {number(b)}' for path, (a, b) in paths.items()]
wanted += [f'vertex {k} {number(a)} {number(b)}'
           for k, (a, b) in vertices.items()]
wanted += [f'Steps: {len(found[0])}', f'Tensors: {len(found[1])}',
           'shown tensor']
page = open(sys.argv[3], encoding='utf-8').read()
read = html.unescape(re.search(r'<pre id="read">(.*?)</pre>', page, re.S)[1])
read = read.split('\n')
largest = [x for x in read if x.startswith('bytes ')]
read.remove(largest[0])
vertex = [x for x in read if x.startswith('vertex')]
assert len(vertex) == min(len(vertices), 12) and len(paths) > 4, vertex
assert any(a != b for a, b in paths.values()) and len(found[0]) > 3
for line in read:
    assert line in wanted, (line, wanted)
assert not set(w for w in wanted if w[:6] != 'vertex') - set(read)
name = largest[0].split()[1]
assert max(bytes_of[name]) == max(max(filter(None, v))
                                  for v in bytes_of.values()), largest
EOF
}

# -------------------------------------------------------------------- mistakes

@test "mistakes are one line" {
    is_wrong 2 "which profile?"
    is_wrong 2 "one word too many" "$A" "$B" "$A"
    is_wrong 2 "--format" "$A" --format xml
    is_wrong 2 "--fail-if-over" "$A" "$B" --fail-if-over much
    is_wrong 2 "give a second profile" "$A" --fail-if-over 3
    is_wrong 2 "--frmat" --frmat csv
    is_wrong 1 "/nowhere: cannot be read" /nowhere
    is_wrong 1 "profile.json: cannot be read" "$BATS_TEST_TMPDIR"
    is_wrong 1 "--html /nowhere/x.html: cannot be written" "$A" \
        --html /nowhere/x.html
}

@test "files that are broken, cut off or of another version are refused" {
    local file="$BATS_TEST_TMPDIR/broken.json"
    head -c 3000 "$A/profile.json" >"$file"
    is_wrong 1 "broken.json, line" "$file"
    : >"$file"
    is_wrong 1 "broken.json, line" "$file"
    sed 's/"version": 1/"version": 9/' "$A/profile.json" >"$file"
    is_wrong 1 "of version 9, and this program reads version 1" "$A" "$file"
    echo '{"rows": []}' >"$file"
    is_wrong 1 "is no profile" "$file" "$A"
    sed 's/"steps": \[/"stairs": [/' "$A/profile.json" >"$file"
    is_wrong 1 "'steps' is missing" "$file"
}

@test "help and version" {
    run "$PROGRAM" --help
    [ "$status" -eq 0 ]
    [[ $output == *"--fail-if-over"* ]]
    run "$PROGRAM" --version
    [[ $output == "ipu-report "* ]]
}

@test "a full disk is not a success" {
    run bash -c "'$PROGRAM' '$A' >/dev/full"
    [ "$status" -eq 1 ]
    run "$PROGRAM" "$A" --html /dev/full
    [ "$status" -eq 1 ]
    [[ $output == *"--html /dev/full: cannot be written"* ]]
}
