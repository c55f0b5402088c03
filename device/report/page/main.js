// SPDX-License-Identifier: Apache-2.0
// main.js - makes the page: its head, the choice of a program, its sections.

function card(value, what) {
    return el("div", {}, el("b", {}, value), el("span", {}, what));
}

// Makes cards with the time of a run on the chips and, if measured, on this
// machine.
function timeCards(seconds, cycles, measured, chips) {
    return [
        card(time(seconds), `a run on the ${chips}, ${count(cycles)} cycles`),
        measured
            ? card(
                  time(measured.run_ns / measured.runs / 1e9),
                  `a run here, mean of ${count(measured.runs)}`
              )
            : null,
    ];
}

function summarySection(p) {
    const m = p.memory;
    const c = p.cycles;
    const peak = p.derived.peak_flops_per_second;
    const moved = p.steps.reduce((a, s) => a + s.exchange_bytes * s.times, 0);
    const streamed = p.streams
        .filter((s) => ["input", "output", "call"].includes(s.kind))
        .reduce((a, s) => a + s.bytes, 0);
    const used = p.derived.categories.total;
    const all = p.target.bytes_per_tile * p.target.tiles * p.ipus;
    return section(
        "summary",
        "Summary",
        el(
            "div",
            { class: "cards" },
            ...timeCards(c.seconds, c.total, p.measured, "chip"),
            card(
                percent(m.fullest_tile_bytes, m.bytes_per_tile),
                `of the fullest tile: ${bytes(m.fullest_tile_bytes)} of ` +
                    bytes(m.bytes_per_tile)
            ),
            card(
                percent(used, all),
                `of the memory: ${bytes(used)} of ${bytes(all)}, ` +
                    `${bytes(Math.max(all - used, 0))} free`
            ),
            m.shared_code_bytes > 0
                ? card(
                      bytes(m.shared_code_bytes),
                      "more code on each tile if equal steps did not share it"
                  )
                : null,
            card(
                percent(c.flops / c.seconds, peak),
                `of the peak in ${p.derived.peak_dtype}: ` +
                    `${big(c.flops / c.seconds, "FLOP/s")}`
            ),
            card(big(c.flops, "FLOP"), "in a run"),
            card(
                bytes(moved),
                `into the busiest tiles, ${bytes(streamed)} to and from the ` +
                    "host"
            )
        ),
        el(
            "ul",
            {},
            p.derived.sentences.map((s) => el("li", {}, s))
        )
    );
}

function targetSection(p) {
    const rows = Object.entries(p.target).filter(([name]) => name !== "name");
    return section(
        "target",
        `The chip: ${p.target.name}`,
        el(
            "details",
            {},
            el("summary", {}, "all figures that the model uses"),
            table(
                [
                    {
                        name: "field",
                        value: (r) => r[0],
                        show: (r) => r[0].replace(/_/g, " "),
                    },
                    numbers("value", (r) => r[1], count),
                ],
                rows,
                { limit: 40 }
            )
        )
    );
}

function showProgram(p, main) {
    looked.listeners = [];
    const name =
        profile.programs.length > 1 ? el("h2", {}, `Program ${p.name}`) : null;
    const chip = `${p.ipus > 1 ? `${p.ipus} IPUs` : `IPU ${p.ipu}`} `;
    main.replaceChildren(
        ...[name].filter(Boolean),
        el(
            "p",
            {},
            `${count(p.steps.length)} steps on ${chip}(${p.target.name}): ` +
                `${count(p.target.tiles)} tiles of ` +
                `${bytes(p.target.bytes_per_tile)} at ` +
                `${+(p.target.clock_hz / 1e9).toPrecision(4)} GHz`
        ),
        ...[
            summarySection(p),
            modulesSection(p),
            memorySection(p),
            livenessSection(p),
            timeSection(p),
            searchSection(
                (words) => ({
                    steps: words.length ? stepMatches(p, words) : [],
                    tensors: tensorMatches(p, words),
                }),
                foundSteps,
                tensorsTable
            ),
            findingsSection(p),
            estimatesSection(p),
            targetSection(p),
        ].filter(Boolean)
    );
    redrawAll();
    if (p.steps.length) lookAt(p.memory.fullest_step);
}

