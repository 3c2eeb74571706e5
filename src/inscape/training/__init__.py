"""Data sets, networks and one training loop."""

from inscape.training.datasets import DataSet, load_data

__all__ = ["DataSet", "load_data"]
