"""The trees of scikit-learn, XGBoost, LightGBM and CatBoost, each read in its own way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inscape.errors import ModelError
from inscape.models.trees.ensemble import TreeEnsemble, assemble
from inscape.models.trees.libraries import catboost, lightgbm, scikit_learn, xgboost
from inscape.models.trees.readings import Reading, Unread
from inscape.models.trees.views import View

READERS: dict[tuple[str, str], Callable[[Any], Reading]] = {
    **{("sklearn", name): read for name, read in scikit_learn.READERS.items()},
    ("xgboost", "XGBClassifier"): xgboost.read_estimator,
    ("xgboost", "XGBRFClassifier"): xgboost.read_estimator,
    ("xgboost", "XGBRegressor"): xgboost.read_estimator,
    ("xgboost", "XGBRFRegressor"): xgboost.read_estimator,
    ("xgboost", "Booster"): xgboost.read_booster,
    ("lightgbm", "LGBMClassifier"): lightgbm.read_estimator,
    ("lightgbm", "LGBMRegressor"): lightgbm.read_estimator,
    ("lightgbm", "Booster"): lightgbm.read_booster,
    ("catboost", "CatBoostClassifier"): catboost.read_model,
    ("catboost", "CatBoostRegressor"): catboost.read_model,
    ("catboost", "CatBoost"): catboost.read_model,
}
"""Library and class -> how it is read; a subclass is not, since it may predict in its own way."""


def kind_in_library(model: Any) -> tuple[str, str]:
    """The library that a model's class comes from, and the name of the class."""
    kind = type(model)
    return kind.__module__.partition(".")[0], kind.__name__


def is_made_of_trees(model: Any) -> bool:
    """Whether a model is of a class that is read as trees."""
    return kind_in_library(model) in READERS


def read_trees(
    model: Any, view: View | None = None, n_features: int | None = None, *, numbers: bool = False
) -> TreeEnsemble:
    """The trees of a fitted classifier, regressor or booster.

    Args:
        model: of a class that `is_made_of_trees`.
        view: what happens to points before it sees them; `single` is filled in.
        n_features: the number of input coordinates; None for as many as the model takes.
        numbers: whether what the leaves add up to is wanted, not a label.

    Raises:
        Unread: if it holds what is not read, such as categorical splits, or has no classes.
        ModelError: if it is of another class.
    """
    kind = kind_in_library(model)
    if kind not in READERS:
        names = ", ".join(name for _, name in READERS)
        raise ModelError(f"{kind[1]} cannot be read as trees: it is not one of {names}")
    reading = READERS[kind](model)
    if reading.without_classes is not None and not numbers:
        raise Unread(reading.without_classes)
    if not reading.trees:
        raise Unread(f"{kind[1]} has no trees")
    view = view or View()
    return assemble(
        reading.trees,
        reading.vote,
        replace(view, single=reading.single),
        n_features=n_features or n_features_of(model),
    )


def n_features_of(model: Any) -> int:
    """The number of features that a model takes."""
    counts = {("xgboost", "Booster"): "num_features", ("lightgbm", "Booster"): "num_feature"}
    kind = kind_in_library(model)
    if kind in counts:
        return int(getattr(model, counts[kind])())
    return int(model.n_features_in_ or len(model.feature_names_))  # CatBoost forgets the former in a file


def state_of(model: Any) -> int:
    """A number that changes when a model of another library than scikit-learn is trained further, or anew."""
    library, kind = kind_in_library(model)
    if library == "catboost":
        return hash(model.get_metadata()["model_guid"]) if model.is_fitted() else 0
    booster = model if kind == "Booster" else getattr(model, "_Booster", None)
    if booster is None:  # not fitted
        return 0
    if library == "xgboost":  # all of it: a booster may be loaded anew with as many trees
        return hash(bytes(booster.save_raw("ubj")))
    return hash((booster.best_iteration, booster.model_to_string()))
