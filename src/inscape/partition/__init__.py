"""What we find on a probe: its decision regions and its linear regions."""

from inscape.partition.decision import DecisionRegions, decision_regions
from inscape.partition.linear import PlaneRegions, SegmentPieces, linear_regions

__all__ = ["DecisionRegions", "PlaneRegions", "SegmentPieces", "decision_regions", "linear_regions"]
