// SPDX-License-Identifier: Apache-2.0
// search.js - the tensors of a program, and a field that finds steps, tensors
// and modules by words.

// Returns whether all words are in a text.
const hasWords = (text, words) =>
    words.every((word) => text.toLowerCase().includes(word));

const onMost = (block) => block.tiles.reduce((a, t) => Math.max(a, t[2]), 0);
const onTiles = (block) => block.tiles.reduce((a, t) => a + t[1], 0);

function tensorsTable(rows, limit) {
    return table(
        [
            { name: "tensor", value: (r) => r.tensor },
            { name: "module", value: (r) => r.module || "" },
            { name: "type", class: "line", value: (r) => r.type },
            { name: "what", value: (r) => r.category },
            numbers("bytes", (r) => r.bytes, bytes),
            numbers("tiles", onTiles, count, "tiles on which it lies"),
            numbers("on one", onMost, bytes, "the most bytes on a tile"),
            {
                name: "alive",
                class: "line",
                value: (r) => r.birth,
                show: (r) =>
                    r.always ? "always" : `${Math.max(r.birth, 0)} to ${r.death}`,
            },
            { name: "line", class: "line", value: (r) => place(r) },
        ],
        rows,
        { order: 4, limit, choose: (r) => looked.show([r]) }
    );
}

function stepMatches(p, words) {
    return p.steps
        .map((s, number) => ({ ...s, number }))
        .filter((s) =>
            hasWords(
                [s.op, s.parts, s.tensor, s.module, place(s)].join(" "),
                words
            )
        );
}

function tensorMatches(p, words) {
    return p.blocks.filter(
        (b) =>
            b.bytes > 0 &&
            hasWords(
                [b.tensor, b.op, b.module, b.type, b.category, place(b)].join(
                    " "
                ),
                words
            )
    );
}

// Makes a field for words. find(words) returns the steps and the tensors that
// have them; tables of these appear below the field.
function searchSection(find, stepsTable, tensorsTable) {
    const box = el("div");
    const field = el("input", {
        type: "search",
        placeholder: "words",
        "aria-label": "search",
        style: "width:22em;max-width:100%",
        oninput: () => fill(),
    });

    function fill() {
        const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
        const { steps, tensors } = find(words);
        box.replaceChildren(
            ...(words.length
                ? [
                      el("h3", {}, `Steps: ${count(steps.length)}`),
                      steps.length ? stepsTable(steps) : "",
                  ]
                : []),
            el(
                "h3",
                {},
                `Tensors: ${count(tensors.length)} (a click shows where one ` +
                    "lies)"
            ),
            tensorsTable(tensors, words.length ? 12 : 8)
        );
    }
    fill();
    return section(
        "search",
        "Search: steps and tensors",
        el(
            "div",
            { class: "controls" },
            field,
            el(
                "span",
                { class: "soft" },
                "in names, ops, modules, types and source lines; all words " +
                    "must be there"
            )
        ),
        box
    );
}

function foundSteps(rows) {
    return table(
        [
            { name: "step", number: true, value: (r) => r.number },
            { name: "op", value: (r) => r.parts || r.op },
            { name: "tensor", value: (r) => r.tensor },
            { name: "module", value: (r) => r.module || "" },
            numbers("cycles", (r) => r.total * r.times, count),
            { name: "line", class: "line", value: (r) => place(r) },
        ],
        rows,
        { order: 4, limit: 12, choose: (r) => lookAt(r.number) }
    );
}
