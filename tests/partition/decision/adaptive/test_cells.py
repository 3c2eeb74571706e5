"""Adaptive counting on planes and higher simplices."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import inscape
from inscape import Patch, Segment, Simplex, decision_regions
from inscape.errors import NonFiniteScoresError, PartitionError
from inscape.partition.decision import DecisionMesh
from inscape.partition.decision.adaptive.mesh import Mesh

SQUARE = Patch([0.0, 0.0], np.eye(2))


def adaptive(model, probe=SQUARE, **options):
    return decision_regions(model, probe, method="adaptive", **options)


def corner(d):
    return Simplex(np.concatenate([np.zeros((1, d)), np.eye(d)]))


def disc(radius, at=(0.1, -0.2)):
    return lambda x: radius**2 - ((x - at) ** 2).sum(axis=1, keepdims=True)


def rings(k):
    return lambda x: np.sin(np.pi * (k * np.linalg.norm(x, axis=1, keepdims=True) / 1.1 + 0.01))


def as_labels(scores):
    return lambda x: (scores(x)[:, 0] > 0).astype(int)


def random_net(seed, width=12):
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(3, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 3)
    )
    for p in net.parameters():
        p.data.normal_(std=1.0)
    return net.double()


@pytest.mark.parametrize("kind", ["scores", "labels"])
@pytest.mark.parametrize("probe", [SQUARE, Simplex([[-1.0, -1.0], [1.2, -0.9], [0.0, 1.3]])])
def test_a_disc_and_its_surroundings(probe, kind):
    model = disc(0.4)
    p = adaptive(model if kind == "scores" else as_labels(model), probe)
    assert isinstance(p, DecisionMesh)
    assert sorted(p.labels.tolist()) == [0, 1]
    status = "converged" if kind == "scores" else "not_shown"
    assert (p.method, p.is_exact, p.connectivity, p.status.kind) == ("adaptive", False, None, status)


@pytest.mark.parametrize(("k", "expected"), [(1, 1 + 4), (2, 2 + 4), (4, 4 + 4 + 4)])
@pytest.mark.parametrize("kind", ["scores", "labels"])
def test_rings_and_corners(k, expected, kind):
    """k rings up to radius 1.1; in each corner of the square one more, and for k = 4 a second at its tip."""
    model = rings(k)
    p = adaptive(model if kind == "scores" else as_labels(model))
    assert p.n_regions == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scores", "labels"])
@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_stripes(d, k, kind):
    def waves(x):
        return np.sin(np.pi * (k * x.sum(axis=1, keepdims=True) * 0.999 + 1e-3))

    p = adaptive(waves if kind == "scores" else as_labels(waves), corner(d))
    assert p.n_regions == k


def test_a_thin_slab_along_a_face_is_one_region():
    assert adaptive(lambda x: (x.sum(axis=1) > 0.99).astype(int), corner(3)).n_regions == 2


def test_boundaries_are_crisp_for_a_tenth_of_the_evaluations():
    p = adaptive(disc(0.6))
    image = p.labels[p.image(801)]
    t = np.linspace(-1, 1, 801)
    truth = (
        disc(0.6)(np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(801, 801) > 0
    )
    grid = decision_regions(disc(0.6), SQUARE, method="grid", resolution=200)
    nearest = np.rint(np.arange(801) / 800 * 199).astype(int)
    coarse = grid.labels[grid.image()][np.ix_(nearest, nearest)]
    assert (image != truth).mean() <= (coarse != truth).mean()
    assert p.n_evaluations <= 4000 / 4


@given(seed=st.integers(0, 10**6), is_patch=st.booleans())
@settings(max_examples=20)
def test_samples_cells_and_regions_fit_together(seed, is_patch):
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(3, 3)) * 2
    probe = Patch(vertices[0], vertices[1:]) if is_patch else Simplex(vertices)
    net = random_net(seed)
    p = adaptive(net, probe)
    points = np.tensordot(p.weights, probe.generators, axes=1)
    predicted = net(torch.tensor(points)).argmax(dim=1).numpy()
    assert (predicted == p.sample_labels).mean() > 0.999
    assert (p.labels[p.sample_regions] == p.sample_labels).all()
    x = p.weights[:, 1:]
    a, b, c = (x[p.cells[:, k]] for k in range(3))
    areas = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert np.isclose(areas.sum(), 1.0 if is_patch else 0.5)
    edges = {tuple(sorted(e)) for t in p.cells.tolist() for e in ((t[0], t[1]), (t[1], t[2]), (t[2], t[0]))}
    assert len(p.sample_labels) - len(edges) + len(p.cells) == 1
    assert p.n_regions == components(p, edges)


def components(p, edges):
    """A second route to the number of regions: depth-first search over edges between equal labels."""
    near = {i: [] for i in range(len(p.sample_labels))}
    for i, j in edges:
        if p.sample_labels[i] == p.sample_labels[j]:
            near[i].append(j)
            near[j].append(i)
    seen, n = set(), 0
    for i in near:
        if i not in seen:
            n += 1
            front = [i]
            while front:
                k = front.pop()
                if k not in seen:
                    seen.add(k)
                    front += near[k]
    return n


@pytest.mark.parametrize("d", [2, 3, 4])
def test_meshes_stay_without_hanging_vertices(d, rng):
    """After cuts at random, no edge of a cell has a vertex in its middle, and volumes add up."""
    mesh = Mesh(d, False, 2, 8)
    for _ in range(8):
        mesh.cut(np.unique(rng.integers(mesh.n_cells, size=1 + mesh.n_cells // 4)))
    cells, x = mesh.cells[: mesh.n_cells], mesh.vertices[: mesh.n_vertices]
    keys = {(int(i), *v) for i, v in zip(mesh.probe, x.tolist(), strict=False)}
    assert len(keys) == mesh.n_vertices
    for i in range(d + 1):
        for j in range(i):
            middles = x[cells[:, i]] + x[cells[:, j]]
            even = (middles % 2 == 0).all(axis=1)
            names = zip(mesh.probe_of_cells()[even].tolist(), (middles[even] // 2).tolist(), strict=True)
            assert not any((i, *m) in keys for i, m in names)
    sides = (x[cells[:, 1:]] - x[cells[:, :1]]).astype(float) / 2**8
    volumes = np.abs(np.linalg.det(sides))
    assert np.allclose(np.bincount(mesh.probe_of_cells(), volumes), 1.0)


@given(seed=st.integers(0, 10**6), order=st.permutations(range(3)))
@settings(max_examples=15)
def test_the_order_of_the_corners_changes_nothing(seed, order):
    vertices = np.random.default_rng(seed).normal(size=(3, 3))
    a, b = (adaptive(random_net(seed), Simplex(v)) for v in (vertices, vertices[order]))
    assert sorted(a.labels.tolist()) == sorted(b.labels.tolist())
    assert a.n_evaluations == b.n_evaluations


def test_a_list_gives_what_each_probe_gives_alone(rng):
    net = random_net(3)
    probes = [*inscape.sample_probes(rng.normal(size=(20, 3)), dim=2, n=4, random_state=0)]
    probes += [Patch(np.zeros(3), np.eye(3)[:2]), Segment(np.zeros(3), np.ones(3))]
    together = adaptive(net, probes)
    assert [p.probe for p in together] == probes
    for p, probe in zip(together, probes, strict=True):
        alone = adaptive(net, probe)
        assert p.n_regions == alone.n_regions
        assert sorted(p.labels.tolist()) == sorted(alone.labels.tolist())


def test_the_budget_is_never_exceeded_and_the_status_says_so():
    def wild(x):
        return np.modf(np.sin(x @ np.linspace(127.1, 311.7, x.shape[1]))[:, None] * 43758.5)[0]

    for model in (wild, as_labels(wild)):
        for probe, resolution, most in (
            (SQUARE, None, 200 * 200 // 10),
            (corner(2), None, 200 * 201 // 2 // 10),
            (SQUARE, 300, 300 * 300 // 10),
            (SQUARE, 60, 60 * 60 // 4),
            (corner(4), None, 4096),
        ):
            p = adaptive(model, probe, resolution=resolution)
            assert most / 2 < p.n_evaluations <= most
            assert "the budget of evaluations was reached; raise resolution" in p.status


def test_a_picture_in_one_look(rng):
    import matplotlib.pyplot as plt

    p = adaptive(rings(3))
    ax = p.plot()
    assert ax.get_title() == "7 decision regions"
    plt.close(ax.figure)
    image = adaptive(disc(0.3), corner(2)).image(50)
    assert image[49, 1] == -1
    assert (image >= 0).sum() == 50 * 51 // 2
    with pytest.raises(PartitionError, match="dimension 3 has no picture"):
        adaptive(disc(0.3, (0, 0, 0)), corner(3)).plot()


def test_nan_scores_are_located():
    with pytest.raises(NonFiniteScoresError, match=r"there: probe 0 at the weights \[1.0, 1.0, "):
        adaptive(lambda x: np.where(x[:, :1] > 0.999, np.nan, x[:, :1]))


@pytest.mark.parametrize(
    ("probe", "options", "message"),
    [
        (SQUARE, {"tolerance": 1e-3}, "on a probe of dimension 2 give a resolution instead"),
        (SQUARE, {"connectivity": "full"}, "connectivity='full' belongs to the grid"),
        (corner(11), {}, "cells in 11 dimensions.*lower the dimension"),
    ],
)
def test_bad_options(probe, options, message):
    with pytest.raises(PartitionError, match=message):
        adaptive(lambda x: x[:, :1], probe, **options)


def test_full_connectivity_asks_for_the_grid():
    p = decision_regions(lambda x: (x[:, 0] * x[:, 1] > 0).astype(int), SQUARE, connectivity="full")
    assert (p.method, p.n_regions) == ("grid", 2)
