"""ONNX files, evaluated by onnxruntime and read by onnx (extra `onnx`)."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from inscape.arrays import Array, Shape
from inscape.errors import InscapeError, MissingExtraError, ModelError, PartitionError
from inscape.files import gunzipped
from inscape.models.base import Model
from inscape.models.class_names import ClassNames
from inscape.models.decision_rules import Argmin
from inscape.models.fingerprints import short_hash
from inscape.models.outputs import Output, OutputStep, follow, labels_of, picking, squeezed
from inscape.models.trees import TreeEnsemble, Unread, check_agreement
from inscape.models.trees.numbers import own_rule, trees_by_rule

if TYPE_CHECKING:
    from inscape.models.graph import Graph
    from inscape.models.graph.trace import Trace

N_POINTS_COMPARED = 3  # points on which a graph is compared with its file
N_COMPARED = 64
"""Random points, and as many ten times further out, at which labels are compared with scores."""
AGREEMENT = 0.9
"""Where an output holds labels, they are those of the largest score at this fraction of random points."""
_DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_LABELS = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")
_MOVES = frozenset(
    [
        "Identity",
        "Dropout",
        "Cast",
        "Reshape",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
        "Slice",
        "Gather",
        "Transpose",
    ]
)
_HEADS = {
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Exp": "exp",
    "Softplus": "softplus",
}
_LAYERS = frozenset(["Gemm", "MatMul", "Conv", "ConvTranspose", "BatchNormalization"])


class OnnxModel(Model):
    """An ONNX classifier with one input: scores (n, c), or labels (n,) with or without scores.

    Of several outputs `output` chooses; without it, there may be labels and scores that agree, as converters
    write them, and nothing else.

    A file whose input has one axis of known size takes single points; so does one that is wrapped with an
    `input_shape` of as many axes as its input has.
    """

    max_batch = 1024
    reveals_classes = True

    def __init__(
        self,
        path: str | Path,
        *,
        input_shape: Shape | None = None,
        batch_size: int | None = None,
        output: Output | None = None,
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnx", "an .onnx model") from error
        self.path = Path(path)
        self._content = read_model_file(self.path)
        self._folder = self.path.absolute().parent
        self._fingerprint = short_hash(self._content)
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
        if self._input.type not in _DTYPES:
            raise ModelError(_not_of_real_numbers(self.path, self._input))
        self.takes_single_points, batch, input_shape = _batch_and_shape(self._input.shape, input_shape)
        super().__init__(self.path.name, input_shape=input_shape, batch_size=batch_size, output=output)
        self.fixed_batch = batch
        self._one_by_one = False
        self._traced: tuple[Shape, Trace] | None = None
        self._seen_shape: Shape | None = None
        self._forest: tuple[Shape, TreeEnsemble | Unread | None] | None = None
        self._summed: tuple[Shape, TreeEnsemble] | None = None
        self.dtype = np.dtype(_DTYPES[self._input.type])
        self._files_outputs = {o.name: o for o in self._session.get_outputs()}
        self._label_output, self._score_output, self._steps = self._choose_outputs()
        self._sign: int | None = None if self._label_output and self._score_output else 1
        self.labels_are_columns = self._label_output is None
        self.has_scores = self._score_output is not None
        self._names = ClassNames()

    @property
    def coarse_precision(self) -> str | None:
        """The name float16 if that is what the file takes, else None."""
        return "float16" if self.dtype == np.float16 else None

    def size_hint(self, shape: Shape) -> str:
        """That a point may be all that the file takes at once."""
        if self.input_shape is None or shape != (self.fixed_batch, *self.input_shape):
            return ""
        return f": if one point is all that the file takes at once, wrap it with input_shape={shape}"

    def fingerprint(self) -> str:
        """A hash of the file."""
        return self._marked(self._fingerprint)

    def _choose_outputs(self) -> tuple[str | None, str | None, tuple[OutputStep, ...]]:
        """The output that holds labels, the one that holds scores, and what picks among those."""
        if self.output is not None:
            name, steps = self._chosen(self.output.steps)
            kind = self._files_outputs[name].type
            if kind in _LABELS:
                return name, None, steps
            if kind in _DTYPES:
                return None, name, steps
            raise ModelError(
                f"the output {name!r} of {self.path.name} is no tensor of numbers: {self._listed()}"
            )
        labels = [o.name for o in self._files_outputs.values() if o.type in _LABELS]
        scores = [o.name for o in self._files_outputs.values() if o.type in _DTYPES]
        if not labels and not scores:
            raise ModelError(f"{self.path} has no output of labels or scores: {self._listed()}")
        if len(labels) > 1 or len(scores) > 1:
            raise ModelError(
                f"{self.path.name} has several outputs, {self._listed()}: choose one by output=... "
                f"(--output), such as output={(scores or labels)[0]!r}"
            )
        return next(iter(labels), None), next(iter(scores), None), ()

    def _chosen(self, steps: tuple[OutputStep, ...]) -> tuple[str, tuple[OutputStep, ...]]:
        """The output of the file that the first step names, and the steps that are left."""
        first, names = steps[0], list(self._files_outputs)
        if isinstance(first, str) and first in names:
            return first, steps[1:]
        if isinstance(first, int) and -len(names) <= first < len(names):
            return names[first], steps[1:]
        if not isinstance(first, str | int) and len(names) == 1:
            return names[0], steps
        if not isinstance(first, str | int):
            raise ModelError(
                f"{self.path.name} has several outputs, {self._listed()}: name one before the function, such "
                f"as output=({names[0]!r}, function)"
            )
        raise ModelError(f"{self.path.name} has no output {first!r}: it has {self._listed()}")

    def _listed(self) -> str:
        """Name, type and shape of every output."""
        kinds = [
            f"{o.name} {o.type}" + ("" if o.shape is None else f" [{', '.join(map(str, o.shape))}]")
            for o in self._files_outputs.values()
        ]
        return "; ".join(kinds)

    def ending(self, input_shape: Shape) -> str | None:
        """What the scores come out of, by the nodes of the file and the function that picks among them."""
        if not self._steps:
            return ending_of(self._content, str(self._score_output))
        try:
            return self.trace(input_shape).ending
        except InscapeError:  # onnx is not installed, or the file cannot be run
            return None

    @property
    def structure(self) -> str:  # type: ignore[override]
        """Piecewise-affine if the file's graph holds no foreign operation, else black-box.

        A file that leaves the size of its input open is a black box until it is wrapped with `input_shape` or
        has seen points.
        """
        if isinstance(self._tree_form(), TreeEnsemble):
            return "trees"
        return "piecewise-affine" if self._has_graph() else "black-box"

    @property
    def trees(self) -> TreeEnsemble:
        """The trees of the file as flat arrays; an error says why there are none."""
        form = self._tree_form()
        if form is None:
            return super().trees
        if isinstance(form, Unread):
            raise form.refusal(self.name)
        return form

    def _tree_form(self) -> "TreeEnsemble | Unread | None":
        """The trees that the file's output comes from, or why they are not read; None if there are none."""
        shape = self.known_shape()
        if shape is None:
            return None
        if self._forest is None or self._forest[0] != shape:
            try:
                self._forest = shape, self._read_trees(shape)
            except Unread as reason:
                self._forest = shape, reason
        return self._forest[1]

    @property
    def summed_trees(self) -> TreeEnsemble:
        """The trees of whose sums the scores in the file are functions; an error says why there are none."""
        from inscape.models.from_onnx import read_tree_node

        shape = self.known_shape()
        if shape is None or self._score_output is None:
            return super().summed_trees
        if self._summed is None or self._summed[0] != shape:
            try:
                model = self._with_trees(self._score_output)
                if model is None:
                    return super().summed_trees
                read = read_tree_node(model, self._score_output, math.prod(shape), None)
            except Unread as reason:
                raise reason.refusal(self.name) from None
            self._summed = shape, read.ensemble
        return self._summed[1]

    def _with_trees(self, output: str) -> Any:
        """The parsed file if an output of it comes from trees, else None."""
        try:
            import onnx
        except ImportError:
            return None
        from inscape.models.from_onnx import tree_node

        model = onnx.load_model_from_string(self._content)
        return None if tree_node(model, output) is None else model

    def _read_trees(self, shape: Shape) -> TreeEnsemble | None:
        """The trees that decide without a rule of the user's, None if there are none."""
        from inscape.models.from_onnx import read_tree_node

        output = self._label_output or self._score_output
        assert output is not None
        model = self._with_trees(output)
        if model is None:
            return None
        if self._steps:
            return trees_by_rule(self, self.summed_trees, own_rule(self))
        threshold = 0.0
        if self._label_output is None:
            threshold = self.natural_threshold(shape)
        ensemble, classes = read_tree_node(model, output, math.prod(shape), threshold)
        if self._label_output is not None and classes is not None:
            names = self._numbered(np.asarray(classes))
            ensemble = replace(ensemble, vote=ensemble.vote._replace(classes=np.asarray(names, np.int64)))
        check_agreement(ensemble, lambda x: self.predict(x.reshape(-1, *shape), with_scores=False).labels)
        return ensemble

    def known_shape(self) -> Shape | None:
        """The file's own shape, the one given, or that of the points seen last."""
        return self.input_shape or self._seen_shape

    def network(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of the file."""
        if self._tree_form() is not None:
            _ = self.trees
            raise PartitionError(
                f"{self.name} is made of trees, which are piecewise constant",
                remedy='it has no linear pieces; use decision_regions(..., method="exact")',
            )
        return self.trace(self.input_shape or input_shape).require(self.name)

    def trace(self, input_shape: Shape) -> "Trace":
        """The file's graph, if it agrees with what the file computes, or its foreign operations."""
        if self._traced is None or self._traced[0] != input_shape:
            self._traced = input_shape, self._checked(input_shape)
        return self._traced[1]

    def _checked(self, input_shape: Shape) -> "Trace":
        """The trace, refused if the graph disagrees with the file at a few random points."""
        from inscape.models.from_onnx import check, read_onnx

        output = self._score_output or self._label_output
        assert output is not None
        trace = read_onnx(self._content, self._folder, input_shape, output=output)
        n = self.fixed_batch or N_POINTS_COMPARED
        x = np.random.default_rng(0).standard_normal((n, *input_shape)).astype(self.dtype)
        with self._explained(x):
            out = self._run(x)
            labels, scores = self._labels_and_scores(out)
        if self._steps:
            from inscape.models.module_wrappers import picked

            ending = ending_of(self._content, output)
            trace = picked(replace(trace, ending=ending), self._steps, out[output].shape[1:])
        if trace.graph is None:
            return trace
        checked = replace(check(trace.graph, x, scores), ending=trace.ending)
        if checked.graph is not None and scores is not None and scores.ndim > 2:
            return replace(checked, graph=checked.graph.reshaped(scores.shape[1:]))
        if checked.graph is None or labels is None:
            return checked
        return self._with_labels(checked.graph, x, self._numbered(labels))

    def _with_labels(self, graph: "Graph", x: Array, labels: Array) -> "Trace":
        """The graph that decides as the file's own labels do at points x; refused if it does not."""
        import torch

        from inscape.models.enclosing import graph_with_rule
        from inscape.models.graph import Foreign
        from inscape.models.graph.trace import Trace

        if self._score_output is not None and self._compare(x.shape[1:]) < 0:
            graph = graph_with_rule(graph, Argmin(), self.name)
        scores = graph.evaluate(torch.from_numpy(x).to(torch.float64)).flatten(1).numpy()
        if (labels_of(scores, self.name) == labels).all():
            return Trace(graph)
        return Trace(None, (Foreign("labels that are not those of the largest score", ""),))

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        labels, scores = self._labels_and_scores(self._run(x))
        if scores is None:
            assert labels is not None
            return self._numbered(labels), None
        self._check_axes(scores)
        if labels is None:
            return self._by_own_rule(scores, x.shape[1:], with_scores)
        sign = self._compare(x.shape[1:])
        return self._numbered(labels), self._by_own_rule(sign * scores, x.shape[1:], with_scores)[1]

    def _outputs(self, x: Array) -> Array:
        out = self._run(x)
        name = str(self._score_output or self._label_output)
        if out[name].dtype.kind not in "iubf":
            raise ModelError(f"{self.name} returns names of classes, no numbers that a rule could decide by")
        numbers = self._picked(out[name])
        self._check_axes(numbers)
        return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)

    def _compare(self, input_shape: Shape) -> int:
        """1 if the labels are those of the largest score, -1 of the smallest; an error if of neither.

        Found once, at random points. Labels may be numbered otherwise than scores, and need not agree
        everywhere: some classifiers vote.
        """
        if self._sign is None:
            length = self.fixed_batch or N_COMPARED
            n = max(1, N_COMPARED // length) * length
            drawn = np.random.default_rng(0).standard_normal((n, *input_shape))
            points = np.concatenate([drawn, 10 * drawn]).astype(self.dtype)
            signs = [
                self._labels_and_scores(self._run(points[i : i + length])) for i in range(0, 2 * n, length)
            ]
            labels = np.concatenate([b for b, _ in signs if b is not None])
            scores = np.concatenate([s for _, s in signs if s is not None])
            self._sign = self._sign_between(labels, scores, input_shape)
        return self._sign

    def _sign_between(self, labels: Array, scores: Array, input_shape: Shape) -> int:
        for sign in (1, -1) if scores.shape[1] > 1 else (1,):
            if match(self._by_own_rule(sign * scores, input_shape, False)[0], labels) >= AGREEMENT:
                return sign
        raise ModelError(
            f"the output {self._label_output!r} of {self.path.name} is not the class of the largest or "
            f"smallest of {self._score_output!r}: choose one of {self._listed()} by output=... (--output)"
        )

    def _labels_and_scores(self, out: dict[str, Array]) -> tuple[Array | None, Array | None]:
        """The labels (n,) and the scores (n, ...) that the file returned, None for what it does not."""
        labels = scores = None
        if self._label_output is not None:
            returned = out[self._label_output]
            labels = squeezed(returned) if self._score_output is not None else self._picked(returned)
            if labels.ndim != 2 or labels.shape[1] != 1:
                self._refuse(self._label_output, labels.shape, is_label=True)
            labels = labels[:, 0]
        if self._score_output is not None:
            scores = self._picked(out[self._score_output])
            scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
        return labels, scores

    def _picked(self, returned: Array) -> Array:
        """The scores (n, c), or labels (n, 1), in the output that was chosen."""
        output: Any = returned
        if self._steps and returned.dtype.kind in "iubf":
            import torch

            output = follow(self._steps, torch.from_numpy(returned), self.name)
        elif self._steps:  # names, of which torch has no tensors
            output = follow(self._steps, returned, self.name)
        return squeezed(np.asarray(output))

    def _check_axes(self, scores: Array) -> None:
        if scores.ndim != 2:
            self._refuse(str(self._score_output or self._label_output), scores.shape, is_label=False)

    def _refuse(self, output: str, shape: Shape, *, is_label: bool) -> NoReturn:
        """Raise the error for an output that is none of a classifier."""
        sizes = ", ".join(map(str, shape[1:]))
        expected = "labels (n,)" if is_label else "scores (n, c)"
        raise ModelError(
            f"the output {output!r} of {self.path.name} has shape (n, {sizes}), not {expected}; of its "
            f"outputs, {self._listed()}, choose by output=... (--output), which may be a function such as "
            f"output={picking(len(shape), is_label=is_label)}"
        )

    def _run(self, x: Array) -> dict[str, Array]:
        """The outputs (n, ...) on a batch, one point at a time if the file turns out to take no more."""
        names = [n for n in (self._label_output, self._score_output) if n is not None]
        self._seen_shape = x.shape[1:]
        may_fail = self.fixed_batch is None and len(x) > 1
        if not (may_fail and self._one_by_one):
            try:
                out = self._session.run(names, {self._input.name: x[0] if self.takes_single_points else x})
                if not may_fail or all(np.ndim(o) > 0 and len(o) == len(x) for o in out):
                    return {name: _with_batch(o, len(x)) for name, o in zip(names, out, strict=True)}
            except Exception:
                if not may_fail:
                    raise
        answers = [self._session.run(names, {self._input.name: x[i : i + 1]}) for i in range(len(x))]
        self._one_by_one = True
        return {name: np.concatenate([_with_batch(r[k], 1) for r in answers]) for k, name in enumerate(names)}

    def _numbered(self, labels: Array) -> Array:
        if labels.dtype.kind in "iub":
            return labels.astype(np.int64)
        numbers = self._names.number(labels)
        self.classes = self._names.seen
        return numbers


def match(labels: Array, others: Array) -> float:
    """The fraction of points at which two labellings agree, up to the names of their classes.

    >>> match(np.array([0, 0, 1, 1]), np.array(["b", "b", "a", "a"])), match(np.arange(4), np.zeros(4))
    (1.0, 0.25)
    """
    a, b = (np.unique(each, return_inverse=True)[1] for each in (labels, others))
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    return float(min(table.max(axis=0).sum(), table.max(axis=1).sum()) / len(a))


def ending_of(content: bytes, output: str) -> str | None:
    """What an output of an ONNX file comes out of: a head, or "weights" of a layer; None if it is neither."""
    try:
        import onnx
    except ImportError:
        return None
    graph = onnx.load_model_from_string(content).graph
    makers = {name: n for n in graph.node for name in n.output}
    stored = {t.name for t in graph.initializer}
    node = makers.get(output)
    while node is not None and node.op_type in _MOVES:
        node = makers.get(node.input[0])
    if node is not None and node.op_type == "Add" and stored.intersection(node.input):  # the bias of a layer
        node = next((makers[i] for i in node.input if i in makers), None)
        return "weights" if node is not None and node.op_type in _LAYERS else None
    if node is None or node.op_type in _LAYERS:
        return None if node is None else "weights"
    return _HEADS.get(node.op_type)


def _not_of_real_numbers(path: Path, given: Any) -> str:
    kind = given.type.removeprefix("tensor(").removesuffix(")")
    return (
        f"{path.name} takes {kind}, and regions are cut in a space of real numbers: wrap a function that "
        "rounds points first, such as lambda x: "
        f"session.run(None, {{{given.name!r}: np.rint(x).astype(np.{kind})}})[0] with an "
        "onnxruntime.InferenceSession"
    )


def _with_batch(out: Any, n: int) -> Array:
    """An output with a batch axis of n, which a file that takes one point may leave out."""
    array = np.asarray(out)
    return (
        array
        if array.ndim and len(array) == n and (n > 1 or array.ndim > 1)
        else array.reshape(n, *array.shape)
    )


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
