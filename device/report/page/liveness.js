// SPDX-License-Identifier: Apache-2.0
// liveness.js - the memory over the steps of a program: a curve with its peak,
// and the tensors that are alive at the selected step.

// Returns the bytes of the whole chip, or of one tile, at each step.
function liveness(p, tile) {
    const steps = p.steps.length;
    const change = new Float64Array(steps + 2);
    const code = tile < 0 ? 0 : p.code_bytes;
    let always = code;
    for (const block of p.blocks) {
        // A block in streaming memory is on no tile.
        const all = block.tiles.length ? block.bytes : 0;
        const size = tile < 0 ? all : onTile(block, tile);
        if (block.always) {
            always += size;
            continue;
        }
        change[Math.max(block.birth, 0)] += size;
        change[Math.min(block.death, steps) + 1] -= size;
    }
    const rest = new Float64Array(steps);
    let now = 0;
    for (let i = 0; i < steps; i++) {
        now += change[i];
        rest[i] = now + (tile < 0 ? 0 : p.steps[i].temporary_bytes);
    }
    return { code, always, rest };
}

function onTile(block, tile) {
    for (const [first, many, each] of block.tiles)
        if (tile >= first && tile < first + many) return each;
    return 0;
}

function livenessChart(p) {
    let live = liveness(p, p.memory.fullest_tile);
    let whole = false;
    const steps = p.steps.length;
    const left = 70;
    const xOf = (i, width) => left + ((i + 0.5) * (width - left)) / steps;
    const node = canvas(240, "bytes alive over the program", (c, w, h) => {
        const high = live.rest.reduce((a, b) => Math.max(a, b), 0);
        const top = (live.always + high) * 1.08 || 1;
        const y = (value) => h - 22 - ((h - 34) * value) / top;
        const wide = (w - left) / steps;
        c.fillStyle = css("variables");
        c.fillRect(left, y(live.always), w - left, y(0) - y(live.always));
        c.fillStyle = css("code");
        c.fillRect(left, y(live.code), w - left, y(0) - y(live.code));
        c.fillStyle = css("results");
        // There is one column per pixel; it shows the highest of its steps.
        const columns = Math.min(steps, Math.floor(w - left));
        for (let k = 0; k < columns; k++) {
            const from = Math.floor((k * steps) / columns);
            const to = Math.floor(((k + 1) * steps) / columns);
            let most = 0;
            for (let i = from; i < to; i++)
                most = Math.max(most, live.rest[i]);
            const x = left + (k * (w - left)) / columns;
            c.fillRect(
                x,
                y(live.always + most),
                (w - left) / columns + (wide > 4 ? -0.5 : 0.5),
                y(live.always) - y(live.always + most)
            );
        }
        c.fillStyle = css("soft");
        c.textAlign = "right";
        for (const part of [0, 0.25, 0.5, 0.75, 1]) {
            c.fillText(bytes((top * part) / 1.08), left - 6, y(top * part / 1.08) + 4);
            c.fillRect(left, y((top * part) / 1.08), w - left, 0.3);
        }
        marker(c, xOf(peak(), w), y(live.always + live.rest[peak()]), "mark");
        c.fillStyle = css("ink");
        c.fillRect(xOf(looked.step, w) - 0.75, 6, 1.5, h - 28);
        c.textAlign = "left";
        c.fillStyle = css("soft");
        c.fillText("step 0", left, h - 6);
        c.textAlign = "right";
        c.fillText(`step ${steps - 1}`, w, h - 6);
    });

    function peak() {
        if (!whole) return p.memory.fullest_step;
        let most = 0;
        live.rest.forEach((v, i) => (most = v > live.rest[most] ? i : most));
        return most;
    }
    function marker(c, x, y, colour) {
        c.fillStyle = css(colour);
        c.beginPath();
        c.moveTo(x, y - 1);
        c.lineTo(x - 5, y - 9);
        c.lineTo(x + 5, y - 9);
        c.fill();
    }
    function stepAt(x) {
        const wide = node.clientWidth - left;
        return Math.floor(((x - left) / wide) * steps);
    }
    follow(node, (x) => {
        const i = stepAt(x);
        if (i < 0 || i >= steps) return "";
        const s = p.steps[i];
        return (
            `step ${i}, ${s.op} ${s.tensor}\n` +
            `always: ${bytes(live.always)}` +
            (live.code ? `, of which code ${bytes(live.code)}` : "") +
            "\n" +
            `not always: ${bytes(live.rest[i])}\n` +
            `fullest tile: ${s.fullest_tile}, ${bytes(s.fullest_tile_bytes)}`
        );
    });
    node.addEventListener("click", (event) => {
        const i = stepAt(event.offsetX);
        if (i >= 0 && i < steps) lookAt(i);
    });
    node.show = (all) => {
        whole = all;
        live = liveness(p, all ? -1 : p.memory.fullest_tile);
        node.redraw();
    };
    looked.listeners.push(() => node.redraw());
    return node;
}

