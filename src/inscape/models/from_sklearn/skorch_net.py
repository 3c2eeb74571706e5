"""Networks that skorch trained: the torch module, behind the nonlinearity by which skorch predicts."""

from contextlib import AbstractContextManager
from typing import Any

import torch

from inscape.errors import ModelError
from inscape.models.base import Model
from inscape.models.decision_rules import Threshold
from inscape.models.enclosing import DecidedModel
from inscape.models.torch_module import TorchModel


def read_skorch(net: Any, **options: Any) -> Model:
    """A fitted skorch net as a torch module, exact where that is; a binary one has its own threshold."""
    if not getattr(net, "initialized_", False):
        raise ModelError(f"{type(net).__name__} is not fitted: call fit first")
    model = SkorchModel(net, **options)
    if hasattr(net, "threshold"):  # as binary classifiers have, of the probability of the second class
        return DecidedModel(model, Threshold(float(net.threshold)))
    return model


class PredictingModule(torch.nn.Module):
    """What a skorch net computes of a batch: the first output of its module, as probabilities.

    A binary classifier returns the probability of its second class alone.
    """

    net: Any

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.module: torch.nn.Module = net.module_
        vars(self)["net"] = net

    def forward(self, x: torch.Tensor) -> Any:
        """Probabilities (n, c) or (n,), or numbers of a regression."""
        out = self.module(x)
        out = out[0] if isinstance(out, tuple) else out
        criterion = getattr(self.net, "criterion_", None)
        if self.net.predict_nonlinearity == "auto" and hasattr(self.net, "threshold"):
            is_score = isinstance(criterion, torch.nn.BCEWithLogitsLoss)
            return torch.sigmoid(out) if is_score else out
        if self.net.predict_nonlinearity == "auto":
            return out.softmax(-1) if isinstance(criterion, torch.nn.CrossEntropyLoss) else out
        return out if self.net.predict_nonlinearity is None else self.net.predict_nonlinearity(out)


class SkorchModel(TorchModel):
    """The module of a skorch net as it is now: another fit makes another one."""

    def __init__(self, net: Any, **options: Any) -> None:
        super().__init__(PredictingModule(net), **options)
        self.name = type(net).__name__
        if getattr(net, "_estimator_type", None) == "regressor" or "Regressor" in self.name:
            self.needs_rule = (
                f"{self.name} predicts numbers, not classes: cut them into classes by levels=[...] or "
                "threshold=..., or decide=... for several outputs"
            )
        names = getattr(net, "classes_", None) if self.needs_rule is None else None
        self.classes = None if names is None else tuple(str(c) for c in names)

    def session(self) -> AbstractContextManager[None]:
        """Eval mode without gradients, of the module that the last fit made."""
        self._refresh()
        return super().session()

    def _state(self) -> tuple[Any, ...]:
        self._refresh()
        return super()._state()

    def _refresh(self) -> None:
        for module in self.module.modules():
            if isinstance(module, PredictingModule):
                module.module = module.net.module_
