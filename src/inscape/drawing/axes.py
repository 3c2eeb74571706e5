"""The Axes that a picture is drawn into."""

from typing import Any


def new_figure(size: tuple[float, float]) -> Any:
    """A figure of that size in inches, which pyplot knows nothing of."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def axes_or_new(ax: Any, figsize: tuple[float, float]) -> Any:
    """`ax`, or new Axes of that size in inches.

    A new figure is not registered with pyplot unless an interactive backend shows it, so that drawing
    many pictures in a program leaks none.
    """
    if ax is not None:
        return ax
    import matplotlib

    if matplotlib.is_interactive():
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=figsize, layout="constrained")[1]
    return new_figure(figsize).subplots()