// Returns the cycles of an execution; in a pipeline they include transfers to
// and from streaming memory.
const cyclesOf = (p) => p.pipeline_cycles || p.cycles.total;

// Returns the program to show first: in a pipeline, the slowest program of the
// slowest chip.
function firstProgram() {
    const run = profile.pipeline_run;
    const slowest = run ? run.derived.slowest_ipu : -1;
    let first = 0;
    let most = -1;
    profile.programs.forEach((p, i) => {
        if (p.ipu !== slowest || !(p.pipeline_cycles > most)) return;
        if (p.name.startsWith("update on ")) return;
        first = i;
        most = p.pipeline_cycles;
    });
    return first;
}

// Makes a table of all programs, in which one can be chosen.
function programsTable(choose, chosen) {
    const rows = profile.programs.map((p, i) => ({ p, i }));
    return table(
        [
            { name: "program", value: (r) => r.p.name },
            {
                name: "times",
                number: true,
                title: "iterations of the loop whose body it is",
                value: (r) => r.p.iterations,
                show: (r) => (r.p.parent ? count(r.p.iterations) : ""),
            },
            { name: "IPU", number: true, value: (r) => r.p.ipu },
            numbers("steps", (r) => r.p.steps.length, count),
            numbers("cycles", (r) => cyclesOf(r.p), count),
            {
                name: "time",
                number: true,
                value: (r) => cyclesOf(r.p) / r.p.target.clock_hz,
                show: (r) => cyclesTime(r.p, cyclesOf(r.p)),
            },
            numbers(
                "fullest tile",
                (r) => r.p.memory.fullest_tile_bytes,
                bytes
            ),
            numbers("operations", (r) => r.p.cycles.flops, (n) => big(n, "")),
            numbers("runs here", (r) => (r.p.measured ? r.p.measured.runs : 0)),
            {
                name: "each here",
                number: true,
                value: (r) =>
                    r.p.measured ? r.p.measured.run_ns / r.p.measured.runs : 0,
                show: (r) =>
                    r.p.measured
                        ? time(r.p.measured.run_ns / r.p.measured.runs / 1e9)
                        : "",
            },
        ],
        rows,
        {
            limit: 12,
            choose: (r) => choose(r.i),
            chosen: (r) => r.i === chosen(),
        }
    );
}

function showProfile() {
    const main = el("main");
    const many = profile.programs.length > 1;
    let now = firstProgram();
    const programs = many ? programsTable(choose, () => now) : null;
    function choose(i) {
        now = i;
        showProgram(profile.programs[i], main);
        if (programs) programs.fill();
    }
    document.title = `${profile.name}: IPU profile`;
    const pipeline = pipelineSection();
    const links = [
        ...(pipeline ? [["pipeline", "pipeline"]] : []),
        ["summary", "summary"],
        ["modules", "modules"],
        ["memory", "memory"],
        ["liveness", "liveness"],
        ["time", "time"],
        ["search", "search"],
        ["savings", "savings"],
    ];
    document.body.append(
        el(
            "header",
            {},
            el("h1", {}, `${profile.name}: profile`),
            el(
                "nav",
                {},
                links.map(([id, text]) => el("a", { href: `#${id}` }, text))
            )
        ),
        pipeline || "",
        many
            ? section(
                  "programs",
                  "Programs (a click shows one)",
                  programs
              )
            : "",
        main,
        tip
    );
    if (profile.programs.length) {
        choose(firstProgram());
        return;
    }
    redrawAll();
}

if (profile.format === "ipu-profile") showProfile();
if (profile.format === "ipu-profile-comparison") showComparison();
