// SPDX-License-Identifier: Apache-2.0
// compare.js - the page of a comparison: figures before and after, and, of two
// programs, what compare_parts.js draws side by side.

const units = {
    bytes: bytes,
    cycles: (n) => count(Math.round(n)),
    nanoseconds: (n) => time(n / 1e9),
    operations: (n) => big(n, ""),
};

function growth(before, after) {
    if (before === null) return "new";
    if (after === null) return "gone";
    if (before === after) return "=";
    return before > 0
        ? `${after > before ? "+" : ""}${percent(after - before, before)}`
        : "from 0";
}

function signed(n, show) {
    return (n > 0 ? "+" : n < 0 ? "−" : "") + show(Math.abs(n));
}

// Makes the columns of a figure before and after. of(row, side) returns the
// number, or null if that side has no such row; show(n, row) makes it a text.
function changeColumns(of, show) {
    const at = (r, side) => of(r, side) || 0;
    const by = (r) => at(r, "after") - at(r, "before");
    const value = (side) => ({
        name: side,
        number: true,
        value: (r) => at(r, side),
        show: (r) => (of(r, side) === null ? "" : show(of(r, side), r)),
    });
    return [
        value("before"),
        value("after"),
        {
            name: "difference",
            number: true,
            value: (r) => Math.abs(by(r)),
            show: (r) => signed(by(r), (n) => show(n, r)),
        },
        {
            name: "change",
            number: true,
            value: (r) => (at(r, "before") ? by(r) / at(r, "before") : by(r)),
            show: (r) =>
                el(
                    "span",
                    { class: by(r) > 0 ? "over" : "" },
                    growth(of(r, "before"), of(r, "after"))
                ),
        },
    ];
}

// Makes one column of a figure: what it was and what it is, if these differ. It
// sorts by the difference.
function arrowColumn(name, of, show, title) {
    const text = (n) => (n === null ? "none" : show(n));
    return {
        name,
        title,
        number: true,
        value: (r) =>
            Math.abs((of(r, "after") || 0) - (of(r, "before") || 0)),
        show: (r) => {
            const before = text(of(r, "before"));
            const after = text(of(r, "after"));
            return before === after ? after : `${before} → ${after}`;
        },
    };
}

function comparisonTable(rows, order) {
    return table(
        [
            { name: "figure", value: (r) => r.name },
            ...changeColumns(
                (r, side) => r[side],
                (n, r) => units[r.unit](n)
            ),
        ],
        rows,
        { order, limit: 20 }
    );
}

function comparisonPart(title, rows) {
    return rows.length ? [el("h3", {}, title), comparisonTable(rows, 3)] : [];
}

// Joins the programs of a profile: their steps, each as often as a run executes
// it, and their weights. A weight is in each program of its chip that uses it.
function joinPrograms(whole, executions) {
    const weights = new Map();
    const runs = whole.programs.filter((p, i) => executions[i] > 0);
    for (const p of runs)
        for (const b of p.blocks) {
            const key = `${p.ipu} ${b.tensor}`;
            if (!weights.has(key)) weights.set(key, { ...b, uses: [] });
        }
    return {
        ...runs[0],
        name: whole.name,
        ipus: new Set(runs.flatMap((p) => p.ipu)).size,
        steps: whole.programs.flatMap((p, i) =>
            executions[i] > 0
                ? p.steps.map((s) => ({ ...s, times: s.times * executions[i] }))
                : []
        ),
        blocks: [...weights.values()],
    };
}

// Returns the two programs of a pair, in the order of the profiles; null: the
// pair is that of the pipelines, which are no programs.
function programsOf(pair) {
    if (pair.sentences) {
        const [before, after] = sides.map((side, i) =>
            joinPrograms(profile.profiles[i], pair.executions[side])
        );
        return { before, after };
    }
    const [before, after] = profile.profiles.map((whole, i) =>
        whole.programs.find(
            (p) => p.name === (i ? pair.after_name : pair.name)
        )
    );
    return before && after ? { before, after } : null;
}

// Draws the schedules of both pipelines on one scale of cycles.
function schedulesSection() {
    const end = most(
        profile.profiles
            .filter(hasSchedule)
            .map((whole) => slotSpans(whole).end)
    );
    return section(
        "schedules",
        "Which stage ran which mini-batch when",
        profile.profiles.flatMap((whole, i) =>
            hasSchedule(whole)
                ? scheduleParts(
                      whole,
                      `${i ? "After" : "Before"}: ${whole.name}`,
                      end
                  )
                : []
        )
    );
}

function chipsOf(pair, both) {
    const texts = both
        ? [both.before, both.after].map(
              (p) =>
                  `${count(p.ipus)} × ${p.target.name}, ` +
                  `${count(p.target.tiles)} tiles of ` +
                  bytes(p.target.bytes_per_tile)
          )
        : profile.profiles.map(
              (whole, i) =>
                  `${count(whole.pipeline_run.ipus.length)} × ` +
                  (i ? pair.after_target : pair.before_target)
          );
    return texts[0] === texts[1]
        ? `Both are for ${texts[0]}.`
        : `Before, the chips are ${texts[0]}; after, ${texts[1]}.`;
}

