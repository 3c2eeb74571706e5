"""Linear regions: the pieces on which a network is one affine map, found exactly."""

from inscape.partition.linear.segment import SegmentPieces, linear_regions

__all__ = ["SegmentPieces", "linear_regions"]
