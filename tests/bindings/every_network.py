# SPDX-License-Identifier: Apache-2.0
"""
Networks from Python, on any number of ranks: they are trained, evaluated and asked as one
process would do it; layers; and mistakes.

    DIGITS=FOLDER_OF_DIGITS every_network.py FOLDER_OF_THE_PACKAGES
"""
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import weakref

sys.path.insert(0, sys.argv[1])

import numpy as np
import onnx
from onnx import helper, numpy_helper

import hvd
import ipu
from ipu import _data, layers, ops
from ipu._library import engine

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def raises(kind, words, call):
    """Expects an exception of exactly this class, whose text has the words."""
    try:
        call()
    except kind as error:
        assert type(error) is kind and words in str(error), repr(error)
        return error
    raise AssertionError(f"no {kind.__name__}: {words}")


def fails(words, call):
    """Expects hvd.Error on all ranks, whose text has the words on one of them at least:
    others may only say that another rank has failed."""
    try:
        call()
        found = -1
    except hvd.Error as error:
        found = int(words in str(error))
    all_found = hvd.allgather(np.array([found]), name="fails")[0]
    assert all_found.min() >= 0 and all_found.max() == 1, (words, all_found)


def idx(name):
    """Reads a file of MNIST's format."""
    data = open(os.path.join(os.environ["DIGITS"], name), "rb").read()
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def digits():
    return [each for part in ("train", "t10k") for each in (
        idx(f"{part}-images-idx3-ubyte") / np.float32(255), idx(f"{part}-labels-idx1-ubyte"))]


def check_digits():
    """Handwritten digits are learnt; what predict says is what evaluate counts."""
    x, y, tests, wanted = digits()
    with ipu.Model([layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(10)]) as model:
        model.compile("adam", learning_rate=0.003, metrics=[("top_k", 3)])
        history = model.fit(x, y, batch_size=48, epochs=12, validation_data=(tests, wanted),
                            verbose=False)
        found = model.evaluate(tests, wanted, batch_size=64)
        scores = model.predict(tests, batch_size=48)
    assert [each["epoch"] for each in history] == list(range(1, 13))
    assert history[-1]["loss"] < history[0]["loss"] / 2, history
    assert history[-1]["step"] == 12 * (len(x) // 48)
    assert abs(history[-1]["val_loss"] - found["loss"]) < 1e-4
    assert found["rows"] == len(tests) and found["accuracy"] > 0.85, found
    assert scores.shape == (len(tests), 10)
    assert np.isclose((scores.argmax(1) == wanted).mean(), found["accuracy"])
    top = (np.argsort(-scores, 1)[:, :3] == wanted[:, None]).any(1).mean()
    assert np.isclose(top, found["top_3"]), (top, found)
    shifted = scores - scores.max(1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(wanted)), wanted]
    assert np.isclose(losses.mean(), found["loss"], rtol=1e-4)
    everywhere = hvd.allgather(scores[None], name="scores")[0]
    assert np.array_equal(everywhere, np.broadcast_to(scores, everywhere.shape))


