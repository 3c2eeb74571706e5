"""Exact linear pieces along segments: the walk through the network and what it finds there."""
