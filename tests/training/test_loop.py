"""The training loop against steps by hand."""

import json
import warnings
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn import Conv2d, Flatten, Linear, ReLU, Sequential

from inscape import Monitor
from inscape.errors import DataError, InscapeError
from inscape.training.loop import save_weights, train
from inscape.training.many import train_many
from inscape.training.networks import build, mlp
from inscape.training.recipe import Recipe


def by_hand(net, x, y, recipe, seed):
    """SGD with momentum on a net of one hidden layer, forward and backward written out in numpy."""
    w1, b1, w2, b2 = (p.detach().numpy().copy() for p in net.parameters())
    parameters, velocities = [w1, b1, w2, b2], [np.zeros_like(p) for p in (w1, b1, w2, b2)]
    n, size = len(x), recipe.batch_size
    n_steps = recipe.epochs * -(-n // size)
    generator = torch.Generator().manual_seed(seed)
    step, losses = 0, []
    for _ in range(recipe.epochs):
        order, total = torch.randperm(n, generator=generator).numpy(), 0.0
        for start in range(0, n, size):
            rows = order[start : start + size]
            z = x[rows] @ w1.T + b1
            h = np.maximum(z, 0)
            s = h @ w2.T + b2
            p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
            total -= np.log(p[np.arange(len(rows)), y[rows]]).sum()
            ds = (p - np.eye(p.shape[1])[y[rows]]) / len(rows)
            dz = (ds @ w2) * (z > 0)
            gradients = [dz.T @ x[rows], dz.sum(0), ds.T @ h, ds.sum(0)]
            rate = recipe.learning_rate * (1 + np.cos(np.pi * step / n_steps)) / 2
            for q, v, g in zip(parameters, velocities, gradients, strict=True):
                v[:] = recipe.momentum * v + g + recipe.weight_decay * q
                q -= rate * v
            step += 1
        losses.append(total / n)
    return parameters, losses


def test_the_loop_is_sgd_by_hand(rng):
    x, y = rng.normal(size=(23, 3)), rng.integers(4, size=23)
    net = mlp(3, (7,), 4, random_state=0).double()
    recipe = Recipe(0.2, 5, 3, momentum=0.9, weight_decay=0.01)
    parameters, losses = by_hand(net, x, y, recipe, seed=4)
    history = train(net, x, y, recipe, random_state=4)
    for p, q in zip(net.parameters(), parameters, strict=True):
        assert np.allclose(p.detach().numpy(), q, atol=1e-13, rtol=0)
    assert np.allclose(history.losses, losses)
    assert (history.n_steps, history.status, history.loss) == (15, "complete", history.losses[-1])


def adam(q, g, s, k, r, wd):
    g = g + wd * q
    s["m"], s["v"] = 0.9 * s.get("m", 0) + 0.1 * g, 0.999 * s.get("v", 0) + 0.001 * g**2
    return q - r * (s["m"] / (1 - 0.9**k)) / (np.sqrt(s["v"] / (1 - 0.999**k)) + 1e-8)


def adamw(q, g, s, k, r, wd):
    return adam(q * (1 - r * wd), g, s, k, r, 0)


def adagrad(q, g, s, k, r, wd):
    g = g + wd * q
    s["v"] = s.get("v", 0) + g**2
    return q - r * g / (np.sqrt(s["v"]) + 1e-10)


@pytest.mark.parametrize("rule", [adam, adamw, adagrad])
def test_the_other_optimisers_by_hand(rule, rng):
    """A linear model on full batches: its gradient is (p - onehot)' x / n."""
    x, y = rng.normal(size=(12, 3)), rng.integers(2, size=12)
    net = mlp(3, (), 2, random_state=0).double()
    w, b = (p.detach().numpy().copy() for p in net.parameters())
    states = {}, {}
    for k in (1, 2, 3):
        s = x @ w.T + b
        p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
        ds = (p - np.eye(2)[y]) / 12
        w, b = rule(w, ds.T @ x, states[0], k, 0.05, 0.1), rule(b, ds.sum(0), states[1], k, 0.05, 0.1)
    recipe = Recipe(0.05, 12, 3, weight_decay=0.1, optimiser=rule.__name__, schedule="constant")
    train(net, x, y, recipe, random_state=0)
    assert np.allclose(net[1].weight.detach().numpy(), w, atol=1e-12)
    assert np.allclose(net[1].bias.detach().numpy(), b, atol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "efficientnet_b0"])  # the second draws dropout while training
