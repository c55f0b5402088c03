# SPDX-License-Identifier: Apache-2.0
"""operators.py FOLDER - writes tests of operators with cases.py.

They are of sizes, groups, axes and numbers of dimensions that ONNX's own tests do
not have. Numbers are multiples of 1/4, so that sums of products are exact.
"""
import numpy
import torch
import torch.nn.functional as F
from torchvision.ops import roi_align, roi_pool

from cases import exported, node, positive, quarters, random, refused

# ------------------------------------------------------------- convolutions
for dims, conv, transposed in ((1, F.conv1d, F.conv_transpose1d),
                               (2, F.conv2d, F.conv_transpose2d),
                               (3, F.conv3d, F.conv_transpose3d)):
    size = (7, 6, 5)[:dims]
    window = (3, 2, 2)[:dims]
    exported(f"conv_{dims}d", lambda x, w, b: conv(
        x, w, b, stride=2, padding=1, dilation=2, groups=2),
             quarters(2, 4, *size), quarters(6, 2, *window), quarters(6))
    exported(f"transposed_{dims}d", lambda x, w, b: transposed(
        x, w, b, stride=3, padding=1, output_padding=2, dilation=2, groups=2),
             quarters(2, 4, *size), quarters(4, 3, *window), quarters(6))
x, w = quarters(1, 1, 3, 4), quarters(1, 2, 3, 3)
y = F.conv_transpose2d(x, w, stride=2).numpy()
node("transposed_to_shape", "ConvTranspose", [x.numpy(), w.numpy()],
     [numpy.pad(y, [(0, 0), (0, 0), (0, 2), (0, 0)])[:, :, :, 1:9]],
     strides=[2, 2], output_shape=[9, 8])

# ------------------------------------------------------------------ pooling
for dims, most, mean in ((1, F.max_pool1d, F.avg_pool1d),
                         (2, F.max_pool2d, F.avg_pool2d),
                         (3, F.max_pool3d, F.avg_pool3d)):
    x = quarters(2, 3, *(9, 8, 7)[:dims])
    exported(f"max_{dims}d", lambda x: most(x, 3, 2, 1), x)
    exported(f"max_dilated_{dims}d", lambda x: most(x, 2, 2, 1, 3), x)
    exported(f"mean_{dims}d", lambda x: mean(x, 3, 2, 1), x)
x = torch.tensor(random.permutation(2 * 3 * 8 * 6).reshape(2, 3, 8, 6) / 4,
                 dtype=torch.float32)
y, at = F.max_pool2d(x, (3, 2), (2, 2), (1, 0), return_indices=True)
plane = numpy.arange(6).reshape(2, 3, 1, 1) * 48
by_column = at.numpy() % 6 * 8 + at.numpy() // 6 + plane
for order, places in enumerate((at.numpy() + plane, by_column)):
    node(f"max_places_{order}", "MaxPool", [x.numpy()], [y.numpy(), places],
         kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0],
         storage_order=order)
y, at = F.max_pool1d(x[0], 2, 2, return_indices=True)
node("unpooled", "MaxUnpool",
     [y.numpy()[None], at.numpy()[None] + numpy.arange(24).reshape(
         1, 3, 8, 1)[:, :, :, :] * 6],
     [F.max_unpool1d(y, at, 2, 2).numpy()[None]],
     kernel_shape=[1, 2], strides=[1, 2])
# Regions beyond the edges, of one pixel, and turned round.
regions = torch.tensor([[0, 0, 0, 11, 15], [1, 3, 2, 9, 14], [1, -3, -9, 5, 4],
                        [0, 8, 8, 40, 20], [1, 4, 4, 4, 4], [0, 9, 7, 2, 3],
                        [1, 30, 40, 35, 48]], dtype=torch.float32)
