"""The coordinate network: from a place of the square to the grey value of an image there.

The image is one that is drawn here, or any file.
"""

import copy
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Bytes, Floats
from inscape.errors import DataError
from inscape.sweeps.study import Configuration

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import nn


HALF_SIDE = 1.0
"""Coordinates run from -1 to 1."""


def image_of(c: Mapping[str, Any]) -> Floats:
    """The image of a configuration."""
    return drawn_image(c["size"]) if c["image"] == "drawn" else read_image(c["image"], c["size"])


def network(c: Mapping[str, Any]) -> "nn.Sequential":
    """A network of two coordinates and one grey value, at its start."""
    from inscape.training.networks import mlp

    net = mlp(2, (c["width"],) * c["depth"], 1, random_state=int(c["seed"]))
    _spread_biases(net, int(c["seed"]))
    return net.double()


def _spread_biases(net: "nn.Sequential", seed: int) -> None:
    """Biases of the first layer uniform in +-1, so that its lines do not all meet in the middle."""
    import torch

    first = next(m for m in net if isinstance(m, torch.nn.Linear))
    with torch.no_grad():
        first.bias.uniform_(-1, 1, generator=torch.Generator().manual_seed(seed))


def fitted(c: Configuration) -> tuple["nn.Sequential", float]:
    """The network after training, and its mean square error."""
    from inscape.training.many import train_many
    from inscape.training.recipe import Recipe

    image, net = image_of(c), network(c).float()
    middles = -HALF_SIDE + 2 * HALF_SIDE * (np.arange(c["size"]) + 0.5) / c["size"]
    right, up = np.meshgrid(middles, middles)
    x = np.stack([right, up], axis=-1).reshape(-1, 2)
    y = image[::-1].reshape(-1, 1)
    recipe = Recipe(c["learning_rate"], 256, c["epochs"], optimiser="adam")
    history = train_many([net], x, y, [recipe], random_states=[c["seed"]])[0]
    return net.double(), history.loss


def patch() -> Any:
    """The square of all coordinates."""
    from inscape.probes import Patch

    return Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], ((-HALF_SIDE, HALF_SIDE), (-HALF_SIDE, HALF_SIDE)))


def perturbed(net: "nn.Sequential", sigma: float, rng: np.random.Generator) -> "nn.Sequential":
    """A copy whose hidden biases have moved by N(0, sigma^2) each."""
    import torch

    noisy = copy.deepcopy(net)
    linear = [m for m in noisy if isinstance(m, torch.nn.Linear)]
    with torch.no_grad():
        for layer in linear[:-1]:
            layer.bias.add_(torch.from_numpy(sigma * rng.standard_normal(len(layer.bias))))
    return noisy


def weights_of(net: "nn.Sequential") -> Floats:
    """All parameters in one row."""
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()]).round(6)


def with_weights(c: Mapping[str, Any], weights: npt.ArrayLike) -> "nn.Sequential":
    """The network of a configuration with these parameters."""
    import torch

    net = network(c)
    torch.nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float64), net.parameters())
    return net


def drawn_image(size: int) -> Floats:
    """A lit ball over a striped floor before a graded sky, with a square sign: edges and smooth parts.

    Values in 0..1, (size, size); the first axis runs down.

    >>> image = drawn_image(32)
    >>> image.shape, bool(image.min() >= 0), bool(image.max() <= 1)
    ((32, 32), True, True)
    """
    down, right = np.meshgrid(*2 * [(np.arange(size) + 0.5) / size], indexing="ij")
    image = 0.85 - 0.35 * down
    floor = down > 0.68
    stripes = np.floor((right - 0.5) / (down - 0.45) * 3) % 2
    image = np.where(floor, 0.25 + 0.2 * stripes + 0.15 * (down - 0.68), image)
    u, v = (right - 0.38) / 0.27, (down - 0.52) / 0.27
    height = np.sqrt(np.clip(1 - u**2 - v**2, 0, None))
    shade = np.clip(-0.5 * u - 0.6 * v + 0.62 * height, 0, 1)
    image = np.where(u**2 + v**2 < 1, 0.08 + 0.9 * shade, image)
    sign = (np.abs(right - 0.8) < 0.11) & (np.abs(down - 0.3) < 0.11)
    image = np.where(sign, 0.15, image)
    return np.asarray(
        np.where(sign & (np.abs(right - 0.8) < 0.05) & (np.abs(down - 0.3) < 0.05), 0.95, image)
    )


