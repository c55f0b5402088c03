// SPDX-License-Identifier: Apache-2.0
// pipeline.js - a pipeline as a whole: the time of a run and its parts, the
// stages, the chips, and which stage ran which mini-batch when.

// Makes the spans of stages and updates, slot after slot: a slot lasts as long
// as its slowest chip.
function slotSpans(whole) {
    const slots = whole.pipeline;
    const last = Math.max(...slots.map((s) => s.slot));
    const work = new Map();
    const longest = new Array(last + 1).fill(0);
    const begin = [];
    const filled = new Map();
    let end = 0;
    for (const s of slots) {
        const at = `${s.slot} ${s.ipu}`;
        work.set(at, (work.get(at) || 0) + s.cycles);
    }
    for (const [at, cycles] of work) {
        const slot = Number(at.split(" ")[0]);
        longest[slot] = Math.max(longest[slot], cycles);
    }
    longest.forEach((cycles, slot) => {
        begin[slot] = end;
        end += cycles;
    });
    const spans = slots.map((s) => {
        const at = `${s.slot} ${s.ipu}`;
        const start = begin[s.slot] + (filled.get(at) || 0);
        filled.set(at, (filled.get(at) || 0) + s.cycles);
        const batch = s.mini_batch >= 0 ? s.mini_batch : "";
        const what = s.kind === "update" ? "" : `, ${stageName(whole, s.stage)}`;
        return {
            lane: s.ipu,
            colour: s.kind,
            start,
            end: start + s.cycles,
            label: `${s.kind[0].toUpperCase()}${batch}`,
            tip:
                `slot ${s.slot}, IPU ${s.ipu}${what}: ${s.kind}` +
                (s.mini_batch >= 0 ? ` of mini-batch ${s.mini_batch}` : "") +
                `\n${count(s.cycles)} cycles`,
            step: -1,
        };
    });
    return { spans, end, slots: last + 1 };
}

function stageName(whole, number) {
    const run = whole.pipeline_run;
    return run && run.stages[number]
        ? run.stages[number].name
        : `stage ${number}`;
}

const hasSchedule = (whole) => whole.pipeline && whole.pipeline.length > 0;

// Draws the schedule of a profile that has one, on a time scale that ends at
// `end`, or with its last slot.
function scheduleParts(whole, title, end) {
    if (!hasSchedule(whole)) return [];
    const ipus = most(whole.pipeline.map((s) => s.ipu)) + 1;
    const drawn = slotSpans(whole);
    const names = Array.from({ length: ipus }, (_, i) => `IPU ${i}`);
    return [
        el("h3", {}, title),
        el(
            "p",
            {},
            `${count(drawn.slots)} slots on ${ipus} IPUs, ` +
                `${count(drawn.end)} cycles of stages and updates; transfers ` +
                "between the IPUs, syncs and the host's streams are not drawn."
        ),
        lanes(names, drawn.spans, end || drawn.end, (n) => big(n, "")),
        key([
            ["forward", "F forward"],
            ["backward", "B backward"],
            ["recompute", "R recompute"],
            ["update", "U update"],
        ]),
    ];
}

function runCards(run) {
    const seconds = run.total / run.clock_hz;
    const fullest = run.ipus.reduce((a, b) =>
        b.tile_bytes > a.tile_bytes ? b : a
    );
    return el(
        "div",
        { class: "cards" },
        ...timeCards(seconds, run.total, run.measured, "chips"),
        card(
            count(Math.round(run.mini_batches / seconds)),
            `mini-batches a second: ${count(run.mini_batches)} in a run`
        ),
        card(percent(run.work, run.total), "of the run is work of stages"),
        card(percent(run.update, run.total), "of the run is updates"),
        card(
            percent(fullest.tile_bytes, fullest.bytes_per_tile),
            `of the fullest tile, of IPU ${fullest.ipu}: ` +
                `${bytes(fullest.tile_bytes)} of ` +
                bytes(fullest.bytes_per_tile)
        )
    );
}

function runPhases(run) {
    const phases = [
        ["compute", run.work, "stages"],
        ["exchange", run.exchange, "between IPUs"],
        ["sync", run.sync, "sync"],
        ["host", run.host, "host"],
        ["update", run.update, "updates"],
    ];
    return [
        bar(
            phases.map(([colour, cycles, name]) => [
                colour,
                cycles,
                `${name}: ${count(cycles)} cycles`,
            ])
        ),
        key(
            phases.map(([colour, cycles, name]) => [
                colour,
                `${name} ${time(cycles / run.clock_hz)} ` +
                    `(${percent(cycles, run.total)})`,
            ])
        ),
    ];
}

function stagesTable(run) {
    return table(
        [
            { name: "stage", value: (r) => r.name },
            { name: "IPU", number: true, value: (r) => r.ipu },
            numbers("forward", (r) => r.forward, count, "cycles"),
            numbers("backward", (r) => r.backward, count, "cycles"),
            numbers(
                "again",
                (r) => r.recompute,
                count,
                "cycles of activations that are computed again"
            ),
            numbers(
                "kept",
                (r) => r.stash_bytes,
                bytes,
                "stash for the backward pass, per mini-batch that waits"
            ),
            numbers(
                "wait",
                (r) => r.stash_depth,
                null,
                "most mini-batches that wait for the backward pass"
            ),
            numbers("sent", (r) => r.sent_bytes, bytes, "to other IPUs"),
            {
                name: "here",
                number: true,
                title: "forward and backward, measured on this machine",
                value: (r) => r.ns,
                show: (r) => (r.ns < 0 ? "" : time(r.ns / 1e9)),
            },
        ],
        run.stages,
        { limit: 64 }
    );
}

function chipsTable(run) {
    return table(
        [
            { name: "IPU", number: true, value: (r) => r.ipu },
            numbers("update", (r) => r.update, count, "cycles"),
            numbers(
                "moved",
                (r) => r.offload,
                count,
                "cycles that move data from and to streaming memory"
            ),
            numbers("variables", (r) => r.variable_bytes, bytes, "on the chip"),
            numbers("stashes", (r) => r.stash_bytes, bytes, "on the chip"),
            numbers(
                "programs",
                (r) => r.program_bytes,
                bytes,
                "the most that one program needs besides them"
            ),
            numbers(
                "streaming",
                (r) => r.streaming_bytes,
                bytes,
                "in streaming memory"
            ),
            numbers("fullest tile", (r) => r.tile_bytes, bytes),
            {
                name: "full",
                number: true,
                value: (r) => r.tile_bytes / r.bytes_per_tile,
                show: (r) => percent(r.tile_bytes, r.bytes_per_tile),
            },
        ],
        run.ipus,
        { limit: 64 }
    );
}

function pipelineSection() {
    const run = profile.pipeline_run;
    const schedule = scheduleParts(
        profile,
        "Which stage ran which mini-batch when"
    );
    if (!run && !schedule.length) return null;
    if (!run) return section("pipeline", "Pipeline", ...schedule);
    return section(
        "pipeline",
        `Pipeline: ${count(run.stages.length)} stages on ` +
            `${count(run.ipus.length)} IPUs`,
        runCards(run),
        el(
            "ul",
            {},
            run.derived.sentences.map((s) => el("li", {}, s))
        ),
        ...runPhases(run),
        ...schedule,
        el("h3", {}, "Stages, of one mini-batch"),
        stagesTable(run),
        el("h3", {}, "IPUs"),
        chipsTable(run)
    );
}