def check_arithmetic():
    """Steps of gradient descent are those of numpy."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(24, 3)).astype("f"), rng.normal(size=(24, 2)).astype("f")
    with ipu.Model([layers.Dense(2, kernel="zeros", name="line")]) as model:
        model.compile("sgd", learning_rate=0.1, loss="mean_squared_error")
        model.fit(x, y, batch_size=6, epochs=2, shuffle=False, verbose=False)
        kernel, bias = model.variable("line/kernel", (3, 2)), model.variable("line/bias", 2)
        guess = model.predict(x, batch_size=5)
    w, b = np.zeros((3, 2)), np.zeros(2)
    for _ in range(2):
        for i in range(0, 24, 6):
            error = 2 * (x[i:i + 6] @ w + b - y[i:i + 6]) / 12
            w, b = w - 0.1 * x[i:i + 6].T @ error, b - 0.1 * error.sum(0)
    assert np.allclose(kernel, w, atol=1e-5) and np.allclose(bias, b, atol=1e-5)
    assert np.allclose(guess, x @ w + b, atol=1e-5)
    # The graph of a step makes it, too.
    with ipu.Program(model.graph(x, y, batch_size=24)) as program:
        first, second = [program.run(x=x, labels=y)["loss"] for _ in range(2)]
        w, b = 0.2 * x.T @ y / 48, 0.2 * y.sum(0) / 48
        assert np.isclose(first, (y ** 2).mean(), rtol=1e-4)
        assert np.isclose(second, ((x @ w + b - y) ** 2).mean(), rtol=1e-4)


def check_layers():
    """Every layer takes part in a training, and the graph of the step compiles."""
    rng = np.random.default_rng(7)
    images, words = rng.normal(size=(8, 8, 8, 2)).astype("f"), rng.integers(0, 9, (8, 6))
    lengths, y = rng.integers(1, 7, 8), rng.integers(0, 3, 8)

    def convolutional(x):
        x = layers.Conv2D(4, 3, "relu", padding="same", stride=2)(x)
        x = layers.GroupNorm(2)(layers.BatchNorm()(x))
        x = layers.MaxPool2D(2)(layers.AvgPool2D(1)(x))
        x = layers.Dropout(0.2)(layers.Flatten()(x))
        return layers.Dense(3, kernel=("normal", 0.1), bias=False)(x)

    shared = layers.Dense(6, "tanh")

    def recurrent(x):
        x = layers.Embedding(9, 6)(x)
        x = shared(shared(x))           # the same variables, twice
        x = layers.LayerNorm()(layers.Attention(2, causal=True)(x))
        x = layers.LSTM(5, all_states=True, direction="bidirectional", lengths="lengths")(x)
        x = layers.GRU(4, layers=2)(x)
        scale = layers.variable(x, "scale", 4, "ones")
        return layers.Dense(3)(x * scale)

    for network, x in ((convolutional, images), (recurrent, {"words": words,
                                                             "lengths": lengths})):
        with ipu.Model(network) as model:
            model.compile("adam", loss=lambda y, labels: ops.sparse_cross_entropy(y, labels, 0.1))
            first = model.evaluate(x, y)["loss"]
            history = model.fit(x, y, batch_size=4, epochs=8, verbose=False)
            assert history[-1]["loss"] < first, (first, history)
            assert model.predict(x).shape == (8, 3)
            if network is recurrent:
                assert model.variable("dense/kernel", (6, 6)).std() > 0
                assert model.variable("scale", 4).shape == (4,)
            step = model.footprint(batch_size=4)
            assert step and step.cycles["total"] > model.footprint(
                batch_size=4, training=False).cycles["total"]


def check_ways():
    """Replicas, stages of a pipeline and an optimiser on the host train the same."""
    rng = np.random.default_rng(19)
    x, y, found = rng.normal(size=(48, 6)).astype("f"), rng.integers(0, 3, 48), []
    for options in ({"accumulate": 4}, {"accumulate": 4, "replicas": 2},
                    {"accumulate": 4, "stages": 2}, {"accumulate": 4, "variables_on_host": True}):
        with ipu.Model([layers.Dense(8, "tanh"), layers.NextPiece(), layers.Dense(3)]) as model:
            model.compile("momentum", learning_rate=0.3, **options)
            history = model.fit(x, y, batch_size=12, epochs=4, verbose=False)
            found.append((history[-1]["loss"], model.predict(x, batch_size=20)))
        assert history[-1]["step"] == 16 and history[-1]["loss"] < history[0]["loss"]
        assert np.isclose(found[-1][0], found[0][0], rtol=1e-4), (options, found)
        assert np.allclose(found[-1][1], found[0][1], atol=1e-4), options


@contextlib.contextmanager
def shared_folder():
    """A folder of all ranks, which is gone when they have left it."""
    folder = hvd.broadcast_object(tempfile.mkdtemp() if RANK == 0 else None)
    yield folder
    hvd.barrier()
    if RANK == 0:
        shutil.rmtree(folder)


def check_checkpoints(folder):
    """A training goes on from its folder, in another model."""
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(32, 4)).astype("f"), rng.integers(0, 2, 32)
    network, found = [layers.Dense(2)], []
    for epochs, where in ((2, folder), (3, folder), (3, None)):
        with ipu.Model(network) as model:
            model.compile("momentum", learning_rate=0.05, model_dir=where)
            history = model.fit(x, y, batch_size=8, epochs=epochs, verbose=False)
            found.append((history[-1]["step"], model.variable("dense/kernel", (4, 2))))
    assert [step for step, _ in found] == [8, 12, 12]
    assert np.array_equal(found[1][1], found[2][1])
    with ipu.Model(network) as model:
        model.compile("momentum", model_dir=folder)
        guess = model.predict(x)       # without labels, from the checkpoint
        assert model.evaluate(x, y)["accuracy"] == (guess.argmax(1) == y).mean()


def check_frozen(path, saved):
    """Of the two parameters of a model, b alone was trained."""
    same = {each.name: numpy_helper.to_array(each) for each in onnx.load(saved).graph.initializer}
    first = {each.name: numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    assert np.array_equal(same["w"], first["w"]) and not np.array_equal(same["b"], first["b"])


def check_onnx(folder):
    """A model of an ONNX file is trained as numpy would do it, and saved."""
    rng = np.random.default_rng(17)
    x, y = rng.normal(size=(24, 3)).astype("f"), rng.normal(size=(24, 2)).astype("f")
    w, b = rng.normal(size=(3, 2)).astype("f"), np.zeros(2, "f")
    path, saved = os.path.join(folder, "line.onnx"), os.path.join(folder, "trained.onnx")
    if RANK == 0:
        onnx.save(helper.make_model(helper.make_graph(
            [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], "line",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 2])],
            [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]),
            opset_imports=[helper.make_opsetid("", 13)]), path)
    hvd.barrier()
    model = ipu.load_onnx(path)
    history = model.fit(x, y, saved, loss="mean_squared_error", optimizer="sgd",
                        learning_rate=0.1, batch_size=6, epochs=2, shuffle=False, verbose=False)
    assert [each["step"] for each in history] == [4, 8]
    assert np.allclose(model(x), x @ w + b, atol=1e-5)      # it stays as it is
    losses = []
    for _ in range(2):
        for i in range(0, 24, 6):
            error = x[i:i + 6] @ w + b - y[i:i + 6]
            losses.append((error ** 2).mean())
            w, b = w - 0.1 * x[i:i + 6].T @ error / 6, b - 0.1 * error.sum(0) / 6
    assert np.allclose([each["loss"] for each in history],
                       [np.mean(losses[:4]), np.mean(losses[4:])], rtol=1e-4)
    assert np.allclose(ipu.load_onnx(saved)(x), x @ w + b, atol=1e-4)
    for which in {"trainable": ["b"]}, {"freeze": ["[vw]"]}, {"freeze": "w*"}:
        model.fit(x, y, saved, loss="mean_squared_error", optimizer="sgd", batch_size=24,
                  epochs=3, verbose=False, **which)
        check_frozen(path, saved)
        hvd.barrier()
    # A wrong label on one rank ends the step of all.
    labels = np.zeros(24, int)
    labels[0] = 9
    kind = ipu.Error if RANK == 0 else hvd.Error
    raises(kind, "label 9", lambda: model.fit(x, labels, saved, batch_size=24, shuffle=False))
    raises(ValueError, "y has 23 rows, input 'x' has 24", lambda: model.fit(x, y[1:], saved))
    raises(ValueError, "batch_size 32 is more than the 24", lambda: model.fit(x, y, saved))
    raises(ipu.Error, "'v'", lambda: model.fit(x, y, saved, batch_size=24, trainable=["v"]))
    raises(ipu.Error, "like 'v*'", lambda: model.fit(x, y, saved, batch_size=24, freeze=["v*"]))
    raises(TypeError, "is float64, the model takes float32",
           lambda: model.fit(x.astype("d"), y, saved, batch_size=24))
    raises(ipu.Error if RANK == 0 else hvd.Error, "" if RANK else "absent", lambda: model.fit(
        x, y, folder + "/absent/a.onnx", loss="mean_squared_error", batch_size=24,
        verbose=False))


def check_statistics(folder):
    """Running statistics of an ONNX model are saved as the mean of the ranks'."""
    rng = np.random.default_rng(23)
    x, y = rng.normal(size=(12, 3)).astype("f") * 2 + 1, np.arange(12) % 3
    path, saved = os.path.join(folder, "norm.onnx"), os.path.join(folder, "trained.onnx")
    first = {"s": np.ones(3, "f"), "o": np.zeros(3, "f"), "m": np.full(3, 0.5, "f"),
             "v": np.full(3, 2, "f")}
    if RANK == 0:
        onnx.save(helper.make_model(helper.make_graph(
            [helper.make_node("BatchNormalization", ["x", "s", "o", "m", "v"],
                              ["y", "mean", "variance"], training_mode=1, momentum=0.75)],
            "norm", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 3])],
            [numpy_helper.from_array(array, name) for name, array in first.items()]),
            opset_imports=[helper.make_opsetid("", 15)]), path)
    hvd.barrier()
    ipu.load_onnx(path).fit(x, y, saved, optimizer="sgd", learning_rate=0.1, batch_size=12,
                            shuffle=False, verbose=False)
    now = {each.name: numpy_helper.to_array(each) for each in onnx.load(saved).graph.initializer}
    shares = [x[rank::SIZE] for rank in range(SIZE)]
    assert np.allclose(now["m"], 0.75 * first["m"] + 0.25 * x.mean(0), atol=1e-5), now
    variance = np.mean([share.var(0, ddof=1) for share in shares], 0)
    assert np.allclose(now["v"], 0.75 * first["v"] + 0.25 * variance, rtol=1e-4), now
    assert not np.array_equal(now["s"], first["s"]), now