def read_image(path: str, size: int) -> Floats:
    """The middle square of an image in grey, 0..1, scaled to (size, size).

    Args:
        path: an image file, a .npy file of one, or a .npz file and the name of one, as images.npz:bunny.
        size: pixels per side.
    """
    from PIL import Image, UnidentifiedImageError

    file_name, name = _file_and_name(path)
    try:
        if Path(file_name).suffix in (".npy", ".npz"):
            return _square(Image.fromarray(_grey_array(file_name, name)), size)
        with Image.open(path) as file:
            grey = _eight_bits(file) if file.mode.startswith("I") else file.convert("L")
    except UnidentifiedImageError as error:
        raise DataError(f"cannot read the image {path}: it is of no known format") from error
    except OSError as error:
        raise DataError(f"cannot read the image {path}: {error.strerror or error}") from error
    return _square(grey, size)


def _square(grey: "Image", size: int) -> Floats:
    """The middle square of a grey image of 0..255, scaled to (size, size) pixels of 0..1."""
    from PIL import Image as Images

    side = min(grey.size)
    left, top = (grey.width - side) // 2, (grey.height - side) // 2
    square = grey.crop((left, top, left + side, top + side)).resize((size, size), Images.Resampling.LANCZOS)
    return np.clip(np.asarray(square, dtype=np.float64) / 255, 0.0, 1.0)


def _file_and_name(path: str) -> tuple[str, str]:
    """The file, and which of its arrays: images.npz:bunny is the bunny of images.npz."""
    file, colon, name = path.rpartition(".npz:")
    return (f"{file}.npz", name) if colon else (path, "")


def _grey_array(path: str, name: str) -> Bytes:
    """An image of an array file: whole numbers of 0..255 or real ones of 0..1, grey or with colours last."""
    known: list[str] = []
    try:
        image = np.load(path, allow_pickle=False)
        if not isinstance(image, np.ndarray):
            with image as arrays:
                known, image = list(arrays), arrays.get(name)
    except ValueError as error:
        raise DataError(f"cannot read the image {path}: {error}") from error
    if image is None:
        raise DataError(f"cannot read the image {path}:{name}: it has {', '.join(known)}")
    values = image * 255 if image.dtype.kind == "b" or image.dtype.kind == "f" else image
    if values.ndim == 3 and values.shape[2] in (3, 4):
        values = values[..., :3] @ np.array([0.299, 0.587, 0.114])
    if image.dtype.kind not in "buif" or values.ndim != 2 or values.min() < 0 or values.max() > 255.5:
        raise DataError(
            f"cannot read the image {path}: expected pixels (h, w) or (h, w, 3), whole numbers of 0..255 or "
            f"real ones of 0..1, not {image.dtype} of shape {image.shape}"
        )
    return np.asarray(np.round(values), dtype=np.uint8)


def _eight_bits(image: "Image") -> "Image":
    """A grey image of 16 bits, of which Pillow would cut off all above 255."""
    from PIL import Image as Images

    return Images.fromarray((np.asarray(image, dtype=np.float64) / 257).round().clip(0, 255).astype(np.uint8))


def fingerprint(path: str) -> str:
    """Twelve digits that say which image it is, so that another under the same name is another study."""
    read_image(path, 1)
    return hashlib.sha256(Path(_file_and_name(path)[0]).read_bytes()).hexdigest()[:12]
