// SPDX-License-Identifier: Apache-2.0
// base.js - the functions that all parts of the page share: elements, numbers,
// colours, tables that sort, drawings that follow the window, the tip under the
// mouse. It reads the profile, which lies in the page.

const profile = JSON.parse(document.getElementById("profile").textContent);

// ------------------------------------------------------------------- elements

// Makes an element: el("p", {class: "soft", onclick: f}, "text", el(...)).
function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
        else if (value === true) node.setAttribute(name, "");
        else if (value !== false && value != null)
            node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((c) => c != null && c !== ""));
    return node;
}

// The name space of SVG, which the page does not write out: it has no address
// in it.
const svg = Object.assign(document.createElement("div"), {
    innerHTML: "<svg></svg>",
}).firstChild.namespaceURI;

// Makes an element of a drawing in SVG.
function shape(tag, attributes, ...children) {
    const node = document.createElementNS(svg, tag);
    for (const [name, value] of Object.entries(attributes))
        node.setAttribute(name, value);
    node.append(...children);
    return node;
}

function section(id, title, ...children) {
    return el("section", { id }, el("h2", {}, title), ...children);
}

// -------------------------------------------------------------------- numbers

function scaled(value, step, units, digits) {
    let i = 0;
    while (Math.abs(value) >= step && i + 1 < units.length) {
        value /= step;
        i++;
    }
    const text = i ? value.toFixed(digits) : String(+value.toPrecision(4));
    return `${text} ${units[i]}`.trim();
}

const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], 1);
const big = (n, unit) =>
    scaled(n, 1000, ["", "k", "M", "G", "T", "P"].map((s) => s + unit), 2);
const count = (n) => n.toLocaleString("en-US");
function percent(part, all) {
    const value = all > 0 ? (100 * part) / all : 0;
    const small = Math.abs(value) < 0.1 && Math.abs(value) >= 0.001;
    return `${small ? value.toPrecision(1) : value.toFixed(1)} %`;
}

function time(seconds) {
    const units = ["s", "ms", "µs", "ns"];
    let i = 0;
    while (Math.abs(seconds) < 1 && seconds !== 0 && i < 3) {
        seconds *= 1000;
        i++;
    }
    return `${+seconds.toPrecision(3)} ${units[i]}`;
}

const cyclesTime = (p, cycles) => time(cycles / p.target.clock_hz);

function place(row) {
    return row.file ? `${row.file.replace(/.*\//, "")}:${row.line}` : "";
}

// -------------------------------------------------------------------- colours

const css = (name) =>
    getComputedStyle(document.documentElement)
        .getPropertyValue(`--${name}`)
        .trim();

const hex = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));

// Returns a function from 0..1 to a colour of the theme's scale.
function scale() {
    const stops = css("scale").split(/\s+/).map(hex);
    return (x) => {
        const at = Math.min(Math.max(x, 0), 1) * (stops.length - 1);
        const i = Math.min(Math.floor(at), stops.length - 2);
        const mix = stops[i].map((v, k) =>
            Math.round(v + (stops[i + 1][k] - v) * (at - i))
        );
        return `rgb(${mix.join(",")})`;
    };
}

function key(entries) {
    return el(
        "div",
        { class: "key" },
        entries.map(([name, text]) =>
            el(
                "span",
                {},
                el("i", { style: `background:var(--${name})` }),
                text
            )
        )
    );
}

// Draws a bar of parts: [name of the colour, size, text].
function bar(parts) {
    const all = parts.reduce((sum, part) => sum + part[1], 0) || 1;
    return el(
        "div",
        { class: "bar", role: "img", "aria-label": parts.map((p) => p[2]) },
        parts.map(([name, size, text]) =>
            el("div", {
                style:
                    `background:var(--${name});` +
                    `width:${(100 * size) / all}%`,
                title: text,
            })
        )
    );
}

// ------------------------------------------------------------------- drawings

const drawings = new Set();

// Makes a canvas of a height in pixels; draw(context, width, height) is called
// now and whenever the window or the theme changes.
function canvas(height, label, draw) {
    const node = el("canvas", { role: "img", "aria-label": label });
    node.redraw = () => {
        const width = node.clientWidth;
        if (!width) return;
        const tall = typeof height === "function" ? height(width) : height;
        const ratio = window.devicePixelRatio || 1;
        node.style.height = `${tall}px`;
        node.width = Math.round(width * ratio);
        node.height = Math.round(tall * ratio);
        const context = node.getContext("2d");
        context.scale(ratio, ratio);
        context.font = "12px system-ui, sans-serif";
        draw(context, width, tall);
    };
    drawings.add(node);
    return node;
}

