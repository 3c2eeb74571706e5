"""Threads: the same numbers, errors, warnings and progress with any number; all is left as it was."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import nn

import inscape
from inscape import parallel
from inscape.errors import InscapeError, InscapeWarning, JobsError, warn

JOBS = (1, 2, 3)


def relu_net(*sizes, seed=0):
    rng = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in pairwise(sizes):
        linear = nn.Linear(a, b)
        linear.weight.data = torch.randn(b, a, generator=rng) * (2 / a) ** 0.5
        linear.bias.data = 0.3 * torch.randn(b, generator=rng)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def plain(value):
    """A result as nested tuples of bytes: equal only if every bit is."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items() if k not in ("seconds", "provenance"))
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, float):
        return value.hex()
    return value


def faces(r):
    s = r.subdivision
    return plain([getattr(s.planar, name) for name in ("xy", "ends", "born", "start", "loop")])


def segments_of_network(n_jobs):
    x = np.random.default_rng(0).normal(size=(40, 30))
    net = relu_net(30, 64, 64, 64, 5)
    probes = inscape.sample_probes(x, n=30, random_state=0)
    found = inscape.decision_regions(net, probes, method="exact", n_jobs=n_jobs)
    pieces = inscape.linear_regions(net, probes, n_jobs=n_jobs)
    quick = inscape.linear_regions(net, probes, precision="float32", n_jobs=n_jobs)
    many = inscape.sample_probes(x[:, :20], n=160, random_state=0)  # enough for batches of whole segments
    found += inscape.decision_regions(relu_net(20, 400, 400, 3), many, method="exact", n_jobs=n_jobs)
    return (
        [plain([r.boundaries, r.labels, r.n_pieces, r.n_evaluations, str(r.status)]) for r in found],
        [plain([r.knots, r.n_linear, str(r.status)]) for r in (*pieces, *quick)],
    )


def planes_of_network(n_jobs):
    square = inscape.Patch([0.0, 0.0], np.eye(2))
    many = [inscape.Patch([0.1 * k, 0.0], np.eye(2)) for k in range(4)]
    linear = inscape.linear_regions(relu_net(2, 48, 48, 4), many, n_jobs=n_jobs)
    decided = inscape.decision_regions(relu_net(2, 24, 24, 4), many, method="exact", n_jobs=n_jobs)
    large = inscape.linear_regions(relu_net(2, 160, 160, 160, 4), square, n_jobs=n_jobs)
    return [faces(r) for r in (*linear, *decided, large)], [plain(r.labels) for r in decided], large.n_regions


def trees(n_jobs):
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 4)), rng.integers(3, size=120)
    forest = RandomForestClassifier(12, random_state=0).fit(x, y)
    lines = inscape.sample_probes(x, n=40, random_state=0)
    planes = inscape.sample_probes(x, dim=2, n=3, random_state=0)
    return [
        plain([r.boundaries, r.labels, str(r.status)])
        for r in inscape.decision_regions(forest, lines, n_jobs=n_jobs)
    ], [plain([r.labels, r.areas]) for r in inscape.decision_regions(forest, planes, n_jobs=n_jobs)]


def adaptively(n_jobs):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(300, 40)), rng.normal(size=(40, 5))
    x = rng.normal(size=(50, 300))

    def model(x):
        return np.tanh(x @ a) @ b

    lines = inscape.region_count(model, x, n_probes=150, random_state=0, n_jobs=n_jobs)
    planes = inscape.region_count(model, x, dim=2, n_probes=3, random_state=0, n_jobs=n_jobs)
    first, _, last = relu_net(300, 8, 3)
    module = inscape.region_count(nn.Sequential(first, nn.GELU(), last), x, random_state=0, n_jobs=n_jobs)
    return [plain(r.to_dict()) for r in (lines, planes)], module.n_evaluations > 0


def complexity(n_jobs):
    x = np.random.default_rng(0).normal(size=(40, 6))
    conv = nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    )
    torch.manual_seed(0)
    for p in conv.parameters():
        nn.init.normal_(p, generator=torch.Generator().manual_seed(0))
    found = [
        inscape.local_complexity(net, x, sigma=0.2, random_state=0, n_noise=k, n_directions=d, n_jobs=n_jobs)
        for net, k, d in ((relu_net(6, 20, 20, 3), 8, None), (relu_net(6, 20, 20, 3), 2, 3), (conv, 4, None))
    ]
    density = inscape.density_map(
        relu_net(2, 16, 16, 2),
        inscape.Patch([0.0, 0.0], np.eye(2)),
        20,
        sigma=0.1,
        random_state=0,
        n_jobs=n_jobs,
    )
    return [plain([r.value, r.per_layer, r.density, r.n_not_good]) for r in found], plain(density.density)


