# SPDX-License-Identifier: Apache-2.0
"""
Models of ONNX files from Python: ONNX's own tests of each operator give the outputs that
they should; and mistakes.

    every_onnx.py FOLDER_OF_THE_PACKAGES
"""
import collections
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from xml.etree import ElementTree

sys.path.insert(0, sys.argv[1])

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ipu

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")


def raises(kind, words, call):
    """Expects an exception of exactly this class, whose text has the words."""
    try:
        call()
    except kind as error:
        assert type(error) is kind and words in str(error), repr(error)
        return error
    raise AssertionError(f"no {kind.__name__}: {words}")


def read(path):
    return numpy_helper.to_array(onnx.load_tensor(str(path)))


def floats(bits):
    """Returns bfloat16 as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32) if bits.dtype == "u2" else bits


def same(found, want, dtype):
    rtol = 1e-3
    if dtype == "bfloat16":  # ONNX cuts it off, the device rounds it
        found, want, rtol = floats(found), floats(want), 2 ** -7
    assert found.shape == want.shape, (found.shape, want.shape)
    if want.dtype.kind == "f":
        return np.allclose(found, want, rtol=rtol, atol=1e-5, equal_nan=True)
    return np.array_equal(found, want)


def passes(case):
    """Runs a folder of ONNX's: True or False, or why it is refused."""
    try:
        model = ipu.load_onnx(case / "model.onnx")
        for data in sorted(case.glob("test_data_set_*")):
            count = len(list(data.glob("input_*.pb")))
            inputs = [read(data / f"input_{i}.pb") for i in range(count)]
            found = model(*inputs)
            found = found if isinstance(found, tuple) else (found,)
            for i, array in enumerate(found):
                if not same(array, read(data / f"output_{i}.pb"), model.outputs[i].dtype):
                    return False
    except (ipu.Error, TypeError, ValueError) as error:
        return str(error)
    return True


def check_cases():
    """As many pass as of ipu-run, which reads the same files in C."""
    results = {case.name: passes(case) for case in sorted((DATA / "node").iterdir())
               if not case.name.startswith(("test_sequence", "test_optional"))}
    failed = [name for name, found in results.items() if found is False]
    # Bernoulli's outputs were drawn by numpy (check_random).
    failed = [name for name in failed if "bernoulli" not in name]
    assert failed == ["test_adam_multiple"], failed
    count = collections.Counter(type(found) for found in results.values())
    refused = [name for name, found in results.items() if isinstance(found, str)]
    assert sum(found is True for found in results.values()) >= 850, (
        count, [(n, results[n]) for n in refused])


