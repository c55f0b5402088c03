# SPDX-License-Identifier: Apache-2.0
"""
Pictures of what a program takes of a chip (program.Footprint): text, SVG and HTML.

The SVG has three parts: the bytes of each tile under the line of a tile's memory, what
the fullest tile holds, and the cycles of the steps, one after the other. It has no
script and needs nothing from elsewhere, so that notebooks show it as it is.
"""
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 720, 16, 16
INNER = WIDTH - LEFT - RIGHT
# Colours that people who do not see red and green alike can tell apart (Okabe, Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
PHASES = (("compute", COLOURS[0]), ("exchange", COLOURS[1]), ("sync", COLOURS[6]))
HOST = COLOURS[3]
MOST_STEPS = 2000


def number(value):
    """Returns a whole number with thousands apart."""
    return f"{int(value):,}"


def headline(footprint):
    memory, cycles = footprint.memory, footprint.cycles
    chips = f"{len(footprint.ipus)} IPUs of " if footprint.ipus else ""
    return (f"{'fits' if footprint.fits else 'does not fit'} on {chips}{footprint.target}: "
            f"{number(memory['fullest_tile_bytes'])} of {number(memory['bytes_per_tile'])} "
            f"bytes on the fullest tile; a {'batch' if chips else 'run'} takes "
            f"{number(cycles['total'])} cycles, {1e3 * cycles['seconds']:.3f} ms")


def pipeline_line(footprint):
    """Says what several chips do as a pipeline."""
    found = footprint.pipeline
    if isinstance(found, str):
        return f"as a pipeline: {found}"
    if "parts" not in found:
        return f"as a pipeline, a batch leaves every {1e3 * found['seconds']:.3f} ms"
    return (f"as a pipeline of {found['parts']} stages it "
            f"{'fits' if found['fits'] else 'does not fit'}: {number(found['tile_bytes'])} "
            f"bytes on the fullest tile, {1e3 * found['seconds']:.3f} ms for the batch in "
            f"{2 * found['parts']} parts")


def _chip_lines(footprint):
    """Yields a line for each chip, and those around them."""
    of, sharding = footprint.memory["bytes_per_tile"], footprint.sharding
    yield (f"between IPUs {number(sharding['inter_ipu_bytes'])} bytes pass, in "
           f"{number(sharding['exchange_cycles'])} cycles")
    yield (f"  {'IPU':>3} {'steps':>6} {'weight bytes':>14} {'tile bytes':>10} "
           f"{'percent':>7} {'ms':>10} {'bytes received':>14}")
    for i, chip in enumerate(footprint.ipus):
        yield (f"  {i:3} {chip['steps']:6} {chip['variable_bytes']:14} "
               f"{chip['tile_bytes']:10} {100 * chip['tile_bytes'] / of:7.1f} "
               f"{1e3 * chip['seconds']:10.3f} {chip['received_bytes']:14}")
    yield pipeline_line(footprint)


def _tile_lines(footprint):
    """Yields a line for each share of the fullest tile."""
    of = footprint.memory["bytes_per_tile"]
    yield f"  {'fullest tile':22} {'bytes':>12} {'percent':>7}"
    for what, size in (*footprint.shares.items(), ("sum", sum(footprint.shares.values()))):
        yield f"  {what:22} {size:12} {100 * size / of:7.1f}"


def text_of(footprint):
    """Returns what ipu-run --fit prints."""
    lines = [headline(footprint)]
    lines += _chip_lines(footprint) if footprint.ipus else _tile_lines(footprint)
    if footprint.remedies:
        lines.append(f"  {'remedy':12} {'parts':>5} {'fits':>5} {'tile bytes':>10} "
                     f"{'DRAM bytes':>12} {'ms':>10}")
    for name, found in footprint.remedies.items():
        lines.append(f"  {name:12} {found}" if isinstance(found, str) else
                     f"  {name:12} {found['parts']:5} {'yes' if found['fits'] else 'no':>5} "
                     f"{found['tile_bytes']:10} {found['remote_bytes']:12} "
                     f"{1e3 * found['seconds']:10.3f}")
    return "\n".join(lines)


# ------------------------------------------------------------------------- SVG

