"""Fitted estimators of scikit-learn, read as what exact methods need."""

from inscape.models.from_sklearn.fitted_estimators import fitted_contents, read_estimator, read_sums
from inscape.models.from_sklearn.forms import Duels, Form, Neighbours, Quadratics, Votes, view_behind
from inscape.models.trees import Unread

__all__ = [
    "Duels",
    "Form",
    "Neighbours",
    "Quadratics",
    "Unread",
    "Votes",
    "fitted_contents",
    "read_estimator",
    "read_sums",
    "view_behind",
]
