"""ONNX files, evaluated by onnxruntime (extra `onnx`)."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from inscape.errors import MissingExtraError, ModelError
from inscape.models.base import Array, Model, Shape, labels_of
from inscape.models.class_names import ClassNames

_DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


class OnnxModel(Model):
    """An ONNX classifier with one input: scores (n, c), or labels (n,) with or without scores."""

    max_batch = 1024

    def __init__(
        self, path: str | Path, *, input_shape: Shape | None = None, batch_size: int | None = None
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnx", "an .onnx model") from error
        self.path = Path(path)
        content = read_model_file(self.path)
        self._fingerprint = hashlib.blake2b(content, digest_size=8).hexdigest()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(self.path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises its own classes, which share no public root
            raise ModelError(
                f"{self.path} is not a readable ONNX model: {str(error).splitlines()[0]}"
            ) from error
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(i.name for i in inputs)
            raise ModelError(f"{self.path} takes {len(inputs)} inputs ({names}): inscape needs exactly one")
        self._input = inputs[0]
        batch, *shape = self._input.shape or [None]
        if input_shape is None and all(isinstance(n, int) and n > 0 for n in shape):
            input_shape = tuple(shape)
        super().__init__(self.path.name, input_shape=input_shape, batch_size=batch_size)
        self.fixed_batch = batch if isinstance(batch, int) and batch > 0 else None
        self.dtype = np.dtype(_DTYPES.get(self._input.type, np.float32))
        self._label_output, self._score_output = self._choose_outputs()
        self.has_scores = self._score_output is not None
        self._names = ClassNames()

    def fingerprint(self) -> str:
        """A hash of the file."""
        return self._fingerprint

    def _choose_outputs(self) -> tuple[str | None, str | None]:
        """The output that holds labels and the one that holds scores; converters order them freely."""
        outputs = self._session.get_outputs()
        labels = [o.name for o in outputs if o.type in ("tensor(int64)", "tensor(int32)", "tensor(string)")]
        scores = [o.name for o in outputs if o.type in _DTYPES]
        if not labels and not scores:
            kinds = ", ".join(f"{o.name}: {o.type}" for o in outputs)
            raise ModelError(f"{self.path} has no output of labels or scores ({kinds})")
        return next(iter(labels), None), next(iter(scores), None)

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        names = [n for n in (self._label_output, self._score_output) if n is not None]
        out = dict(zip(names, self._session.run(names, {self._input.name: x}), strict=True))
        scores = None if self._score_output is None else np.asarray(out[self._score_output])
        if scores is not None:
            scores = scores.reshape(len(scores), -1)
        if self._label_output is None:
            assert scores is not None
            return labels_of(scores, self.name), scores if with_scores else None
        return self._numbered(np.ravel(out[self._label_output])), scores if with_scores else None

    def _numbered(self, labels: Array) -> Array:
        if labels.dtype.kind in "iu":
            return labels
        numbers = self._names.number(labels)
        self.classes = self._names.seen
        return numbers


def read_model_file(path: Path) -> bytes:
    """The bytes of a file that must exist and hold something."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    if not content:
        raise ModelError(f"{path} is empty")
    return content