def _text(x, y, words, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def _box(x, y, width, height, colour, title):
    return (f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(width, 0.3):.2f}" height="{height}" '
            f'fill="{colour}"><title>{escape(title)}</title></rect>')


def _tiles(footprint, top, height):
    """Draws the bytes of all tiles; a column of a pixel has the fullest of its tiles."""
    bytes_of, limit = footprint.tiles(), footprint.memory["bytes_per_tile"]
    most = max(limit, int(bytes_of.max())) * 1.08
    columns = min(len(bytes_of), INNER)
    edges = [i * len(bytes_of) // columns for i in range(columns + 1)]
    path = [f"M{LEFT},{top + height}"]
    for i in range(columns):
        y = top + height * (1 - bytes_of[edges[i]:edges[i + 1]].max() / most)
        path.append(f"L{LEFT + i * INNER / columns:.1f},{y:.1f}"
                    f"H{LEFT + (i + 1) * INNER / columns:.1f}")
    path.append(f"V{top + height}Z")
    line = top + height * (1 - limit / most)
    colour = COLOURS[0] if footprint.fits else COLOURS[5]
    return [f'<path d="{"".join(path)}" fill="{colour}"/>',
            f'<path d="M{LEFT},{line:.1f}H{LEFT + INNER}" stroke="currentColor" '
            'stroke-dasharray="4 3" fill="none"/>',
            _text(LEFT + INNER, line - 4, f"{number(limit)} bytes: a tile's memory", "end"),
            _text(LEFT, top + height + 13, "tile 0"),
            _text(LEFT + INNER, top + height + 13, f"tile {len(bytes_of) - 1}", "end")]


def _legend(rows, top):
    """Draws coloured squares with words, in lines that are not longer than the picture.
    Returns them, and the place below."""
    drawn, x, y = [], LEFT, top
    for words, colour in rows:
        width = 18 + 6.3 * len(words)
        if x + width > LEFT + INNER:
            x, y = LEFT, y + 16
        drawn += [_box(x, y, 10, 10, colour, words), _text(x + 14, y + 9, words)]
        x += width + 8
    return drawn, y + 16


def _shares(footprint, top):
    """Draws what the fullest tile holds."""
    total = max(sum(footprint.shares.values()), 1)
    x, drawn, rows = LEFT, [], []
    for (what, size), colour in zip(footprint.shares.items(), COLOURS):
        width = INNER * size / total
        if size:
            drawn.append(_box(x, top, width, 18, colour, f"{what}: {number(size)} bytes"))
            rows.append((f"{what} {number(size)}", colour))
        x += width
    legend, below = _legend(rows, top + 24)
    return drawn + legend, below


def _steps(footprint, top):
    """Draws the cycles of the steps, one after the other, by phases, and behind them
    those of the host's streams."""
    steps, host = footprint.steps(), footprint.cycles["host"]
    total = max(sum(step["total_cycles"] for step in steps) + host, 1)
    if len(steps) > MOST_STEPS:  # those that take most, in their order
        least = sorted(step["total_cycles"] for step in steps)[-MOST_STEPS]
        steps = [step for step in steps if step["total_cycles"] >= least]
    x, drawn = LEFT, []
    for step in steps:
        title = (f"{step['op']} {step['tensor'] or ''}: {number(step['total_cycles'])} cycles, "
                 f"{100 * step['total_cycles'] / total:.1f} %")
        start = x
        for phase, colour in PHASES:
            width = INNER * step[f"{phase}_cycles"] / total
            if width > 0:
                drawn.append(_box(x, top, width, 26, colour, f"{title} ({phase})"))
            x += width
        if x - start > 6.5 * len(step["op"]) + 4:
            drawn.append(f'<g fill="#fff">{_text((start + x) / 2, top + 17, step["op"], "middle")}'
                         "</g>")
    drawn.append(_box(x, top, INNER * host / total, 26, HOST,
                      f"inputs, outputs and host calls: {number(host)} cycles"))
    sums = {phase: sum(step[f"{phase}_cycles"] for step in steps) for phase, _ in PHASES}
    legend, below = _legend([(f"{phase} {number(sums[phase])} cycles", colour)
                             for phase, colour in PHASES] +
                            [(f"host {number(host)} cycles", HOST)], top + 32)
    return drawn + legend, below


def _chips(footprint, top):
    """Draws a line for each chip: the bytes of its fullest tile beside a tile's memory, and
    its time. Returns them, and the place below."""
    of = footprint.memory["bytes_per_tile"]
    most = max(of, max(chip["tile_bytes"] for chip in footprint.ipus))
    slowest = max(max(chip["cycles"] for chip in footprint.ipus), 1)
    half, y, drawn = (INNER - 60) / 2, top + 14, [
        _text(LEFT + 50, top + 6, "bytes of the fullest tile"),
        _text(LEFT + 60 + INNER / 2, top + 6, "time")]
    for i, chip in enumerate(footprint.ipus):
        full = chip["tile_bytes"] > of
        drawn += [_text(LEFT, y + 10, f"IPU {i}"),
                  _box(LEFT + 50, y, (half - 30) * chip["tile_bytes"] / most, 12,
                       COLOURS[5] if full else COLOURS[0],
                       f"IPU {i}: {number(chip['tile_bytes'])} bytes on the fullest tile, "
                       f"{number(chip['variable_bytes'])} bytes of weights"),
                  _box(LEFT + 60 + INNER / 2, y, (half - 100) * chip["cycles"] / slowest, 12,
                       COLOURS[2], f"IPU {i}: {number(chip['cycles'])} cycles in "
                       f"{chip['steps']} steps"),
                  _text(LEFT + 64 + INNER / 2 + (half - 100) * chip["cycles"] / slowest, y + 10,
                        f"{1e3 * chip['seconds']:.3f} ms")]
        y += 16
    line = LEFT + 50 + (half - 30) * of / most
    drawn.append(f'<path d="M{line:.1f},{top + 10}V{y}" stroke="currentColor" '
                 'stroke-dasharray="4 3" fill="none"/>')
    return drawn + [_text(LEFT, y + 14, pipeline_line(footprint))], y + 22


def _svg(parts, height):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
            f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" font-size="11" '
            f'fill="currentColor">{"".join(parts)}</svg>')


