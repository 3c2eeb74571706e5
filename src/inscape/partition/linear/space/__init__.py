"""Linear regions in the whole input space: of a point, of a box or ball, and the way to another label."""

from inscape.partition.linear.space.enumeration import LinearBody, enumerate_regions
from inscape.partition.linear.space.nearest_label import BoundaryDistance, boundary_distance
from inscape.partition.linear.space.polytope import LinearRegion, linear_region

__all__ = [
    "BoundaryDistance",
    "LinearBody",
    "LinearRegion",
    "boundary_distance",
    "enumerate_regions",
    "linear_region",
]
