// SPDX-License-Identifier: Apache-2.0
// vertices.js - the vertices of a program by their type, which is what one step
// computes: an op, or several that are fused. A step has a vertex for each
// context of each tile that computes; their code is on a tile once for each
// type.

function vertexTypes(p) {
    const types = new Map();
    for (const s of p.steps) {
        if (!s.busy_tiles) continue;
        const name = s.parts || s.op;
        let t = types.get(name);
        if (!t) {
            t = { name, steps: 0, vertices: 0, code: 0, exchange: 0, total: 0 };
            types.set(name, t);
        }
        t.steps++;
        t.vertices += s.busy_tiles * p.target.workers;
        t.code = Math.max(t.code, s.vertex_code_bytes || 0);
        t.exchange += s.exchange_code_bytes || 0;
        t.total += s.total * s.times;
    }
    return [...types.values()];
}

function verticesTable(p) {
    return table(
        [
            { name: "vertex", value: (r) => r.name },
            numbers("steps", (r) => r.steps, count),
            numbers(
                "vertices",
                (r) => r.vertices,
                count,
                "on all tiles, one for each context"
            ),
            numbers("code", (r) => r.code, bytes, "on each tile, once"),
            numbers(
                "exchange code",
                (r) => r.exchange,
                bytes,
                "on each tile, for all its steps that share none"
            ),
            numbers("cycles", (r) => r.total, count),
            numbers("share", (r) => r.total, (n) => percent(n, p.cycles.total)),
        ],
        vertexTypes(p),
        { order: 2, limit: 12 }
    );
}
