"""Tree ensembles of scikit-learn as flat arrays, in the units of the input space."""

from inscape.models.trees.ensemble import Rule, TreeEnsemble
from inscape.models.trees.fitted_trees import obstacle, read_trees

__all__ = ["Rule", "TreeEnsemble", "obstacle", "read_trees"]
