"""Draw the pictures of README and docs again: `python docs/make_pictures.py`."""

from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import inscape

HERE = Path(__file__).parent / "images"


def main() -> None:
    """The plane of the README."""
    digits = load_digits()
    x, y = digits.images / 16, digits.target
    net = MLPClassifier((64,), max_iter=500, random_state=0).fit(x[:900].reshape(900, -1), y[:900])
    plane = inscape.decision_regions(net, inscape.Patch.through(x[[1025, 1617, 1728]]))
    plane.plot().figure.savefig(HERE / "plane.png", dpi=110)


if __name__ == "__main__":
    main()
