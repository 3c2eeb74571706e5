"""Fit any model that a configuration describes: networks by the loop, the others by scikit-learn."""

import copy
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from inscape.arguments import positive_number, renamed, whole_number
from inscape.arrays import Ints, Streamed
from inscape.errors import ModelError, unknown_name
from inscape.models import Model, wrap
from inscape.models.base import gradients
from inscape.training.data.datasets import Split
from inscape.training.recipe import History, Recipe

_RECIPE = tuple(f.name for f in fields(Recipe))
_NETWORK = ("width", "hidden", "he_scale", "init", "normalise")
CLASSICAL_SETTINGS: dict[str, tuple[str, ...]] = {
    "tree": ("max_depth", "criterion", "splitter", "grown_depth"),
    "forest": ("max_depth", "criterion", "n_estimators", "grown_depth"),
    "knn": ("n_neighbors", "weights", "p"),
    "svm": ("C", "kernel", "gamma"),
    "logistic": ("C",),
}
"""Name of a model of scikit-learn -> the settings that studies vary, called as scikit-learn calls them.
`grown_depth` is ours: trees are grown to this depth and pruned to `max_depth` (see `pruned_to_depth`)."""
SETTINGS = {"model", *_RECIPE, *_NETWORK}.union(*CLASSICAL_SETTINGS.values())
"""What any model has."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model, wrapped; for a network also how training went, its size and its initial weights."""

    model: Model
    history: History | None = None
    n_parameters: int | None = None
    initial: Mapping[str, Any] | None = None


def is_network(name: str) -> bool:
    """Whether a model is trained by our loop; any other name must be one of scikit-learn's."""
    if name in CLASSICAL_SETTINGS:
        return False
    from inscape.training.networks import NETWORKS  # not before: it brings torch along

    if name not in NETWORKS:
        raise ModelError(unknown_name("model", name, (*NETWORKS, *CLASSICAL_SETTINGS)))
    return True


def check_settings(settings: Mapping[str, Any], also: Iterable[str] = ()) -> None:
    """Raise an error for settings of a model that no training would take.

    Args:
        settings: as for `fit_many`.
        also: what else could have been meant by a name that is not known.

    >>> check_settings({"model": "tree", "max_depth": 3})
    """
    name = settings.get("model")
    if not isinstance(name, str):
        near = [] if "model" in settings else difflib.get_close_matches("model", settings, n=1)
        hint = f"; did you mean it by {near[0]!r}?" if near else ""
        raise ModelError(f"model = {name!r} names no model: give one, such as 'mlp' or 'tree'{hint}")
    known = (*_RECIPE, *_NETWORK) if is_network(name) else CLASSICAL_SETTINGS[name]
    for key in settings:
        if key not in (*known, "model"):
            raise ModelError(unknown_name(f"setting of {name}", key, (*known, *also)))
    if is_network(name):
        _check_network(settings)
        _recipe(settings)
    else:
        _check_classical(name, settings)


def _check_network(settings: Mapping[str, Any]) -> None:
    """Raise an error for weights, widths or pixels of which no network can be made."""
    from inscape.training.networks.shared_layers import INITS, check_sizes

    check_sizes(hidden=settings.get("hidden", (1,)))
    for key in ("width", "he_scale"):
        positive_number(settings.get(key, 1.0), key, ModelError, ", a factor")
    if (init := settings.get("init", INITS[0])) not in INITS:
        raise ModelError(unknown_name("init", init, INITS))
    pixels = settings.get("normalise", True)
    pair = isinstance(pixels, list | tuple) and len(pixels) == 2 and all(map(_is_numeric, pixels))
    if not isinstance(pixels, bool) and not pair:
        raise ModelError(f"normalise={pixels!r} must be true, false, or a list of mean and deviation")
    for key in ("flip", "decay_biases"):
        if not isinstance(settings.get(key, True), bool):
            raise ModelError(f"{key}={settings[key]!r} must be true or false")
    milestones = settings.get("milestones", ())
    if not isinstance(milestones, list | tuple) or not _is_numeric(milestones):
        raise ModelError(f"milestones={milestones!r} must be a list of numbers")


def _is_numeric(value: Any) -> bool:
    return np.asarray(value, dtype=object).size == 0 or np.asarray(value).dtype.kind in "iuf"


@renamed(seed="random_state")
def fit(settings: Mapping[str, Any], split: Split, *, random_state: int, monitor: Any = None) -> Fitted:
    """The model that the settings describe, fitted to the training points.

    A `monitor` is what `inscape.training.train` takes: it measures a network while it is trained.
    """
    if monitor is None:
        return fit_many([settings], split, random_states=[random_state])[0]
    if not is_network(settings["model"]):
        raise ModelError(f"{settings['model']} is fitted at once: a monitor needs a network")
    return fit_many([settings], split, random_states=[random_state], monitors=[monitor])[0]