def check_drops(folder):
    """Each rank drops elements of its own: of the weights, which begin as ones, some get
    the gradient of no row, some of one, and some of several."""
    rows = max(SIZE, 2)
    path, saved = os.path.join(folder, "drop.onnx"), os.path.join(folder, "dropped.onnx")
    if RANK == 0:
        onnx.save(helper.make_model(helper.make_graph(
            [helper.make_node("Mul", ["x", "w"], ["product"]),
             helper.make_node("Dropout", ["product", "half", "yes"], ["y"])],
            "drop", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 64])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 64])],
            [numpy_helper.from_array(np.ones(64, "f"), "w"),
             numpy_helper.from_array(np.array(0.5, "f"), "half"),
             numpy_helper.from_array(np.array(True), "yes")]),
            opset_imports=[helper.make_opsetid("", 15)]), path)
    hvd.barrier()
    ipu.load_onnx(path).fit(np.ones((rows, 64), "f"), np.zeros((rows, 64), "f"), saved,
                            optimizer="sgd", learning_rate=0.1, batch_size=rows,
                            loss="mean_squared_error", verbose=False)
    now = {each.name: numpy_helper.to_array(each) for each in onnx.load(saved).graph.initializer}
    assert len(set(now["w"].round(5))) > 2, now


def check_stop():
    """A callback ends a training."""
    x, y = np.zeros((8, 2), "f"), np.zeros(8, int)
    with ipu.Model([layers.Dense(2)]) as model:
        history = model.fit(x, y, batch_size=4, epochs=9, verbose=False,
                            callback=lambda epoch, record: epoch == 3)
    assert len(history) == 3


