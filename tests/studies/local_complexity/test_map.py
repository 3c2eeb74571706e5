"""The map of local complexity: lengths of boundary against sampling, and the images that networks learn."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import inscape
from inscape.errors import DataError
from inscape.studies.local_complexity.map import coordinate_network, density
from inscape.studies.local_complexity.map.coordinate_network import drawn_image, fingerprint, read_image
from inscape.studies.local_complexity.map.density import edge_lengths, lengths_in_squares
from inscape.studies.local_complexity.map.resemblance import MAIN_SIGMA, length_fit, resemblance


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_lengths_in_cells_add_up_and_agree_with_sampling(seed, n_cells):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, size=(2, 7, 2))
    found = lengths_in_squares(a, b, -1.0, 1.0, n_cells)
    assert found.sum() == pytest.approx(np.linalg.norm(b - a, axis=1).sum())
    t = (np.arange(4000) + 0.5) / 4000
    points = a[:, None] + t[:, None] * (b - a)[:, None]
    at = np.floor((points + 1) / 2 * n_cells).astype(int).reshape(-1, 2)
    shares = np.repeat(np.linalg.norm(b - a, axis=1) / 4000, 4000)
    sampled = np.bincount(at @ [n_cells, 1], weights=shares, minlength=n_cells**2).reshape(n_cells, n_cells)
    assert np.abs(found - sampled).max() < 7 * 2 * 3 / 4000


def test_lines_along_the_axes_and_outside():
    a, b = np.array([[0.1, 0.5], [0.3, 0.1], [2.0, 2.0]]), np.array([[0.9, 0.5], [0.3, 0.9], [3.0, 3.0]])
    found = lengths_in_squares(a, b, 0.0, 1.0, 2)
    assert found.sum() == pytest.approx(1.6)
    assert found[0].sum() == pytest.approx(0.4 + 0.8)
    assert lengths_in_squares(a[2:], b[2:], 0.0, 1.0, 2).sum() == 0
    half = lengths_in_squares(np.array([[-1.0, 0.25]]), np.array([[2.0, 0.25]]), 0.0, 1.0, 2)
    assert np.allclose(half, [[0.5, 0.0], [0.5, 0.0]])


def test_density_is_the_expected_length_of_boundary():
    """One hidden layer, where the density is closed form: slope and total are one within their intervals."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1)).double()
    with torch.no_grad():
        rng = np.random.default_rng(0)
        net[0].weight.copy_(torch.from_numpy(rng.normal(size=(12, 2))))
        net[0].bias.copy_(torch.from_numpy(rng.uniform(-1, 1, size=12)))
    c = {"n_cells": 4, "seed": 0, "n_networks": 60}
    import pandas as pd

    found = density.compared(net, c, 0.1)
    frame = pd.DataFrame([{f"{k}_0.1": v.tolist() for k, v in found.items()}])
    fit = length_fit(frame, 0.1)
    for value, (low, high) in ((fit.value, fit.slope), fit.total):
        assert low < value < high
        assert abs(value - 1) < min(0.1, high - low)  # four standard errors
    assert 0.6 < fit.scatter < 1.6
    wrong = pd.DataFrame(
        [{"density_0.1": (2 * found["density"]).tolist(), "length_0.1": found["length"].tolist()}]
    )
    assert not length_fit(wrong, 0.1).value > 0.8


def test_length_per_area_of_a_line_is_that_of_the_line():
    net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0]]))
        net[0].bias.fill_(-0.5)
    found = edge_lengths(net, 2).reshape(2, 2)
    assert np.allclose(found, [[0, 0], [1, 1]])


def test_noise_moves_hidden_biases_and_nothing_else():
    c = density.configurations("smoke")[0] | {"seed": 0}
    net = coordinate_network.network(c)
    noisy = coordinate_network.perturbed(net, 0.5, np.random.default_rng(0))
    same = [torch.equal(a, b) for a, b in zip(net.parameters(), noisy.parameters(), strict=True)]
    assert same == [True, False, True, False, True, True]


