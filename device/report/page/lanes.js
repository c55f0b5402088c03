// SPDX-License-Identifier: Apache-2.0
// lanes.js - draws spans of time in lanes, which can be zoomed and moved, and
// the timeline of a run.

// Draws lanes. spans: {lane, start, end, colour, label, tip, step}, sorted by
// start within a lane.
function lanes(names, spans, end, unit) {
    const left = 70;
    const tall = names.length > 16 ? 18 : 30;
    const height = names.length * tall + 24;
    const view = { from: 0, to: end || 1 };
    let drag = null;

    const node = canvas(height, "a timeline", (c, w, h) => {
        const per = (w - left) / (view.to - view.from);
        names.forEach((name, lane) => {
            c.fillStyle = css("soft");
            c.fillText(name, 0, lane * tall + tall / 2 + 4);
            c.fillStyle = css("line");
            c.fillRect(left, (lane + 1) * tall - 1, w - left, 0.5);
        });
        c.save();
        c.beginPath();
        c.rect(left, 0, w - left, h);
        c.clip();
        const colours = {};
        const ink = css("card");
        for (const s of spans) {
            if (s.end < view.from || s.start > view.to) continue;
            const x = left + (s.start - view.from) * per;
            const wide = (s.end - s.start) * per;
            colours[s.colour] = colours[s.colour] || css(s.colour);
            c.fillStyle = colours[s.colour];
            c.fillRect(
                x,
                s.lane * tall + 3,
                Math.max(wide > 3 ? wide - 0.6 : wide, 0.2),
                tall - 6
            );
            const at = Math.max(x, left) + 3;
            const room = Math.floor((Math.min(x + wide, w) - at - 2) / 6.4);
            if (room >= Math.min(s.label.length, 5)) {
                c.fillStyle = ink;
                c.fillText(
                    s.label.slice(0, room),
                    at,
                    s.lane * tall + tall / 2 + 4
                );
            }
        }
        c.restore();
        c.fillStyle = css("soft");
        for (const part of [0, 0.25, 0.5, 0.75, 1]) {
            c.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
            c.fillText(
                unit(view.from + part * (view.to - view.from)),
                left + part * (w - left),
                h - 5
            );
        }
    });

    const at = (x) =>
        view.from +
        ((x - left) / (node.clientWidth - left)) * (view.to - view.from);
    function show(from, to) {
        const span = Math.min(Math.max(to - from, end / 1e5), end || 1);
        view.from = Math.min(Math.max(from, 0), (end || 1) - span);
        view.to = view.from + span;
        node.redraw();
    }
    function zoom(factor, middle) {
        const span = (view.to - view.from) * factor;
        const part = (middle - view.from) / (view.to - view.from);
        show(middle - part * span, middle + (1 - part) * span);
    }
    function find(x, y) {
        const when = at(x);
        const lane = Math.floor(y / tall);
        const slack = (2 * (view.to - view.from)) / node.clientWidth;
        let near = null;
        for (const s of spans) {
            if (s.lane !== lane || s.start > when + slack) continue;
            if (s.start <= when && when < s.end) return s;
            if (s.end > when - slack) near = s;
        }
        return near;
    }
    follow(node, (x, y) => {
        const s = drag ? null : x >= left && find(x, y);
        return s ? s.tip : "";
    });
    node.addEventListener(
        "wheel",
        (event) => {
            if (!event.ctrlKey && !event.shiftKey) return;
            event.preventDefault();
            const by = event.deltaY || event.deltaX;
            zoom(by > 0 ? 1.25 : 0.8, at(event.offsetX));
        },
        { passive: false }
    );
    node.addEventListener("pointerdown", (event) => {
        drag = { x: event.offsetX, from: view.from, moved: false };
        node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", (event) => {
        if (!drag) return;
        const span = view.to - view.from;
        const by =
            ((event.offsetX - drag.x) / (node.clientWidth - left)) * span;
        if (Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
        if (drag.moved) show(drag.from - by, drag.from - by + span);
    });
    node.addEventListener("pointerup", (event) => {
        const s = drag && !drag.moved && find(event.offsetX, event.offsetY);
        drag = null;
        if (s && s.step >= 0) lookAt(s.step);
    });
    const middle = () => (view.from + view.to) / 2;
    const move = (part) => {
        const span = view.to - view.from;
        show(view.from + part * span, view.to + part * span);
    };
    return el(
        "div",
        {},
        el(
            "div",
            { class: "controls" },
            el("button", { onclick: () => zoom(0.5, middle()) }, "zoom in"),
            el("button", { onclick: () => zoom(2, middle()) }, "zoom out"),
            el("button", { onclick: () => move(-0.5) }, "◂"),
            el("button", { onclick: () => move(0.5) }, "▸"),
            el("button", { onclick: () => show(0, end) }, "all"),
            el(
                "span",
                { class: "soft" },
                "drag to move; the wheel with Ctrl or Shift zooms"
            )
        ),
        node
    );
}

// Makes the spans of a run: its phases one after the other, and the streams of
// I/O tiles in a lane of their own.
function runSpans(p) {
    const spans = [];
    const clock = { device: 0, host: 0 };
    const beside = p.target.io_tiles > 0;
    const all = p.cycles.total;

    function add(lane, colour, cycles, what, step) {
        if (cycles <= 0) return;
        const which = lane === 3 && beside ? "host" : "device";
        const start = clock[which];
        clock[which] += cycles;
        spans.push({
            lane,
            colour,
            start,
            end: start + cycles,
            label: what,
            tip:
                `${colour}: ${what}\n${count(cycles)} cycles, ` +
                `${cyclesTime(p, cycles)}, ${percent(cycles, all)} of the run`,
            step,
        });
    }
    for (const s of p.streams)
        if (s.kind === "input")
            add(3, "host", s.cycles, `input ${s.name}, ${bytes(s.bytes)}`, -1);
    p.steps.forEach((s, i) => {
        const times = s.times > 1 ? `, ${count(s.times)} times` : "";
        const what = `step ${i}, ${s.op} ${s.tensor}${times}`;
        add(2, "sync", s.sync * s.times, what, i);
        add(1, "exchange", s.exchange * s.times, what, i);
        add(0, "compute", s.compute * s.times, what, i);
        add(3, "host", s.host * s.times, what, i);
    });
    for (const s of p.streams)
        if (s.kind === "output")
            add(3, "host", s.cycles, `output ${s.name}, ${bytes(s.bytes)}`, -1);
    return { spans, end: Math.max(clock.device, clock.host) };
}
