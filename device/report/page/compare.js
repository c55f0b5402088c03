// SPDX-License-Identifier: Apache-2.0
// compare.js - the page of a comparison: tables of figures before and after.

const units = {
    bytes: bytes,
    cycles: (n) => count(Math.round(n)),
    nanoseconds: (n) => time(n / 1e9),
    operations: (n) => big(n, ""),
};

function growth(r) {
    if (r.before === null) return "new";
    if (r.after === null) return "gone";
    if (r.before === r.after) return "=";
    return `${r.percent > 0 ? "+" : ""}${r.percent.toFixed(2)} %`;
}

function comparisonTable(rows, order) {
    const value = (r, which) =>
        r[which] === null ? "" : units[r.unit](r[which]);
    return table(
        [
            { name: "figure", value: (r) => r.name },
            {
                name: "before",
                number: true,
                value: (r) => r.before || 0,
                show: (r) => value(r, "before"),
            },
            {
                name: "after",
                number: true,
                value: (r) => r.after || 0,
                show: (r) => value(r, "after"),
            },
            {
                name: "difference",
                number: true,
                value: (r) => Math.abs((r.after || 0) - (r.before || 0)),
                show: (r) => {
                    const by = (r.after || 0) - (r.before || 0);
                    const sign = by > 0 ? "+" : by < 0 ? "−" : "";
                    return sign + units[r.unit](Math.abs(by));
                },
            },
            {
                name: "change",
                number: true,
                value: (r) => r.percent,
                show: (r) =>
                    el("span", { class: r.percent > 0 ? "over" : "" }, growth(r)),
            },
        ],
        rows,
        { order, limit: 20 }
    );
}

function comparisonPart(title, rows) {
    return rows.length ? [el("h3", {}, title), comparisonTable(rows, 3)] : [];
}

function showComparison() {
    const title = `${profile.after}, compared with ${profile.before}`;
    document.title = title;
    document.body.append(
        el("header", {}, el("h1", {}, title)),
        el(
            "main",
            {},
            profile.programs.map((p, i) =>
                section(
                    `program-${i}`,
                    p.name,
                    p.before_target !== p.after_target
                        ? el(
                              "p",
                              {},
                              `For the chips ${p.before_target} and ` +
                                  `${p.after_target}.`
                          )
                        : null,
                    comparisonTable(p.in_all, -1),
                    ...comparisonPart("Memory by what it holds", p.memory),
                    ...comparisonPart("Cycles by op", p.ops),
                    ...comparisonPart("Cycles by step", p.steps)
                )
            )
        ),
        tip
    );
}
