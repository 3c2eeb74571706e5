"""Models of scikit-learn with the settings that studies vary."""

from collections.abc import Mapping
from typing import Any

from inscape.errors import ModelError, unknown_name

SETTINGS: dict[str, tuple[str, ...]] = {
    "tree": ("max_depth", "criterion", "splitter"),
    "forest": ("max_depth", "criterion", "n_estimators"),
    "knn": ("n_neighbors", "weights"),
    "svm": ("C", "kernel", "gamma"),
    "logistic": ("C",),
}
"""Name of a model -> its settings, called as scikit-learn calls them."""


def classical(name: str, settings: Mapping[str, Any], *, seed: int) -> Any:
    """A scikit-learn classifier that is not fitted yet.

    >>> classical("tree", {"max_depth": 3}, seed=0).max_depth
    3
    """
    if name not in SETTINGS:
        raise ModelError(unknown_name("model", name, SETTINGS))
    for key in settings:
        if key not in SETTINGS[name]:
            raise ModelError(unknown_name(f"setting of {name}", key, SETTINGS[name]))
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    random_state = seed % 2**32  # scikit-learn takes 32 bits
    if name == "tree":
        return DecisionTreeClassifier(**settings, random_state=random_state)
    if name == "forest":
        return RandomForestClassifier(**settings, random_state=random_state)
    if name == "knn":
        return KNeighborsClassifier(**settings)
    if name == "svm":
        return SVC(**settings, random_state=random_state)
    return LogisticRegression(**{"max_iter": 5000} | dict(settings), random_state=random_state)
