"""What we find on a probe: its decision regions and its linear regions."""

from inscape.partition.decision import DecisionRegions, decision_regions
from inscape.partition.linear import LinearPlane, LinearSegment, linear_regions
from inscape.renamed import renamed

__all__ = ["DecisionRegions", "LinearPlane", "LinearSegment", "decision_regions", "linear_regions"]

__getattr__ = renamed(__name__, {"PlaneRegions": LinearPlane, "SegmentPieces": LinearSegment})
