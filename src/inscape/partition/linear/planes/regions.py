"""The linear regions of a model on a plane."""

import math
from typing import Any

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.partition.linear.bending import ROUNDING
from inscape.partition.linear.confirmed import graph_of
from inscape.partition.linear.planes.compiling import announce
from inscape.partition.linear.planes.domain import Domain, domain_of
from inscape.partition.linear.planes.result import BUDGET, COMPLETE, PlaneRegions
from inscape.partition.linear.planes.subdivision import Subdivision, subdivide
from inscape.probes import Probe
from inscape.progress import Meter
from inscape.provenance import Provenance

TOLERANCE = ROUNDING * float(np.finfo(np.float64).eps)


def plane_regions(
    model: Model, probe: Probe, *, n_layers: int | None, max_regions: int | None, memory: int, meter: Meter
) -> PlaneRegions:
    """The linear regions on one plane; `linear_regions` documents the arguments."""
    if n_layers is not None:
        n_layers = whole_number(n_layers, "n_layers", 1, PartitionError)
    if max_regions is not None:
        max_regions = whole_number(max_regions, "max_regions", 1, PartitionError)
    found, domain = subdivision_on(
        model, probe, n_layers=n_layers, max_faces=max_regions or math.inf, memory=memory, meter=meter
    )
    return plane_result(model, probe, domain, found)


def subdivision_on(
    model: Model, probe: Probe, *, meter: Meter, **settings: Any
) -> tuple[Subdivision, Domain]:
    """The subdivision of a probe by a model, and the probe's domain."""
    domain = domain_of(probe)
    graph = graph_of(model, probe.input_shape, lambda: _a_few_points(domain).reshape(-1, *probe.input_shape))
    announce()
    found = subdivide(
        graph, domain.plane, domain.corners, done=lambda part: meter(round(1000 * part), 1000), **settings
    )
    return found, domain


def _a_few_points(domain: Domain) -> Floats:
    """Points inside, one near to each corner, (k, d)."""
    few = (domain.corners + domain.corners.mean(axis=0)) / 2
    return np.asarray(domain.plane.points(few).numpy())


def plane_result(model: Model, probe: Probe, domain: Domain, found: Subdivision) -> PlaneRegions:
    """What a user gets."""
    return PlaneRegions(
        probe=probe,
        status=COMPLETE if found.is_complete else BUDGET,
        n_layers=len(found.layers),
        tolerance=TOLERANCE,
        provenance=Provenance.of(model, dtype="float64"),
        _domain=domain,
        _found=found,
    )
