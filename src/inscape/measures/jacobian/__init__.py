"""Gradients of every unit of a network with respect to its input: what several measures are made of."""

MEMORY = 2**26
"""Bytes that the live tangents of one push may fill, by default; more is not faster."""
