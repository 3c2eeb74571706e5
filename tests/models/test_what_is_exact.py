"""Every module and tree ensemble of the zoo against its own predictions; the table of all in the docs.

The estimators of scikit-learn that are no trees have a test of their own, in from_sklearn/.
"""

import importlib
from pathlib import Path

import boosted
import estimators
import modules
import pytest
import tree_ensembles
from predictions import assert_along, assert_on_plane, assert_samples, own_labels

import inscape
from inscape import Patch, Segment

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
NEAR = {"torch": 1e-4, "trees": 1e-6, "boosting": 1e-6}
"""How far from a boundary the rounding of float32 may reach."""
CASES = [
    *(("torch", name) for name in modules.CASES),
    *(("trees", name) for name in tree_ensembles.CASES),
    *(("boosting", name) for name in boosted.CASES),
]


def made(kind, name):
    """The wrapped model, what is said of it, a segment, a plane, and how its own library predicts."""
    if kind == "torch":
        case = modules.CASES[name]
        module = case.build()
        model = inscape.wrap(module, input_shape=case.shape, **case.options)
        return model, case, *modules.probes(case), own_labels(module)
    case, x = (tree_ensembles if kind == "trees" else boosted).CASES[name], estimators.X
    fitted = case.build()
    return (
        inscape.wrap(fitted),
        case,
        Segment(x[0], x[1], span=(-0.5, 1.5)),
        Patch.through(x[[0, 5, 17]]),
        own_labels(fitted),
    )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_labels_are_the_models_on_both_sides_of_every_boundary(kind, name):
    model, case, segment, plane, predict = made(kind, name)
    assert (model.structure != "black-box") == (case.segments == "exact")
    line = inscape.decision_regions(model, segment)
    assert line.method == case.segments
    if case.segments == "exact":
        assert line.is_exact
        assert_along(predict, line, NEAR[kind])
    else:
        with pytest.raises(inscape.InscapeError, match="cannot be counted exactly"):
            inscape.decision_regions(model, segment, method="exact")
        assert_samples(predict, inscape.decision_regions(model, segment, tolerance=1e-3))
    if case.planes == "exact":
        faces = inscape.decision_regions(model, plane, method="exact")
        assert faces.is_exact
        assert_on_plane(predict, faces, NEAR[kind])
        assert faces.labels.shape == (faces.n_regions,)


def test_the_zoo_has_boundaries_to_check():
    counts = [inscape.decision_regions(*made(*case)[::2][:2]).n_regions for case in CASES[8:40:4]]
    assert sum(n > 1 for n in counts) >= 5


def test_the_table_of_the_docs_is_that_of_the_zoo(monkeypatch):
    for library in ("xgboost", "lightgbm", "catboost", "skl2onnx", "onnxmltools"):
        pytest.importorskip(library)
    monkeypatch.syspath_prepend(PAGE.parent)
    table = importlib.import_module("exactness_table")
    rows = table.rows()
    assert len(rows) >= 60
    assert table.text(rows) in PAGE.read_text(encoding="utf-8"), "run python docs/exactness_table.py"
