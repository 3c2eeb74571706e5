"""Convolution, pooling, padding and slicing in ONNX files of random settings, against onnxruntime."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx_files import check, run, save

import inscape
from inscape.models.graph.piecewise import PaddedMaxPool, Windows, max_pool
from inscape.partition.linear import linear_regions

often = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MODES = ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


@st.composite
def windows(draw, n, *, pooling):
    """Attributes of a convolution or pooling on `n` axes, and the sizes of these axes."""
    each = lambda low, high: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))  # noqa: E731
    kernel, strides, size = each(1, 4), each(1, 3), each(4, 9)
    mode = draw(st.sampled_from(MODES))
    found = {"kernel_shape": kernel, "strides": strides, "auto_pad": mode}
    if mode in ("NOTSET", "VALID"):
        found["dilations"] = each(1, 2)
    if mode == "NOTSET":
        most = kernel if pooling else [3] * n
        pads = [draw(st.integers(0, m - 1)) for m in most * 2]
        found["pads"] = pads
        if pooling:
            found["ceil_mode"] = draw(st.integers(0, 1))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, found.get("dilations", [1] * n), strict=True)]
    assume(all(r <= s for r, s in zip(reach, size, strict=True)))
    if pooling and mode.startswith("SAME"):  # onnxruntime refuses gaps between windows then
        assume(all(k >= s for k, s in zip(kernel, strides, strict=True)))
    return found, tuple(size)


@often
@given(data=st.data(), n=st.integers(1, 2), groups=st.integers(1, 2), with_bias=st.booleans())
def test_convolutions(data, n, groups, with_bias, tmp_path):
    attributes, size = data.draw(windows(n, pooling=False))
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 4 // groups, *attributes["kernel_shape"]))
    constants = {"w": weight, **({"b": rng.standard_normal(4)} if with_bias else {})}
    nodes = [("Conv", "x w b" if with_bias else "x w", "y", {**attributes, "group": groups})]
    check(save(tmp_path / "m.onnx", nodes, (4, *size), constants), (4, *size), batch=2)


@often
@given(data=st.data(), n=st.integers(1, 2))
def test_max_pooling(data, n, tmp_path):
    attributes, size = data.draw(windows(n, pooling=True))
    path = save(tmp_path / "m.onnx", [("MaxPool", "x", "y", attributes)], (2, *size), opset=12)
    x = np.random.default_rng(1).standard_normal((1, 2, *size)).astype(np.float32)
    assume(np.abs(run(path, x)).max() < 1e30)  # a window of nothing but padding
    graph = check(path, (2, *size), batch=2)
    (pool,) = (node.op for node in graph.nodes if isinstance(node.op, Windows))
    table = pool.table((2, *size))
    entries = torch.from_numpy(x).flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -math.inf)
    assert np.array_equal(entries.amax(-1).numpy().ravel(), run(path, x).ravel())


@often
@given(data=st.data(), n=st.integers(1, 2), include=st.integers(0, 1))
def test_average_pooling(data, n, include, tmp_path):
    attributes, size = data.draw(windows(n, pooling=True))
    attributes["count_include_pad"] = include
    path = save(tmp_path / "m.onnx", [("AveragePool", "x", "y", attributes)], (2, *size), opset=19)
    x = np.ones((1, 2, *size), np.float32)
    assume(np.isfinite(run(path, x)).all() and (run(path, x) > 0).all())
    check(path, (2, *size), batch=2)


@st.composite
def cuts(draw, n):
    """Start, end and step of a slice that is not empty, some counted from the end of the axis."""
    step, start = draw(st.sampled_from([-2, -1, 1, 2, 3])), draw(st.integers(0, n - 1))
    end = draw(st.integers(start + 1, n + 3)) if step > 0 else draw(st.integers(0, start)) - 1
    if end < 0:
        end = -1000
    elif draw(st.booleans()) and end < n:
        end -= n
    return draw(st.sampled_from([start, start - n])), end, step


@often
@given(data=st.data())
def test_padding_and_slicing(data, tmp_path):
    size = data.draw(st.lists(st.integers(2, 5), min_size=3, max_size=3))
    widths = np.array(data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))).reshape(2, 3)
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge"]))
    if mode == "reflect":
        widths = np.minimum(widths, np.array(size) - 1)
    padded = np.array(size) + widths.sum(axis=0)
    starts, ends, steps = zip(*(data.draw(cuts(int(n))) for n in padded), strict=True)
    constants = {
        "p": np.insert(widths, 0, 0, axis=1).ravel(),
        "v": np.float32(1.5),
        "s": np.array(starts),
        "e": np.array(ends),
        "a": np.array([1, 2, 3]),
        "t": np.array(steps),
    }
    nodes = [("Pad", "x p v", "q", {"mode": mode}), ("Slice", "q s e a t", "y")]
    check(save(tmp_path / "m.onnx", nodes, size, constants), size, batch=2)


@pytest.mark.parametrize("size", [(7, 8), (6, 5)])
def test_unequal_padding_of_a_max_pool(size):
    x = torch.randn(2, 3, *size, dtype=torch.float64)
    for k, s, before, after in itertools.product((2, 3), (1, 2), (0, 1), (0, 1, 2)):
        if after >= k:  # a window of nothing but padding
            continue
        pool = PaddedMaxPool(max_pool((k, k), (s, s)), (before, after, after, before))
        table = pool.table((3, *size))
        entries = x.flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -math.inf)
        assert torch.equal(entries.amax(-1).reshape(pool(x).shape), pool(x))
        dx = torch.randn_like(x)
        assert torch.allclose(pool.derivative(x, dx), (pool(x + 1e-9 * dx) - pool(x)) / 1e-9, atol=1e-5)


@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [0, 1, 2, 0], "strides": [2, 1]},
        {"ceil_mode": 1, "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 2]},
        {"dilations": [2, 1], "pads": [1, 0, 0, 1]},
    ],
)
def test_linear_pieces_through_an_unequal_max_pool(attributes, tmp_path):
    """The scores are straight between neighbouring knots, and every knot of theirs is found."""
    rng = np.random.default_rng(2)
    nodes = [
        ("Conv", "x w", "a"),
        ("MaxPool", "a", "p", {"kernel_shape": [3, 3], **attributes}),
        ("GlobalAveragePool", "p", "g"),
        ("Flatten", "g", "y"),
    ]
    path = save(tmp_path / "m.onnx", nodes, (1, 8, 9), {"w": rng.standard_normal((3, 1, 2, 2))})
    segment = inscape.Segment(*rng.standard_normal((2, 1, 8, 9)))
    found = linear_regions(path, segment)
    graph = inscape.wrap(path).graph((1, 8, 9))
    edges = np.concatenate([[0.0], found.knots, [1.0]])
    t = np.sort(np.concatenate([edges, (edges[:-1] + edges[1:]) / 2, np.linspace(0, 1, 4001)]))
    at_t, at_edges = (graph.evaluate(torch.from_numpy(segment.points(s))).numpy() for s in (t, edges))
    straight = np.stack([np.interp(t, edges, f) for f in at_edges.T], axis=1)
    assert np.abs(at_t - straight).max() < 1e-12
    assert found.n_regions == found.n_linear > 10


@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 1, 2]}, {"pads": [1, 0, 1, 0, 1, 0]}])
def test_max_pooling_in_three_dimensions(attributes, tmp_path):
    nodes = [("MaxPool", "x", "y", {"kernel_shape": [2, 2, 3], **attributes})]
    check(save(tmp_path / "m.onnx", nodes, (2, 4, 4, 4)), (2, 4, 4, 4))