function aliveTable(p) {
    const box = el("div");
    const draw = (step) => {
        const s = p.steps[step];
        const tile = s.fullest_tile;
        const rows = p.blocks
            .filter((b) => b.birth <= step && step <= b.death)
            .map((b) => ({
                ...b,
                here: onTile(b, tile),
                used: b.uses.includes(step),
            }));
        const sum = rows.reduce((a, b) => a + (b.tiles.length ? b.bytes : 0), 0);
        box.replaceChildren(
            el(
                "p",
                {},
                `Step ${step}, ${s.op} `,
                el("b", {}, s.tensor),
                s.file ? ` (${place(s)})` : "",
                `: ${count(rows.length)} places hold ${bytes(sum)}. Its ` +
                    `fullest tile is ${tile}, with ` +
                    `${bytes(s.fullest_tile_bytes)}: these, ` +
                    `${bytes(s.temporary_bytes)} for the step itself, and ` +
                    `${bytes(p.code_bytes)} of code.`
            ),
            table(
                [
                    { name: "tensor", value: (r) => r.tensor },
                    { name: "type", class: "line", value: (r) => r.type },
                    { name: "what", value: (r) => r.category },
                    {
                        name: "on the tile",
                        number: true,
                        value: (r) => r.here,
                        show: (r) => (r.tiles.length ? bytes(r.here) : "streaming"),
                    },
                    numbers("in all", (r) => r.bytes, bytes),
                    {
                        name: "alive",
                        class: "line",
                        value: (r) => r.birth,
                        show: (r) =>
                            r.always
                                ? "always"
                                : `${r.birth < 0 ? "start" : r.birth} to ` +
                                  (r.death >= p.steps.length
                                      ? "end"
                                      : r.death),
                    },
                    {
                        name: "used",
                        title: "whether this step uses it, or a later one does",
                        value: (r) => (r.used ? 1 : 0),
                        show: (r) => (r.used ? "now" : "waits"),
                    },
                    { name: "made by", value: (r) => r.op || "" },
                    { name: "line", class: "line", value: (r) => place(r) },
                ],
                rows,
                { order: 3, limit: 15 }
            )
        );
    };
    looked.listeners.push(draw);
    return box;
}

function livenessSection(p) {
    if (!p.steps.length)
        return section("liveness", "Liveness", el("p", {}, "No steps."));
    const chart = livenessChart(p);
    const number = el("input", {
        type: "number",
        min: 0,
        max: p.steps.length - 1,
        "aria-label": "step",
        onchange: () => {
            const step = Math.floor(Number(number.value));
            if (step >= 0 && step < p.steps.length) lookAt(step);
        },
    });
    looked.listeners.push((step) => (number.value = step));
    return section(
        "liveness",
        "Liveness: what is in memory when",
        el(
            "div",
            { class: "controls" },
            choice(
                "of",
                [
                    ["tile", `tile ${p.memory.fullest_tile}, the fullest`],
                    ["all", "the tensors of all tiles"],
                ],
                (value) => chart.show(value === "all")
            ),
            el("label", {}, "step ", number),
            el(
                "button",
                { onclick: () => lookAt(p.memory.fullest_step) },
                "the peak"
            ),
            el("span", { class: "soft" }, "a click shows another step")
        ),
        chart,
        key([
            ["code", "code"],
            ["variables", "always live: variables, constants"],
            ["results", "not always: inputs, results, temporary"],
            ["mark", "the peak"],
        ]),
        aliveTable(p)
    );
}
