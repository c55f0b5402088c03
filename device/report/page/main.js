// SPDX-License-Identifier: Apache-2.0
// main.js - the page: its head, the choice of a program, its sections.

function card(value, what) {
    return el("div", {}, el("b", {}, value), el("span", {}, what));
}

function summarySection(p) {
    const m = p.memory;
    const c = p.cycles;
    const peak = p.derived.peak_flops_per_second;
    const moved = p.steps.reduce((a, s) => a + s.exchange_bytes * s.times, 0);
    const streamed = p.streams.reduce((a, s) => a + s.bytes, 0);
    const used = p.derived.categories.total;
    const all = p.target.bytes_per_tile * p.target.tiles * p.ipus;
    return section(
        "summary",
        "Summary",
        el(
            "div",
            { class: "cards" },
            card(time(c.seconds), `a run on the chip, ${count(c.total)} cycles`),
            p.measured
                ? card(
                      time(p.measured.run_ns / p.measured.runs / 1e9),
                      `a run here, mean of ${count(p.measured.runs)}`
                  )
                : null,
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
            el("summary", {}, "all that the model knows of it"),
            table(
                [
                    {
                        name: "field",
                        value: (r) => r[0],
                        show: (r) => r[0].replace(/_/g, " "),
                    },
                    {
                        name: "value",
                        number: true,
                        value: (r) => r[1],
                        show: (r) => count(r[1]),
                    },
                ],
                rows,
                { limit: 40 }
            )
        )
    );
}

function showProgram(p, main) {
    looked.listeners = [];
    const chip = `${p.ipus > 1 ? `${p.ipus} IPUs` : `IPU ${p.ipu}`} `;
    main.replaceChildren(
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
            memorySection(p),
            livenessSection(p),
            timeSection(p),
            findingsSection(p),
            pipelineSection(),
            estimatesSection(p),
            targetSection(p),
        ].filter(Boolean)
    );
    redrawAll();
    if (p.steps.length) lookAt(p.memory.fullest_step);
}

function showProfile() {
    const main = el("main");
    const tabs = profile.programs.map((p, i) =>
        el("button", { onclick: () => choose(i) }, p.name)
    );
    function choose(i) {
        tabs.forEach((tab, k) => tab.setAttribute("aria-pressed", k === i));
        showProgram(profile.programs[i], main);
    }
    document.title = `${profile.name}: IPU profile`;
    const links = [
        ["summary", "summary"],
        ["memory", "memory"],
        ["liveness", "liveness"],
        ["time", "time"],
        ["savings", "savings"],
        ...(profile.pipeline ? [["pipeline", "pipeline"]] : []),
    ];
    document.body.append(
        el(
            "header",
            {},
            el("h1", {}, `${profile.name}: profile`),
            el("div", { class: "controls" }, tabs.length > 1 ? tabs : ""),
            el(
                "nav",
                {},
                links.map(([id, text]) => el("a", { href: `#${id}` }, text))
            )
        ),
        main,
        tip
    );
    if (profile.programs.length) {
        choose(0);
        return;
    }
    main.append(...[pipelineSection()].filter(Boolean));
    redrawAll();
}

if (profile.format === "ipu-profile") showProfile();
if (profile.format === "ipu-profile-comparison") showComparison();
