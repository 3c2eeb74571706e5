"""Crops, mirror images and mixup are what they should be."""

import numpy as np
import pytest
import torch

from inscape.training.loop import Augmentation
from inscape.training.recipe import Recipe


def windows(image, border):
    """Every crop of the padded image, with its mirror image."""
    padded = torch.nn.functional.pad(image, (border,) * 4)
    h, w = image.shape[-2:]
    crops = [padded[..., i : i + h, j : j + w] for i in range(2 * border + 1) for j in range(2 * border + 1)]
    return crops, [c.flip(-1) for c in crops]


@pytest.mark.parametrize("shape", [(2, 4, 5), (4, 5)])
def test_images_become_their_crops_and_mirror_images(shape, rng):
    x = torch.from_numpy(rng.random((60, *shape)))
    moved = Augmentation(Recipe(0.1, 8, 1, crop=2, flip=True), 0)(x, torch.zeros(60)).x
    found = []
    for image, result in zip(x, moved, strict=True):
        plain, mirrored = windows(image, 2)
        places = [i for i, c in enumerate(plain + mirrored) if torch.equal(c, result)]
        assert len(places) >= 1
        found.append(places[0])
    assert len(set(found)) > 25  # of 50 possible ones
    assert 15 < sum(place >= 25 for place in found) < 45


def test_flip_alone(rng):
    x = torch.from_numpy(rng.random((50, 3, 3)))
    moved = Augmentation(Recipe(0.1, 8, 1, flip=True), 0)(x, torch.zeros(50)).x
    kept = [torch.equal(a, b) for a, b in zip(x, moved, strict=True)]
    turned = [torch.equal(a.flip(-1), b) for a, b in zip(x, moved, strict=True)]
    assert all(k != t for k, t in zip(kept, turned, strict=True))
    assert 10 < sum(turned) < 40


def test_mixup_mixes_points_and_losses(rng):
    x, y = torch.from_numpy(rng.random((6, 2))), torch.arange(6)
    batch = Augmentation(Recipe(0.1, 8, 1, mixup=1.0), 3)(x, y)
    assert torch.allclose(batch.x, batch.share * x + (1 - batch.share) * x[batch.other])
    scores = torch.from_numpy(rng.normal(size=(6, 6)))
    logs = torch.log_softmax(scores, 1)
    i = torch.arange(6)
    expected = -(batch.share * logs[i, y] + (1 - batch.share) * logs[i, batch.other]).mean()
    assert torch.isclose(batch.loss(scores), expected)
    augment = Augmentation(Recipe(0.1, 8, 1, mixup=0.4), 3)
    shares = [augment(x, y).share for _ in range(2000)]
    assert np.isclose(np.var(shares), 1 / (4 * (2 * 0.4 + 1)), rtol=0.1)  # of Beta(0.4, 0.4)
