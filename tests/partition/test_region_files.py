"""Regions as tables, polygons and files, and back."""

import json

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import nn

import inscape
from inscape import Patch, Segment
from inscape.errors import PartitionError, PictureError
from inscape.partition.decision import DecisionRegions
from inscape.partition.linear import LinearPlane

SQUARE = Patch([0.0, 0.0, 0.0], [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])


def diamond():
    """Class 1 where |x| + |y| < 1 / 2: a hole of class 0."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]))
        net[0].bias.zero_()
        net[2].weight.fill_(-1)
        net[2].bias.fill_(0.5)
    return net


@pytest.fixture(scope="module")
def plane():
    return inscape.decision_regions(diamond(), SQUARE, method="exact")


def signed_area(ring):
    x, y = np.asarray(ring).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def test_geojson_of_a_region_with_a_hole(plane, tmp_path):
    data = json.loads(plane.save(tmp_path / "p.geojson").read_text())
    regions = [f for f in data["features"] if f["properties"]["kind"] == "region"]
    (border,) = [f for f in data["features"] if f["properties"]["kind"] == "border"]
    by_label = {f["properties"]["label"]: f for f in regions}
    rings = by_label[0]["geometry"]["coordinates"]
    assert [len(f["geometry"]["coordinates"]) for f in (by_label[0], by_label[1])] == [2, 1]
    assert all(ring[0] == ring[-1] for ring in rings)  # closed
    assert signed_area(rings[0][:-1]) == pytest.approx(4.0)  # anticlockwise, the whole square
    assert signed_area(rings[1][:-1]) == pytest.approx(-2 * 0.25 * (1 / 6))  # clockwise, the diamond
    assert by_label[1]["properties"]["area"] == pytest.approx(0.5)  # in the input space
    assert border["properties"]["length"] == pytest.approx(4 * np.hypot(0.5, 0.5))
    assert border["properties"]["regions"] == [0, 1]


def test_what_json_has_comes_back(plane, tmp_path):
    written = json.loads(plane.save(tmp_path / "p.json").read_text())
    again = DecisionRegions.from_dict(written)
    assert np.array_equal(again.areas, plane.areas)
    for mine, theirs in zip(again.polygons, plane.polygons, strict=True):
        assert sorted(map(signed_area, mine)) == pytest.approx(sorted(map(signed_area, theirs)))
    assert again.n_boundary_pieces == len(again.boundary) == len(written["boundary_regions"])
    assert np.array_equal(again.boundary, plane.boundary)
    places = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    assert np.array_equal(again.locate(places), plane.locate(places))
    assert again.plot().get_title() == plane.plot().get_title()
    assert sorted(again.corner_labels.tolist()) == sorted(plane.corner_labels.tolist())
    assert again.to_dict(polygons=True) == written
    del written["edges"]  # as files of earlier versions are
    assert np.array_equal(DecisionRegions.from_dict(written).locate(places), plane.locate(places))
    assert "faces" not in plane.to_dict()


def test_the_table_of_a_plane(plane, tmp_path):
    frame = plane.to_frame()
    assert frame["area"].sum() == pytest.approx(24.0)
    assert frame.set_index("label")["n_holes"].to_dict() == {0: 1, 1: 0}
    assert frame["polygon"][0].startswith("POLYGON ((")
    lines = plane.save(tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "region,label,class_name,area,n_holes,polygon"
    assert len(lines) == 3


def test_linear_regions(tmp_path):
    q = inscape.linear_regions(diamond(), SQUARE)
    assert q.to_frame()["area"].tolist() == pytest.approx([6.0] * 4)
    data = json.loads(q.save(tmp_path / "q.geojson").read_text())
    regions, borders = data["features"][:4], data["features"][4:]
    assert {f["properties"]["kind"] for f in regions} == {"region"}
    assert {tuple(f["properties"]["regions"]) for f in borders} == {(0, 1), (0, 3), (1, 2), (2, 3)}
    assert sorted(f["properties"]["length"] for f in borders) == pytest.approx([2, 2, 3, 3])
    again = LinearPlane.from_dict(json.loads(q.save(tmp_path / "q.json").read_text()))
    for name in ("areas", "vertices", "edges", "adjacency"):
        assert np.array_equal(getattr(again, name), getattr(q, name)), name
    assert again.to_frame().equals(q.to_frame())
    assert again.save(tmp_path / "again.geojson").read_text() == (tmp_path / "q.geojson").read_text()
    with pytest.raises(PartitionError, match="was left out when this result was written: compute it again"):
        _ = again.patterns


def test_other_regions_have_tables_and_pictures(tmp_path):
    rule = lambda x: np.where(x[:, 0] > 0.5, "b", "a")  # noqa: E731
    s = inscape.decision_regions(rule, Segment(np.zeros(3), np.ones(3)))
    assert s.to_frame()["class_name"].tolist() == ["a", "b"]
    assert s.to_frame()["start"][1] == pytest.approx(0.5, abs=0.01)
    for method in ("grid", "adaptive"):
        p = inscape.decision_regions(rule, SQUARE, method=method)
        assert p.to_frame().set_index("class_name")["share"]["a"] == pytest.approx(0.625, abs=0.03)
        with pytest.raises(PictureError, match="has no polygons for GeoJSON"):
            p.save(tmp_path / "p.geojson")
    assert "<svg" in s.save(tmp_path / "s.svg").read_text()
    assert len(inscape.linear_regions(diamond(), Segment(np.zeros(3), np.ones(3))).to_frame()) == 1
    with pytest.raises(PictureError, match="must end in"):
        s.save(tmp_path / "s.xyz")
    with pytest.raises(PictureError, match="cannot write"):
        s.save(tmp_path / "no" / "s.json")


@pytest.mark.parametrize(
    "find",
    [
        lambda net, square, line: inscape.decision_regions(net, square, method="exact"),
        lambda net, square, line: inscape.decision_regions(net, square, method="adaptive"),
        lambda net, square, line: inscape.decision_regions(net, square, method="grid"),
        lambda net, square, line: inscape.decision_regions(net, line),
        lambda net, square, line: inscape.linear_regions(net, square),
        lambda net, square, line: inscape.linear_regions(net, line),
    ],
    ids=["exact plane", "adaptive plane", "grid", "segment", "linear plane", "linear segment"],
)
def test_what_a_file_gives_back_is_drawn_alike(find, tmp_path):
    """Pixel by pixel: a picture can be made where the model is not."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)).double()
    square = Patch([0.0, 0.0], np.eye(2), ((-2, 2), (-2, 2)))
    result = find(net, square, Segment([-2.0, -1.0], [2.0, 1.0]))
    path = result.save(tmp_path / "regions.json")
    again = type(result).from_dict(json.loads(path.read_text()))
    assert again.to_frame().equals(result.to_frame())
    pictures = []
    for one in (result, again):
        figure = Figure(figsize=(3, 3))
        FigureCanvasAgg(figure)
        one.plot(figure.subplots(), title="")
        figure.canvas.draw()
        pictures.append(np.asarray(figure.canvas.buffer_rgba()))
    np.testing.assert_array_equal(*pictures)