def svg_of(footprint):
    """Returns the picture, an SVG element."""
    memory, cycles = footprint.memory, footprint.cycles
    if footprint.ipus:
        drawn, below = _chips(footprint, 40)
        return _svg([_text(LEFT, 18, headline(footprint), weight="bold"), *drawn], below)
    parts = [_text(LEFT, 18, headline(footprint).split(";")[0], weight="bold")]
    parts += _tiles(footprint, 30, 110)
    parts.append(_text(LEFT, 178, f"tile {memory['fullest_tile']}, the fullest, at step "
                       f"{memory['fullest_step']} of {memory['steps']}: "
                       f"{number(memory['fullest_tile_bytes'])} bytes", weight="bold"))
    drawn, below = _shares(footprint, 186)
    parts += drawn
    parts.append(_text(LEFT, below + 14, f"a run: {number(cycles['total'])} cycles, "
                       f"{1e3 * cycles['seconds']:.3f} ms at the modelled clock", weight="bold"))
    drawn, below = _steps(footprint, below + 22)
    parts += drawn
    return _svg(parts, below)


def html_of(footprint):
    """Returns the picture, and below it a table of the remedies."""
    rows = []
    for name, found in footprint.remedies.items():
        if isinstance(found, str):
            cells = f'<td colspan="5">{escape(found)}</td>'
        else:
            cells = "".join(f'<td align="right">{each}</td>' for each in (
                found["parts"], "yes" if found["fits"] else "no", number(found["tile_bytes"]),
                number(found["remote_bytes"]), f"{1e3 * found['seconds']:.3f}"))
        rows.append(f'<tr><th align="left">{escape(name)}</th>{cells}</tr>')
    table = ('<table style="font: 12px sans-serif; border-spacing: 10px 2px">'
             "<tr><th align='left'>remedy</th><th>parts</th><th>fits</th><th>tile bytes</th>"
             f"<th>DRAM bytes</th><th>ms</th></tr>{''.join(rows)}</table>" if rows else "")
    return f"<div>{svg_of(footprint)}{table}</div>"
