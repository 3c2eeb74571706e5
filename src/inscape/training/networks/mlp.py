"""Multi-layer perceptrons."""

from itertools import pairwise

from torch import nn

from inscape.arguments import renamed
from inscape.seeding import RandomState, as_seed, random_state_kept
from inscape.training.networks.shared_layers import check_sizes, initialise


@renamed(seed="random_state")
def mlp(
    n_inputs: int, hidden: tuple[int, ...], n_classes: int, *, random_state: RandomState, scale: float = 1.0
) -> nn.Sequential:
    """A ReLU network on flattened points, He-initialised from its own generator.

    Each weight is N(0, scale^2 2 / fan_in) and each bias zero; the global generator of torch is not used.
    """
    check_sizes(hidden=hidden, n_classes=(n_classes,))
    layers: list[nn.Module] = [nn.Flatten()]
    with random_state_kept():
        for n_in, n_out in pairwise([n_inputs, *hidden, n_classes]):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    initialise(net, as_seed(random_state), scale)
    return net