def pairs_and_tables(n_jobs):
    x = np.random.default_rng(0).normal(size=(40, 6))
    a, b = relu_net(6, 16, 3), relu_net(6, 16, 3, seed=1)
    agreement = inscape.agreement(a, b, x, n_probes=20, random_state=0, n_jobs=n_jobs)
    compared = inscape.compare(a, b, inscape.Segment(x[0], x[1]), n_jobs=n_jobs)
    ranked = inscape.rank({"a": a, "b": b}, x, n_probes=20, random_state=0, n_jobs=n_jobs)
    table = inscape.measure(
        a, x, measures=["region_count", "local_complexity", "total_variation"], random_state=0, n_jobs=n_jobs
    )
    rows = [plain(row) for row in table.rows]
    return agreement.value.hex(), plain(compared.labels), ranked.order, rows


@pytest.mark.parametrize(
    "results", [segments_of_network, planes_of_network, trees, adaptively, complexity, pairs_and_tables]
)
def test_every_bit_is_the_same_however_many_threads(results):
    one = results(1)
    for n_jobs in JOBS[1:]:
        assert results(n_jobs) == one


@pytest.mark.parametrize("kind", ["function", "module"])
def test_the_record_of_a_model_is_the_same_however_many_threads(kind):
    weights = np.random.default_rng(0).normal(size=(6, 3))
    model = (lambda x: np.tanh(x @ weights)) if kind == "function" else relu_net(6, 8, 3)
    x = np.random.default_rng(1).normal(size=(20, 6))
    options = {"n_probes": 6, "method": "adaptive", "random_state": 0}
    one, two = (inscape.region_count(model, x, n_jobs=n, **options).provenance for n in (1, 2))
    assert one == two


def threads_are_there():
    """Have threads that serve no call; one that ends would leave fewer, one too many would be another."""
    with parallel.working(2):
        squares(4)


def squares(n, hear=lambda number, told: None):
    def job(k, tell):
        time.sleep(0.002 * (k % 3))
        tell(k)
        return k * k, threading.get_ident()

    return list(parallel.in_order([lambda tell, k=k: job(k, tell) for k in range(n)], hear))


