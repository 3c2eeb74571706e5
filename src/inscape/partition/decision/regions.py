"""The decision regions of one probe: what every method returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import PartitionError
from inscape.models import Model
from inscape.partition.decision.top_scores import TopScores, sample_top_scores
from inscape.probes import Patch, Probe
from inscape.provenance import Provenance

COMPLETE = "complete"
CONVERGED = "converged"
NOT_CONVERGED = "not converged in resolution"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionRegions:
    """Maximal connected sets of equal prediction on a probe (Def. 1-3 of Li et al. 2025, arXiv 2505.11370).

    Attributes:
        probe: where we looked.
        labels: the predicted label of each region, (n_regions,).
        method: how the regions were found: "exact", "adaptive" or "grid".
        is_exact: whether the count is the true one; a grid can miss regions narrower than its spacing
            and split ones that are thinner than it in between.
        status: on a grid "converged" if half the resolution gives the same count, adaptively if no place is
            left that could hide a region, else "not converged in resolution", and why; exact results are
            "complete", with a word on ties where there are any.
        n_evaluations: at how many points the model was asked.
        resolution: grid points per axis; for the adaptive method what was asked for, if anything.
        connectivity: which grid points are neighbours, "face" or "full"; None without a grid.
        class_names: the class name of each label, if the model has names.
        provenance: model, precision, version.
        missed: an estimate of the regions that were not found, where the method makes one.
        missed_basis: what that estimate rests on.
    """

    probe: Probe
    labels: npt.NDArray[np.int64]
    method: str
    is_exact: bool
    status: str
    n_evaluations: int
    resolution: int | None
    connectivity: str | None
    class_names: tuple[str, ...] | None
    provenance: Provenance
    missed: float | None = None
    missed_basis: str | None = None

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.labels)

    @property
    def corner_labels(self) -> npt.NDArray[np.int64]:
        """The labels at the probe's corners, where an exact method knows them."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw the regions and return the matplotlib Axes; there are pictures of 1D and 2D probes."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; the probe and the samples are left out, since they may be large."""
        return {
            "schema": 1,
            "kind": "decision regions",
            "probe": repr(self.probe),
            "n_regions": self.n_regions,
            "labels": self.labels.tolist(),
            "method": self.method,
            "is_exact": self.is_exact,
            "status": self.status,
            "n_evaluations": self.n_evaluations,
            "resolution": self.resolution,
            "connectivity": self.connectivity,
            "class_names": None if self.class_names is None else list(self.class_names),
            "missed": self.missed,
            "missed_basis": self.missed_basis,
            "provenance": self.provenance.to_dict(),
        }

    def __repr__(self) -> str:
        kind = "exactly" if self.is_exact else f"by {self.method}"
        return f"<{self.n_regions} decision regions on {self.probe!r}, {kind}, {self.status}>"

    def _name(self, label: int) -> str:
        names = self.class_names
        return names[label] if names is not None and 0 <= label < len(names) else str(label)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SegmentRegions(DecisionRegions):
    """Decision regions on a one-dimensional probe, in the order of t.

    Attributes:
        boundaries: the parameters t where the label changes, (n_regions - 1,); on a grid, half-way
            between the two samples; adaptively, where the chords of the two scores cross between them.
        span: the interval of t.
        samples: the parameters t at which the model was asked, if the method samples.
        top: the two highest scores at the samples, if the model has scores.
        model: where to get more of them from for a picture, if the method does not sample evenly.
    """

    boundaries: npt.NDArray[np.float64]
    span: tuple[float, float]
    samples: npt.NDArray[np.float64] | None = None
    top: TopScores | None = None
    model: Model | None = None

    @property
    def corner_labels(self) -> npt.NDArray[np.int64]:
        """The labels at both ends."""
        return self.labels[[0, -1]]

    def plot(self, ax: Any = None) -> Any:
        """Draw the labels along t, and the two highest scores where the model has scores.

        Scores of an exact or adaptive result are evaluated now, at 400 even steps; if the model has changed
        in the meantime, only those that are known are drawn.
        """
        from inscape.drawing.segment import draw_segment

        top = self.top
        model = self.model
        if model is not None and model.has_scores and model.fingerprint() == self.provenance.fingerprint:
            top = sample_top_scores(model, self.probe, self.boundaries)
        known = self.labels if top is None else np.concatenate([self.labels, top.labels.ravel()])
        return draw_segment(
            self.boundaries,
            self.labels,
            self.span,
            names={int(label): self._name(int(label)) for label in np.unique(known)},
            samples=None if top is None else top.t,
            top_scores=None if top is None else top.scores,
            top_labels=None if top is None else top.labels,
            anchors=self.probe.anchors,
            ax=ax,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, with the boundaries."""
        return super().to_dict() | {"span": list(self.span), "boundaries": self.boundaries.tolist()}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GridRegions(DecisionRegions):
    """Decision regions on a grid in two or more dimensions.

    Attributes:
        coordinates: the integer grid coordinates of the samples, (p, d).
        sample_labels: the label at each sample, (p,).
        sample_regions: the region of each sample, an index into `labels`, (p,).
    """

    coordinates: npt.NDArray[np.int64] = field()
    sample_labels: npt.NDArray[np.int64]
    sample_regions: npt.NDArray[np.int32]

    def image(self) -> npt.NDArray[np.int64]:
        """The regions as an array (resolution,) * d of indices into `labels`, -1 outside the probe."""
        d, r = self.coordinates.shape[1], self.resolution
        assert r is not None
        grid = np.full((r,) * d, -1, dtype=np.int64)
        grid[tuple(self.coordinates.T)] = self.sample_regions
        return grid

    def plot(self, ax: Any = None) -> Any:
        """Draw the filled regions, the spanning points (images shown as images) and a class legend."""
        from inscape.drawing.planes.grid import draw_plane

        if self.probe.dim != 2:
            raise PartitionError(
                f"a probe of dimension {self.probe.dim} has no picture: plot one of dimension 1 or 2"
            )
        frame, domain, marks = plane_frame(self.probe)
        return draw_plane(
            self.image(),
            self.labels,
            frame,
            names={int(label): self._name(int(label)) for label in np.unique(self.labels)},
            domain=domain,
            marks=marks,
            images=self.probe.anchors,
            ax=ax,
        )


def plane_frame(probe: Probe) -> tuple[npt.NDArray[np.float64], ...]:
    """In drawing coordinates: corner and sides (3, 2) of the grid, the domain's corners, the anchors (m, 2).

    A patch is drawn in its own coordinates; a triangle true to scale, its first generator at the origin.
    """
    if isinstance(probe, Patch):
        (s0, s1), (t0, t1) = probe.bounds
        return np.array([[s0, t0], [s1 - s0, 0.0], [0.0, t1 - t0]]), probe.corners, probe.marks
    flat = probe.generators.reshape(3, -1)
    if np.linalg.matrix_rank(flat[1:] - flat[0]) < 2:
        raise PartitionError("the three points are on a line: their hull has no picture")
    sides = np.linalg.qr((flat[1:] - flat[0]).T)[1].T
    sides = sides * np.where(np.diag(sides) < 0, -1.0, 1.0)
    frame = np.concatenate([np.zeros((1, 2)), sides])
    corners = np.concatenate([np.zeros((1, 2)), sides])
    order = [int(np.flatnonzero((flat == a.ravel()).all(axis=1))[0]) for a in probe.anchors]
    return frame, corners, corners[order]