def model_file(folder, nodes, inputs, outputs, initializers=()):
    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)
    path = os.path.join(folder, "model.onnx")
    onnx.save(helper.make_model(helper.make_graph(
        nodes, "g", [value(*each) for each in inputs], [value(*each) for each in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers]),
        opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


def mlp(folder):
    """A model with an open batch, and what it computes."""
    rng = np.random.default_rng(3)
    w, b = rng.normal(size=(6, 4)).astype("f"), rng.normal(size=4).astype("f")
    path = model_file(folder, [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"])],
        [("x", TensorProto.FLOAT, ["n", 6])], [("y", TensorProto.FLOAT, ["n", 4])],
        [("w", w), ("b", b)])
    return path, lambda x: np.maximum(x @ w + b, 0)


def check_batches(folder):
    path, want = mlp(folder)
    model = ipu.load_onnx(path)
    assert model.inputs == [("x", "float32", ("n", 6))], model.inputs
    assert "x float32['n', 6] -> y float32" in repr(model), repr(model)
    for n in (1, 5, 2, 5):
        x = np.random.default_rng(n).normal(size=(n, 6)).astype("f")
        assert np.allclose(model(x), want(x), atol=1e-5)
        assert np.allclose(model.run(x=x)["y"], want(x), atol=1e-5)
        # What lies in another order in memory is the same.
        assert np.allclose(model(np.asfortranarray(x)), want(x), atol=1e-5)
    x = np.random.default_rng(9).normal(size=(21, 6)).astype("f")
    assert np.allclose(model.predict(x, batch_size=8), want(x), atol=1e-5)
    assert np.allclose(model([[1, 2, 3, 4, 5, 6]]), want(np.arange(1, 7, dtype="f")[None]))
    model.close()
    model.close()
    assert np.allclose(model(x), want(x), atol=1e-5)


def check_fixed(folder):
    """predict fills the last batch of a model whose batches have one size."""
    path = model_file(folder, [helper.make_node("Neg", ["x"], ["y"])],
                      [("x", TensorProto.INT32, [4, 2])], [("y", TensorProto.INT32, [4, 2])])
    x = np.arange(22, dtype=np.int32).reshape(11, 2)
    assert np.array_equal(ipu.load_onnx(path).predict(x), -x)


def check_bound(folder):
    """An input that decides a shape is part of the program, and can change."""
    path = model_file(folder, [helper.make_node("Reshape", ["x", "s"], ["y"])],
                      [("x", TensorProto.FLOAT, [6]), ("s", TensorProto.INT64, [2])],
                      [("y", TensorProto.FLOAT, [None, None])])
    model, x = ipu.load_onnx(path), np.arange(6, dtype="f")
    for shape in ((2, 3), (3, 2), (2, 3)):
        assert np.array_equal(model(x, np.array(shape)), x.reshape(shape))


def check_threads(folder):
    """Threads that share a model take turns; those with one each run side by side."""
    path, want = mlp(folder)
    shared, wrong, ended = ipu.load_onnx(path), [], []

    def work(number):
        own = ipu.load_onnx(path)
        for i in range(20):
            # More shapes than a model keeps programs for.
            x = np.full((1 + (3 * number + i) % 12, 6), number + i, "f")
            for model in (shared, own):
                if not np.allclose(model(x), want(x), atol=1e-4):
                    wrong.append((number, i))
        ended.append(number)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(ended) == 4, (wrong, ended)


def check_mistakes(folder):
    path, _ = mlp(folder)
    model, x = ipu.load_onnx(path), np.zeros((2, 6), "f")
    raises(TypeError, "input 'x' is float64, the model takes float32",
           lambda: model(x.astype("d")))
    raises(ValueError, "input 'x' has the shape [2, 5], the model takes ['n', 6]",
           lambda: model(x[:, :5]))
    raises(ValueError, "input 'x' has the shape [6], the model takes", lambda: model(x[0]))
    raises(ValueError, "there is no input 'z': the model takes x", lambda: model.run(z=x))
    raises(ValueError, "input 'x' is not given", model.run)
    raises(TypeError, "2 arrays for a model of 1 inputs", lambda: model(x, x))
    found = raises(ipu.Error, "'mk9'", lambda: ipu.load_onnx(path, "mk9")(x))
    assert found.status is ipu.Status.NAME
    found = raises(ipu.Error, "absent.onnx", lambda: ipu.load_onnx(folder + "/absent.onnx"))
    assert found.status is ipu.Status.DATA
    text = os.path.join(folder, "text.onnx")
    pathlib.Path(text).write_text("this is no ONNX")
    assert text in str(raises(ipu.Error, "", lambda: ipu.load_onnx(text)))
    raises(TypeError, "", lambda: ipu.load_onnx(3))
    raises(ValueError, "holds a NUL", lambda: ipu.load_onnx("a\0b"))
    bad = model_file(folder, [helper.make_node("NonMaxSuppression", ["b", "s"], ["y"], "nms")],
                     [("b", TensorProto.FLOAT, [1, 2, 4]), ("s", TensorProto.FLOAT, [1, 1, 2])],
                     [("y", TensorProto.INT64, [None, 3])])
    raises(ipu.Error, "node 'nms' (NonMaxSuppression)", lambda: ipu.load_onnx(bad)(
        np.zeros((1, 2, 4), "f"), np.zeros((1, 1, 2), "f")))


def check_chip(folder):
    """What a model takes of a chip, and its profile."""
    path, _ = mlp(folder)
    model = ipu.load_onnx(path)
    small, large = model.footprint(batch=1), model.footprint(batch=64)
    assert small and large and "fits on mk2" in str(small)
    assert sum(small.shares.values()) == small.memory["fullest_tile_bytes"]
    assert small.tiles().max() == small.memory["fullest_tile_bytes"]
    assert sum(s["total_cycles"] for s in large.steps()) > 0
    picture = large._repr_html_()
    assert picture.count("<svg") == 1 and "</svg></div>" in picture
    ElementTree.fromstring(large._repr_svg_())
    for what, size in large.shares.items():
        assert size == 0 or f"{what} {size:,}" in picture, what
    assert f"host {large.cycles['host']:,} cycles" in picture
    raises(ValueError, "is open: give n=", lambda: model.footprint(batch=None))
    pages = os.path.join(folder, "pages")
    assert "model.onnx" in model.profile(pages, batch=4)
    assert sorted(os.listdir(pages)) == ["profile.json", "report.html"]


def check_graph():
    """Ops, gradients, updates and variables of a graph are those of numpy."""
    rng = np.random.default_rng(13)
    a, w = rng.normal(size=(5, 3)).astype("f"), rng.normal(size=(3, 2)).astype("f")
    graph = ipu.Graph()
    x, weight = graph.input("x", (5, 3)), graph.variable("w", (3, 2))
    n = graph.input("n", 5, "int32")
    y = (2 - x @ weight) ** 2 / 4.0 - 1
    made = {
        "y": y, "mean": ipu.ops.mean(y, axes=0, keepdims=True), "sum": ipu.ops.sum(y),
        "minus": -y, "max": ipu.ops.max(y, -1), "shape": x.reshape(3, -1), "neg": -n + n * n,
        "where": ipu.ops.select(ipu.ops.greater(y, 0.5), y, -1.0),
        "hot": ipu.ops.one_hot(n, 4), "rows": ipu.ops.gather(x, [2, 0], 0),
        "clip": ipu.ops.clip(y, low=0.0, high=1.0), "soft": ipu.ops.softmax(y),
        "argmax": ipu.ops.argmax(x), "halves": ipu.ops.cast(x, "float16")}
    for name, tensor in made.items():
        graph.output(name, tensor)
    loss = ipu.ops.sum(y)
    graph.output("dw", graph.gradients(loss, [weight])[0])
    graph.minimize(loss, [weight], rate=0.25)
    program = ipu.Program(graph)
    program.write("w", w)
    k = np.array([3, 0, 1, 2, 3], "i")
    found = program.run({"x": a}, n=k)
    want = (2 - a @ w) ** 2 / 4 - 1
    soft = np.exp(want) / np.exp(want).sum(1, keepdims=True)
    gradient = a.T @ ((a @ w - 2) / 2)
    for name, array in {
            "y": want, "mean": want.mean(0, keepdims=True), "sum": want.sum(),
            "minus": -want, "max": want.max(-1), "shape": a.reshape(3, -1), "neg": k * k - k,
            "where": np.where(want > 0.5, want, -1), "hot": np.eye(4)[k], "rows": a[[2, 0]],
            "clip": want.clip(0, 1), "soft": soft, "argmax": a.argmax(-1),
            "halves": a.astype("e"), "dw": gradient}.items():
        assert found[name].shape == np.shape(array) and np.allclose(
            found[name], array, rtol=1e-4, atol=1e-5), (name, found[name], array)
    assert np.allclose(program.read("w"), w - 0.25 * gradient, atol=1e-4)
    assert program.variables()["w"] == ("float32", (3, 2)) and y.shape == (5, 2)
    raises(ValueError, "input 'x' has the shape [4, 3], the program takes [5, 3]",
           lambda: program.run(x=a[:4], n=k))
    raises(TypeError, "input 'n' is int64", lambda: program.run(x=a, n=k.astype("q")))
    raises(ValueError, "there is no input z: the program takes x, n",
           lambda: program.run(z=a))
    raises(ValueError, "input n is not given", lambda: program.run(x=a))
    raises(ValueError, "there is no variable 'v': one of", lambda: program.read("v"))
    raises(ValueError, "is of another graph", lambda: x + ipu.Graph().input("x", 1))
    raises(TypeError, "the device has no dtype float64",
           lambda: ipu.Graph().input("x", 1, float))
    raises(ValueError, "beyond int32", lambda: graph.constant([2 ** 40]))
    for call in ipu.fits, ipu.Program:
        raises(TypeError, "graph is str, not a Graph", lambda: call("graph"))
    raises(TypeError, "no argument is a Tensor", lambda: ipu.ops.relu(a))
    line = sys._getframe().f_lineno + 1
    error = raises(ipu.Error, f"every_onnx.py:{line}:", lambda: x @ x)
    assert "inner dimensions must be equal" in str(error)
    raises(ipu.Error, "inner dimensions", lambda: ipu.Program(graph))
    program.close()
    program.close()
    raises(RuntimeError, "the engine is closed", lambda: program.run(x=a, n=k))


def check_full():
    """A graph that does not fit says what would change that."""
    graph = ipu.Graph()
    x = graph.input("x", (8192, 16384))
    graph.output("y", ipu.ops.relu(x) + 1.0)
    footprint = ipu.fits(graph, "mk1")
    assert not footprint and "does not fit on mk1" in str(footprint)
    assert len(footprint.remedies) == 8 and footprint.remedies["float16"]["tile_bytes"] < \
        footprint.memory["fullest_tile_bytes"], footprint.remedies
    assert "<th align=\"left\">float16</th>" in footprint._repr_html_()
    assert not ipu.fits(graph, "mk1", remedies=False).remedies
    error = raises(ipu.Error, "What would change that", lambda: ipu.Program(graph, "mk1"))
    assert error.status is ipu.Status.FULL


def fit_by_ipu_run(path, ipus, batch):
    """Returns what ipu-run --fit says of a model on several chips: its words for them, their
    bytes and milliseconds, and the interval between batches of a pipeline; the cycles of a
    batch, and the remedies."""
    program = os.path.join(os.path.dirname(sys.argv[1]), "..", "bin", "ipu-run")
    lines = subprocess.run([program, "--fit", "--ipus", str(ipus), "--batch", str(batch), path],
                           capture_output=True, text=True).stdout.splitlines()
    chips = [line.split() for line in lines if line.split()[0].isdigit()]
    every = [line.split()[-2] for line in lines if line.startswith("as a pipeline, ")]
    remedies = {line.split()[0]: line.split()[1:] for line in lines
                if line.startswith("  shard")}
    return (" ".join(lines[0].split()[:3]), [(int(row[3]), row[5]) for row in chips], every,
            int(lines[1].split()[3]), remedies)


def check_random(folder):
    """Operators that draw have the distributions that they say; others in each run."""
    def node(kind, y, inputs=(), **attributes):
        return helper.make_node(kind, list(inputs), [y], name=y, **attributes)
    kinds = {"u": TensorProto.FLOAT, "n": TensorProto.FLOAT, "m": TensorProto.FLOAT,
             "o": TensorProto.FLOAT, "v": TensorProto.FLOAT16, "w": TensorProto.FLOAT,
             "b": TensorProto.BOOL, "k": TensorProto.FLOAT}
    many = dict(shape=[20000], mean=1.0, scale=0.5)
    path = os.path.join(folder, "random.onnx")

    def save(*nodes):
        onnx.save(helper.make_model(helper.make_graph(
            nodes, "random",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 5000])],
            [helper.make_tensor_value_info(each.output[0], kinds[each.output[0]], None)
             for each in nodes if each.output[0] in kinds]),
            opset_imports=[helper.make_opsetid("", 15)]), path)
        return ipu.load_onnx(path)
    model = save(  # what is known stays random
        node("Constant", "c", value=helper.make_tensor("c", TensorProto.FLOAT, [3], [.5] * 3)),
        node("RandomUniformLike", "k", "c"),
        node("RandomUniform", "u", shape=[100, 200], low=-2.0, high=3.0),
        node("RandomNormal", "n", seed=7.0, **many), node("RandomNormal", "m", seed=7.0, **many),
        node("RandomNormal", "o", **many),
        node("RandomUniformLike", "v", "x", dtype=TensorProto.FLOAT16),
        node("RandomNormalLike", "w", "x"), node("Bernoulli", "b", "x", dtype=TensorProto.BOOL))
    x = np.repeat(np.float32([0, .1, .5, 1]), 5000).reshape(4, 5000)
    first, second = model.run(x=x), model.run(x=x)
    assert np.array_equal(first["n"], first["m"])
    for name in kinds:
        assert not np.array_equal(first[name], second[name]), name
    for name, mean, deviation in (("u", .5, 5 / 12 ** .5), ("n", 1, .5), ("o", 1, .5),
                                  ("v", .5, 1 / 12 ** .5), ("w", 0, 1)):
        drawn = np.sort(first[name].astype("d").ravel())
        assert abs(drawn.mean() - mean) < .05 and abs(drawn.std() / deviation - 1) < .02, name
    assert first["u"].shape == (100, 200) and -2 <= first["u"].min() and first["u"].max() < 3
    assert abs(first["n"][:-1] - first["n"][1:]).min() > 0
    assert abs(np.corrcoef(first["n"], first["o"])[0, 1]) < .05
    assert abs(first["b"].mean(1) - [0, .1, .5, 1]).max() < .02 and first["b"].dtype == bool
    assert np.array_equal(first["b"].all(1), [False, False, False, True])
    for words, bad in (("low is not below high", node("RandomUniform", "u", shape=[2], low=1.0)),
                       ("its scale is negative", node("RandomNormal", "n", shape=[2], scale=-1.0)),
                       ("its type is none of floats", node("RandomNormal", "n", shape=[2], dtype=7)),
                       ("no elements, or too many", node("RandomUniform", "u", shape=[2 ** 40])),
                       ("no elements, or too many", node("RandomUniform", "u", shape=[-1]))):
        raises(ipu.Error, words, lambda: save(bad).run(x=x))


