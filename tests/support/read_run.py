# SPDX-License-Identifier: Apache-2.0
"""read_run.py FOLDER LOSSES RANKS EVERY TESTS - checks what --log-dir has of a
run, with the reader of read_logs.py: the three formats against each other, and
against the file of --losses, whose means over EVERY steps are the points. The
tags of evaluations begin with TESTS. Prints what there is, a line a kind."""
import csv, glob, json, math, sys

from read_logs import fields, records

folder, losses, ranks, every, tests = sys.argv[1:]
ranks, every = int(ranks), int(every)
each = [float(line.split()[1]) for line in open(losses)]
steps = list(range(every, len(each) + 1, every))
if steps[-1] != len(each):
    steps.append(len(each))
lines = [json.loads(x) for x in open(folder + '/log.jsonl', encoding='utf-8')]
scalars = {}
for x in lines:
    if 'value' in x:
        scalars.setdefault(x['tag'], {})[x['step']] = x['value']
texts = {x['tag']: x['text'] for x in lines if 'text' in x}
histograms = {(x['tag'], x['step']): x['histogram'] for x in lines if 'histogram' in x}

# The means over all ranks and steps.
assert list(scalars['train/loss']) == steps
for before, step in zip([0] + steps, steps):
    mean = sum(each[before:step]) / (step - before)
    assert math.isclose(scalars['train/loss'][step], mean, rel_tol=1e-6), step
assert list(scalars['train/learning_rate']) == steps
assert max(scalars[tests + '/loss']) == len(each)
assert 0 <= scalars[tests + '/accuracy'][len(each)] <= 1

# Times grow, and their sum is no more than the time that went by.
times = {t: v for t, v in scalars.items() if t.startswith('time/')}
assert set(times) == {'time/' + x for x in (
    'device', 'communication', 'update', 'data', 'checkpoint', 'evaluation', 'other')}
for tag, values in times.items():
    assert list(values) == steps
    if tag != 'time/other':
        assert list(values.values()) == sorted(values.values())
clock = [x['time'] for x in lines]
assert sum(v[steps[-1]] for v in times.values()) <= clock[-1] - clock[0] + 0.01
assert times['time/device'][steps[-1]] > 0

# A row for each rank, none of which waits longer than it takes.
for rank in range(ranks):
    waiting = scalars['ranks/%d/waiting' % rank]
    assert list(waiting) == steps and all(0 <= v < 1 for v in waiting.values())
    speed, = [v for t, v in scalars.items()
              if t.startswith('ranks/%d/' % rank) and t.endswith('_per_second')]
    assert list(speed) == steps and all(0 < v < 1e7 for v in speed.values())
assert not [t for t in scalars if t.startswith('ranks/%d/' % ranks)]
slow = [json.loads(x['text']) for x in lines if x.get('tag') == 'slowest step']
assert [math.ceil(s['step'] / every) for s in slow] == list(range(1, len(steps) + 1))
for s in slow:
    assert 0 <= s['rank'] < ranks
    assert 0 < sum(s[k] for k in ('device', 'update', 'data')) <= s['seconds'] * 1.01

rows = list(csv.DictReader(open(folder + '/scalars.csv', encoding='utf-8')))
table = {}
for row in rows:
    for tag, value in row.items():
        if tag not in ('step', 'time') and value:
            table.setdefault(tag, {})[int(row['step'])] = float(value)
assert table == scalars

name, = glob.glob(folder + '/events.out.tfevents.*')
kinds, events = {2: 0, 4: 0, 5: 0, 8: 0}, {}
graph = []
for event in map(fields, records(open(name, 'rb').read())):
    if 4 in event:
        graph = [fields(n) for n in fields(event[4][0])[1]]
    if 5 in event:
        value = fields(fields(event[5][0])[1][0])
        for kind in kinds:
            kinds[kind] += kind in value
        if 2 in value:
            events.setdefault(value[1][0].decode(), {})[event[2][0]] = value[2][0]
assert {t: list(v) for t, v in events.items()} == {t: list(v) for t, v in scalars.items()}
for tag, values in events.items():
    for step, value in values.items():
        assert math.isclose(value, scalars[tag][step], rel_tol=1e-6), tag

nodes = {n[1][0].decode(): [i.decode() for i in n.get(3, [])] for n in graph}
assert all(i in nodes for inputs in nodes.values() for i in inputs)
variables = {t.split('/', 1)[1] for t, _ in histograms if t.startswith('weights/')}
assert variables <= set(nodes) and 'loss' in nodes
used = {i for inputs in nodes.values() for i in inputs}
assert used | {'loss'} == set(nodes)  # everything leads to the loss
for (tag, step), h in sorted(histograms.items()):
    assert sum(h['counts']) == h['count'] > 0 and h['min'] <= h['max']
print('points', len(steps))
print('histograms', *sorted({s for _, s in histograms}))
print('weights', len(variables), sum(h['count'] for (t, s), h in histograms.items()
                                     if t.startswith('weights/') and s == max(
                                         x for _, x in histograms)) if histograms else 0)
print('gradients', *('%s %.5g' % (t.split('/', 1)[1], h['sum_squares'])
                     for (t, s), h in sorted(histograms.items())
                     if t.startswith('gradients/') and s == min(x for _, x in histograms)))
print('images', kinds[4])
print(texts.get('configuration', ''))