@pytest.mark.parametrize("n_jobs", JOBS)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_job_that_is_begun_returns_or_raises_when_it_is_asked_for(n_jobs, at_once):
    with parallel.working(n_jobs):
        ask = parallel.begun(lambda: 6 * 7, at_once=at_once)
        assert parallel.spread([lambda k=k: k for k in range(4)]) == [0, 1, 2, 3]
        assert ask() == 42
    with pytest.raises(ZeroDivisionError), parallel.working(n_jobs):
        parallel.begun(lambda: 1 // 0, at_once=at_once)()


@pytest.mark.parametrize("n_jobs", JOBS)
def test_results_come_in_order_from_so_many_threads(n_jobs):
    heard = []
    with parallel.working(n_jobs):
        found = squares(20, lambda number, told: heard.append((number, told, threading.get_ident())))
    assert [k for k, _ in found] == [k * k for k in range(20)]
    assert {i for _, _, i in heard} == {threading.get_ident()}
    assert sorted(number for number, _, _ in heard) == list(range(20))
    used = {i for _, i in found}
    assert len(used) <= n_jobs
    assert (threading.get_ident() in used) == (n_jobs == 1)


@pytest.mark.parametrize("n_jobs", JOBS)
def test_the_first_error_by_order_is_raised_and_its_warnings_are_given_here(n_jobs):
    def job(k, tell):
        warn(f"job {k}")
        time.sleep(0.02 if k == 1 else 0.0)
        if k in (1, 2, 5):
            raise ValueError(f"job {k} failed")
        return k

    taken = []

    def take():
        with parallel.working(n_jobs):
            taken.extend(parallel.in_order(lambda tell, k=k: job(k, tell) for k in range(50)))

    with pytest.warns(InscapeWarning) as said, pytest.raises(ValueError, match="job 1 failed"):
        take()
    assert taken == [0]
    assert [str(w.message) for w in said] == ["job 0", "job 1"]
    assert {w.filename for w in said} == {__file__}


@pytest.mark.parametrize("n_jobs", JOBS)
def test_who_asks_for_jobs_that_are_all_there_takes_some_of_them(n_jobs):
    together, heard = threading.Barrier(n_jobs), []

    def job(k):
        if k < n_jobs:
            together.wait(30.0)  # each by a thread of its own
        return k * k, threading.get_ident(), parallel.is_parallel()

    before = threading.active_count()
    with parallel.working(n_jobs):
        found = parallel.spread(
            [lambda k=k: job(k) for k in range(20)], lambda n: heard.append((n, threading.get_ident()))
        )
        assert threading.active_count() <= before + n_jobs - 1
    assert [k for k, _, _ in found] == [k * k for k in range(20)]
    assert len({i for _, i, _ in found}) == n_jobs
    assert threading.get_ident() in {i for _, i, _ in found}
    assert not any(inner for _, _, inner in found)
    assert {i for _, i in heard} == {threading.get_ident()}
    assert [n for n, _ in heard] == sorted({n for n, _ in heard})
    assert heard[-1][0] == 20


@pytest.mark.parametrize("n_jobs", JOBS)
def test_of_jobs_that_are_all_there_the_first_error_is_raised_and_none_is_begun_after_it(n_jobs):
    begun = []

    def job(k):
        begun.append(k)
        warn(f"job {k}")
        time.sleep(0.02 if k == 1 else 0.0)
        if k in (1, 2, 5):
            raise ValueError(f"job {k} failed")

    with pytest.warns(InscapeWarning) as said, pytest.raises(ValueError, match="job 1 failed"):  # noqa: SIM117
        with parallel.working(n_jobs):
            parallel.spread([lambda k=k: job(k) for k in range(50)])
    assert [str(w.message) for w in said] == ["job 0", "job 1"]
    assert {w.filename for w in said} == {__file__}
    assert len(begun) < 50


@pytest.mark.parametrize("n_jobs", JOBS)
def test_an_error_of_the_source_of_jobs_comes_in_its_turn(n_jobs):
    def source():
        yield lambda tell: time.sleep(0.01)
        yield lambda tell: 1 / 0
        raise ValueError("no more")

    with pytest.raises(ZeroDivisionError), parallel.working(n_jobs):
        list(parallel.in_order(source()))


def test_an_error_of_the_meter_stops_the_jobs():
    done = []

    def job(tell):
        for _ in range(1000):
            tell(0)
            time.sleep(0.001)
        done.append(1)

    def hear(number, told):
        raise InscapeError("enough")

    with pytest.raises(InscapeError, match="enough"), parallel.working(2):
        list(parallel.in_order([job] * 4, hear))
    assert not done


def test_an_interrupt_stops_the_jobs(interruptible):
    done = []

    def job(tell):
        for _ in range(2000):
            tell(0)
            time.sleep(0.001)
        done.append(1)

    threads_are_there()
    timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), parallel.working(2):
        list(parallel.in_order([job] * 4))
    timer.join()
    assert not done
    assert threading.active_count() <= before


def test_an_interrupt_stops_jobs_that_are_all_there(interruptible):
    started = []

    def job():
        started.append(1)
        for _ in range(100):
            time.sleep(0.001)

    threads_are_there()
    timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), parallel.working(2):
        parallel.spread([job] * 20)
    timer.join()
    n_started = len(started)
    time.sleep(0.05)
    assert len(started) == n_started <= 4
    assert threading.active_count() <= before


def test_one_call_after_the_other_has_the_same_threads():
    threads_are_there()
    before, used = threading.active_count(), set()
    for _ in range(50):
        with parallel.working(2):
            used.update(i for _, i in squares(4))
            parallel.spread([lambda: used.add(threading.get_ident())] * 8)
    assert threading.active_count() == before
    assert len(used) <= 3  # two, and the one that asks


