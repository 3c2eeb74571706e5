"""Exact decision regions of tree ensembles: along segments from crossing to crossing, on planes by cuts."""

from inscape.partition.decision.exact.trees.along_segments import regions_along, tree_segments
from inscape.partition.decision.exact.trees.notes import status_of_all
from inscape.partition.decision.exact.trees.on_planes import tree_plane

__all__ = ["regions_along", "status_of_all", "tree_plane", "tree_segments"]
