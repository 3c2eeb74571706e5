"""The time of reading a model beside one forward pass of it on 64 points.

Reading is what `wrap` and the first exact request do before anything is counted: a torch module is recorded
on three points of noise and compared with itself, an ONNX file is parsed, translated and compared with
onnxruntime, an estimator's arrays are copied into a graph or into flat trees. Both are timed in turns in one
run, on one thread. A forward pass is one call of the model's own library on 64 points at once. Reading
happens once per model, counting takes thousands of points: there is no bar, the figures are for the record.
"""

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.networks import resnet18
from benchmarks.timing import best_times
from inscape.models import Model, wrap

N_POINTS = 64


def main() -> None:
    """Print the time of reading each model and how many forward passes that is."""
    torch.set_num_threads(1)
    for name, model, shape in models():
        x = np.random.default_rng(0).standard_normal((N_POINTS, *shape)).astype(np.float32)
        wrapped = wrap(model, input_shape=shape)
        reading, passing = best_times(partial(read, model, shape), partial(wrapped.labels, x), repeats=5)
        print(
            f"{name:36s} reading {1e3 * reading:8.1f} ms, forward pass {1e3 * passing:8.1f} ms, "
            f"ratio {reading / passing:6.1f}"
        )


def read(model: Any, shape: tuple[int, ...]) -> Model:
    """A model wrapped anew and read as far as an exact count needs it."""
    wrapped = wrap(model, input_shape=shape)
    if wrapped.structure != "trees":
        wrapped.graph(shape)
    else:
        _ = wrapped.trees
    return wrapped


def models() -> list[tuple[str, Any, tuple[int, ...]]]:
    """Models of every kind that is read, with the shape of one point."""
    torch.manual_seed(0)
    perceptron = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    convolutions = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 64, 10),
    )
    recurrent = _Recurrent()
    found: list[tuple[str, Any, tuple[int, ...]]] = [
        ("a perceptron, torch", perceptron.eval(), (784,)),
        ("a small CNN, torch", convolutions.eval(), (3, 32, 32)),
        ("ResNet-18, torch", resnet18().eval(), (3, 32, 32)),
        ("an RNN over 28 steps, torch", recurrent.eval(), (28, 28)),
    ]
    for name, net, shape in found[:2]:
        found.append((name.replace("torch", "ONNX"), _exported(net, shape), shape))
    return [*found, *_fitted()]


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(28, 64, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(self.rnn(x)[0][:, -1])


def _exported(net: nn.Module, shape: tuple[int, ...]) -> Path:
    folder = Path(tempfile.mkdtemp())
    path = folder / "model.onnx"
    export: Callable[..., Any] = torch.onnx.export
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(
            net,
            (torch.zeros(2, *shape),),
            path,
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
        )
    return path


def _fitted() -> list[tuple[str, Any, tuple[int, ...]]]:
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(100, random_state=0).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        perceptron = MLPClassifier((100,), max_iter=20, random_state=0).fit(x, y)
    return [
        ("MLPClassifier, scikit-learn", perceptron, (64,)),
        ("a forest of 100 trees, scikit-learn", forest, (64,)),
    ]
