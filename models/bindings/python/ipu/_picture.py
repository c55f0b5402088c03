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
    return (f"{'fits' if footprint.fits else 'does not fit'} on {footprint.target}: "
            f"{number(memory['fullest_tile_bytes'])} of {number(memory['bytes_per_tile'])} "
            f"bytes on the fullest tile; a run takes {number(cycles['total'])} cycles, "
            f"{1e3 * cycles['seconds']:.3f} ms")


def text_of(footprint):
    """Returns what ipu-run --fit prints."""
    of = footprint.memory["bytes_per_tile"]
    lines = [headline(footprint), f"  {'fullest tile':22} {'bytes':>12} {'percent':>7}"]
    for what, size in (*footprint.shares.items(), ("sum", sum(footprint.shares.values()))):
        lines.append(f"  {what:22} {size:12} {100 * size / of:7.1f}")
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


def svg_of(footprint):
    """Returns the picture, an SVG element."""
    memory, cycles = footprint.memory, footprint.cycles
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
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{below:.0f}" '
            f'viewBox="0 0 {WIDTH} {below:.0f}" font-family="sans-serif" font-size="11" '
            f'fill="currentColor">{"".join(parts)}</svg>')


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
