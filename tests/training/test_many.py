"""Many networks trained together are each trained alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from inscape.errors import DataError, InscapeError
from inscape.training.loop import train
from inscape.training.many import is_compilable, train_many, train_on_fresh
from inscape.training.monitor import Monitor
from inscape.training.networks import build, mlp
from inscape.training.recipe import Recipe


def furthest(a, b):
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return max(float((p - q).detach().abs().max()) for p, q in pairs)


def compare(nets, x, y, recipes, seeds):
    """Train copies one by one and together; the histories of both and the largest difference."""
    alone = copy.deepcopy(nets)
    one = [train(n, x, y, r, random_state=s) for n, r, s in zip(alone, recipes, seeds, strict=True)]
    together = train_many(nets, x, y, recipes, random_states=seeds)
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
        build("mlp", (8, 8), 10, hidden=hidden, normalise=(0.3, 0.4), random_state=i).double()
        for i in range(len(recipes))
    ]
    one, together, apart = compare(nets, digits.x[:75], digits.y[:75], recipes, range(5))
    assert apart < 1e-8
    assert [h.n_steps for h in one] == [h.n_steps for h in together]
    assert np.allclose([h.losses for h in one], [h.losses for h in together])
    assert not any(n.training for n in nets)


@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_adam_together_is_one_by_one(optimiser, schedule, digits):
    base = Recipe(0.01, 16, 3, optimiser=optimiser, schedule=schedule)
    recipes = [
        replace(base, learning_rate=rate, weight_decay=decay)
        for rate, decay in ((0.01, 0.0), (0.01, 0.5), (0.03, 0.0), (0.01, 0.1))
    ]
    nets = [mlp(64, (16, 12), 10, random_state=i).double() for i in range(len(recipes))]
    one, together, apart = compare(nets, digits.x[:75], digits.y[:75], recipes, range(4))
    assert apart < 1e-8
    assert np.allclose([h.losses for h in one], [h.losses for h in together])


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_targets_are_fitted_in_mean_square(optimiser, digits):
    x, y = digits.x[:70], digits.x[:70].reshape(70, -1)[:, [10, 20, 30]]
    recipes = [Recipe(0.01, 16, 3, optimiser=optimiser)] * 2
    nets = [mlp(64, (16,), 3, random_state=i).double() for i in range(2)]
    one, together, apart = compare(nets, x, y, recipes, range(2))
    assert apart < 1e-8
    assert np.allclose([h.losses for h in one], [h.losses for h in together])
    best = train(
        mlp(64, (), 3, random_state=0).double(), x, y, Recipe(0.05, 70, 400, optimiser="adam"), random_state=0
    ).loss
    a = np.column_stack([x.reshape(70, -1), np.ones(70)])
    left = y - a @ np.linalg.lstsq(a, y, rcond=None)[0]
    assert np.mean(left**2) - 1e-12 <= best < 1e-3
    with pytest.raises(DataError, match="3 targets, but the module gives 2"):
        train_many([mlp(64, (16,), 2, random_state=0)], x, y, recipes[:1], random_states=[0])


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_probabilities_for_scores_and_biases_that_do_not_decay(optimiser, digits):
    recipe = Recipe(
        0.01, 16, 3, optimiser=optimiser, weight_decay=0.3, decay_biases=False, loss="softmax-cross-entropy"
    )
    nets = [mlp(64, (16, 12), 10, random_state=i).double() for i in range(2)]
    plain = copy.deepcopy(nets)
    one, together, apart = compare(nets, digits.x[:75], digits.y[:75], [recipe] * 2, range(2))
    assert apart < 1e-8
    assert np.allclose([h.losses for h in one], [h.losses for h in together])
    assert min(h.loss for h in one) > np.log1p(9 / np.e)  # the least that this loss can be
    decaying = replace(recipe, decay_biases=True)
    train_many(plain, digits.x[:75], digits.y[:75], [decaying] * 2, random_states=[0, 1])
    assert furthest(plain[0], nets[0]) > 1e-6


def test_fresh_points_are_those_that_are_drawn(digits):
    x, y = digits.x[:64], digits.y[:64]
    order = torch.randperm(64, generator=torch.Generator().manual_seed(5)).numpy()
    seen = []

    def draw(n):
        rows = order[len(seen) * n : (len(seen) + 1) * n]
        seen.append(n)
        return x[rows], y[rows]

    recipe = Recipe(0.01, 16, 1, optimiser="adamw", weight_decay=0.1, schedule="constant")
    nets = [mlp(64, (8,), 10, random_state=0).double() for _ in range(2)]
    monitor = Monitor(x, y, measures=["accuracy"], every=2)
    loss = train_on_fresh(nets[0], draw, recipe, n_steps=4, monitor=monitor)
    train(nets[1], x, y, recipe, random_state=5)
    assert furthest(*nets) < 1e-8
    assert seen == [16] * 4
    assert [r["step"] for r in monitor.rows] == [0, 2, 4]
    assert 0 < loss < 5
    with pytest.raises(InscapeError, match="constant recipe"):
        train_on_fresh(nets[0], draw, replace(recipe, schedule="cosine"), n_steps=1)


def test_monitors_see_the_weights_of_their_step(digits):
    x, y = digits.x[:40], digits.y[:40]
    recipe = Recipe(0.01, 16, 4, optimiser="adamw", weight_decay=0.1)
    nets = [mlp(64, (8,), 10, random_state=i).double() for i in range(2)]
    alone = copy.deepcopy(nets)
    measures = {"adversarial_accuracy": {"eps": 0.1, "steps": 2, "step_size": 0.1}, "total_variation": {}}

    def monitors():
        return [Monitor(x, y, measures=measures, every=k, also=weight_size) for k in (3, 5)]

    together, apart = monitors(), monitors()
    train_many(nets, x, y, [recipe] * 2, random_states=[0, 1], monitors=together)
    for net, monitor, seed in zip(alone, apart, (0, 1), strict=True):
        train(net, x, y, recipe, random_state=seed, monitor=monitor)
    for a, b in zip(together, apart, strict=True):
        assert [r["step"] for r in a.rows] == [r["step"] for r in b.rows]
        for name in ("adversarial_accuracy", "total_variation", "size"):
            assert np.allclose([r[name] for r in a.rows], [r[name] for r in b.rows])
    with pytest.raises(InscapeError, match="2 modules, 1 monitors"):
        train_many(nets, x, y, [recipe] * 2, random_states=[0, 1], monitors=together[:1])


def weight_size(model):
    return {"size": float(sum(p.detach().square().sum() for p in model.module.parameters()))}


def test_what_cannot_be_compiled_trains_all_the_same(digits):
    recipes = [
        Recipe(0.01, 16, 2),
        Recipe(0.01, 16, 2, optimiser="adagrad"),
        Recipe(0.01, 16, 2, mixup=0.2),
        Recipe(0.01, 16, 2, stop_loss=100.0),
        Recipe(0.02, 16, 2),
    ]
    nets = [mlp(64, (8,), 10, random_state=0).double() for _ in recipes[:4]]
    nets.append(build("cnn", (8, 8), 10, width=0.125, random_state=0).double())
    _, together, apart = compare(nets, digits.x[:40], digits.y[:40], recipes, range(5))
    assert apart < 1e-8
    assert [h.status for h in together] == ["complete"] * 3 + ["loss reached", "complete"]


def test_only_plain_mlps_are_compiled():
    recipe = Recipe(0.1, 16, 2)
    frozen = mlp(64, (8,), 10, random_state=0)
    frozen[1].weight.requires_grad_(False)
    half = mlp(64, (8,), 10, random_state=0)
    half[3].double()
    plain = [
        mlp(64, (8,), 10, random_state=0),
        mlp(64, (8,), 10, random_state=0).double(),
        build("mlp", (8, 8), 10, hidden=(8,), normalise=(0.0, 2.0), random_state=0),
    ]
    others = [
        frozen,
        half,
        mlp(64, (8,), 10, random_state=0).bfloat16(),
        torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.Tanh(), torch.nn.Linear(8, 10)
        ),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10), torch.nn.ReLU()),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10, bias=False)),
    ]
    assert all(is_compilable(net, recipe) for net in plain)
    assert not any(is_compilable(net, recipe) for net in others)
    assert not is_compilable(plain[0], replace(recipe, optimiser="adagrad"))


def test_frozen_weights_stay(digits):
    nets = [mlp(64, (8,), 10, random_state=0).double() for _ in range(2)]
    for net in nets:
        net[1].weight.requires_grad_(False)
    start = nets[0][1].weight.clone()
    _, _, apart = compare(nets[:1], digits.x[:40], digits.y[:40], [Recipe(0.1, 16, 2)], [0])
    assert apart == 0
    assert torch.equal(nets[0][1].weight, start)
    assert not torch.equal(nets[0][3].weight, nets[1][3].weight)


def test_a_run_that_diverges_leaves_the_others_alone(digits):
    recipes = [Recipe(0.1, 16, 10), Recipe(1e200, 16, 10), Recipe(0.05, 16, 10)]
    nets = [mlp(64, (8,), 10, random_state=i).double() for i in range(3)]
    alone = mlp(64, (8,), 10, random_state=0).double()
    histories = train_many(nets, digits.x[:60], digits.y[:60], recipes, random_states=[0, 1, 2])
    assert [h.status for h in histories] == ["complete", "diverged", "complete"]
    assert np.isnan(histories[1].loss)
    train(alone, digits.x[:60], digits.y[:60], recipes[0], random_state=0)
    assert furthest(alone, nets[0]) < 1e-8


def test_arguments_that_do_not_fit(digits):
    net = mlp(64, (8,), 10, random_state=0)
    with pytest.raises(InscapeError, match="1 modules, 2 recipes, 1 random states"):
        train_many([net], digits.x, digits.y, [Recipe(0.1, 8, 1)] * 2, random_states=[0])
    with pytest.raises(InscapeError, match="given twice"):
        train_many([net, net], digits.x, digits.y, [Recipe(0.1, 8, 1)] * 2, random_states=[0, 1])


def test_a_last_point_alone_and_milestones_as_a_list(digits):
    recipes = [Recipe(rate, 16, 4, schedule="step", milestones=[0.5]) for rate in (0.1, 0.2)]
    nets = [mlp(64, (8,), 10, random_state=i).double() for i in range(2)]
    one, together, apart = compare(nets, digits.x[:33], digits.y[:33], recipes, range(2))
    assert apart < 1e-8
    assert [h.n_steps for h in one] == [h.n_steps for h in together] == [8, 8]


def test_the_compiled_program_takes_one_thread_and_gives_the_others_back(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    from inscape.training import descent_kernels

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["internal_api"] == "openblas"}

    seen, run_steps = [], descent_kernels.run_steps
    monkeypatch.setattr(descent_kernels, "run_steps", lambda *a: (seen.append(threads()), run_steps(*a))[1])
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    with threadpool_limits(2, user_api="blas"):
        train_many([mlp(2, (4,), 2, random_state=0)], x, x[:, 0] > 0, [Recipe(0.1, 10, 1)], random_states=[0])
        assert threads() == {2}
    assert set(map(frozenset, seen)) == {frozenset({1})}
