// SPDX-License-Identifier: Apache-2.0
// compare_parts.js - two programs side by side: maps of their tiles on one
// scale, and their modules, vertices, steps and tensors, paired by name. `both`
// is {before, after}, the two programs; a row of a pair is the same of what the
// two have of that name, or null.

const sides = ["before", "after"];

// Pairs rows of both programs by name. rowsOf(program) returns rows, and
// nameOf(row) the name of one. Rows of one name become a list.
function paired(both, rowsOf, nameOf) {
    const pairs = new Map();
    for (const side of sides)
        for (const row of rowsOf(both[side])) {
            const name = nameOf(row);
            if (!pairs.has(name))
                pairs.set(name, { name, before: null, after: null });
            const pair = pairs.get(name);
            pair[side] = (pair[side] || []).concat(row);
        }
    return [...pairs.values()];
}

// Returns a function of (pair, side) that adds up a figure of the side's rows;
// null: it has none.
const sumOf = (figure) => (pair, side) =>
    pair[side] && pair[side].reduce((sum, row) => sum + figure(row), 0);

const anyOf = (pair) => (pair.after || pair.before)[0];

// --------------------------------------------------------------------- modules

// Joins two trees of modules: {name, depth, open, children, before, after}.
function joinModules(name, depth, before, after) {
    const children = new Map();
    const below = (m, child) => (m && m.children.get(child)) || null;
    for (const m of [before, after])
        for (const child of m ? m.children.keys() : [])
            if (!children.has(child))
                children.set(
                    child,
                    joinModules(
                        child,
                        depth + 1,
                        below(before, child),
                        below(after, child)
                    )
                );
    return { name, depth, open: depth < 1, children, before, after };
}

function modulesCompared(both) {
    if (!sides.some((side) => both[side].steps.some((s) => s.module)))
        return [];
    const root = joinModules(
        both.after.name,
        0,
        moduleTree(both.before),
        moduleTree(both.after)
    );
    const of = (figure) => (r, side) => r[side] && figure(r[side]);
    const tree = treeTable(
        root,
        [
            arrowColumn(
                "steps",
                of((m) => m.steps.length),
                count
            ),
            ...changeColumns(
                of((m) => m.total),
                count
            ),
            arrowColumn(
                "compute",
                of((m) => m.compute),
                count,
                "cycles"
            ),
            arrowColumn(
                "exchange",
                of((m) => m.exchange),
                count,
                "cycles"
            ),
            arrowColumn(
                "exchanged",
                of((m) => m.moved),
                bytes,
                "bytes into the busiest tile"
            ),
            arrowColumn(
                "weights",
                of((m) => m.weights),
                bytes
            ),
        ],
        {
            chosen: () => false,
            choose: () => {},
            hint: "Before, after, difference and change are cycles of a run.",
        }
    );
    return [section("modules", "Modules", tree)];
}

// ---------------------------------------------------------------------- memory

function memoryCompared(both, pair) {
    const maps = tileMaps(
        sides.map((side, i) => ({
            p: both[side],
            title: `${i ? "After" : "Before"}: ${profile[side]}`,
            step: () => both[side].memory.fullest_step,
        }))
    );
    return section(
        "memory",
        "Memory per tile, on one scale",
        maps,
        ...comparisonPart(
            "By what it holds: bytes of all tiles, each when it is fullest",
            pair.memory
        )
    );
}

// -------------------------------------------------------------------- vertices

function verticesCompared(both) {
    return table(
        [
            { name: "vertex", value: (r) => r.name },
            ...changeColumns(
                sumOf((v) => v.total),
                count
            ),
            arrowColumn(
                "steps",
                sumOf((v) => v.steps),
                count
            ),
            arrowColumn(
                "vertices",
                sumOf((v) => v.vertices),
                count,
                "on all tiles, one for each context"
            ),
            arrowColumn(
                "code",
                sumOf((v) => v.code),
                bytes,
                "on each tile, once"
            ),
            arrowColumn(
                "exchange code",
                sumOf((v) => v.exchange),
                bytes,
                "on each tile, for all its steps that share none"
            ),
        ],
        paired(both, vertexTypes, (v) => v.name),
        { order: 3, limit: 12 }
    );
}

// ---------------------------------------------------------------------- search

function stepsCompared(pairs) {
    return table(
        [
            { name: "tensor", value: (r) => r.name },
            { name: "op", value: (r) => anyOf(r).parts || anyOf(r).op },
            { name: "module", value: (r) => anyOf(r).module || "" },
            ...changeColumns(
                sumOf((s) => s.total * s.times),
                count
            ),
            arrowColumn(
                "exchanged",
                sumOf((s) => s.exchange_bytes * s.times),
                bytes,
                "bytes into the busiest tile"
            ),
            { name: "line", class: "line", value: (r) => place(anyOf(r)) },
        ],
        pairs,
        { order: 5, limit: 12 }
    );
}

function tensorsCompared(pairs, limit) {
    return table(
        [
            { name: "tensor", value: (r) => r.name },
            { name: "module", value: (r) => anyOf(r).module || "" },
            {
                name: "type",
                class: "line",
                value: (r) => anyOf(r).type,
                show: (r) =>
                    [...new Set(sides.map((x) => r[x] && r[x][0].type))]
                        .filter(Boolean)
                        .join(" → "),
            },
            ...changeColumns(
                sumOf((b) => b.bytes),
                bytes
            ),
            arrowColumn("tiles", sumOf(onTiles), count),
            arrowColumn(
                "on one",
                (r, side) => r[side] && most(r[side].map(onMost)),
                bytes,
                "the most bytes on a tile"
            ),
        ],
        pairs,
        {
            order: 4,
            limit,
            choose: (r) => looked.show(sides.map((x) => r[x] && r[x][0])),
        }
    );
}

function searchCompared(both) {
    return searchSection(
        (words) => ({
            steps: words.length
                ? paired(both, (p) => stepMatches(p, words), (s) => s.tensor)
                : [],
            tensors: paired(
                both,
                (p) => tensorMatches(p, words),
                (b) => b.tensor
            ),
        }),
        stepsCompared,
        tensorsCompared
    );
}