def check_chips(folder):
    """Several chips are what ipu-run --fit --ipus has."""
    path, _ = mlp(folder)
    assert ipu.load_onnx(path).footprint(ipus=2).ipus == []  # it has one layer
    path = os.path.join(folder, "layers.onnx")
    script = pathlib.Path(__file__).parent.parent / "onnx" / "layers.py"
    subprocess.run([sys.executable, script, path], check=True)
    model = ipu.load_onnx(path)
    for ipus, batch, fits in (2, 20000, True), (2, 3000000, False):
        found = model.footprint(batch=batch, ipus=ipus)
        said, chips, every, cycles, remedies = fit_by_ipu_run(path, ipus, batch)
        assert bool(found) == fits and found.fits == fits
        assert said.startswith("fits on" if fits else "does not fit"), said
        assert chips == [(each["tile_bytes"], f"{1e3 * each['seconds']:.3f}")
                         for each in found.ipus], (chips, found.ipus)
        assert found.cycles["total"] == cycles and len(chips) == ipus
        assert every == [f"{1e3 * found.pipeline['seconds']:.3f}"]
        assert found.memory["fullest_tile_bytes"] == max(size for size, _ in chips)
        for name, row in remedies.items():
            one = found.remedies[name]
            assert row == [str(one["parts"]), "yes" if one["fits"] else "no",
                           str(one["tile_bytes"]), str(one["remote_bytes"]),
                           f"{1e3 * one['seconds']:.3f}"], (row, one)
        assert bool(remedies) != fits
        assert f"on {ipus} IPUs of mk2" in str(found) and "a batch leaves every" in str(found)
        picture = found._repr_html_()
        ElementTree.fromstring(found._repr_svg_())
        assert all(f">IPU {i}<" in picture for i in range(ipus))
        assert found.tiles().size == 0 and found.shares == {} and repr(found)
    one = model.footprint(batch=64)
    assert one.ipus == [] and one.sharding == one.pipeline == {}
    assert ipu.fits(model.graph(64), ipus=1).memory == one.memory
    raises(ValueError, "ipus is 0: 1 to 256", lambda: model.footprint(ipus=0))
    raises(TypeError, "", lambda: model.footprint(ipus=1.5))

    graph = ipu.Graph()
    h = x = graph.input("x", (64, 32))
    weights = [graph.variable(f"w{i}", (32, 32)) for i in range(4)]
    for w in weights:
        h = ipu.ops.tanh(h @ w)
    graph.minimize(ipu.ops.mean(ipu.ops.square(h - x)), weights, "adam")
    found = ipu.fits(graph, ipus=2)
    assert found and found.pipeline["parts"] == 2 and found.pipeline["fits"] is True
    assert "as a pipeline of 2 stages it fits: " in str(found)
    # The graph is as it was.
    assert ipu.fits(graph).ipus == [] and ipu.Program(graph).footprint().fits
    assert "it has not so many layers" in ipu.fits(graph, ipus=16).pipeline


def check_order():
    """Objects are freed in any order."""
    graph = ipu.Graph()
    graph.output("y", graph.input("x", 3) + 1.0)
    program = ipu.Program(graph)
    footprint, tensor = program.footprint(), graph.find("y")
    del graph, program
    gc.collect()
    assert footprint.tiles().size == 1472 and tensor.shape == (3,)
    del footprint
    gc.collect()
    assert tensor.dtype == "float32"


check_cases()
with tempfile.TemporaryDirectory() as place:
    check_batches(place)
    check_fixed(place)
    check_bound(place)
    check_threads(place)
    check_mistakes(place)
    check_chip(place)
    check_random(place)
    check_chips(place)
check_graph()
check_full()
check_order()
print("every onnx", flush=True)
