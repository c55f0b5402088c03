// SPDX-License-Identifier: Apache-2.0
// tiles.js - the memory per tile: a map of all tiles with its scale, a
// histogram of how full they are, and a table of what they hold.

const categories = [
    ["variables", "variables"],
    ["constants", "constants"],
    ["inputs", "inputs"],
    ["results", "results: activations, gradients"],
    ["temporary", "temporary, of steps"],
    ["code", "code"],
    ["exchange_code", "exchange code"],
    ["state", "state of vertices"],
];

// Returns what each tile holds at its peak, in arrays over all tiles.
function spreadTiles(p) {
    const tiles = p.target.tiles * p.ipus;
    const spread = { total: new Float64Array(tiles), run: [] };
    for (const [name] of categories) spread[name] = new Float64Array(tiles);
    for (const run of p.tiles)
        for (let t = run.first; t < run.first + run.count; t++) {
            spread.run[t] = run;
            spread.total[t] = run.total;
            for (const [name] of categories) spread[name][t] = run[name];
        }
    return spread;
}

// Returns the bytes that each tile holds during a step.
function tilesAt(p, step) {
    const at = new Float64Array(p.target.tiles * p.ipus);
    at.fill(p.code_bytes + (p.steps[step] ? p.steps[step].temporary_bytes : 0));
    for (const block of p.blocks)
        if (block.birth <= step && step <= block.death)
            for (const [first, many, each] of block.tiles)
                for (let t = first; t < first + many; t++) at[t] += each;
    return at;
}

// Returns the positions of tiles: chips side by side, their tiles in rows.
function layout(p, width) {
    const chips = p.ipus;
    const across = Math.ceil(Math.sqrt(p.target.tiles * 1.6));
    const down = Math.ceil(p.target.tiles / across);
    const perRow = Math.min(chips, chips > 16 ? 8 : 4);
    const gap = chips > 1 ? 8 : 0;
    const cell = (width - gap * (perRow - 1)) / perRow / across;
    const chipHeight = cell * down + (chips > 1 ? 16 : 0);
    return {
        across,
        cell,
        height: Math.ceil(chips / perRow) * (chipHeight + gap),
        corner: (chip) => [
            (chip % perRow) * (cell * across + gap),
            Math.floor(chip / perRow) * (chipHeight + gap) +
                (chips > 1 ? 14 : 0),
        ],
    };
}

function tileAt(p, width, x, y) {
    const l = layout(p, width);
    for (let chip = 0; chip < p.ipus; chip++) {
        const [left, top] = l.corner(chip);
        const column = Math.floor((x - left) / l.cell);
        const row = Math.floor((y - top) / l.cell);
        const tile = row * l.across + column;
        if (column >= 0 && column < l.across && row >= 0)
            if (tile < p.target.tiles) return chip * p.target.tiles + tile;
    }
    return -1;
}

// Returns the bytes of a block on each tile; of no block, 0 on each.
function tilesOf(p, block) {
    const on = new Float64Array(p.target.tiles * p.ipus);
    for (const [first, many, each] of block ? block.tiles : [])
        on.fill(each, first, first + many);
    return on;
}

function tileTip(p, spread, tile, value) {
    const run = spread.run[tile];
    if (!run) return `tile ${tile}`;
    const step = p.steps[run.peak_step];
    const lines = categories
        .filter(([name]) => run[name] > 0)
        .map(([name, text]) => `${text}: ${bytes(run[name])}`);
    const chip = Math.floor(tile / p.target.tiles);
    const name =
        p.ipus > 1
            ? `IPU ${p.ipu + chip}, tile ${tile % p.target.tiles}`
            : `tile ${tile}`;
    return [
        `${name}: ${bytes(value)} shown`,
        `fullest, with ${bytes(run.total)}, at step ${run.peak_step}` +
            (step ? `, ${step.op} ${step.tensor}` : ""),
        ...lines,
    ].join("\n");
}

