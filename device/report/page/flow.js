// SPDX-License-Identifier: Apache-2.0
// flow.js - the graph of operations, drawn row by row: each row stands for some
// steps, and has a dot; a tensor that goes to a later row has a lane between the
// two. What flows within a row is not drawn.

const laneWidth = 9;
const rowHeight = 22;
const mostLanes = 32;

// Returns the tensors that pass between rows: {block, from, to: [rows]}. A block
// that is computed in place has several makers: a step uses what the last of
// them before it has made.
function flowsBetween(p, rows) {
    const rowOf = new Int32Array(p.steps.length).fill(-1);
    rows.forEach((row, r) => row.steps.forEach((s) => (rowOf[s] = r)));
    const makers = p.blocks.map(() => []);
    p.steps.forEach((s, i) => s.block >= 0 && makers[s.block].push(i));
    const flows = [];
    p.blocks.forEach((block, b) => {
        const byMaker = new Map();
        for (const use of block.uses) {
            const maker = makers[b].filter((m) => m < use).pop();
            if (maker === undefined || rowOf[maker] === rowOf[use]) continue;
            if (rowOf[maker] < 0 || rowOf[use] < 0) continue;
            if (!byMaker.has(maker)) byMaker.set(maker, new Set());
            byMaker.get(maker).add(rowOf[use]);
        }
        for (const [maker, to] of byMaker)
            flows.push({ block, from: rowOf[maker], to: [...to] });
    });
    return flows;
}

// Gives each flow a lane that is free between its first and its last row, and
// each row the lane of its dot.
function giveLanes(rows, flows) {
    const busyUntil = new Array(mostLanes).fill(-1);
    const dots = new Array(rows.length).fill(0);
    const sorted = flows
        .map((f) => ({
            ...f,
            first: Math.min(f.from, ...f.to),
            last: Math.max(f.from, ...f.to),
        }))
        .sort((a, b) => a.first - b.first || b.last - a.last);
    for (const f of sorted) {
        let lane = busyUntil.findIndex((until) => until <= f.first);
        if (lane < 0) lane = mostLanes - 1;
        busyUntil[lane] = f.last;
        f.lane = lane;
    }
    rows.forEach((_, r) => {
        const own = sorted.filter((f) => f.from === r).map((f) => f.lane);
        const into = sorted.filter((f) => f.to.includes(r)).map((f) => f.lane);
        dots[r] = own.length ? Math.min(...own) : into.length ? into[0] : 0;
    });
    return { sorted, dots };
}

const xOfLane = (lane) => laneWidth * (lane + 0.5);

// Returns the curve between a lane, at the top or the bottom of a row, and the
// row's dot.
function curve(lane, y, dot) {
    const x = xOfLane(lane);
    const middle = rowHeight / 2;
    return `M${x} ${y}C${x} ${middle} ${xOfLane(dot)} ${y} ${xOfLane(dot)} ${middle}`;
}

// Returns an SVG element for each row.
function drawFlows(p, rows) {
    const { sorted, dots } = giveLanes(rows, flowsBetween(p, rows));
    const lanes = sorted.reduce((a, f) => Math.max(a, f.lane + 1), 1);
    return rows.map((row, r) => {
        const drawing = shape("svg", {
            width: lanes * laneWidth,
            height: rowHeight,
            "aria-hidden": "true",
        });
        for (const f of sorted) {
            if (r < f.first || r > f.last) continue;
            const touches = f.from === r || f.to.includes(r);
            let d = "";
            if (r > f.first && r < f.last)
                d += `M${xOfLane(f.lane)} 0V${rowHeight}`;
            if (touches)
                d += curve(f.lane, r > f.first ? 0 : rowHeight, dots[r]);
            drawing.append(
                shape(
                    "path",
                    {
                        d,
                        class: f.from > f.first ? "back" : "forth",
                        "stroke-width": touches ? 2 : 1.2,
                    },
                    shape(
                        "title",
                        {},
                        `${f.block.tensor}: ${f.block.type}, ` +
                            bytes(f.block.bytes)
                    )
                )
            );
        }
        if (row.steps.length)
            drawing.append(
                shape("circle", {
                    cx: xOfLane(dots[r]),
                    cy: rowHeight / 2,
                    r: 3.2,
                })
            );
        return drawing;
    });
}