function redrawAll() {
    for (const node of drawings)
        if (node.isConnected) node.redraw();
        else drawings.delete(node);
}

window.addEventListener("resize", redrawAll);
window
    .matchMedia("(prefers-color-scheme: dark)")
    .addEventListener("change", redrawAll);

const tip = el("div", { id: "tip", hidden: true, role: "status" });

// Shows the text that find(x, y) returns for a place of a canvas at the mouse.
function follow(node, find) {
    node.addEventListener("mousemove", (event) => {
        const box = node.getBoundingClientRect();
        const text = find(event.clientX - box.left, event.clientY - box.top);
        tip.hidden = !text;
        if (!text) return;
        tip.textContent = text;
        const left = Math.min(
            event.clientX + 14,
            window.innerWidth - tip.offsetWidth - 8
        );
        const below = event.clientY + 16;
        const top =
            below + tip.offsetHeight > window.innerHeight
                ? event.clientY - tip.offsetHeight - 10
                : below;
        tip.style.left = `${Math.max(left, 4)}px`;
        tip.style.top = `${Math.max(top, 4)}px`;
    });
    node.addEventListener("mouseleave", () => (tip.hidden = true));
}

// --------------------------------------------------------------------- tables

// Makes a column of numbers: sorted by of(row), printed by show or as it is.
function numbers(name, of, show, title) {
    return {
        name,
        number: true,
        title,
        value: of,
        show: show && ((r) => show(of(r))),
    };
}

// Makes a table. columns: {name, value(row) to sort by, show(row), number,
// title}. It draws the first `limit` rows, and more when asked.
function table(columns, rows, options = {}) {
    const limit = options.limit || 25;
    let shown = limit;
    let order = options.order === undefined ? -1 : options.order;
    let down = true;
    let sorted = rows;
    const body = el("tbody");
    const more = el("button", {
        onclick: () => {
            shown += 200;
            fill();
        },
    });

    function fill() {
        body.replaceChildren(...sorted.slice(0, shown).map(line));
        more.hidden = sorted.length <= shown;
        more.textContent = `${count(sorted.length - shown)} more rows`;
    }
    function line(row) {
        const choose = options.choose && (() => options.choose(row));
        return el(
            "tr",
            {
                class: [
                    choose ? "choice" : "",
                    options.chosen && options.chosen(row) ? "chosen" : "",
                ].join(" "),
                onclick: choose || (() => {}),
                tabindex: choose ? 0 : null,
                onkeydown: (event) =>
                    choose && event.key === "Enter" && choose(),
            },
            columns.map((c) =>
                el(
                    "td",
                    { class: c.number ? "number" : c.class },
                    c.show ? c.show(row) : String(c.value(row))
                )
            )
        );
    }
    function sort() {
        const c = columns[order];
        if (c) {
            const sign = down ? -1 : 1;
            sorted = rows.slice().sort((a, b) => {
                const x = c.value(a);
                const y = c.value(b);
                return x === y ? 0 : x < y ? -sign : sign;
            });
        }
        heads.forEach((head, i) =>
            head.setAttribute(
                "aria-sort",
                i !== order ? "none" : down ? "descending" : "ascending"
            )
        );
        heads.forEach((head, i) => {
            head.firstChild.textContent =
                columns[i].name + (i !== order ? "" : down ? " ▾" : " ▴");
        });
        fill();
    }
    const heads = columns.map((c, i) =>
        el(
            "th",
            { class: c.number ? "number" : null, scope: "col", title: c.title },
            el("button", {
                onclick: () => {
                    down = order === i ? !down : !!c.number;
                    order = i;
                    sort();
                },
            })
        )
    );
    sort();
    const node = el(
        "div",
        { class: "scroll" },
        el("table", {}, el("thead", {}, el("tr", {}, heads)), body),
        more
    );
    node.fill = fill;
    return node;
}

// -------------------------------------------------------------------- choices

function choice(label, entries, change) {
    const node = el(
        "select",
        { onchange: () => change(node.value) },
        entries.map(([value, text]) => el("option", { value }, text))
    );
    return el("label", {}, `${label} `, node);
}

// The selected step, and the parts of the page that describe it; and what shows
// a tensor on the maps of the tiles, given as a list with the block of each map.
const looked = { step: 0, listeners: [], show: () => {} };

function lookAt(step) {
    looked.step = step;
    for (const listener of looked.listeners) listener(step);
}