def test_same_seed_same_weights_and_global_state_untouched(name, digits):
    x, y = digits.x[:40], digits.y[:40]
    state = torch.get_rng_state()
    nets = []
    for seed in (1, 1, 2):
        net = build(name, (8, 8), 10, width=0.125, random_state=1)
        train(net, x, y, Recipe(0.1, 20, 2, mixup=0.5, crop=1, flip=True), random_state=seed)
        nets.append(torch.cat([p.flatten() for p in net.parameters()]))
        torch.rand(3)  # what others draw in between must not matter
    assert torch.equal(nets[0], nets[1])
    assert not torch.equal(nets[0], nets[2])
    torch.set_rng_state(state)


def test_the_global_random_state_is_left_alone(digits):
    state = torch.get_rng_state()
    net = build("efficientnet_b0", (8, 8), 10, width=0.125, random_state=1)
    train(net, digits.x[:20], digits.y[:20], Recipe(0.1, 20, 1), random_state=1)
    assert torch.equal(state, torch.get_rng_state())


def test_it_learns_and_stops_at_a_loss(digits):
    net = mlp(64, (32,), 10, random_state=0)
    history = train(net, digits.x[:300], digits.y[:300], Recipe(0.1, 32, 100, stop_loss=0.05), random_state=0)
    assert history.status == "loss reached"
    assert history.loss <= 0.05 < history.losses[-2]
    assert len(history.losses) < 100
    assert not net.training


def test_a_run_that_diverges_says_so(digits):
    net = mlp(64, (32,), 10, random_state=0)
    history = train(net, digits.x[:100], digits.y[:100], Recipe(1e30, 10, 50), random_state=0)
    assert history.status == "diverged"
    assert np.isnan(history.loss)
    assert history.n_steps < 500


def test_the_monitor_sees_every_step(digits):
    class Seen:
        steps = ()

        def step(self, model, step):
            self.steps += ((step, model[1].weight.detach().sum().item()),)

    seen, net = Seen(), mlp(64, (4,), 10, random_state=0)
    first, _ = (
        net[1].weight.detach().sum().item(),
        train(net, digits.x[:30], digits.y[:30], Recipe(0.1, 10, 2), random_state=0, monitor=seen),
    )
    assert [k for k, _ in seen.steps] == list(range(7))
    assert seen.steps[0][1] == first
    assert seen.steps[-1][1] == net[1].weight.detach().sum().item()


def test_checkpoints_are_safetensors(digits, tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load_file

    net = mlp(64, (4,), 10, random_state=0)
    recipe = Recipe(0.1, 10, 5)
    history = train(
        net,
        digits.x[:30],
        digits.y[:30],
        recipe,
        random_state=3,
        checkpoints=tmp_path / "run",
        checkpoint_every=2,
    )
    names = ["epoch-0002.safetensors", "epoch-0004.safetensors", "epoch-0005.safetensors"]
    assert [p.name for p in sorted((tmp_path / "run").iterdir())] == names
    assert history.checkpoints == tuple(str(tmp_path / "run" / n) for n in names)
    state = load_file(history.checkpoints[-1])
    assert all(torch.equal(state[k], v) for k, v in net.state_dict().items())
    with safe_open(history.checkpoints[0], "pt") as file:
        about = {k: json.loads(v) for k, v in file.metadata().items()}
    assert about["recipe"] == recipe.to_dict()
    assert (about["epoch"], about["seed"], about["loss"]) == (2, 3, history.losses[1])


def test_a_checkpoint_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InscapeError, match="cannot write"):
        save_weights(mlp(2, (), 2, random_state=0), tmp_path / "file" / "a.safetensors")


def test_bad_data_and_modules(digits):
    net = mlp(64, (4,), 10, random_state=0)
    with pytest.raises(DataError, match=r"cannot train on points \(3, 8, 8\) with classes \(2,\)"):
        train(net, digits.x[:3], digits.y[:2], Recipe(0.1, 10, 1), random_state=0)
    with pytest.raises(DataError, match="no parameters"):
        train(torch.nn.Flatten(), digits.x[:3], digits.y[:3], Recipe(0.1, 10, 1), random_state=0)
    with pytest.raises(DataError, match=r"crop and flip need images, not points of shape \(64,\)"):
        train(net, digits.x[:3].reshape(3, 64), digits.y[:3], Recipe(0.1, 10, 1, flip=True), random_state=0)


def test_inscapes_own_monitor_changes_nothing(digits):
    x, y = digits.x[:60], digits.y[:60]
    nets = [mlp(64, (8,), 10, random_state=0) for _ in range(2)]
    monitor = Monitor(x, y, measures=["accuracy"], every=10)
    train(nets[0], x, y, Recipe(0.1, 10, 5), random_state=0, monitor=monitor)
    train(nets[1], x, y, Recipe(0.1, 10, 5), random_state=0)
    assert monitor.to_frame()["step"].tolist() == [0, 10, 20, 30]
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