def check_mistakes():
    x, y = np.zeros((8, 4), "f"), np.zeros(8, int)
    dense = [layers.Dense(2)]
    raises(TypeError, "3 is no layer", lambda: ipu.Model([3]))
    model = ipu.Model(dense)
    raises(ValueError, "there is no loss 'absolute'", lambda: model.compile(loss="absolute"))
    raises(ValueError, "there is no metric 'f1'", lambda: model.compile(metrics=["f1"]))
    raises(ValueError, "y has 7 rows, x has 8", lambda: model.fit(x, y[1:]))
    raises(ValueError, "y is None: a loss needs labels", lambda: model.fit(x, None))
    raises(ValueError, "y is None: a loss needs labels", lambda: model.evaluate(x, None))
    raises(ValueError, "the data has no rows", lambda: model.fit(x[:0], y[:0]))
    raises(TypeError, "x has elements of <U1", lambda: model.fit(["a"], [1]))
    raises(ValueError, "x has integers beyond int32", lambda: model.fit([[2 ** 40]], [1]))
    raises(ValueError, "batch_size is 0, not from 1", lambda: model.fit(x, y, batch_size=0))
    if SIZE > 1:
        raises(ValueError, f"batch_size {SIZE + 1} cannot be shared out equally over {SIZE} "
               "devices", lambda: model.fit(x, y, batch_size=SIZE + 1))
    model.compile("gradient")
    fails("gradient", lambda: model.fit(x, y, batch_size=4))
    model.compile(colour=3)
    raises(TypeError, "there is no option 'colour'", lambda: model.fit(x, y, batch_size=4))
    model.compile()
    raises(ValueError, "batch_size 64 is more than the 8 rows", lambda: model.fit(
        x, y, batch_size=64))
    fails("row 0 of labels is label 5", lambda: model.fit(x, y + 5, batch_size=4))
    model.compile()
    model.fit(x, y, batch_size=4, verbose=False)
    fails("component 'x' has", lambda: model.fit(x[:, :3], y, batch_size=4))
    model.close()
    model.close()
    raises(ValueError, "no variables before", lambda: model.variable("dense/kernel", (4, 2)))
    # An exception of the network's function comes through, and so does an op's.
    broken = ipu.Model(lambda x: 1 / 0)
    raises(ZeroDivisionError, "", lambda: broken.fit(x, y, batch_size=4))
    raises(TypeError, "the network has returned 5",
           lambda: ipu.Model(lambda x: 5).fit(x, y, batch_size=4))
    raises(ipu.Error, "matmul", lambda: ipu.Model(lambda x: x.reshape(-1) @ x.reshape(-1)).fit(x, y, batch_size=8))
    fails("its input has", lambda: ipu.Model(
        [layers.Conv2D(2, 3)]).fit(x, y, batch_size=4))
    raises(ValueError, "there is no activation 'rleu'", lambda: ipu.Model(
        [layers.Dense(2, "rleu")]).fit(x, y, batch_size=4))
    kept = []
    with ipu.Model(lambda x: kept.append(x) or layers.Dense(2)(x)) as model:
        model.fit(x, y, batch_size=4, verbose=False)
    raises(RuntimeError, "the graph is closed", lambda: kept[0] + 1.0)


