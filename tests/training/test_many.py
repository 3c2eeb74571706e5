import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from inscape.errors import InscapeError
from inscape.training import many
from inscape.training.loop import train
from inscape.training.many import train_many
from inscape.training.networks import build, mlp
from inscape.training.recipe import Recipe


def furthest(a, b):
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return max(float((p - q).detach().abs().max()) for p, q in pairs)


def compare(nets, x, y, recipes, seeds):
    """Train copies one by one and together; the histories of both and the largest difference."""
    alone = copy.deepcopy(nets)
    one = [train(n, x, y, r, seed=s) for n, r, s in zip(alone, recipes, seeds, strict=True)]
    together = train_many(nets, x, y, recipes, seeds=seeds)
    return one, together, max(furthest(a, b) for a, b in zip(alone, nets, strict=True))


@pytest.mark.parametrize("hidden", [(), (16,), (16, 12)])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_together_is_one_by_one(hidden, momentum, schedule, digits):
    base = Recipe(0.1, 16, 3, momentum=momentum, schedule=schedule)
    recipes = [
        replace(base, learning_rate=rate, batch_size=size, weight_decay=decay)
        for rate, size, decay in (
            (0.1, 16, 0.0),
            (0.03, 16, 0.01),
            (0.1, 32, 0.0),
            (0.01, 16, 1e-3),
            (0.2, 500, 0),
        )
    ]
    nets = [
        build("mlp", (8, 8), 10, hidden=hidden, normalise=(0.3, 0.4), seed=i).double()
        for i in range(len(recipes))
    ]
    one, together, apart = compare(nets, digits.x[:75], digits.y[:75], recipes, range(5))
    assert apart < 1e-8
    assert [h.n_steps for h in one] == [h.n_steps for h in together]
    assert np.allclose([h.losses for h in one], [h.losses for h in together])
    assert not any(n.training for n in nets)


def test_what_cannot_be_stacked_trains_alone(digits):
    recipes = [
        Recipe(0.01, 16, 2),
        Recipe(0.01, 16, 2, optimiser="adam"),
        Recipe(0.01, 16, 2, mixup=0.2),
        Recipe(0.01, 16, 2, stop_loss=100.0),
        Recipe(0.02, 16, 2),
    ]
    nets = [mlp(64, (8,), 10, seed=0).double() for _ in recipes[:4]]
    nets.append(build("cnn", (8, 8), 10, width=0.125, seed=0).double())
    _, together, apart = compare(nets, digits.x[:40], digits.y[:40], recipes, range(5))
    assert apart < 1e-8
    assert [h.status for h in together] == ["complete"] * 3 + ["loss reached", "complete"]


def test_only_mlps_of_one_kind_are_stacked():
    recipe = Recipe(0.1, 16, 2)
    nets = [
        mlp(64, (8,), 10, seed=0),
        mlp(64, (8,), 10, seed=1),
        mlp(64, (9,), 10, seed=0),
        mlp(64, (8,), 10, seed=0).double(),
        build("mlp", (8, 8), 10, hidden=(8,), normalise=(0.0, 2.0), seed=0),
        torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.Tanh(), torch.nn.Linear(8, 10)
        ),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10), torch.nn.ReLU()),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10, bias=False)),
    ]
    assert many._groups(nets, [recipe] * len(nets)) == [[0, 1], *([i] for i in range(2, len(nets)))]


def test_a_run_that_diverges_leaves_the_others_alone(digits):
    recipes = [Recipe(0.1, 16, 10), Recipe(1e200, 16, 10), Recipe(0.05, 16, 10)]
    nets = [mlp(64, (8,), 10, seed=i).double() for i in range(3)]
    alone = mlp(64, (8,), 10, seed=0).double()
    histories = train_many(nets, digits.x[:60], digits.y[:60], recipes, seeds=[0, 1, 2])
    assert [h.status for h in histories] == ["complete", "diverged", "complete"]
    assert np.isnan(histories[1].loss)
    train(alone, digits.x[:60], digits.y[:60], recipes[0], seed=0)
    assert furthest(alone, nets[0]) < 1e-8


def test_arguments_that_do_not_fit(digits):
    net = mlp(64, (8,), 10, seed=0)
    with pytest.raises(InscapeError, match="1 modules, 2 recipes, 1 seeds"):
        train_many([net], digits.x, digits.y, [Recipe(0.1, 8, 1)] * 2, seeds=[0])
    with pytest.raises(InscapeError, match="given twice"):
        train_many([net, net], digits.x, digits.y, [Recipe(0.1, 8, 1)] * 2, seeds=[0, 1])


def test_a_last_point_alone_and_milestones_as_a_list(digits):
    recipes = [Recipe(rate, 16, 4, schedule="step", milestones=[0.5]) for rate in (0.1, 0.2)]
    nets = [mlp(64, (8,), 10, seed=i).double() for i in range(2)]
    one, together, apart = compare(nets, digits.x[:33], digits.y[:33], recipes, range(2))
    assert apart < 1e-8
    assert [h.n_steps for h in one] == [h.n_steps for h in together] == [8, 8]
