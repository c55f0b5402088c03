// SPDX-License-Identifier: Apache-2.0
// findings.js - the savings that are possible, and why figures are estimates.

function findingsTable(p, rows, memory) {
    const gain = memory
        ? numbers("less", (r) => r.bytes, bytes, "bytes on the fullest tile")
        : numbers("faster", (r) => r.cycles, (n) => cyclesTime(p, n));
    const price = {
        name: memory ? "time" : "cycles",
        number: true,
        value: (r) => r.cycles,
        show: (r) => {
            if (!memory) return count(r.cycles);
            if (!r.cycles) return "the same";
            const much = cyclesTime(p, Math.abs(r.cycles));
            return `${much} ${r.cycles < 0 ? "more" : "less"}`;
        },
    };
    const names = { in_place: "in place" };
    return table(
        [
            gain,
            price,
            { name: "by", class: "line", value: (r) => names[r.kind] || r.kind },
            { name: "how", value: (r) => r.text },
        ],
        rows,
        {
            order: 0,
            choose: (r) => r.step >= 0 && lookAt(r.step),
        }
    );
}

function findingsSection(p) {
    const d = p.derived;
    return section(
        "savings",
        "The largest savings",
        el(
            "p",
            {},
            "Each is an upper bound: two savings on one step do not add up."
        ),
        el("h3", {}, "Time"),
        d.saves_time.length
            ? findingsTable(p, d.saves_time, false)
            : el("p", {}, "Nothing was found."),
        el("h3", {}, "Memory of the fullest tile"),
        d.saves_memory.length
            ? findingsTable(p, d.saves_memory, true)
            : el("p", {}, "Nothing was found.")
    );
}

function estimatesSection(p) {
    const reasons = new Map();
    for (const s of p.steps)
        if (s.estimate) {
            const r = reasons.get(s.estimate) || { steps: 0, cycles: 0 };
            r.steps++;
            r.cycles += s.total * s.times;
            reasons.set(s.estimate, r);
        }
    if (!reasons.size) return null;
    return section(
        "estimates",
        "Why figures marked ~ are estimates",
        el(
            "ul",
            {},
            [...reasons].map(([reason, r]) =>
                el(
                    "li",
                    {},
                    `${reason} (${count(r.steps)} steps, ` +
                        `${percent(r.cycles, p.cycles.total)} of the cycles)`
                )
            )
        )
    );
}
