// SPDX-License-Identifier: Apache-2.0
// modules.js - the program as a tree of the model's modules, each with its
// cycles and its weights, and beside it what flows from one to the next.

// Returns the path of a module in the tree.
const pathOf = (module) => (module || "").split("/").filter(Boolean);

// Makes a tree of all steps and weights: {name, depth, children, steps, and the
// sums that timeColumns shows}. Children are in the order of the run.
function moduleTree(p) {
    const make = (name, depth) => ({
        name,
        depth,
        open: depth < 1,
        children: new Map(),
        steps: [],
        blocks: [],
        ...Object.fromEntries(phases.map((phase) => [phase, 0])),
        total: 0,
        flops: 0,
        moved: 0,
        ns: 0,
        weights: 0,
    });
    const root = make(p.name, 0);
    // Returns the modules around a path, the root first.
    function around(path) {
        const found = [root];
        for (const name of path) {
            const now = found[found.length - 1];
            if (!now.children.has(name))
                now.children.set(name, make(name, now.depth + 1));
            found.push(now.children.get(name));
        }
        return found;
    }
    p.steps.forEach((s, i) => {
        const path = pathOf(s.module);
        const all = around(path.length ? path : ["(no module)"]);
        for (const m of all) {
            for (const phase of phases) m[phase] += s[phase] * s.times;
            m.total += s.total * s.times;
            m.flops += s.flops * s.times;
            m.moved += s.exchange_bytes * s.times;
            m.ns += Math.max(s.ns, 0);
            m.estimate = m.estimate || s.estimate;
            m.steps.push(i);
        }
        all[all.length - 1].own = (all[all.length - 1].own || []).concat(i);
    });
    p.blocks.forEach((b) => {
        if (!["variables", "constants"].includes(b.category)) return;
        for (const m of around(pathOf(b.module))) m.weights += b.bytes;
    });
    return root;
}

// Returns the modules that are shown, each with the steps that its row stands
// for: of an open module, those that are in none of its children.
function shownModules(root) {
    const rows = [];
    (function visit(m) {
        const open = m.open && m.children.size > 0;
        const steps = open ? m.own || [] : m.steps;
        rows.push({ module: m, steps });
        if (open) for (const child of m.children.values()) visit(child);
    })(root);
    return rows;
}

function modulesSection(p) {
    if (!p.steps.some((s) => s.module)) return null;
    const root = moduleTree(p);
    const columns = timeColumns(p, Math.max(root.total, 1), (r) => r.total);
    columns.push(numbers("weights", (r) => r.weights, bytes));
    const body = el("tbody");

    function toggle(m) {
        if (m.children.size) m.open = !m.open;
        else if (m.steps.length) lookAt(m.steps[0]);
        fill();
    }
    function openAll(depth) {
        (function visit(m) {
            m.open = m.depth < depth;
            for (const child of m.children.values()) visit(child);
        })(root);
        fill();
    }
    function line(row, flow) {
        const m = row.module;
        const mark = !m.children.size ? "" : m.open ? "▾ " : "▸ ";
        return el(
            "tr",
            {
                class:
                    "choice" +
                    (row.steps.includes(looked.step) ? " chosen" : ""),
                tabindex: 0,
                onclick: () => toggle(m),
                onkeydown: (event) => event.key === "Enter" && toggle(m),
            },
            el("td", { class: "flow" }, flow),
            el(
                "td",
                { class: "line", style: `padding-left:${m.depth + 0.5}em` },
                mark + m.name
            ),
            el("td", { class: "number" }, count(m.steps.length)),
            columns.map((c) =>
                el(
                    "td",
                    { class: c.number ? "number" : null },
                    c.show ? c.show(m) : String(c.value(m))
                )
            )
        );
    }
    function fill() {
        const rows = shownModules(root);
        const flows = drawFlows(p, rows);
        body.replaceChildren(...rows.map((row, i) => line(row, flows[i])));
    }
    looked.listeners.push(fill);
    fill();
    const deepest = Math.max(
        ...p.steps.map((s) => pathOf(s.module).length),
        1
    );
    return section(
        "modules",
        "Modules: the program as a tree, and what flows through it",
        el(
            "div",
            { class: "controls" },
            "open to depth",
            [0, 1, 2, 3, 4]
                .filter((depth) => depth <= deepest)
                .map((depth) =>
                    el("button", { onclick: () => openAll(depth) }, depth)
                ),
            el(
                "span",
                { class: "soft" },
                "A click opens a module, or selects its step. A line is a " +
                    "tensor that one row makes and others use; the tip " +
                    "names it."
            )
        ),
        el(
            "div",
            { class: "scroll tree" },
            el(
                "table",
                {},
                el(
                    "thead",
                    {},
                    el(
                        "tr",
                        {},
                        ["flow", "module", "steps"].map((name) =>
                            el(
                                "th",
                                {
                                    scope: "col",
                                    class: name === "steps" ? "number" : null,
                                },
                                name
                            )
                        ),
                        columns.map((c) =>
                            el(
                                "th",
                                {
                                    scope: "col",
                                    title: c.title,
                                    class: c.number ? "number" : null,
                                },
                                c.name
                            )
                        )
                    )
                ),
                body
            )
        )
    );
}