def test_weights_come_back():
    c = density.configurations("smoke")[0] | {"seed": 3}
    net = coordinate_network.network(c)
    again = coordinate_network.with_weights(c, coordinate_network.weights_of(net))
    x = np.random.default_rng(0).uniform(-1, 1, size=(9, 2))
    assert np.allclose(inscape.wrap(net).scores(x), inscape.wrap(again).scores(x), atol=1e-4)


def test_an_image_file_is_read_in_grey_and_named_by_its_content(tmp_path):
    path = str(tmp_path / "picture.png")
    Image.fromarray(np.tile(np.array([[0, 255]], np.uint8), (6, 5))).resize((30, 20)).convert("RGB").save(
        path
    )
    assert read_image(path, 8).shape == (8, 8)
    cells = density.configurations("smoke", image=path)
    assert cells[0]["image_hash"] == fingerprint(path)
    assert coordinate_network.image_of(cells[0]).shape == (24, 24)
    Image.new("L", (9, 9), 255).save(path)
    assert density.configurations("smoke", image=path) != cells
    assert np.allclose(read_image(path, 4), 1)
    with pytest.raises(DataError, match="cannot read the image"):
        density.configurations("smoke", image=str(tmp_path / "none.png"))
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(DataError, match=r"cannot read the image .*text.png: it is of no known format"):
        density.configurations("smoke", image=str(tmp_path / "text.png"))


def test_an_image_of_an_array_file_is_that_of_its_picture(tmp_path):
    grey = (255 * drawn_image(24)).round().astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    np.savez(tmp_path / "many.npz", a=grey, real=grey / 255, mask=grey > 99, colours=np.stack([grey] * 3, -1))
    np.save(tmp_path / "one.npy", grey)
    expected = read_image(str(tmp_path / "a.png"), 12)
    for name in ("many.npz:a", "many.npz:real", "many.npz:colours", "one.npy"):
        assert np.abs(read_image(str(tmp_path / name), 12) - expected).max() <= 1 / 255
    assert set(np.unique(read_image(str(tmp_path / "many.npz:mask"), 24))) == {0.0, 1.0}
    cells = density.configurations("smoke", image=str(tmp_path / "many.npz:a"))
    assert coordinate_network.image_of(cells[0]).shape == (24, 24)
    with pytest.raises(
        DataError, match=r"^cannot read the image [^:]*many\.npz:b: it has a, real, mask, colours"
    ):
        read_image(str(tmp_path / "many.npz:b"), 12)
    np.save(tmp_path / "wrong.npy", np.zeros(5))
    with pytest.raises(DataError, match=r"expected pixels \(h, w\)"):
        read_image(str(tmp_path / "wrong.npy"), 12)


def test_a_resemblance_is_judged_by_the_rule_of_all_studies():
    def found(*values, error=0.0):
        rows = [{"maps": "a", "sigma": MAIN_SIGMA, "pearson": v} for v in values]
        return resemblance(pd.DataFrame(rows), "a", error)

    assert found(0.54, -0.15, 0.55, 0.01).holds is None
    assert found(0.9).holds is None
    assert found(0.4, 0.5, 0.45).holds is True  # above zero, and it reaches a half
    assert found(0.9, 0.95, 0.92).holds is True
    assert found(0.1, 0.12, 0.09).holds is False
    loose = found(0.1, 0.12, 0.09, error=0.008)  # the paper's networks represent their image exactly
    assert loose.holds is None
    assert "up to 0.008, is no exact fit" in loose.evidence
    assert found(0.9, 0.95, 0.92, error=0.008).holds is True


def test_an_image_of_16_bits_keeps_its_greys(tmp_path):
    ramp = np.tile(np.linspace(0, 65535, 8).round().astype(np.uint16), (8, 1))
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    assert np.allclose(read_image(str(tmp_path / "deep.png"), 8), np.linspace(0, 1, 8), atol=1 / 255)


def test_the_drawn_image_has_edges_and_smooth_parts():
    image = drawn_image(64)
    steps = np.abs(np.diff(image, axis=1))
    assert (steps > 0.3).sum() > 20
    assert np.mean((steps > 0) & (steps < 0.05)) > 0.05
