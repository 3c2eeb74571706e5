"""The explorer: a page on which planes are dragged through a model's input space."""

from inscape.explorer.explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
