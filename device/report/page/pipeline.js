// SPDX-License-Identifier: Apache-2.0
// pipeline.js - a pipeline as a whole: what a run of it takes and for what, its
// stages, its chips, and which stage ran which mini-batch when.

// Stages and updates, slot after slot: a slot lasts as long as its slowest chip.
function slotSpans(slots) {
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
        const what = s.kind === "update" ? "" : `, ${stageName(s.stage)}`;
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

function stageName(number) {
    const run = profile.pipeline_run;
    return run && run.stages[number]
        ? run.stages[number].name
        : `stage ${number}`;
}

function scheduleParts() {
    const slots = profile.pipeline;
    if (!slots || !slots.length) return [];
    const ipus = Math.max(...slots.map((s) => s.ipu)) + 1;
    const drawn = slotSpans(slots);
    const names = Array.from({ length: ipus }, (_, i) => `IPU ${i}`);
    return [
        el("h3", {}, "Which stage ran which mini-batch when"),
        el(
            "p",
            {},
            `${count(drawn.slots)} slots on ${ipus} IPUs, ` +
                `${count(drawn.end)} cycles of stages and updates; what passes ` +
                "between the IPUs, their meetings and the host's streams are " +
                "not drawn."
        ),
        lanes(names, drawn.spans, drawn.end, (cycles) => big(cycles, "")),
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
        card(time(seconds), `a run on the chips, ${count(run.total)} cycles`),
        run.measured
            ? card(
                  time(run.measured.run_ns / run.measured.runs / 1e9),
                  `a run here, mean of ${count(run.measured.runs)}`
              )
            : null,
        card(
            count(Math.round(run.mini_batches / seconds)),
            `mini-batches a second: ${count(run.mini_batches)} in a run`
        ),
        card(percent(run.work, run.total), "of it stages work"),
        card(percent(run.update, run.total), "of it are updates"),
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

const cyclesColumn = (name, of, title) => ({
    name,
    number: true,
    title,
    value: of,
    show: (r) => count(of(r)),
});
const bytesColumn = (name, of, title) => ({
    name,
    number: true,
    title,
    value: of,
    show: (r) => bytes(of(r)),
});

function stagesTable(run) {
    return table(
        [
            { name: "stage", value: (r) => r.name },
            { name: "IPU", number: true, value: (r) => r.ipu },
            cyclesColumn("forward", (r) => r.forward, "cycles"),
            cyclesColumn("backward", (r) => r.backward, "cycles"),
            cyclesColumn(
                "again",
                (r) => r.recompute,
                "cycles for activations that are computed again"
            ),
            bytesColumn(
                "kept",
                (r) => r.stash_bytes,
                "for the way back, of each mini-batch that waits"
            ),
            {
                name: "wait",
                number: true,
                title: "mini-batches that wait for the way back, at most",
                value: (r) => r.stash_depth,
            },
            bytesColumn("sent", (r) => r.sent_bytes, "to other IPUs"),
            {
                name: "here",
                number: true,
                title: "there and back, on this machine",
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
            cyclesColumn("update", (r) => r.update, "cycles"),
            cyclesColumn(
                "of it moves",
                (r) => r.offload,
                "cycles, to and from the memory beside the chip"
            ),
            bytesColumn("variables", (r) => r.variable_bytes, "on the chip"),
            bytesColumn("stashes", (r) => r.stash_bytes, "on the chip"),
            bytesColumn(
                "programs",
                (r) => r.program_bytes,
                "the most that one needs beside them"
            ),
            bytesColumn(
                "beside",
                (r) => r.streaming_bytes,
                "in the memory beside the chip"
            ),
            bytesColumn("fullest tile", (r) => r.tile_bytes),
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
    if (!run && !(profile.pipeline && profile.pipeline.length)) return null;
    if (!run) return section("pipeline", "Pipeline", ...scheduleParts());
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
        ...scheduleParts(),
        el("h3", {}, "Stages, of one mini-batch"),
        stagesTable(run),
        el("h3", {}, "IPUs"),
        chipsTable(run)
    );
}
