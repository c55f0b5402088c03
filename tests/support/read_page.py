# SPDX-License-Identifier: Apache-2.0
"""read_page.py FOLDER - reads the log.html of a log with parsers of its own,
and compares it with log.jsonl: curves point by point through the labels of
their axes, the parts of the time, ranks, slow steps, settings. Prints the
headings. The page must be XML, refer to nothing, and have no script."""
import html.parser, json, math, re, sys
import xml.etree.ElementTree as xml

folder = sys.argv[1]
text = open(folder + '/log.html', encoding='utf-8').read()
lines = [json.loads(x) for x in open(folder + '/log.jsonl', encoding='utf-8')]
for i, x in enumerate(lines):
    if 'session' in x:  # it has removed what was logged of later steps
        lines[:i] = [y if y['step'] < x['step'] else {'step': 0}
                     for y in lines[:i]]
points = {}
for x in lines:
    if 'value' in x:
        value = math.nan if x['value'] is None else x['value']
        points.setdefault(x['tag'], []).append((x['step'], value))


class Tags(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        assert tag not in ('script', 'link', 'img', 'iframe', 'object'), tag
        for name, value in attributes:
            assert name not in ('src', 'href', 'onclick') and 'url(' not in value


Tags().feed(text)
assert 'url(' not in text and '@import' not in text and 'prefers-color-scheme' in text
root = xml.fromstring(text)


def words(element):
    return ''.join(element.itertext()).strip()


def number(label):
    scale = {'k': 1e3, 'M': 1e6, 'G': 1e9}.get(label[-1], 1)
    return float(label.rstrip('kMG')) * scale


def line_through(ticks):
    """The function that maps places to values, by the first and last tick."""
    (a, x), (b, y) = ticks[0], ticks[-1]
    return lambda at: x + (at - a) * (y - x) / (b - a)


def check_figure(figure, log=points):
    svg = figure.find('svg')
    width, height = map(float, svg.get('viewBox').split()[2:])
    keys = [words(s).rsplit(' ', 1) for s in figure.findall('figcaption/span')
            if not s.get('class')]
    logarithmic = '(logarithmic)' in words(figure.find('figcaption'))
    change = math.log10 if logarithmic else lambda v: v
    left = [(float(t.get('y')) - 4, change(number(t.text)))
            for t in svg.findall('text') if t.get('class') == 'left']
    below = [(float(t.get('x')), number(t.text)) for t in svg.findall('text')
             if t.get('class') == 'below' and t.text != 'step']
    assert 2 <= len(left) <= 12 and 1 <= len(below) <= 12
    assert all(20 < b[0] - a[0] for a, b in zip(below, below[1:]))
    paths = svg.findall('path')
    assert len(paths) == len(keys)
    for (tag, last), path in zip(keys, paths):
        logged = log.pop(tag)
        value = logged[-1][1]
        assert last == 'none' if math.isnan(value) else math.isclose(
            number(last), value, rel_tol=1e-3), (tag, last, value)
        drawn = [(float(x), float(y)) for x, y in
                 re.findall(r'[ML]([-0-9.]+) ([-0-9.]+)', path.get('d'))]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in drawn)
        finite = [p for p in logged if math.isfinite(p[1])]
        if len(below) < 2 or not finite:
            continue
        to_step, to_value = line_through(below), line_through(left)
        unit = abs(to_value(1) - to_value(0)), abs(to_step(1) - to_step(0))
        if len(logged) <= 400:
            assert len(drawn) == len(finite), tag
            assert path.get('d').count('M') == 1 + sum(
                math.isnan(a[1]) and math.isfinite(b[1])
                for a, b in zip(logged[1:], logged[2:]))
        for place, wanted in zip(drawn, finite) if len(drawn) == len(finite) else ():
            assert abs(to_step(place[0]) - wanted[0]) <= unit[1], (tag, place, wanted)
            assert abs(to_value(place[1]) - change(wanted[1])) <= unit[0], (
                tag, place, wanted)
        values = [change(p[1]) for p in finite]
        ys = [to_value(y) for _, y in drawn]  # no peak is lost
        assert abs(min(ys) - min(values)) <= unit[0]
        assert abs(max(ys) - max(values)) <= unit[0]


body = root.find('body')
section, tables = None, {}
for element in body:
    if element.tag == 'h2':
        section = element.text
    for figure in element.iter('figure'):
        if section == 'Curves':
            check_figure(figure)
        elif figure.find('figcaption') is not None:
            check_figure(figure, dict(points))
        else:
            rows = [[words(c) for c in row] for row in figure.iter('tr')]
            tables[section] = rows[1:]
            bars = [r for r in figure.iter('rect') if r.get('class') != 'empty']
            assert all(0 <= float(r.get('width')) <= 1000 for r in bars)

times = {t[5:]: v[-1][1] for t, v in points.items() if t.startswith('time/')}
whole = sum(times.values())
assert [r[0] for r in tables.get('Where the time went', [])] == list(times)
for name, _, share in tables.get('Where the time went', []):
    assert abs(float(share[:-2]) - 100 * times[name] / whole) < 0.06
ranks = {}
for tag, values in points.items():
    if tag.startswith('ranks/'):
        _, rank, what = tag.split('/')
        mean = sum(v for _, v in values) / len(values)
        ranks.setdefault(rank, {})[what == 'waiting'] = mean
assert [r[0] for r in tables.get('Ranks', [])] == list(ranks)
for rank, speed, _, waits in tables.get('Ranks', []):
    assert math.isclose(number(speed), ranks[rank][False], rel_tol=1e-3)
    assert abs(float(waits[:-2]) - 100 * ranks[rank][True]) < 0.06
slow = [json.loads(x['text']) for x in lines if x.get('tag') == 'slowest step']
slow.sort(key=lambda s: -s['seconds'])
for row, step in zip(tables.get('What was slow', []), slow):
    assert row[:2] == [str(step['step']), str(step['rank'])], (row, step)
    assert abs(float(row[3].split()[0]) - step['seconds'] / step['mean']) < 0.06
settings = [x['text'] for x in lines if x.get('tag') == 'configuration']
if settings and settings[-1].startswith('|'):
    wanted = [[c.strip() for c in row.strip('|').split('|')]
              for row in settings[-1].strip().split('\n')[2:]]
    assert tables['Configuration'] == wanted, (tables['Configuration'], wanted)
assert not [t for t in points if not t.startswith(('time/', 'ranks/'))], points
print('\n'.join(h.text for h in body.findall('h2')))
