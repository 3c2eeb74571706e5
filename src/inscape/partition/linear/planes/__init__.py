"""Exact subdivision of a plane, layer by layer; compiled when it is first used."""

from inscape.partition.linear.planes.result import PlaneRegions

__all__ = ["PlaneRegions"]