// Makes a table of the chips of both profiles: what each holds.
function chipsCompared(pair) {
    const executions = sides.map((side) => pair.executions[side]);
    const rowsOf = (whole, side, i) =>
        whole.pipeline_run
            ? whole.pipeline_run.ipus.map((c) => ({
                  side,
                  ipu: c.ipu,
                  fullest: c.tile_bytes,
                  of: c.bytes_per_tile,
                  weights: c.variable_bytes,
                  stashes: c.stash_bytes,
              }))
            : whole.programs
                  .filter((p, k) => executions[i][k] > 0)
                  .map((p) => ({
                      side,
                      ipu: p.ipu,
                      fullest: p.memory.fullest_tile_bytes,
                      of: p.target.bytes_per_tile,
                      weights: p.memory.always_live_bytes,
                      stashes: 0,
                  }));
    return section(
        "memory",
        "Memory by chip",
        table(
            [
                { name: "profile", value: (r) => r.side },
                { name: "IPU", number: true, value: (r) => r.ipu },
                numbers("fullest tile", (r) => r.fullest, bytes),
                {
                    name: "full",
                    number: true,
                    value: (r) => r.fullest / r.of,
                    show: (r) => percent(r.fullest, r.of),
                },
                numbers("always live", (r) => r.weights, bytes),
                numbers("stashes", (r) => r.stashes, bytes),
            ],
            profile.profiles.flatMap((whole, i) => rowsOf(whole, sides[i], i)),
            { limit: 20, order: -1 }
        )
    );
}

function showPair(pair, main) {
    const both = programsOf(pair);
    looked.listeners = [];
    main.replaceChildren(
        ...[
            section(
                "summary",
                pair.name === pair.after_name
                    ? pair.name
                    : `${pair.name} and ${pair.after_name}`,
                el("p", {}, chipsOf(pair, both)),
                pair.sentences
                    ? el(
                          "ul",
                          {},
                          pair.sentences.map((s) => el("li", {}, s))
                      )
                    : "",
                comparisonTable(pair.in_all, -1)
            ),
            (!both || pair.sentences) && profile.profiles.some(hasSchedule)
                ? schedulesSection()
                : null,
            ...(both ? modulesCompared(both) : []),
            pair.sentences ? chipsCompared(pair) : null,
            both && !pair.sentences ? memoryCompared(both, pair) : null,
            both
                ? section(
                      "time",
                      "Time",
                      ...comparisonPart("Cycles by op", pair.ops),
                      ...comparisonPart("Cycles by step", pair.steps),
                      el("h3", {}, "Vertices by type"),
                      verticesCompared(both)
                  )
                : null,
            both && !pair.sentences ? searchCompared(both) : null,
        ].filter(Boolean)
    );
    redrawAll();
}

// Makes a table of all pairs; a click shows one.
function pairsTable(choose, chosen) {
    const figure = (name) => (r, side) =>
        r.in_all.find((f) => f.name === name)[side];
    return table(
        [
            { name: "program", value: (r) => r.name },
            ...changeColumns(figure("cycles of a run"), units.cycles),
            arrowColumn("fullest tile", figure("fullest tile"), bytes),
        ],
        profile.programs,
        { limit: 12, choose, chosen: (r) => r === chosen() }
    );
}

// Says which programs only one profile has.
function aloneParts() {
    if (profile.programs.some((pair) => pair.sentences)) return [];
    return profile.profiles.flatMap((whole, i) => {
        const paired = new Set(
            profile.programs.map((r) => (i ? r.after_name : r.name))
        );
        const names = whole.programs
            .map((p) => p.name)
            .filter((name) => !paired.has(name));
        return names.length
            ? [
                  el(
                      "p",
                      {},
                      `Only ${i ? "the second" : "the first"} profile has ` +
                          `${names.join(", ")}.`
                  ),
              ]
            : [];
    });
}

function showComparison() {
    const title = `${profile.after}, compared with ${profile.before}`;
    const main = el("main");
    const pairs = profile.programs;
    let now = pairs[0];
    const programs = pairs.length > 1 ? pairsTable(choose, () => now) : null;
    const alone = aloneParts();

    function choose(pair) {
        now = pair;
        showPair(pair, main);
        if (programs) programs.fill();
    }
    document.title = title;
    document.body.append(
        el("header", {}, el("h1", {}, title)),
        programs || alone.length
            ? section(
                  "programs",
                  programs ? "Programs (a click shows one)" : "Programs",
                  programs,
                  alone
              )
            : "",
        main,
        tip
    );
    choose(now);
}