def check_interrupt():
    """Ctrl-C ends an epoch that would last, on all ranks; the model can be freed."""
    x, y = np.zeros((10 ** 6, 4), "f"), np.zeros(10 ** 6, int)
    begun = threading.Event()

    def network(x):
        begun.set()
        return layers.Dense(2)(x)

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
    model = ipu.Model(network)
    if RANK == 0:
        thread = threading.Thread(target=interrupt)
        thread.start()
    raises(KeyboardInterrupt if RANK == 0 else hvd.Error, "",
           lambda: model.fit(x, y, batch_size=SIZE, verbose=False))
    if RANK == 0:
        thread.join()
    model.close()


def lets_run(call):
    """Expects that another thread of Python gets its turn during one of the calls. They
    are the only moments in which this thread gives the interpreter's lock away."""
    go, ran = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), ran.append(1)))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.set()
        for _ in range(2000):
            call()
            if ran:
                break
        assert ran, call
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def check_lock():
    """Compiling, running and training let other threads of Python go on."""
    graph = ipu.Graph()
    x = graph.input("x", (256, 256))
    graph.output("y", x @ x)
    program, array = ipu.Program(graph), np.zeros((256, 256), "f")
    program.run(x=array)
    lets_run(program._engine.run)
    lets_run(lambda: engine.compile(graph._graph, "mk2", 0, 0.0, 1, 1))
    if SIZE == 1:  # as many calls on all ranks, otherwise
        model = ipu.Model([layers.Dense(2)])
        x, y = np.zeros((8, 2), "f"), np.zeros(8, int)
        model.fit(x, y, batch_size=4, verbose=False)
        arrays = _data.arrays(x, y)
        lets_run(lambda: model._estimator.evaluate(arrays, 4, []))
        lets_run(lambda: model._estimator.predict(arrays, 4, 8))


def check_names():
    """Every public name says what it is."""
    for place in (ipu, ipu.layers, ipu.ops):
        for name in getattr(place, "__all__", [n for n in vars(place) if n[0].isupper()]):
            thing = getattr(place, name)
            assert isinstance(thing, (dict, type(sys))) or thing.__doc__, name
            for key, method in vars(thing).items() if isinstance(thing, type) else ():
                assert key.startswith("_") or not callable(method) or method.__doc__, (
                    name, key)


def check_order():
    """A model that is dropped frees its devices; threads may have a graph each."""
    model = ipu.Model([layers.Dense(2)])
    model.fit(np.zeros((8, 2), "f"), np.zeros(8, int), batch_size=4, verbose=False)
    footprint, reference = model.footprint(batch_size=4), weakref.ref(model)
    del model
    assert reference() is None
    assert "<svg" in footprint._repr_html_()
    wrong, ended = [], []

    def work(number):
        graph = ipu.Graph()
        graph.output("y", ops.sum(graph.input("x", 50) * float(number)))
        program = ipu.Program(graph)
        for i in range(50):
            if program.run(x=np.full(50, i, "f"))["y"] != 50 * i * number:
                wrong.append((number, i))
        ended.append(number)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(ended) == 4, (wrong, ended)


for check in (check_arithmetic, check_digits, check_layers, check_ways):
    check()
for check in (check_checkpoints, check_onnx, check_statistics, check_drops):
    with shared_folder() as shared:
        check(shared)
for check in (check_stop, check_mistakes, check_interrupt, check_lock, check_names, check_order):
    check()
hvd.shutdown()
sys.stdout.write("every network\n")
