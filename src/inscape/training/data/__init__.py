"""Data sets: published and embedded ones by name, the user's own from files, and their splits."""

from inscape.training.data.datasets import DataSet, Split, load_data, split_data

__all__ = ["DataSet", "Split", "load_data", "split_data"]
