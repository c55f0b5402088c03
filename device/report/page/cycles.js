// SPDX-License-Identifier: Apache-2.0
// cycles.js - the time of a program: by phase, along the run, by op, by step.

const phases = ["compute", "exchange", "sync", "host"];

function phaseBar(p) {
    const parts = phases.map((name) => [
        name,
        p.cycles[name],
        `${name}: ${count(p.cycles[name])} cycles, ` +
            `${cyclesTime(p, p.cycles[name])}`,
    ]);
    const all = phases.reduce((sum, name) => sum + p.cycles[name], 0);
    return el(
        "div",
        {},
        bar(parts),
        key(
            phases.map((name) => [
                name,
                `${name} ${count(p.cycles[name])} cycles, ` +
                    `${cyclesTime(p, p.cycles[name])} ` +
                    `(${percent(p.cycles[name], all)})`,
            ])
        )
    );
}

// Draws the phases of a row as a small bar.
function miniBar(row, most) {
    return el(
        "span",
        { style: "display:inline-flex;width:110px;height:.8em" },
        phases.map((name) =>
            el("span", {
                style:
                    `background:var(--${name});` +
                    `width:${(100 * (row[name] * (row.times || 1))) / most}%`,
                title: `${name}: ${count(row[name])}`,
            })
        )
    );
}

function totalsByOp(p) {
    const totals = new Map();
    for (const s of p.steps) {
        let t = totals.get(s.op);
        if (!t) {
            t = { op: s.op, steps: 0, total: 0, flops: 0, ns: 0, moved: 0 };
            for (const name of phases) t[name] = 0;
            totals.set(s.op, t);
        }
        t.steps++;
        t.total += s.total * s.times;
        t.flops += s.flops * s.times;
        t.moved += s.exchange_bytes * s.times;
        t.ns += Math.max(s.ns, 0);
        t.estimate = t.estimate || s.estimate;
        for (const name of phases) t[name] += s[name] * s.times;
    }
    return [...totals.values()];
}

// Makes the columns that ops and steps have in common. of(row) returns the
// row's cycles in a run.
function timeColumns(p, most, of) {
    const peak = p.derived.peak_flops_per_second;
    const runs = p.measured ? p.measured.runs : 0;
    const rate = (r) =>
        of(r) > 0 ? (r.flops * (r.times || 1)) / (of(r) / p.target.clock_hz) : 0;
    return [
        {
            name: "cycles",
            number: true,
            title: "cycles in a run, on the busiest tile; ~: an estimate",
            value: of,
            show: (r) =>
                el(
                    "span",
                    { title: r.estimate || "" },
                    (r.estimate ? "~ " : "") + count(of(r))
                ),
        },
        numbers("share", of, (n) => percent(n, p.cycles.total)),
        { name: "phases", value: of, show: (r) => miniBar(r, most) },
        numbers(
            "operations",
            (r) => r.flops * (r.times || 1),
            (n) => big(n, "")
        ),
        numbers(
            "of peak",
            rate,
            (n) => percent(n, peak),
            `of the chip's operations in ${p.derived.peak_dtype}`
        ),
        numbers(
            "exchanged",
            (r) => r.moved,
            bytes,
            "bytes into the busiest tile"
        ),
        ...(runs
            ? [
                  {
                      name: "here",
                      number: true,
                      title: "time per run, measured on this machine",
                      value: (r) => r.ns,
                      show: (r) => (r.ns < 0 ? "" : time(r.ns / runs / 1e9)),
                  },
              ]
            : []),
    ];
}

function opsTable(p) {
    const rows = totalsByOp(p);
    const most = rows.reduce((a, r) => Math.max(a, r.total), 1);
    return table(
        [
            { name: "op", value: (r) => r.op },
            { name: "steps", number: true, value: (r) => r.steps },
            ...timeColumns(p, most, (r) => r.total),
        ],
        rows,
        { order: 2, limit: 15 }
    );
}

function stepsTable(p) {
    const rows = p.steps.map((s, i) => ({
        ...s,
        number: i,
        moved: s.exchange_bytes * s.times,
        cycles: s.total * s.times,
    }));
    const most = rows.reduce((a, r) => Math.max(a, r.cycles), 1);
    const node = table(
        [
            { name: "step", number: true, value: (r) => r.number },
            {
                name: "op",
                value: (r) => r.op,
                show: (r) => r.parts || r.op,
            },
            {
                name: "tensor",
                value: (r) => r.tensor,
                show: (r) =>
                    r.tensor +
                    (r.every > 1 ? ` (in every ${r.every}th run)` : "") +
                    (r.again ? " (again)" : ""),
            },
            ...timeColumns(p, most, (r) => r.cycles),
            numbers("tiles", (r) => r.busy_tiles, count, "tiles that compute"),
            { name: "line", class: "line", value: (r) => place(r) },
        ],
        rows,
        {
            order: 3,
            choose: (r) => lookAt(r.number),
            chosen: (r) => r.number === looked.step,
        }
    );
    looked.listeners.push(() => node.fill());
    return node;
}

function streamsTable(p) {
    if (!p.streams.length) return null;
    return el(
        "div",
        {},
        el("h3", {}, "Streams to and from the host"),
        table(
            [
                { name: "stream", value: (r) => r.name },
                {
                    name: "kind",
                    value: (r) => r.kind,
                    show: (r) => (r.kind === "call" ? "host call" : r.kind),
                },
                numbers("bytes", (r) => r.bytes, bytes),
                {
                    name: "cycles",
                    number: true,
                    title: "a call has the cycles of its step",
                    value: (r) => r.cycles,
                    show: (r) => (r.cycles ? count(r.cycles) : ""),
                },
            ],
            p.streams,
            { order: 2, limit: 12 }
        )
    );
}

function timeSection(p) {
    const run = runSpans(p);
    const lanesOf = lanes(phases, run.spans, run.end, (c) => cyclesTime(p, c));
    return section(
        "time",
        "Time: cycles of a run",
        phaseBar(p),
        el("h3", {}, "Timeline: sync, exchange and compute of each step"),
        lanesOf,
        el("h3", {}, "By op"),
        opsTable(p),
        el("h3", {}, "By step (a click shows the memory at that step)"),
        stepsTable(p),
        el("h3", {}, "Vertices by type"),
        verticesTable(p),
        streamsTable(p)
    );
}
