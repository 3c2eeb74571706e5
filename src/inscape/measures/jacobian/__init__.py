"""Gradients of every unit of a network with respect to its input: what several measures are made of."""
