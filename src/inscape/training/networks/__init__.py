"""Networks that inscape can train itself: an MLP, a small CNN, and the CIFAR forms of nine known ones."""

from inscape.training.networks.building import NETWORKS, build
from inscape.training.networks.plain import mlp

__all__ = ["NETWORKS", "build", "mlp"]