def test_calls_at_the_same_time_have_threads_of_their_own():
    together, found = threading.Barrier(4), []

    def call(k):
        with parallel.working(2):
            jobs = [lambda: together.wait(30.0), *[lambda j=j: j for j in range(k)]]
            found.append(parallel.spread(jobs)[1:] == [*range(k)])

    callers = [threading.Thread(target=call, args=(k,)) for k in range(1, 5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [True] * 4


FORKING = """
import os, threading
from inscape import parallel
def total():
    with parallel.working(3):
        return sum(parallel.spread([lambda k=k: k for k in range(20)]))
assert total() == 190
assert threading.active_count() > 1
child = os.fork()
if child == 0:
    assert threading.active_count() == 1
    os._exit(0 if total() == 190 else 1)
assert threading.active_count() == 1
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert total() == 190
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_no_thread_is_left_where_a_process_forks_or_ends():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "ended\n", "")


def test_a_job_has_one_thread():
    def job(tell):
        with parallel.working(3):
            return parallel.is_parallel()

    with parallel.working(2):
        assert parallel.is_parallel()
        assert list(parallel.in_order([job, job])) == [False, False]
    with parallel.working(1), parallel.working(3):
        assert not parallel.is_parallel()


def blas_threads():
    return [(i["filepath"], i["num_threads"]) for i in threadpool_info() if i["user_api"] == "blas"]


def test_threads_of_torch_and_blas_are_left_as_they_were():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        blas = blas_threads()
        inner = []
        with parallel.working(2), parallel.single_products():
            inner += parallel.spread([torch.get_num_threads] * 3)
            assert {n for _, n in blas_threads()} == {1}
        assert inner == [1, 1, 1]
        assert torch.get_num_threads() == 3
        assert blas_threads() == blas
        found = []
        fresh = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        fresh.start()
        fresh.join()
        assert found == [3]
    finally:
        torch.set_num_threads(before)


def test_the_interpreter_switches_sooner_only_while_jobs_are_at_work():
    before = sys.getswitchinterval()
    inner: list[float] = []
    with parallel.working(2):
        assert sys.getswitchinterval() == before
        inner += parallel.spread([sys.getswitchinterval] * 3)
        with pytest.raises(ZeroDivisionError):
            parallel.spread([lambda: 1 / 0] * 2)
    assert max(inner) < before
    assert sys.getswitchinterval() == before


def test_n_jobs_counts_as_scikit_learn_does(monkeypatch):
    monkeypatch.setattr(parallel, "n_cores", lambda: 8)
    monkeypatch.delenv("INSCAPE_JOBS")
    assert [parallel.n_threads(n) for n in (None, 1, 12, -1, -2, -8, -100)] == [8, 1, 12, 8, 7, 1, 1]
    monkeypatch.setenv("INSCAPE_JOBS", "-2")
    assert parallel.n_threads(None) == 7
    monkeypatch.setenv("INSCAPE_JOBS", "many")
    with pytest.raises(InscapeError, match="INSCAPE_JOBS='many' in the environment is no number"):
        parallel.n_threads(None)
    with pytest.raises(
        InscapeError, match="n_jobs=0 is no number of threads: expected 1 or more, -1 for every"
    ):
        inscape.region_count(lambda x: x, np.eye(3), n_jobs=0)
    for wrong in (1.5, "2", True):
        with pytest.raises(JobsError, match="n_jobs"):
            parallel.n_threads(wrong)


def test_a_worker_process_keeps_one_thread(monkeypatch):
    from inscape.sweeps.executors import process_pool

    monkeypatch.delenv("INSCAPE_JOBS")
    with process_pool(most=1) as pool:
        assert pool.submit(parallel.n_threads, None).result() == 1


def test_a_function_that_keeps_its_memory_is_called_by_one_thread():
    buffer = np.empty((256, 3))
    rng = np.random.default_rng(0)
    weights, x = rng.normal(size=(784, 3)), rng.normal(size=(50, 784))

    def forgetful(x):
        np.tanh(x @ weights, out=buffer[: len(x)])
        time.sleep(0.01)
        return buffer[: len(x)].copy()

    with pytest.warns(
        InscapeWarning, match="forgetful gave other answers when two threads called it at a time"
    ):
        many = inscape.region_count(forgetful, x, n_probes=60, random_state=0, n_jobs=2)
    one = inscape.region_count(lambda x: np.tanh(x @ weights), x, n_probes=60, random_state=0, n_jobs=1)
    assert many.counts.tolist() == one.counts.tolist()


def test_a_function_is_called_by_several_threads():
    rng = np.random.default_rng(0)
    weights, x, callers = rng.normal(size=(784, 3)), rng.normal(size=(50, 784)), set()

    def model(x):
        callers.add(threading.get_ident())
        time.sleep(0.002)
        return np.tanh(x @ weights)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inscape.region_count(model, x, n_probes=60, random_state=0, n_jobs=2)
    assert len(callers) == 2
    assert threading.get_ident() in callers
