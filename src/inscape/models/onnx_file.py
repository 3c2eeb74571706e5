"""ONNX files, evaluated by onnxruntime and read by onnx (extra `onnx`)."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Shape
from inscape.errors import InscapeError, MissingExtraError, ModelError
from inscape.files import gunzipped
from inscape.models.base import Array, Model, labels_of
from inscape.models.class_names import ClassNames

if TYPE_CHECKING:
    from inscape.models.graph import Graph
    from inscape.models.graph.trace import Trace

N_ROWS = 3  # points on which a graph is compared with its file
_DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_SAME_VALUES = frozenset(["Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze"])


class OnnxModel(Model):
    """An ONNX classifier with one input: scores (n, c), or labels (n,) with or without scores.

    A file whose input has one axis of known size takes single points; so does one that is wrapped with an
    `input_shape` of as many axes as its input has.
    """

    max_batch = 1024
    reveals_classes = True

    def __init__(
        self, path: str | Path, *, input_shape: Shape | None = None, batch_size: int | None = None
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnx", "an .onnx model") from error
        self.path = Path(path)
        self._content = read_model_file(self.path)
        self._folder = self.path.absolute().parent
        self._fingerprint = hashlib.blake2b(self._content, digest_size=8).hexdigest()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what fails is raised, not printed
        try:
            self._session: Any = onnxruntime.InferenceSession(
                self._content if is_packed(self.path) else str(self.path),
                options,
                providers=["CPUExecutionProvider"],
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
        self.takes_single_points, batch, input_shape = _batch_and_shape(self._input.shape, input_shape)
        super().__init__(self.path.name, input_shape=input_shape, batch_size=batch_size)
        self.fixed_batch = batch
        self._one_by_one = False
        self._traced: tuple[Shape, Trace] | None = None
        self.dtype = np.dtype(_DTYPES.get(self._input.type, np.float32))
        self._label_output, self._score_output = self._choose_outputs()
        self.labels_are_columns = self._label_output is None
        self._ends_in_sigmoid = self._output_of_sigmoid()
        self.has_scores = self._score_output is not None
        self._names = ClassNames()

    @property
    def coarse_precision(self) -> str | None:
        """The name float16 if that is what the file takes, else None."""
        return "float16" if self.dtype == np.float16 else None

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

    def _output_of_sigmoid(self) -> bool:
        """Whether the scores come out of a sigmoid: a single one is then compared with 1/2, not with 0."""
        try:
            import onnx
        except ImportError:
            return False
        nodes = onnx.load_model_from_string(self._content).graph.node
        makers = {name: n for n in nodes for name in n.output}
        node = makers.get(self._score_output)
        while node is not None and node.op_type in _SAME_VALUES:
            node = makers.get(node.input[0])
        return node is not None and node.op_type == "Sigmoid"

    @property
    def structure(self) -> str:  # type: ignore[override]
        """Piecewise-affine if the file's graph holds no foreign operation, else black-box.

        A file that leaves the size of its input open is a black box until it is wrapped with `input_shape`.
        """
        if self.input_shape is None:
            return "black-box"
        try:
            return "black-box" if self.trace(self.input_shape).graph is None else "piecewise-affine"
        except InscapeError:  # onnx is not installed, or the file cannot be run
            return "black-box"

    def graph(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of the file."""
        return self.trace(self.input_shape or input_shape).require(self.name)

    def trace(self, input_shape: Shape) -> "Trace":
        """The file's graph, if it agrees with what the file computes, or its foreign operations."""
        from inscape.models.from_onnx import read_onnx

        if self._traced is None or self._traced[0] != input_shape:
            output = self._score_output or self._label_output
            found = read_onnx(self._content, self._folder, input_shape, output=output)
            self._traced = input_shape, self._checked(found, input_shape)
        return self._traced[1]

    def _checked(self, found: "Trace", input_shape: Shape) -> "Trace":
        """The trace, refused if the graph disagrees with the file on a few points of noise."""
        if found.graph is None:
            return found
        from inscape.models.from_onnx.reading import check

        n = self.fixed_batch or N_ROWS
        x = np.random.default_rng(0).standard_normal((n, *input_shape)).astype(self.dtype)
        with self._explained(x):
            labels, scores = self._outputs(x)
        return check(found.graph, x, scores, labels)

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        labels, scores = self._outputs(x)
        if scores is not None and scores.shape[1] == 1 and self._ends_in_sigmoid:
            scores = scores - np.asarray(0.5, dtype=scores.dtype)
        if labels is None:
            assert scores is not None
            labels = labels_of(scores, self.name)
        return labels, scores if with_scores else None

    def _outputs(self, x: Array) -> tuple[Array | None, Array | None]:
        """The labels (n,) and the scores (n, c) that the file returns, None for what it does not."""
        out = self._run(x)
        labels = None if self._label_output is None else self._numbered(np.ravel(out[self._label_output]))
        scores = None if self._score_output is None else np.asarray(out[self._score_output])
        if scores is not None:
            scores = scores.reshape(len(x) if self.fixed_batch == 1 else len(scores), -1)
        return labels, scores

    def _run(self, x: Array) -> dict[str, Array]:
        """The outputs on a batch, one point at a time if the file turns out to take no more."""
        names = [n for n in (self._label_output, self._score_output) if n is not None]
        may_fail = self.fixed_batch is None and len(x) > 1
        if not (may_fail and self._one_by_one):
            try:
                out = self._session.run(names, {self._input.name: x[0] if self.takes_single_points else x})
                if not may_fail or all(np.ndim(o) > 0 and len(o) == len(x) for o in out):
                    return dict(zip(names, out, strict=True))
            except Exception:
                if not may_fail:
                    raise
        rows = [self._session.run(names, {self._input.name: x[i : i + 1]}) for i in range(len(x))]
        self._one_by_one = True
        return {name: np.stack([np.ravel(r[k]) for r in rows]) for k, name in enumerate(names)}

    def _numbered(self, labels: Array) -> Array:
        if labels.dtype.kind in "iu":
            return labels
        numbers = self._names.number(labels)
        self.classes = self._names.seen
        return numbers