function drawScale(least, most) {
    return canvas(30, "the scale of the map", (context, width) => {
        const colour = scale();
        for (let x = 0; x < width; x++) {
            context.fillStyle = colour(x / width);
            context.fillRect(x, 0, 1, 12);
        }
        context.fillStyle = css("soft");
        context.fillText(bytes(least()), 0, 26);
        context.textAlign = "right";
        context.fillText(bytes(most()), width, 26);
    });
}

const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
const most = (list) => list.reduce((a, b) => Math.max(a, b), 0);

// Draws the tiles of a program by values(); low() and high() are the ends of
// the scale. A tile that holds more than it has is marked.
function mapCanvas(p, spread, values, low, high) {
    const room = p.target.bytes_per_tile;
    const map = canvas(
        (width) => layout(p, width).height,
        "a map of the tiles by the bytes that they hold",
        (context, width) => {
            const l = layout(p, width);
            const colour = scale();
            const span = high() - low() || 1;
            const edge = l.cell > 5 ? 1 : 0;
            values().forEach((value, t) => {
                const chip = Math.floor(t / p.target.tiles);
                const [left, top] = l.corner(chip);
                const i = t % p.target.tiles;
                context.fillStyle =
                    value > room ? css("mark") : colour((value - low()) / span);
                context.fillRect(
                    left + (i % l.across) * l.cell,
                    top + Math.floor(i / l.across) * l.cell,
                    l.cell - edge,
                    l.cell - edge
                );
                if (p.ipus > 1 && i === 0) {
                    context.fillStyle = css("soft");
                    context.fillText(`IPU ${p.ipu + chip}`, left, top - 3);
                }
            });
        }
    );
    follow(map, (x, y) => {
        const tile = tileAt(p, map.clientWidth, x, y);
        return tile < 0 ? "" : tileTip(p, spread, tile, values()[tile]);
    });
    return map;
}

// Makes the maps of one program or of several side by side, on one scale, and
// the choices of what they show. sides: {p, title, step()}.
function tileMaps(sides) {
    const spreads = sides.map((side) => spreadTiles(side.p));
    const room = most(sides.map((side) => side.p.target.bytes_per_tile));
    const fullest = most(spreads.map((spread) => most(spread.total)));
    let what = "total";
    let blocks = []; // what is shown of each side; null: it has no such tensor
    let range = fullest > room / 4 ? "room" : "zero";
    let values = spreads.map((spread) => spread.total);

    const ofSide = (side, i) =>
        what === "step"
            ? tilesAt(side.p, side.step())
            : what === "tensor"
              ? tilesOf(side.p, blocks[i])
              : spreads[i][what];
    let ends = [];
    const measure = () => {
        ends = [
            range === "differences" ? least(values.map(least)) : 0,
            range === "room" ? room : most(values.map(most)) || 1,
        ];
    };
    measure();
    const low = () => ends[0];
    const high = () => ends[1];
    const maps = sides.map((side, i) =>
        mapCanvas(side.p, spreads[i], () => values[i], low, high)
    );
    const legend = drawScale(low, high);
    const update = () => {
        values = sides.map(ofSide);
        measure();
        for (const drawing of [...maps, legend]) drawing.redraw();
    };
    looked.listeners.push(() => what === "step" && update());
    const kinds = choice(
        "show",
        [
            ["total", "all, at the tile's peak"],
            ["step", "all, at the selected step"],
            ...categories.filter(([name]) =>
                spreads.some((spread) => most(spread[name]) > 0)
            ),
        ],
        (value) => {
            what = value;
            update();
        }
    );
    const one = el("option", { value: "tensor" });
    looked.show = (found) => {
        const { tensor, type } = found.find(Boolean);
        blocks = found;
        one.textContent = `${tensor}, ${type}`;
        kinds.lastChild.append(one);
        kinds.lastChild.value = what = "tensor";
        ranges.lastChild.value = range = "zero";
        update();
        document
            .getElementById("memory")
            .scrollIntoView({ behavior: "smooth" });
    };
    const ranges = choice(
        "scale",
        [
            ["zero", "0 to the fullest"],
            ["room", "0 to all that a tile has"],
            ["differences", "emptiest to fullest"],
        ],
        (value) => {
            range = value;
            update();
        }
    );
    ranges.lastChild.value = range;
    return el(
        "div",
        {},
        el("div", { class: "controls" }, kinds, ranges),
        sides.length > 1
            ? el(
                  "div",
                  { class: "halves" },
                  sides.map((side, i) =>
                      el("div", {}, el("h3", {}, side.title), maps[i])
                  )
              )
            : maps[0],
        el("div", { style: "height:6px" }),
        legend
    );
}