@renamed(seeds="random_states")
def fit_many(
    settings: Sequence[Mapping[str, Any]],
    split: Split,
    *,
    random_states: Sequence[int],
    monitors: Sequence[Any] | None = None,
) -> list[Fitted]:
    """Fit several models to the same points; small networks of one shape train as one program.

    Args:
        settings: of each model "model", its name, and what goes with it: for a network the fields of
            `Recipe` and width, hidden, he_scale (factor on the initial weights), init ("he" or "torch") and
            normalise (as the network's first layer: True for mean and deviation of the training points, False
            for nothing, or mean and deviation themselves, per channel); for the others those of scikit-learn.
        split: the data.
        random_states: the seed of each model.
        monitors: of each model, if given, which must all be networks.
    """
    fitted: dict[int, Fitted] = {}
    networks = [i for i, s in enumerate(settings) if is_network(s["model"])]
    others = sorted(set(range(len(settings))) - set(networks))
    if others:
        grown = [settings[i] for i in others], [random_states[i] for i in others]
        fitted |= dict(zip(others, _fit_classical(*grown, split), strict=True))
    if networks:
        from inscape.training.many import train_many

        with gradients():
            built = [_network(settings[i], split, random_states[i]) for i in networks]
        recipes = [_recipe(settings[i]) for i in networks]
        modules = [module for module, _ in built]
        chosen = [random_states[i] for i in networks]
        histories = train_many(modules, *split.train, recipes, random_states=chosen, monitors=monitors)
        for i, (module, initial), history in zip(networks, built, histories, strict=True):
            fitted[i] = _trained(module, history, initial, split)
    return [fitted[i] for i in range(len(settings))]


def _fit_classical(
    settings: Sequence[Mapping[str, Any]], seeds: Sequence[int], split: Split
) -> Iterator[Fitted]:
    """Models of scikit-learn; trees that differ only in the depth they are pruned to are grown once."""
    flat = np.asarray(split.x_train).reshape(len(split.x_train), -1)
    by_column = None
    grown: dict[tuple[str, int], Any] = {}
    for given, seed in zip(settings, seeds, strict=True):
        rest = {k: v for k, v in given.items() if k not in ("model", "grown_depth")}
        if "grown_depth" not in given:
            yield Fitted(wrap(classical(given["model"], rest, random_state=seed).fit(flat, split.y_train)))
            continue
        whole = rest | {"max_depth": given["grown_depth"]}
        key = repr((given["model"], sorted(whole.items()))), seed
        if key not in grown:
            by_column = np.asfortranarray(flat) if by_column is None else by_column  # trees read columns
            grown[key] = classical(given["model"], whole, random_state=seed).fit(by_column, split.y_train)
        yield Fitted(wrap(pruned_to_depth(grown[key], given["max_depth"])))


def _trained(module: Any, history: History, initial: Mapping[str, Any], split: Split) -> Fitted:
    from inscape.training.loop import with_channels_last

    n_parameters = sum(p.numel() for p in module.parameters())
    with_channels_last(module, next(module.parameters()).device)  # counting evaluates it many times
    return Fitted(wrap(module, input_shape=split.x_train.shape[1:]), history, n_parameters, initial)


def _recipe(settings: Mapping[str, Any]) -> Recipe:
    for key in settings:
        if key not in (*_RECIPE, *_NETWORK, "model"):
            raise ModelError(unknown_name(f"setting of {settings['model']}", key, (*_RECIPE, *_NETWORK)))
    known = {key: settings[key] for key in _RECIPE if key in settings}
    missing = [key for key in ("learning_rate", "batch_size", "epochs") if key not in known]
    if missing:
        raise ModelError(f"{settings['model']} needs {', '.join(missing)} in its configuration")
    if "milestones" in known:
        known["milestones"] = tuple(known["milestones"])
    return Recipe(**known)


def _network(settings: Mapping[str, Any], split: Split, seed: int) -> tuple[Any, dict[str, Any]]:
    """The network, on a GPU if there is one and it is no MLP, and a copy of its weights."""
    import torch

    from inscape.training.networks import build

    x = split.x_train
    more: dict[str, Any] = {key: settings[key] for key in ("width", "hidden", "init") if key in settings}
    given = settings.get("normalise", True)
    if isinstance(given, list | tuple):
        more["normalise"] = tuple(given)
    elif given:
        some = x.some() if isinstance(x, Streamed) else x
        axes = tuple(a for a in range(x.ndim) if not (a == 1 and x.ndim == 4))
        std = some.std(axis=axes, dtype=np.float64)
        more["normalise"] = (some.mean(axis=axes, dtype=np.float64), np.where(std > 0, std, 1.0))
    module = build(
        settings["model"],
        x.shape[1:],
        split.n_classes,
        scale=settings.get("he_scale", 1.0),
        random_state=seed,
        **more,
    )
    initial = {name: value.clone() for name, value in module.state_dict().items()}
    on_gpu = settings["model"] != "mlp" and torch.cuda.is_available()
    return module.to("cuda") if on_gpu else module, initial