for scale in 1, 0.5:
    node(f"regions_{scale}", "MaxRoiPool", [x.numpy(), regions.numpy()],
         [roi_pool(x, regions, (3, 2), scale).numpy()], pooled_shape=[3, 2],
         spatial_scale=float(scale))
x = positive(2, 3, 8, 6)
node("lp", "LpPool", [x.numpy()],
     [F.lp_pool2d(x, 3, (2, 3), (2, 1)).numpy()],
     kernel_shape=[2, 3], strides=[2, 1], p=3)
node("global_lp", "GlobalLpPool", [x.numpy()],
     [x.pow(3).sum((2, 3), keepdim=True).pow(1 / 3).numpy()], p=3)
node("lp_norm", "LpNormalization", [x.numpy()],
     [(x / x.norm(dim=1, keepdim=True)).numpy()], axis=1, p=2)
# Each region gets as many samples as its size asks for: none, one, some, or those of
# the image; some are outside.
x = quarters(2, 3, 17, 22)
places = torch.tensor([[1.0, 2.5, 9.25, 7.0], [0.0, 0.0, 21.0, 16.0], [5.0, 5.0, 5.0, 5.0],
                       [-3.0, -2.0, 12.5, 4.5], [18.0, 9.0, 25.75, 19.0],
                       [3.25, 1.0, 3.5, 14.75]])
