# SPDX-License-Identifier: Apache-2.0
"""Reads the three files of tests/unit/train_log.c, and compares them with what
it logs. Nothing of the project is used: the checksum is computed bit by bit."""
import csv, glob, json, math, struct, sys, zlib

folder = sys.argv[1]


def crc32c(data):
    x = 0xFFFFFFFF
    for byte in data:
        x ^= byte
        for _ in range(8):
            x = x >> 1 ^ (0x82F63B78 if x & 1 else 0)
    x ^= 0xFFFFFFFF
    return ((x >> 15 | x << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, check = struct.unpack_from('<QI', data, at)
        assert check == crc32c(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert len(body) == length
        assert struct.unpack_from('<I', data, at + 12 + length)[0] == crc32c(body)
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from('<d', data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from('<f', data, at)[0], at + 4
        else:
            assert kind == 2
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def doubles(data):
    return list(struct.unpack('<%dd' % (len(data) // 8), data))


def check_png(data, pixels):
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, chunks = 8, {}
    while at < len(data):
        size, name = struct.unpack_from('>I4s', data, at)
        body = data[at + 8:at + 8 + size]
        check, = struct.unpack_from('>I', data, at + 8 + size)
        assert check == zlib.crc32(name + body)
        chunks[name] = body
        at += 12 + size
    assert list(chunks) == [b'IHDR', b'IDAT', b'IEND']
    assert struct.unpack('>IIBBBBB', chunks[b'IHDR']) == (2, 3, 8, 2, 0, 0, 0)
    rows = zlib.decompress(chunks[b'IDAT'])
    assert rows == b''.join(b'\0' + pixels[6 * y:6 * y + 6] for y in range(3))


def check_histogram(low, high, count, total, squares, limits, counts):
    values = [-2.5, 0.0, 0.0, 1e-13, 1.0, 1.05, 7e10]
    values = [struct.unpack('f', struct.pack('f', x))[0] for x in values]
    assert (low, high, count) == (min(values), max(values), len(values))
    assert math.isclose(total, sum(values))
    assert math.isclose(squares, sum(x * x for x in values))
    assert len(limits) == len(counts) and sum(counts) == len(values)
    assert limits[-1] == sys.float_info.max and limits == sorted(limits)
    below = -math.inf
    for limit, number in zip(limits, counts):
        assert number == sum(below <= x < limit for x in values)
        below = limit
    assert 0.0 in limits and 1e-12 in limits
    assert not any(a == b == 0 for a, b in zip(counts, counts[1:]))


def check_events():
    name, = glob.glob(folder + '/events.out.tfevents.*')
    events = [fields(r) for r in records(open(name, 'rb').read())]
    assert events[0][3] == [b'brain.Event:2'] and 2 not in events[0]
    assert fields(events[1][7][0])[1] == [1] and events[1][2] == [0]
    times = [e[1][0] for e in events]
    assert times[0] > 1.7e9 and max(times) - min(times) < 600
    scalars = []
    for event in events[2:]:
        if 4 in event:
            nodes = [fields(n) for n in fields(event[4][0])[1]]
            assert nodes == [{1: [b'a/x'], 2: [b'Input']},
                             {1: [b'a/y'], 2: [b'Relu'], 3: [b'a/x']}]
            continue
        value = fields(fields(event[5][0])[1][0])
        tag, step = value[1][0].decode(), event[2][0]
        if 2 in value:
            scalars.append((tag, step, value[2][0]))
        elif 4 in value:
            image = fields(value[4][0])
            assert (tag, step) == ('image', 5)
            assert [image[i] for i in (1, 2, 3)] == [[3], [2], [3]]
            check_png(image[4][0], bytes(range(200, 218)))
        elif 5 in value:
            h = fields(value[5][0])
            assert (tag, step) == ('weights', 4)
            check_histogram(*(h[i][0] for i in range(1, 6)),
                            doubles(h[6][0]), doubles(h[7][0]))
        else:
            tensor = fields(value[8][0])
            assert (tag, step) == ('config', 6)
            assert tensor[1] == [7]
            assert tensor[8] == ['"a"\n|b| ü'.encode()]
            assert fields(fields(value[9][0])[1][0])[1] == [b'text']
    check_scalars(scalars, 1e-6)


def check_scalars(found, tolerance):
    wanted = [('loss, "mean"', s, 1 / (s + 3)) for s in range(3000)]
    wanted += [('acc/ü', s, s / 7) for s in range(2990, 3000)]
    wanted += [('bad', 3000, math.nan)]
    order = lambda x: (x[1], x[0])
    assert len(found) == len(wanted)
    for a, b in zip(sorted(found, key=order), sorted(wanted, key=order)):
        assert a[:2] == b[:2], (a, b)
        assert (math.isnan(a[2]) and math.isnan(b[2])
                or abs(a[2] - b[2]) <= tolerance * abs(b[2])), (a, b)


def check_csv():
    rows = list(csv.reader(open(folder + '/scalars.csv', encoding='utf-8')))
    head = rows.pop(0)
    assert head == ['step', 'time', 'loss, "mean"', 'acc/ü', 'bad']
    assert len(rows) == 3001 and all(len(r) == 5 for r in rows)
    check_scalars([(tag, int(row[0]), float(text)) for row in rows
                   for tag, text in zip(head[2:], row[2:]) if text], 0)


def check_lines():
    lines = [json.loads(line)
             for line in open(folder + '/log.jsonl', encoding='utf-8')]
    assert lines[0]['session'] == 'start' and lines[0]['step'] == 0
    by = {k: [x for x in lines if k in x]
          for k in ('value', 'histogram', 'image', 'text')}
    check_scalars([(x['tag'], x['step'],
                    math.nan if x['value'] is None else x['value'])
                   for x in by['value']], 0)
    h = by['histogram'][0]['histogram']
    check_histogram(*(h[k] for k in ('min', 'max', 'count', 'sum',
                                     'sum_squares', 'limits', 'counts')))
    assert by['image'][0]['image'] == [3, 2, 3]
    assert by['text'][0]['text'] == '"a"\n|b| ü'


if __name__ == '__main__':
    check_events()
    check_csv()
    check_lines()