def normalised():
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )


def test_a_last_point_alone_joins_the_batch_before(rng):
    x = rng.normal(size=(9, 2))
    sizes = []
    net = normalised()
    net.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    assert train(net, x, x[:, 0] > 0, Recipe(0.1, 4, 2), random_state=0).n_steps == 4
    assert sizes == [4, 5, 4, 5]
    with pytest.raises(DataError, match="batch normalisation cannot train on one point"):
        train(net, x[:1], x[:1, 0] > 0, Recipe(0.1, 4, 2), random_state=0)


def test_tied_weights_are_saved_as_they_are(tmp_path):
    from safetensors.torch import load_file

    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    saved = load_file(save_weights(net, tmp_path / "a.safetensors"))
    assert all(torch.equal(saved[name], value) for name, value in net.state_dict().items())


def test_a_diverged_history_is_json(rng):
    x = rng.normal(size=(20, 2))
    history = train(
        mlp(2, (8,), 2, random_state=0), 1e30 * x, x[:, 0] > 0, Recipe(1e30, 5, 3), random_state=np.int64(1)
    )
    content = json.loads(json.dumps(history.to_dict(), allow_nan=False))
    assert (content["status"], content["losses"][-1], content["seed"]) == ("diverged", None, 1)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2, 0], "class 2, but the module gives 2 scores"),
        ([0, 1, -1, 0], "whole numbers from 0"),
        ([0, 1, 0.5, 0], "whole numbers from 0"),
        (["a", "b", "a", "b"], "whole numbers from 0"),
    ],
)
def test_classes_that_cannot_be(y, message, rng):
    x = rng.normal(size=(4, 2))
    for nets in ([mlp(2, (3,), 2, random_state=0)], [mlp(2, (3,), 2, random_state=i) for i in range(2)]):
        with pytest.raises(DataError, match=message):
            train_many(nets, x, np.array(y), [Recipe(0.1, 2, 1)] * len(nets), random_states=range(len(nets)))


def test_arrays_in_any_layout(rng):
    x, y = rng.normal(size=(6, 2)), np.array([0, 1, 0, 1, 1, 0])
    frozen = x.copy()
    frozen.flags.writeable = False
    layouts = [
        (x[::-1].copy()[::-1], y),
        (frozen, y),
        (x.astype(">f8"), y.astype(">i4")),
        (x, y.astype(float)),
    ]
    recipe = Recipe(0.1, 4, 3)
    losses = train(mlp(2, (3,), 2, random_state=0), x, y, recipe, random_state=0).losses
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for points, classes in layouts:
            assert (
                train(mlp(2, (3,), 2, random_state=0), points, classes, recipe, random_state=0).losses
                == losses
            )


def test_arguments_that_make_no_sense(rng, tmp_path):
    x = rng.normal(size=(4, 2))
    with pytest.raises(InscapeError, match="checkpoint_every=0"):
        train(
            mlp(2, (), 2, random_state=0),
            x,
            x[:, 0] > 0,
            Recipe(0.1, 2, 1),
            random_state=0,
            checkpoint_every=0,
        )
    for more in ({"hidden": (0,)}, {"n_classes": 0}):
        arguments = {"input_shape": (2,), "n_classes": 2, "random_state": 0} | more
        with pytest.raises(InscapeError, match="must be whole numbers of at least 1"):
            build("mlp", **arguments)
        with pytest.raises(InscapeError, match="must be whole numbers of at least 1"):
            mlp(2, arguments.get("hidden", (3,)), arguments["n_classes"], random_state=0)
    with pytest.raises(InscapeError, match="must be whole numbers of at least 1"):
        build("cnn", (1, 8, 8), 0, random_state=0)


def test_images_are_trained_in_another_layout_which_changes_nothing_else():
    """Convolutions with channels side by side are faster; losses are those of a plain loop of torch."""
    net = Sequential(Conv2d(2, 4, 3), ReLU(), Flatten(), Linear(4 * 4 * 4, 3)).double()
    own = deepcopy(net)
    x, y = np.random.default_rng(0).normal(size=(12, 2, 6, 6)), np.arange(12) % 3
    seen = []

    class Layout:
        def step(self, model, step):
            seen.append(model[0].weight.is_contiguous(memory_format=torch.channels_last))

    history = train(net, x, y, Recipe(0.1, 12, 3, schedule="constant"), random_state=0, monitor=Layout())

    optimiser, losses = torch.optim.SGD(own.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(own(torch.from_numpy(x)), torch.from_numpy(y))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert np.allclose(history.losses, losses, rtol=1e-12)
    assert seen == [False, True, True, True]  # the first look is before training
    assert all(p.is_contiguous() for p in net.parameters())
