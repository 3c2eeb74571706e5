"""Models by their settings: splits, kinds, normalisation, and many at once."""

import numpy as np
import pytest

from inscape.errors import DataError, ModelError
from inscape.measures.accuracy import correct
from inscape.training.data.datasets import split_data
from inscape.training.fitting import CLASSICAL_SETTINGS, classical, fit, fit_many

NET = {"model": "mlp", "learning_rate": 0.1, "batch_size": 32, "epochs": 5, "hidden": [16]}


@pytest.fixture(scope="module")
def split():
    return split_data("digits", n_train=300, n_test=200, random_state=0)


def test_splits_are_disjoint_and_repeat(split):
    assert (len(split.x_train), len(split.x_test), split.n_classes) == (300, 200, 10)
    train = {row.tobytes() for row in split.x_train}
    assert not train & {row.tobytes() for row in split.x_test}
    again = split_data("digits", n_train=300, n_test=200, random_state=0)
    assert np.array_equal(split.x_test, again.x_test)
    assert not np.array_equal(
        split.x_test, split_data("digits", n_train=300, n_test=200, random_state=1).x_test
    )


def test_splits_of_a_file_with_both(tmp_path):
    arrays = {"x_train": np.zeros((20, 2)), "y_train": np.arange(20) % 2, "x_test": np.ones((6, 2))}
    np.savez(tmp_path / "a.npz", y_test=np.arange(6) % 2, **arrays)
    found = split_data(str(tmp_path / "a.npz"), n_train=10)
    assert (len(found.x_train), len(found.x_test)) == (10, 6)
    assert np.bincount(found.y_train).tolist() == [5, 5]
    np.savez(tmp_path / "b.npz", y_test=np.array(list("abcdef")), **arrays)
    with pytest.raises(DataError, match="needs classes 0, 1, 2"):
        split_data(str(tmp_path / "b.npz"))
    with pytest.raises(DataError, match="are too many: digits has 1797"):
        split_data("digits", n_train=1700, n_test=100)


@pytest.mark.parametrize("name", [*CLASSICAL_SETTINGS, "mlp", "cnn"])
def test_every_kind_of_model_learns(name, split):
    settings = {"model": name} if name in CLASSICAL_SETTINGS else {**NET, "model": name, "epochs": 10}
    if name == "cnn":
        settings = {**settings, "width": 0.25, "hidden": []}
    fitted = fit(settings, split, random_state=2**40)  # a seed that is too large for scikit-learn as it is
    assert correct(fitted.model, *split.test).mean() > 0.6
    assert (fitted.history is None) == (name in CLASSICAL_SETTINGS)
    assert fitted.model.scores(split.x_test[:3]).shape[0] == 3


def test_many_models_are_as_each_alone(split):
    settings = [NET, {"model": "tree", "max_depth": 3}, {**NET, "learning_rate": 0.02}, {"model": "knn"}]
    together = fit_many(settings, split, random_states=[0, 1, 2, 3])
    alone = [fit(s, split, random_state=i) for i, s in enumerate(settings)]
    for a, b in zip(together, alone, strict=True):
        assert np.allclose(a.model.scores(split.x_test), b.model.scores(split.x_test), atol=1e-3)


def test_normalisation_comes_from_the_training_points(split):
    first = fit(NET, split, random_state=0).model.module[0]
    assert first.mean.item() == pytest.approx(split.x_train.mean())
    assert first.std.item() == pytest.approx(split.x_train.std())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "resnet"}, "unknown model 'resnet'"),
        ({"model": "tree", "max_dept": 3}, "unknown setting of tree 'max_dept'.*did you mean 'max_depth'"),
        ({**NET, "learning_rat": 1}, "unknown setting of mlp 'learning_rat'"),
        ({"model": "mlp", "epochs": 1}, "mlp needs learning_rate, batch_size"),
    ],
)
def test_settings_that_are_not_known(settings, message, split):
    with pytest.raises(ModelError, match=message):
        fit(settings, split, random_state=0)


def test_an_unknown_classical_model():
    with pytest.raises(ModelError, match="unknown model 'trees'"):
        classical("trees", {}, random_state=0)


def test_pixels_can_be_normalised_by_given_numbers():
    split = split_data("digits", n_train=60)
    settings = {"model": "mlp", "hidden": [4], "learning_rate": 0.1, "batch_size": 20, "epochs": 1}
    module = fit(settings | {"normalise": [0.25, 0.5]}, split, random_state=0).model.module
    assert (float(module[0].mean), float(module[0].std)) == (0.25, 0.5)
