"""Linear regions in the whole input space: the polytope of a point, the way to another label."""

from inscape.partition.linear.space.nearest_label import BoundaryDistance, boundary_distance
from inscape.partition.linear.space.polytope import LinearRegion, linear_region

__all__ = ["BoundaryDistance", "LinearRegion", "boundary_distance", "linear_region"]
