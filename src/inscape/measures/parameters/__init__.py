"""Measures of the parameters alone: norms of the weights, and how far training has moved them."""
