"""Measures that need the same Jacobians, computed in one pass."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from inscape.errors import MeasureError, NotApplicableError
from inscape.measures.jacobian import MEMORY
from inscape.measures.local_complexity import complexity_of, local_complexity, pass_settings, tally_of
from inscape.measures.local_rank import local_rank, rank_of, rank_tally
from inscape.measures.points import graph_at
from inscape.measures.result import Measurement
from inscape.measures.total_variation import total_variation, variation_of, variation_tally
from inscape.models import Model
from inscape.probes.source import PointSource
from inscape.progress import Meter, meter
from inscape.provenance import Provenance

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "local_complexity": local_complexity,
    "local_rank": local_rank,
    "total_variation": total_variation,
}
TALLIES: dict[str, Callable[..., Any]] = {
    "local_complexity": tally_of,
    "local_rank": rank_tally,
    "total_variation": variation_tally,
}
Options = Mapping[str, Any]
Results = dict[str, Measurement | NotApplicableError]


def share(wanted: Mapping[str, Options]) -> list[list[str]]:
    """The names in groups that one pass serves.

    Everything that needs Jacobians goes together, unless local complexity asks for single precision or random
    directions, which are not good enough for a rank. Total variation alone needs no pass.
    """
    names = [name for name in FUNCTIONS if name in wanted]
    complexity = wanted.get("local_complexity", {})
    rough = complexity.get("precision", "float64") != "float64" or complexity.get("n_probes") is not None
    if rough and "local_rank" in names:
        rest = [name for name in names if name != "local_complexity"]
        return [["local_complexity"], rest]
    if complexity.get("n_probes") is not None:
        return [[name] for name in names]
    return [names] if names else []


def jacobian_measures(
    model: Model,
    source: PointSource,
    wanted: Mapping[str, Options],
    seed: int,
    progress: bool | Meter | None,
) -> Results:
    """The measures of one group from one pass, each equal to what its own function returns."""
    if len(wanted) > 1:
        try:
            return _one_pass(model, source, wanted, seed, progress)
        except NotApplicableError:
            pass  # each function has a way of its own, or says why not
    return {
        name: applied(FUNCTIONS[name], model, source, random_state=seed, progress=progress, **options)
        for name, options in wanted.items()
    }


def applied(function: Any, *args: Any, **options: Any) -> Any:
    """What the function returns, or the error that says why it does not apply."""
    try:
        return function(*args, **options)
    except NotApplicableError as error:
        return error


def _one_pass(
    model: Model,
    source: PointSource,
    wanted: Mapping[str, Options],
    seed: int,
    progress: bool | Meter | None,
) -> Results:
    from inscape.measures.jacobian.passes import jacobian_pass

    tallies = {name: _tally(name, options, seed) for name, options in wanted.items()}
    complexity = wanted.get("local_complexity", {})
    precision = complexity.get("precision", "float64")
    settings = pass_settings(precision, complexity.get("memory", MEMORY), None, seed)
    results: Results = {}
    with (
        meter(progress, "Jacobians") as show,
        graph_at(model, source, " and ".join(wanted).replace("_", " ")) as (graph, points),
    ):
        jacobian_pass(graph, points, list(tallies.values()), settings, show)
        for name, tally in tallies.items():
            if name == "local_complexity":
                provenance = Provenance.of(model, seed, precision)
                results[name] = complexity_of(tally, graph, provenance, precision=precision, n_probes=None)
            elif name == "local_rank":
                results[name] = rank_of(tally, model)
            else:
                results[name] = variation_of(tally, model, precision)
    return results


def _tally(name: str, options: Options, seed: int) -> Any:
    """What adds a measure up; settings that are not given have the defaults of its function."""
    parameters = signature(FUNCTIONS[name]).parameters
    given: dict[str, Any] = {
        k: options.get(k, parameters[k].default) for k in parameters if k not in _ELSEWHERE
    }
    missing = [k for k, v in given.items() if v is Parameter.empty]
    if missing:
        raise MeasureError(f"{name} needs the setting {missing[0]}")
    return TALLIES[name](**given, seed=seed)


_ELSEWHERE = ("model", "x", "precision", "n_probes", "memory", "random_state", "progress")
"""Parameters of the functions that are no settings of a tally."""