function histogram(p, spread) {
    const bins = 32;
    const from = least(spread.total);
    const to = most(spread.total);
    const width = Math.max(1, Math.ceil((to - from + 1) / bins));
    const tiles = new Array(Math.ceil((to - from + 1) / width)).fill(0);
    for (const total of spread.total)
        tiles[Math.floor((total - from) / width)]++;
    const high = Math.max(...tiles);
    const node = canvas(130, "how many tiles are how full", (c, w, h) => {
        c.fillStyle = css("compute");
        tiles.forEach((n, i) => {
            const tall = n ? Math.max(1, ((h - 22) * n) / high) : 0;
            c.fillRect(
                (i * w) / tiles.length,
                h - 18 - tall,
                Math.max(1, w / tiles.length - 1),
                tall
            );
        });
        c.fillStyle = css("line");
        c.fillRect(0, h - 18, w, 1);
        c.fillStyle = css("soft");
        c.fillText(bytes(from), 0, h - 3);
        c.textAlign = "right";
        c.fillText(bytes(to), w, h - 3);
    });
    follow(node, (x) => {
        const i = Math.min(
            tiles.length - 1,
            Math.floor((x / node.clientWidth) * tiles.length)
        );
        const first = from + i * width;
        return (
            `${count(tiles[i])} tiles hold ` +
            `${count(first)} to ${count(first + width - 1)} bytes`
        );
    });
    return node;
}

function categoryTable(p) {
    const sums = p.derived.categories;
    const rows = categories.filter(([name]) => sums[name] > 0);
    return el(
        "div",
        {},
        bar(rows.map(([n, t]) => [n, sums[n], `${t}: ${bytes(sums[n])}`])),
        table(
            [
                {
                    name: "what",
                    value: (r) => r[1],
                    show: (r) => [
                        el("i", {
                            class: "share",
                            style:
                                `background:var(--${r[0]});width:.8em;` +
                                "display:inline-block;margin-right:.4em",
                        }),
                        r[1],
                    ],
                },
                numbers("bytes", (r) => sums[r[0]], bytes),
                numbers(
                    "share",
                    (r) => sums[r[0]],
                    (n) => percent(n, sums.total)
                ),
            ],
            rows,
            { order: 1 }
        )
    );
}

function memorySection(p) {
    const spread = spreadTiles(p);
    const tiles = spread.total.length;
    const all = p.target.bytes_per_tile * tiles;
    const used = p.derived.categories.total;
    return section(
        "memory",
        "Memory per tile",
        el(
            "p",
            {},
            `${count(tiles)} tiles have ${bytes(all)}. Added up, each when it ` +
                `is fullest, they hold ${bytes(used)} (${percent(used, all)}); ` +
                `${bytes(Math.max(all - used, 0))} are free.`,
            used > all ? el("span", { class: "over" }, " Too much.") : "",
            p.memory.remote_bytes
                ? ` ${bytes(p.memory.remote_bytes)} are in streaming memory.`
                : ""
        ),
        el(
            "div",
            { class: "columns" },
            tileMaps([{ p, step: () => looked.step }]),
            el(
                "div",
                {},
                el("h3", { style: "margin-top:0" }, "By what they hold"),
                categoryTable(p),
                el("h3", {}, "Tiles by how full they get"),
                histogram(p, spread)
            )
        )
    );
}