def _batch_and_shape(declared: Any, input_shape: Shape | None) -> tuple[bool, int | None, Shape | None]:
    """Whether a file takes single points, the batch length that it fixes, and the shape of a point."""
    sizes = [n if isinstance(n, int) and n > 0 else None for n in declared or [None]]
    single = len(sizes) == (1 if input_shape is None else len(input_shape)) and None not in sizes
    batch, shape = (1, sizes) if single else (sizes[0], sizes[1:])
    known = tuple(n for n in shape if n is not None)
    return single, batch, known if input_shape is None and len(known) == len(shape) else input_shape


def is_packed(path: Path) -> bool:
    """Whether a file is named as one that was packed by gzip."""
    return path.suffix.lower() == ".gz"


def read_model_file(path: Path) -> bytes:
    """What a file holds, unpacked if it ends in .gz; it must exist, and not be something else by mistake."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    if not content:
        raise ModelError(f"{path} is empty")
    mistake = _mistaken(content)
    if mistake is not None:
        raise ModelError(f"{path} is {mistake}")
    if is_packed(path):
        return gunzipped(content, path, ModelError)
    if content.startswith(b"\x1f\x8b"):
        raise ModelError(f"{path} is packed by gzip: name it {path.name}.gz, or unpack it")
    return content


def _mistaken(content: bytes) -> str | None:
    """What people download in place of a model, and what to do about it; None for anything else."""
    start = content[:1000].lstrip().lower()
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the model itself: fetch that with `git lfs pull`"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a page of HTML, not a model: download the file itself, such as by its link to the raw file"
    return None
