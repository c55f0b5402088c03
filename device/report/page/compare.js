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

// Returns the two programs of a pair, in the order of the profiles; null: the
// pair is that of the pipelines, which are no programs.
function programsOf(pair) {
    const [before, after] = profile.profiles.map((whole, i) =>
        whole.programs.find(
            (p) => p.name === (i ? pair.after_name : pair.name)
        )
    );
    return before && after ? { before, after } : null;
}

// Draws the schedules of both pipelines on one scale of cycles.
function schedulesSection() {
    const end = most(profile.profiles.map((whole) => slotSpans(whole).end));
    return section(
        "schedules",
        "Which stage ran which mini-batch when",
        profile.profiles.flatMap((whole, i) =>
            scheduleParts(
                whole,
                `${i ? "After" : "Before"}: ${whole.name}`,
                end
            )
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
                comparisonTable(pair.in_all, -1)
            ),
            !both && profile.profiles.every(hasSchedule)
                ? schedulesSection()
                : null,
            ...(both ? modulesCompared(both) : []),
            both ? memoryCompared(both, pair) : null,
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
            both ? searchCompared(both) : null,
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
