"""Tree ensembles of every library as flat arrays, in the units of the input space."""

from inscape.models.trees.ensemble import Rule, TreeEnsemble, assemble, averaged, elected, outvoted
from inscape.models.trees.libraries import is_made_of_trees, read_trees
from inscape.models.trees.readings import Unread, check_agreement
from inscape.models.trees.views import AffineMap, Scaling, View

__all__ = [
    "AffineMap",
    "Rule",
    "Scaling",
    "TreeEnsemble",
    "Unread",
    "View",
    "assemble",
    "averaged",
    "check_agreement",
    "elected",
    "is_made_of_trees",
    "outvoted",
    "read_trees",
]
