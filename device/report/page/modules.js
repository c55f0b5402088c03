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

// Makes the table of a tree of modules, and the buttons that open it. lead: names
// of columns before the module's name; leads(nodes) returns the cells of these
// for the nodes that are shown; chosen(node); choose(node) is called for one
// that has no children.
function treeTable(root, columns, options) {
    const body = el("tbody");
    const deepest = (function depth(m) {
        return most([m.depth, ...[...m.children.values()].map(depth)]);
    })(root);

    function toggle(m) {
        if (m.children.size) m.open = !m.open;
        else options.choose(m);
        fill();
    }
    function openAll(depth) {
        (function visit(m) {
            m.open = m.depth < depth;
            for (const child of m.children.values()) visit(child);
        })(root);
        fill();
    }
    function shown(m) {
        const below = m.open ? [...m.children.values()] : [];
        return [m, ...below.flatMap(shown)];
    }
    function line(m, leads) {
        const mark = !m.children.size ? "" : m.open ? "▾ " : "▸ ";
        return el(
            "tr",
            {
                class: "choice" + (options.chosen(m) ? " chosen" : ""),
                tabindex: 0,
                onclick: () => toggle(m),
                onkeydown: (event) => event.key === "Enter" && toggle(m),
            },
            leads,
            el(
                "td",
                { class: "line", style: `padding-left:${m.depth + 0.5}em` },
                mark + m.name
            ),
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
        const nodes = shown(root);
        const leads = options.leads ? options.leads(nodes) : [];
        body.replaceChildren(...nodes.map((m, i) => line(m, leads[i] || [])));
    }
    fill();
    const heads = [
        ...(options.lead || []).map((name) => ({ name })),
        { name: "module" },
        ...columns,
    ];
    const node = el(
        "div",
        {},
        el(
            "div",
            { class: "controls" },
            "open to depth",
            [0, 1, 2, 3, 4]
                .filter((depth) => depth <= deepest)
                .map((depth) =>
                    el("button", { onclick: () => openAll(depth) }, depth)
                ),
            el("span", { class: "soft" }, options.hint)
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
                        heads.map((c) =>
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
    node.fill = fill;
    return node;
}

// Returns the steps that a row stands for: of an open module, those that are in
// none of its children.
const ownSteps = (m) => (m.open && m.children.size ? m.own || [] : m.steps);

function modulesSection(p) {
    if (!p.steps.some((s) => s.module)) return null;
    const root = moduleTree(p);
    const node = treeTable(
        root,
        [
            numbers("steps", (r) => r.steps.length, count),
            ...timeColumns(p, Math.max(root.total, 1), (r) => r.total),
            numbers("weights", (r) => r.weights, bytes),
        ],
        {
            lead: ["flow"],
            leads: (nodes) =>
                drawFlows(
                    p,
                    nodes.map((m) => ({ module: m, steps: ownSteps(m) }))
                ).map((flow) => el("td", { class: "flow" }, flow)),
            chosen: (m) => ownSteps(m).includes(looked.step),
            choose: (m) => m.steps.length && lookAt(m.steps[0]),
            hint:
                "A click opens a module, or selects its step. A line is a " +
                "tensor that one row makes and others use; the tip names it.",
        }
    );
    looked.listeners.push(() => node.fill());
    return section(
        "modules",
        "Modules: the program as a tree, and what flows through it",
        node
    );
}