@renamed(seed="random_state")
def classical(name: str, settings: Mapping[str, Any], *, random_state: int) -> Any:
    """A scikit-learn classifier that is not fitted yet.

    >>> classical("tree", {"max_depth": 3}, random_state=0).max_depth
    3
    """
    if name not in CLASSICAL_SETTINGS:
        raise ModelError(unknown_name("model", name, CLASSICAL_SETTINGS))
    _check_classical(name, settings)
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    random_state %= 2**32  # scikit-learn takes 32 bits
    if name == "tree":
        return DecisionTreeClassifier(**settings, random_state=random_state)
    if name == "forest":
        return RandomForestClassifier(**settings, random_state=random_state)
    if name == "knn":
        return KNeighborsClassifier(**settings)
    if name == "svm":
        return SVC(**settings, random_state=random_state)
    return LogisticRegression(**{"max_iter": 5000} | dict(settings), random_state=random_state)


def _check_classical(name: str, settings: Mapping[str, Any]) -> None:
    for key in settings:
        if key not in ("model", *CLASSICAL_SETTINGS[name]):
            raise ModelError(unknown_name(f"setting of {name}", key, CLASSICAL_SETTINGS[name]))
    depth, grown = settings.get("max_depth"), settings.get("grown_depth")
    for key in ("max_depth", "grown_depth", "n_estimators", "n_neighbors"):
        if settings.get(key) is not None:
            whole_number(settings[key], key, 1, ModelError)
    if grown is not None and (depth is None or depth > grown):
        raise ModelError(
            f"max_depth={depth} with grown_depth={grown}: give a depth of at most that to prune to"
        )


def pruned_to_depth(fitted: Any, depth: int) -> Any:
    """A copy of a fitted scikit-learn tree or forest whose nodes at `depth` are leaves.

    How a node is split depends on the points in it and on random draws of its own, not on what is below: a
    tree grown to depth D and pruned to d < D is one grown to d. Without ties, and where every feature is
    tried, the two are equal node by node. Else they are draws of the same law, since the draws at other
    nodes are not the same; and trees of several depths pruned from one share theirs, so that they are not
    independent of each other.

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> x = np.arange(8.0)[:, None]
    >>> whole = DecisionTreeClassifier(max_depth=3).fit(x, [0, 1, 0, 1, 2, 2, 3, 3])
    >>> pruned_to_depth(whole, 1).get_depth(), whole.get_depth()
    (1, 3)
    """
    if fitted.max_depth is not None and depth > fitted.max_depth:
        raise ModelError(f"a tree grown to depth {fitted.max_depth} cannot be pruned to {depth}")
    pruned = copy.copy(fitted)
    pruned.max_depth = depth
    if hasattr(fitted, "estimators_"):
        pruned.estimators_ = [pruned_to_depth(tree, depth) for tree in fitted.estimators_]
    else:
        pruned.tree_ = _pruned_tree(fitted.tree_, depth)
    return pruned


def _pruned_tree(tree: Any, depth: int) -> Any:
    """The tree down to `depth`. Every node of scikit-learn's holds the classes of its points."""
    build, sizes, state = tree.__reduce__()
    level = _levels(tree.children_left, tree.children_right)
    kept = level <= depth
    nodes, new = state["nodes"][kept], np.cumsum(kept) - 1
    leaf = (nodes["left_child"] < 0) | (level[kept] == depth)
    for side in ("left_child", "right_child"):
        nodes[side] = np.where(leaf, -1, new[nodes[side]])
    nodes["feature"][leaf], nodes["threshold"][leaf] = -2, -2.0  # as scikit-learn marks leaves, like -1 above
    small = build(*sizes)
    reached = {"max_depth": int(level[kept].max()), "node_count": int(kept.sum())}
    small.__setstate__(state | reached | {"nodes": nodes, "values": state["values"][kept]})
    return small


def _levels(left: Ints, right: Ints) -> Ints:
    """How deep each node is, (h,); a child stands after its parent."""
    level = np.zeros(len(left), dtype=np.int64)
    for node in np.flatnonzero(left >= 0):
        level[left[node]] = level[right[node]] = level[node] + 1
    return level
