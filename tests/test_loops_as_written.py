"""Python runs loops as they stand to the same numbers, to the last bit, as compiled; and only for a while."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape import compiled
from inscape.budget import timed
from inscape.compiled import compile_at_once, kernel, loops_compiled
from inscape.partition.decision.adaptive.mesh_kernels import work_of_painting
from inscape.partition.decision.regions import PIXELS
from tests.fixtures.networks import cnn, mlp

SQUARE = inscape.Patch([0.0, 0.0], np.eye(2))


def digits():
    return load_digits(return_X_y=True)


def fitted(estimator):
    x, y = digits()
    return estimator.fit(x[:400] / 16, y[:400])


def lines(n, *shape):
    ends = np.random.default_rng(1).normal(size=(n, 2, *shape))
    return [inscape.Segment(*pair) for pair in ends]


def plane_of_digits():
    return inscape.Patch.through(digits()[0][[3, 17, 42]] / 16)


def tied():
    """A network of which units are dead, equal, opposite, or zero all along an axis."""
    net = mlp(2, 12, 8, 3)
    with torch.no_grad():
        net[0].bias.zero_()
        net[0].weight[1] = net[0].weight[0]
        net[0].weight[2] = -net[0].weight[0]
        net[0].weight[3:6] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        net[0].weight[6] = 0.0
    return net


def pooling():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
    ).eval()


def images():
    return digits()[0][[3, 17, 42]].reshape(3, 1, 8, 8).astype(np.float32) / 16


def activations():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(2, 16),
        nn.LeakyReLU(0.1),
        nn.Linear(16, 16),
        nn.Hardtanh(),
        nn.Linear(16, 12),
        nn.PReLU(),
        nn.Linear(12, 3),
    ).eval()


def counted(model, x, **settings):
    return inscape.region_count(model, x, n_probes=12, random_state=0, **settings)


CASES = {
    "segments of float32": lambda: inscape.linear_regions(mlp(5, 40, 40, 3), lines(6, 5)),
    "segments of float64": lambda: inscape.linear_regions(mlp(5, 40, 40, 3).double(), lines(6, 5)),
    "segments of other kinks": lambda: inscape.linear_regions(activations(), lines(6, 2)),
    "segments of ties": lambda: inscape.linear_regions(tied(), lines(6, 2)),
    "segments of convolutions": lambda: inscape.linear_regions(cnn((2, 2, 2)), lines(2, 3, 32, 32)),
    "segments of pooling": lambda: inscape.linear_regions(pooling(), lines(4, 1, 8, 8)),
    "counts of a network": lambda: counted(mlp(64, 40, 10), digits()[0] / 16),
    "linear plane of float32": lambda: inscape.linear_regions(mlp(2, 24, 24, 3), SQUARE),
    "linear plane of float64": lambda: inscape.linear_regions(mlp(2, 24, 24, 3).double(), SQUARE),
    "linear plane of other kinks": lambda: inscape.linear_regions(activations(), SQUARE),
    "linear plane of ties": lambda: inscape.linear_regions(tied(), SQUARE),
    "linear plane in chunks": lambda: inscape.linear_regions(mlp(2, 24, 24, 3), SQUARE, memory=20_000),
    "linear plane of pooling": lambda: inscape.linear_regions(pooling(), inscape.Simplex(images())),
    "decision plane": lambda: inscape.decision_regions(mlp(2, 24, 24, 5), SQUARE, method="exact"),
    "decision plane of ties": lambda: inscape.decision_regions(tied(), SQUARE, method="exact"),
    "decision plane of digits": lambda: inscape.decision_regions(mlp(64, 40, 10), plane_of_digits()),
    "adaptive plane": lambda: inscape.decision_regions(
        mlp(2, 24, 5), SQUARE, method="adaptive", resolution=40
    ),
    "adaptive plane of a machine": lambda: inscape.decision_regions(
        fitted(SVC()), plane_of_digits(), resolution=30
    ),
    "adaptive segments": lambda: counted(fitted(SVC()), digits()[0] / 16),
    "adaptive simplices": lambda: counted(fitted(SVC()), digits()[0] / 16, dim=3, resolution=12),
    "grid segments": lambda: counted(fitted(SVC()), digits()[0] / 16, method="grid"),
    "grid triangles": lambda: counted(fitted(SVC()), digits()[0] / 16, dim=2, method="grid", resolution=20),
    "tree": lambda: counted(fitted(DecisionTreeClassifier(random_state=0)), digits()[0] / 16),
    "forest": lambda: counted(fitted(RandomForestClassifier(8, random_state=0)), digits()[0] / 16),
    "boosting": lambda: counted(
        fitted(GradientBoostingClassifier(n_estimators=3, random_state=0)), digits()[0] / 16
    ),
    "plane of a forest": lambda: inscape.decision_regions(
        fitted(RandomForestClassifier(8, random_state=0)), plane_of_digits()
    ),
    "neighbours": lambda: counted(fitted(KNeighborsClassifier(3)), digits()[0] / 16),
    "centroids": lambda: counted(NearestCentroid().fit(*load_wine(return_X_y=True)), load_wine().data),
    "parabolas": lambda: counted(GaussianNB().fit(*load_wine(return_X_y=True)), load_wine().data),
    "two networks": lambda: inscape.compare(mlp(2, 16, 3), mlp(2, 16, 3, seed=1), SQUARE),
    "distance to another label": lambda: inscape.boundary_distance(mlp(4, 12, 3).double(), np.ones(4)),
}


def everything(result):
    """All numbers of a result, as text that gives each one back."""
    found = [r.to_dict() for r in (result if isinstance(result, list) else [result])]
    areas = [getattr(r, "areas", None) for r in (result if isinstance(result, list) else [result])]
    return json.dumps([found, [None if a is None else np.asarray(a).tolist() for a in areas]])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_python_and_numba_give_the_same_numbers(case):
    with loops_compiled(False):
        as_written = everything(CASES[case]())
    with loops_compiled(True):
        assert everything(CASES[case]()) == as_written


def double(x, out):
    for i in range(len(x)):
        out[i] = 2.0 * x[i]


def is_compiled(loop):
    return bool(loop.dispatcher.overloads)


def run(loop, n, times=1):
    for _ in range(times):
        out = np.empty(n)
        loop(np.ones(n), out)
        assert (out == 2.0).all()


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A loop in a process that has done nothing yet, and nothing on disk."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled, "BY_PYTHON", compiled.ByPython())
    return kernel(double)


def test_little_work_is_left_to_python(fresh):
    run(fresh, 1000, times=100)
    assert not is_compiled(fresh)


def test_a_call_with_much_work_is_compiled(fresh):
    run(fresh, compiled.CALL_COMPILED_FROM)
    assert is_compiled(fresh)


def test_much_work_in_small_calls_is_compiled_in_the_end(fresh):
    n = compiled.COMPILED_FROM // 41
    run(fresh, n, times=20)
    assert not is_compiled(fresh)
    run(fresh, n)
    assert is_compiled(fresh)


def test_a_loop_that_is_hardly_used_does_not_make_an_old_process_wait(fresh):
    compiled.BY_PYTHON.work = 2 * compiled.COMPILED_FROM
    n = compiled.LOOP_COMPILED_FROM // 40
    run(fresh, n, times=19)
    assert not is_compiled(fresh)
    run(fresh, n, times=2)
    assert is_compiled(fresh)


def test_an_image_is_painted_by_a_compiled_loop_and_a_thumbnail_by_python():
    """A pixel takes Python ten times as long as an entry of an array: seconds for one picture."""
    cells, vertices = np.zeros((50, 3), np.int64), np.zeros((30, 2))
    of = [work_of_painting(cells, vertices, None, None, None, np.zeros((r, r))) for r in (50, PIXELS)]
    assert of[0] < compiled.LOOKED_FOR_FROM
    assert of[1] > compiled.CALL_COMPILED_FROM


def test_a_process_may_ask_for_compiled_loops(fresh):
    compile_at_once()
    run(fresh, 1)
    assert is_compiled(fresh)


def test_what_is_timed_is_compiled_and_python_goes_on_afterwards(fresh):
    timed(lambda: run(fresh, 1))
    assert is_compiled(fresh)
    before = compiled.BY_PYTHON.seconds
    other = kernel(lambda x, out: double(x, out))
    run(other, 10)
    assert not is_compiled(other)
    assert compiled.BY_PYTHON.seconds > before


def test_a_loop_may_say_how_much_it_does(fresh):
    pairs = compiled.compiled(double, work=lambda x, out: len(x) ** 2)
    run(pairs, 100)
    assert not is_compiled(pairs)
    run(pairs, 2000)
    assert is_compiled(pairs)
    steps = compiled.compiled(double, work=compiled.unbounded)
    run(steps, 1)
    assert is_compiled(steps)


def test_sums_in_any_order_are_always_compiled(fresh):
    loop = compiled.compiled(double, fastmath={"reassoc"})
    run(loop, 1)
    assert is_compiled(loop)


def test_loops_on_disk_are_found_after_a_little_work(fresh):
    with loops_compiled(True):
        run(kernel(double), 1)
    run(fresh, 100)
    assert not is_compiled(fresh)
    run(fresh, compiled.LOOKED_FOR_FROM)
    assert sum(fresh.dispatcher.stats.cache_hits.values()) == 1


def test_a_first_plane_needs_no_numba():
    code = (
        "import sys, numpy as np, inscape; from torch import nn; "
        "net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)); "
        "x = np.random.default_rng(0).normal(size=(20, 2)); "
        "inscape.region_count(net, x, n_probes=10); inscape.linear_regions(net, inscape.Patch.around(x)); "
        "inscape.decision_regions(net, inscape.Patch.around(x)).plot(); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