images = torch.tensor([0, 1, 1, 0, 1, 0])
regions = torch.cat([images[:, None].float(), places], 1)
for scale in 1.0, 0.5:
    for aligned in False, True:
        y = roi_align(x, regions, (3, 4), scale, -1, aligned)
        node(f"regions_adapt_{scale}_{aligned}", "RoiAlign",
             [x.numpy(), places.numpy(), images.numpy()], [y.numpy()], opset=16,
             output_height=3, output_width=4, spatial_scale=scale,
             coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel")


# --------------------------------------------------------- other sizes, places
x = positive(2, 3, 5, 6)
for mode in "nearest", "bilinear", "bicubic":
    for to in (9, 13), (3, 4):
        exported(f"resized_{mode}_{to[0]}",
                 lambda x: F.interpolate(x, to, mode=mode), x)
    if mode != "nearest":
        exported(f"resized_{mode}_corners", lambda x: F.interpolate(
            x, (9, 4), mode=mode, align_corners=True), x)
exported("resized_after_a_convolution", lambda x, w: F.interpolate(
    F.conv2d(x, w), (7, 2)), x, quarters(2, 3, 1, 1))
exported("resized_volume", lambda x: F.interpolate(
    x, (3, 7, 9), mode="trilinear"), positive(1, 2, 4, 5, 6))
grid = torch.tensor(random.uniform(-3.3, 3.3, (2, 4, 7, 2)),
                    dtype=torch.float32)
for mode in "bilinear", "nearest", "bicubic":
    for padding in "zeros", "border", "reflection":
        for corners in False, True:
            exported(f"grid_{mode}_{padding}_{corners}",
                     lambda x, g: F.grid_sample(x, g, mode, padding, corners),
                     x + 4, grid)

# ------------------------------------------------------------------- indices
x = quarters(3, 4, 5)
at = torch.tensor(random.permutation(4).reshape(1, 4, 1)).expand(2, 4, 3)
exported("scatter", lambda x, i, u: x.scatter(1, i, u), x, at.clone(),
         quarters(2, 4, 3))
exported("scatter_add", lambda x, i, u: x.scatter_add(1, i, u), x,
         torch.randint(0, 4, (2, 4, 3)), quarters(2, 4, 3))
exported("index_put", lambda x, i, j, u: x.index_put((i, j), u), x,
         torch.tensor([2, 0]), torch.tensor([3, 1]), quarters(2, 5))
exported("scatter_of_integers", lambda x, i, u: x.scatter(0, i, u),
         torch.randint(-(1 << 30), 1 << 30, (6, )), torch.tensor([4, 1]),
         torch.tensor([1 << 29, 7]))
node("reverse", "ReverseSequence",
     [x.numpy(), numpy.array([1, 3, 2, 0], numpy.int64)],
     [numpy.stack([numpy.concatenate([x[:n, i].numpy()[::-1], x[n:, i]])
                   for i, n in enumerate([1, 3, 2, 0])], 1)])
node("gather_nd", "GatherND",
     [x.numpy(), numpy.array([[[1], [-1]], [[0], [2]], [[3], [3]]],
                             numpy.int64)],
     [numpy.stack([x.numpy()[i][list(j)]
                   for i, j in enumerate(((1, -1), (0, 2), (3, 3)))])],
     batch_dims=1)

# ------------------------------------------------------ numbers of elements
exported("padded_to_a_multiple",
         lambda x: F.pad(x, (0, (x.shape[3] - 9) % 4)), quarters(1, 2, 3, 6))
exported("dropped_by_0", lambda x: F.dropout(x, 0.0, True), x)

# ------------------------------------------------------------------- products
a, b, c = quarters(2, 3, 4), quarters(4, 5, 3), quarters(5, 2)
for name, equation, terms in (
        ("three", "bij,jkc,kb->ci", (a, b, c)),
        ("outer", "bij,kb->ikjb", (a, c)),
        ("implicit", "bij,jkc", (a, b)),
        ("diagonal", "iji->j", (quarters(3, 4, 3), )),
        ("ellipsis", "...ij,...jk->...ik", (quarters(2, 1, 3, 4),
                                            quarters(5, 4, 2))),
        ("attention", "bqhd,bkhd->bhqk", (quarters(2, 3, 2, 4),
                                          quarters(2, 5, 2, 4)))):
    node(f"einsum_{name}", "Einsum", [t.numpy() for t in terms],
         [numpy.einsum(equation, *terms)], equation=equation)


def ints(*numbers):
    return numpy.array(numbers, "int64")


def small(kind, *shape):
    return random.randint(numpy.iinfo(kind).min, numpy.iinfo(kind).max + 1,
                          shape).astype(kind)


for terms in 40, 259, 4112:
    a, b = small("uint8", 3, terms), small("int8", terms, 4)
    zeros = small("uint8", 3), small("int8", 4)
    # A sum whose first half is large, and the rest takes most of it away.
    a[0], zeros[0][0], zeros[1][0] = 255, 0, -1
    b[:, 0] = numpy.where(numpy.arange(terms) < terms // 2, 126, -128)
    b[0, 0] = 125
    wide = [t.astype(numpy.int64) for t in (a, b, *zeros)]
    node(f"matmul_of_{terms}", "MatMulInteger", [a, b, *zeros],
         [((wide[0] - wide[2][:, None]) @ (wide[1] - wide[3])).astype("int32")])
x, w = small("uint8", 1, 40, 6, 5), small("int8", 3, 40, 3, 3)
zero = numpy.array(7, "uint8")
y = F.conv2d(torch.tensor(x.astype("float64") - 7),
             torch.tensor(w.astype("float64")), padding=1).numpy()
node("conv_of_360", "ConvInteger", [x, w, zero], [y.astype("int32")],
     pads=[1, 1, 1, 1])

# --------------------------------------------------------------------- losses
x, labels = quarters(3, 4, 5), torch.randint(0, 4, (3, 5))
labels[1, 2] = -100
for reduction in "mean", "sum", "none":
    exported(f"loss_{reduction}", lambda x, t, w: F.cross_entropy(
        x, t, w, reduction=reduction), x, labels, positive(4))

# ------------------------------------------------------------------- integers
base = numpy.array([-3, 2, -1, 0, 7, -1, 5, 46340], "int32")
power = numpy.array([19, 30, 1001, 0, 11, -4, -1, 2], "int32")
node("powers", "Pow", [base, power],
     [numpy.array([-3**19, 2**30, -1, 1, 7**11, 1, 0, 46340**2], "int64")
      .astype("int32")], opset=15)
x = random.randint(-9000, 9001, (5, 40, 3))
for name, axes, wanted in (("Max", (1,), x.max(1)), ("Max", (1, 2), x.max((1, 2))),
                           ("Min", (0, 2), x.min((0, 2)))):
    node(f"{name}_of_{len(axes)}_axes", f"Reduce{name}", [x.astype("int32")],
         [wanted.astype("int32")], axes=axes, keepdims=0)
x = random.randint(1, 100000, (2, 8192))
x[:, 4096:] = 5 - x[:, :4096]  # partial sums that float32 cannot hold
x[1, 0] -= 20470
node("sum_of_integers", "ReduceSum", [x, ints(1)], [x.sum(1, keepdims=True)],
     constants=["x1"])
node("shifts", "BitShift",
     [numpy.array([255, 1, 200, 77], "uint8"),
      numpy.array([7, 0, 3, 8], "uint8")],
     [numpy.array([128, 1, 64, 0], "uint8")], direction="LEFT")

node("padded_integers", "Pad",
     [base.reshape(2, 4), numpy.array([1, 0, 0, 3], "int64"),
      numpy.array(-9, "int32")],
     [numpy.pad(base.reshape(2, 4), ((1, 0), (0, 3)), constant_values=-9)],
     constants=["x1", "x2"])
x = small("uint8", 1, 2, 7, 6)
node("max_of_integers", "MaxPool", [x],
     [F.max_pool2d(torch.tensor(x).float(), 3, 2, 1).numpy().astype("uint8")],
     kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

# --------------------------------------------------------------- old versions
x, b = quarters(2, 3, 4, 5), quarters(3, 4)
node("old_broadcast", "Add", [x.numpy(), b.numpy()],
     [(x + b[:, :, None]).numpy()], opset=6, broadcast=1, axis=1)
node("old_slope", "PRelu", [x.numpy(), b[:, 0].numpy()],
     [F.prelu(x, b[:, 0]).numpy()], opset=6)

# ----------------------------------------------------------- angles, transforms
x = torch.tensor([-1, -0.9999, -0.5, 0, 1e-6, 0.7, 1], dtype=torch.float32)
for name in "Acos", "Asin", "Atan":
    node(f"angles_{name}", name, [x.numpy()],
         [getattr(torch, name.lower())(x).numpy()])
x = quarters(2, 6, 4, 2).numpy()
y = numpy.fft.fft(x[..., 0] + 1j * x[..., 1], 9, 1)
node("transform", "DFT", [x, numpy.array(9, "int64")],
     [numpy.stack([y.real, y.imag], -1).astype("float32")], opset=17, axis=1,
     constants=["x1"])
x = quarters(3, 2, 4, 4).numpy()
node("determinant", "Det", [x], [numpy.linalg.det(x)])


# The last window of ceil_mode would begin beyond the input.
exported("max_ceil", lambda x: F.max_pool1d(x, 3, 3, 1, ceil_mode=True),
         quarters(2, 3, 8))
exported("mean_ceil", lambda x: F.avg_pool2d(
    x, 3, 3, 1, ceil_mode=True, count_include_pad=False), quarters(2, 3, 8, 5))
# Row 3 / 0.6 is 5 in float32, and less in float64.
exported("nearest_scales", lambda x: F.interpolate(x, scale_factor=(1.7, 0.6)),
         quarters(2, 3, 7, 8))
for name, more in ("", {}), ("_reverse", {"reverse": 1, "exclusive": 1}):
    x = random.randint(-1 << 20, 1 << 20, (3, 200)).astype("int64")
    y = x.cumsum(1) if not more else x.sum(1, keepdims=True) - x.cumsum(1)
    node("cumulative" + name, "CumSum", [x, numpy.int64(1)], [y],
         constants=["x1"], **more)

# ------------------------------------------------------------------- refusals
image, kernel = quarters(1, 4, 5, 5).numpy(), quarters(4, 2, 3, 3).numpy()
refused("dimensions", "of 6 dimensions it is not supported", "Conv",
        [image[None, None], kernel[None, None]])
refused("groups", "its kernel, groups and channels do not fit",
        "ConvTranspose", [image, kernel], group=3)
refused("cut", "its result would be empty", "ConvTranspose", [image, kernel],
        pads=[9, 9, 9, 9])
refused("output_padding", "output_padding has 3 numbers", "ConvTranspose",
        [image, kernel], output_padding=[1, 1, 1])
refused("scales", "its scales do not fit", "Resize",
        [image, None, numpy.ones(3, "float32")])
refused("sizes", "its sizes are negative or too large", "Resize",
        [image, None, None, ints(1, 4, 5, 1 << 40)])
refused("no_scales", "scales", "Resize",
        [image, None, numpy.float32([1, 1, numpy.nan, 2])])
refused("mode", "there is no such mode", "Resize",
        [image, None, numpy.ones(4, "float32")], mode="area")
refused("equation", "its equation is wrong", "Einsum", [image],
        equation="abcd->abe")
refused("terms", "its equation does not fit its inputs", "Einsum", [image],
        equation="abcd,ab->cd")
refused("letters", "its equation does not fit its inputs", "Einsum", [image],
        equation="abc->a")
refused("extents", "the shapes of its inputs do not fit", "Einsum",
        [image, kernel], equation="abcd,abcd->a")
refused("index", "index 5 is none of 5 elements", "ScatterND",
        [image[0, 0], ints(5).reshape(1, 1), image[0, 0, :1]],
        constants=["x1"])
refused("updates", "its updates do not fit its indices", "ScatterElements",
        [image, numpy.zeros((1, 1, 1, 2), "int64"), image])
refused("reduction", "there is no such reduction", "ScatterND",
        [image[0, 0], ints(1).reshape(1, 1), image[0, 0, :1]], opset=16,
        reduction="max")
refused("axes", "its axes are not 0 and 1", "ReverseSequence",
        [image, ints(1)], batch_axis=(1 << 63) - 1, time_axis=1 << 31)
refused("batch_dims", "its indices do not fit its input", "GatherND",
        [image, numpy.zeros((2, 3), "int64")], batch_dims=1)
refused("long_sum", "more than 4112 products", "MatMulInteger",
        [small("uint8", 1, 4113), small("uint8", 4113, 1)])
refused("zero_points", "its scales or zero points do not fit", "MatMulInteger",
        [small("uint8", 2, 3), small("uint8", 3, 2), small("uint8", 3)])
refused("labels", "its labels do not fit its scores",
        "SoftmaxCrossEntropyLoss", [image, ints(1)])
refused("grid", "its grid does not fit its images", "GridSample",
        [image, quarters(2, 3, 3, 2).numpy()], opset=16)
refused("regions", "its sampling_ratio is negative", "RoiAlign",
        [image, quarters(1, 4).numpy(), ints(0)], sampling_ratio=-1)
refused("pooled", "pooled_shape is not two numbers of 1 to 256", "MaxRoiPool",
        [image, quarters(1, 5).numpy()], pooled_shape=[3])
refused("transform", "so many elements", "DFT",
        [quarters(1, 8192, 1).numpy()], opset=17)
refused("matrix", "more than 4 x 4", "Det", [quarters(5, 5).numpy()])
refused("axis", "the shapes of its inputs do not fit", "Add",
        [image, kernel[0, 0]], opset=6, broadcast=1, axis=1)
refused("attributes", "attributes of versions before 7", "Add",
        [image, image], broadcast=1)
refused("shift", "to the left, of uint32", "BitShift",
        [numpy.ones(3, "uint32")] * 2, direction="LEFT")
