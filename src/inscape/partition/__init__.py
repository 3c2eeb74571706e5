"""What we find on a probe: its decision regions and its linear regions."""

from inscape.arguments import old_names
from inscape.partition.decision import DecisionRegions, decision_regions
from inscape.partition.linear import LinearPlane, LinearSegment, linear_regions
from inscape.partition.linear.space import (
    BoundaryDistance,
    LinearBody,
    LinearRegion,
    boundary_distance,
    enumerate_regions,
    linear_region,
)

__all__ = [
    "BoundaryDistance",
    "DecisionRegions",
    "LinearBody",
    "LinearPlane",
    "LinearRegion",
    "LinearSegment",
    "boundary_distance",
    "decision_regions",
    "enumerate_regions",
    "linear_region",
    "linear_regions",
]

__getattr__ = old_names(__name__, {"PlaneRegions": LinearPlane, "SegmentPieces": LinearSegment})
