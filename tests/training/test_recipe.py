"""Learning rates by step are those of torch, and recipes that cannot be are refused."""

import math

import pytest
import torch

from inscape.errors import InscapeError
from inscape.training.recipe import Recipe


def test_cosine_is_torchs():
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 20)
    recipe = Recipe(0.3, 8, 5)
    for step in range(20):
        assert math.isclose(recipe.rate_at(step, 20, 4), optimiser.param_groups[0]["lr"], abs_tol=1e-12)
        optimiser.step()
        schedule.step()


def test_cosine_by_epoch_is_torchs_stepped_once_an_epoch():
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 5)
    recipe = Recipe(0.3, 8, 5, schedule="epoch-cosine")
    for step in range(20):
        assert math.isclose(recipe.rate_at(step, 20, 4), optimiser.param_groups[0]["lr"], abs_tol=1e-12)
        optimiser.step()
        if step % 4 == 3:
            schedule.step()


def test_step_and_constant():
    step = Recipe(1.0, 8, 10, schedule="step", milestones=(0.2, 0.8), decay=0.5)
    assert [step.rate_at(3 * epoch + 2, 30, 3) for epoch in range(10)] == [1, 1] + [0.5] * 6 + [0.25] * 2
    assert Recipe(0.7, 8, 10, schedule="constant").rate_at(29, 30, 3) == 0.7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimiser": "sdg"}, "unknown optimiser 'sdg'.*did you mean 'sgd'"),
        ({"schedule": "cos"}, "unknown schedule"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number"),
        ({"epochs": 1.5}, "epochs=1.5 must be a whole number"),
        ({"epochs": True}, "epochs=True must be a whole number"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0 must be a number"),
        ({"mixup": math.nan}, "mixup=nan must be"),
    ],
)
def test_recipes_that_cannot_be(change, message):
    with pytest.raises(InscapeError, match=message):
        Recipe(**({"learning_rate": 0.1, "batch_size": 8, "epochs": 1} | change))


def test_whole_floats_are_whole_numbers_and_lists_are_tuples():
    recipe = Recipe(0.1, 16.0, 2.0, milestones=[0.5])
    assert (recipe.batch_size, type(recipe.batch_size), type(recipe.epochs)) == (16, int, int)
    assert hash(recipe) == hash(Recipe(0.1, 16, 2, milestones=(0.5,)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"stop_loss": float("nan")},
        {"batch_size": "16"},
        {"epochs": float("nan")},
        {"learning_rate": "0.1"},
        {"milestones": 0.5},
    ],
)
def test_values_of_another_kind_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(InscapeError, match=f"{name}="):
        Recipe(**({"learning_rate": 0.1, "batch_size": 16, "epochs": 1} | wrong))
