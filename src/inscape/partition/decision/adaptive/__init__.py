"""Adaptive counting: decision regions of any model, at a small part of the evaluations of a grid."""

from inscape.partition.decision.adaptive.cell_regions import CellRegions
from inscape.partition.decision.adaptive.regions import adaptive_regions

__all__ = ["CellRegions", "adaptive_regions"]
