"""What we find on a probe: its decision regions."""

from inscape.partition.decision import DecisionRegions, decision_regions

__all__ = ["DecisionRegions", "decision_regions"]
