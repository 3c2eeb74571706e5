"""Exact decision regions of a piecewise-affine network on planes."""

import math

from inscape.errors import PartitionError
from inscape.memory import MEMORY
from inscape.models import Model
from inscape.partition.decision.regions import DecisionPlane
from inscape.partition.linear.planes.complex.dissolve import joined_faces
from inscape.partition.linear.planes.subdivision import subdivision_on
from inscape.probes import Probe
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

_ON_A_FACE = "the largest scores are equal (ties) on a whole face, where the smaller label counts"
TIES = Status("ties", _ON_A_FACE, text=f"{COMPLETE}; {_ON_A_FACE}")


def exact_plane(
    model: Model, probe: Probe, *, meter: Meter, memory: int = MEMORY, max_faces: float = math.inf
) -> DecisionPlane:
    """The decision regions of a piecewise-affine model on a patch or a triangle.

    On a face of the linear regions every score is affine, so that label changes are edges of the upper
    envelope of c planes. A one-output net has the label `score > 0`. Faces of one label that share an edge
    are one region. More than `max_faces` linear regions are given up with an error.
    """
    graph = model.graph(probe.input_shape)
    if len(shape := graph.shapes[graph.output]) > 1:
        raise PartitionError(
            f"{model.name} returns scores of shape (n, {', '.join(map(str, shape))}): expected (n, c)"
        )
    subdivision, domain = subdivision_on(
        model, probe, memory=memory, max_faces=max_faces, with_labels=True, meter=meter
    )
    if not subdivision.is_complete:
        raise PartitionError(f"there are more than {max_faces:,.0f} linear regions, far more than foreseen")
    assert subdivision.labels is not None
    regions, labels = joined_faces(subdivision.planar, subdivision.labels)
    return DecisionPlane(
        probe=probe,
        labels=labels,
        method="exact",
        is_exact=True,
        status=TIES if subdivision.has_tie else COMPLETE,
        n_evaluations=len(subdivision.planar.xy),
        resolution=None,
        connectivity=None,
        class_names=model.classes,
        provenance=Provenance.of(model, dtype="float64"),
        face_regions=regions,
        domain=domain,
        subdivision=subdivision,
    )
