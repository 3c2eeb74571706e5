"""Linear regions: the pieces on which a network is one affine map, found exactly."""

from inscape.partition.linear.planes import PlaneRegions
from inscape.partition.linear.regions import linear_regions
from inscape.partition.linear.segment import SegmentPieces

__all__ = ["PlaneRegions", "SegmentPieces", "linear_regions"]
