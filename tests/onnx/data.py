# SPDX-License-Identifier: Apache-2.0
"""data.py make FOLDER - exports a small network to model.onnx and writes 48 rows
of data in each form that ipu-run reads; losses-sgd.txt and losses-adam.txt have
PyTorch's losses of eight steps of 12 rows, in their order, and weights.npz what
the weights become by SGD.

data.py dropping FOLDER - writes dropping.onnx, whose loss of zeros has a gradient
of 0 for each of 64 weights that is dropped, and ones.npz, 2 rows for it.

data.py drops N FILE - expects that the weights have taken N values.

data.py equal A B - compares two models, or files of weights, that were trained.
"""
import os
import struct
import sys

import numpy
import onnx
from onnx import numpy_helper
import torch
import torch.nn.functional as F

ROWS, BATCH, STEPS = 48, 12, 8


def write_idx(path, array, code):
    with open(path, "wb") as file:
        file.write(struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim,
                               *array.shape) + array.tobytes())


def write_tensor(path, array):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array).SerializeToString())


def write_safetensors(path, arrays):
    import json
    names = {"float32": "F32", "int64": "I64"}
    header, body = {}, b""
    for name, array in arrays.items():
        bytes_ = array.tobytes()
        header[name] = {"dtype": names[str(array.dtype)],
                        "shape": list(array.shape),
                        "data_offsets": [len(body), len(body) + len(bytes_)]}
        body += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, stride=2, padding=1), torch.nn.Tanh(),
        torch.nn.Flatten(), torch.nn.Linear(64, 10), torch.nn.LayerNorm(10),
        torch.nn.Linear(10, 3))


def train(folder, name, make, x, labels):
    model = network()
    optimizer = make(model.parameters())
    with open(f"{folder}/losses-{name}.txt", "w") as file:
        for step in range(STEPS):
            at = step * BATCH % ROWS
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[at:at + BATCH]),
                                   labels[at:at + BATCH])
            loss.backward()
            optimizer.step()
            print(loss.item(), file=file)
    return {n: p.detach().numpy() for n, p in model.named_parameters()}


def make(folder):
    torch.set_num_threads(1)
    pixels = torch.randint(256, (ROWS, 8, 8), dtype=torch.uint8,
                           generator=torch.Generator().manual_seed(4))
    x, labels = pixels[:, None].float() / 255, torch.arange(ROWS) * 7 % 5 % 3
    torch.onnx.export(
        network(), x[:2], f"{folder}/model.onnx", opset_version=13,
        input_names=["x"], output_names=["y"],
        dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    weights = train(folder, "sgd", lambda p: torch.optim.SGD(
        p, lr=0.25, momentum=0.5), x, labels)
    train(folder, "adam", lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-7), x,
          labels)
    numpy.savez(f"{folder}/weights.npz", **weights)
    x, labels = x.numpy(), labels.numpy()
    arrays = {"x": x, "labels": labels}
    numpy.savez(f"{folder}/named.npz", unused=labels, **arrays)
    numpy.savez_compressed(f"{folder}/two.npz", images=x, classes=labels)
    write_safetensors(f"{folder}/data.safetensors", arrays)
    numpy.save(f"{folder}/x.npy", x)
    numpy.save(f"{folder}/labels.npy", labels)
    write_idx(f"{folder}/x.idx", pixels.numpy(), 8)
    write_idx(f"{folder}/labels.idx", labels.astype("uint8"), 8)
    for i in range(3):
        sets = f"{folder}/sets/test_data_set_{i}"
        os.makedirs(sets)
        write_tensor(f"{sets}/input_0.pb", x[16 * i:16 * i + 16])
        write_tensor(f"{sets}/output_0.pb", labels[16 * i:16 * i + 16])
    labels[3] = 17  # in the batch of the second of three ranks
    numpy.savez(f"{folder}/wrong.npz", x=x, labels=labels)
    numpy.savez(f"{folder}/narrow.npz", x=x[:, :, :5], labels=labels)
    with open(f"{folder}/damaged.npz", "wb") as file:
        file.write(open(f"{folder}/named.npz", "rb").read()[:2000])


def read(path):
    if path.endswith(".npz"):
        return dict(numpy.load(path))
    if path.endswith(".onnx"):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        return {t.name: numpy_helper.to_array(t)
                for t in model.graph.initializer}
    import json
    data = open(path, "rb").read()
    n, = struct.unpack_from("<Q", data)
    return {k: numpy.frombuffer(data[8 + n:][v["data_offsets"][0]:
                                             v["data_offsets"][1]],
                                "float32").reshape(v["shape"])
            for k, v in json.loads(data[8:8 + n]).items()
            if k != "__metadata__"}


def equal(a, b):
    a, b = read(a), read(b)
    names = sorted(set(a) & set(b))
    assert len(names) == 8, (sorted(a), sorted(b))
    for name in names:
        difference = abs(a[name] - b[name]).max()
        print(name, a[name].shape, difference)
        assert a[name].shape == b[name].shape and difference <= 1e-5


def dropping(folder):
    node = onnx.helper.make_node
    floats = onnx.TensorProto.FLOAT
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(
        [node("Mul", ["x", "w"], ["product"]),
         node("Dropout", ["product", "half", "yes"], ["y"])], "dropping",
        [onnx.helper.make_tensor_value_info("x", floats, ["n", 64])],
        [onnx.helper.make_tensor_value_info("y", floats, ["n", 64])],
        [numpy_helper.from_array(numpy.ones(64, "float32"), "w"),
         numpy_helper.from_array(numpy.array(0.5, "float32"), "half"),
         numpy_helper.from_array(numpy.array(True), "yes")]),
        opset_imports=[onnx.helper.make_opsetid("", 13)],
        ir_version=8), f"{folder}/dropping.onnx")
    numpy.savez(f"{folder}/ones.npz", x=numpy.ones((2, 64), "float32"),
                labels=numpy.zeros((2, 64), "float32"))


def drops(values, path):
    weights = read(path)["w"]
    print(weights)
    assert len(set(weights.round(5))) == int(values)


{"make": make, "equal": equal, "dropping": dropping, "drops": drops}[sys.argv[1]](*sys.argv[2:])
