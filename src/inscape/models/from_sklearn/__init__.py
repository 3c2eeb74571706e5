"""Fitted estimators of scikit-learn, read as what exact methods need."""

from inscape.models.from_sklearn.fitted_estimators import fitted_parts, read_estimator, read_sums
from inscape.models.from_sklearn.forms import Duels, Form, Neighbours, Quadratics, Votes
from inscape.models.from_sklearn.tree_forms import view_behind
from inscape.models.trees import Unread

__all__ = [
    "Duels",
    "Form",
    "Neighbours",
    "Quadratics",
    "Unread",
    "Votes",
    "fitted_parts",
    "read_estimator",
    "read_sums",
    "view_behind",
]
