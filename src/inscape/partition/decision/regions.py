"""The decision regions of one probe: what every method returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.probes import Patch, Probe
from inscape.provenance import Provenance

CONVERGED = "converged"
NOT_CONVERGED = "not converged in resolution"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionRegions:
    """Maximal connected sets of equal prediction on a probe (Def. 1-3 of Li et al. 2025, arXiv 2505.11370).

    Attributes:
        probe: where we looked.
        labels: the predicted label of each region, (n_regions,).
        method: how the regions were found: "grid", ...
        is_exact: whether the count is the true one; a grid can miss regions narrower than its spacing
            and split ones that are thinner than it in between.
        status: "converged" if half the resolution gives the same count, else "not converged in resolution".
        n_evaluations: at how many points the model was asked.
        resolution: grid points per axis.
        connectivity: which grid points are neighbours, "face" or "full".
        class_names: the class name of each label, if the model has names.
        provenance: model, precision, version.
    """

    probe: Probe
    labels: npt.NDArray[np.int64]
    method: str
    is_exact: bool
    status: str
    n_evaluations: int
    resolution: int | None
    connectivity: str
    class_names: tuple[str, ...] | None
    provenance: Provenance

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.labels)

    def plot(self, ax: Any = None) -> Any:
        """Draw the regions and return the matplotlib Axes; there are pictures of 1D and 2D probes."""
        raise NotImplementedError

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
            between the two samples.
        span: the interval of t.
        samples: the parameters t at which the model was asked, if the method samples.
        top_scores: the two highest scores at each sample, (n, 2), if the model has scores.
        top_labels: whose they are, (n, 2).
    """

    boundaries: npt.NDArray[np.float64]
    span: tuple[float, float]
    samples: npt.NDArray[np.float64] | None = None
    top_scores: npt.NDArray[Any] | None = None
    top_labels: npt.NDArray[np.int64] | None = None

    def plot(self, ax: Any = None) -> Any:
        """Draw the labels along t, and the two highest scores where the model has scores."""
        from inscape.drawing.segment import draw_segment

        return draw_segment(
            self.boundaries,
            self.labels,
            self.span,
            names={int(label): self._name(int(label)) for label in self._known_labels()},
            samples=self.samples,
            top_scores=self.top_scores,
            top_labels=self.top_labels,
            anchors=self.probe.anchors,
            ax=ax,
        )

    def _known_labels(self) -> npt.NDArray[np.int64]:
        extra = [] if self.top_labels is None else [self.top_labels.ravel()]
        return np.unique(np.concatenate([self.labels, *extra]))


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
        """The labels as an array (resolution,) * d, -1 outside the probe."""
        return self._on_grid(self.sample_labels)

    def _on_grid(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        d, r = self.coordinates.shape[1], self.resolution
        assert r is not None
        grid = np.full((r,) * d, -1, dtype=np.int64)
        grid[tuple(self.coordinates.T)] = values
        return grid

    def plot(self, ax: Any = None) -> Any:
        """Draw the filled regions, the spanning points (images shown as images) and a class legend."""
        from inscape.drawing.plane import draw_plane
        from inscape.errors import PartitionError

        if self.probe.dim != 2:
            raise PartitionError(
                f"a probe of dimension {self.probe.dim} has no picture: plot one of dimension 1 or 2"
            )
        frame, marks = _plane_frame(self.probe)
        return draw_plane(
            self.image(),
            self._on_grid(self.sample_regions),
            frame,
            names={int(label): self._name(int(label)) for label in np.unique(self.labels)},
            marks=marks,
            images=self.probe.anchors,
            is_triangle=not isinstance(self.probe, Patch),
            ax=ax,
        )


def _plane_frame(probe: Probe) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Corner and two sides (3, 2) of the grid in drawing coordinates, and the anchors' coordinates (m, 2).

    A patch is drawn in its own coordinates; a triangle true to scale, its first generator at the origin.
    """
    if isinstance(probe, Patch):
        (s0, s1), (t0, t1) = probe.bounds
        return np.array([[s0, t0], [s1 - s0, 0.0], [0.0, t1 - t0]]), probe.marks
    flat = probe.generators.reshape(3, -1)
    sides = np.linalg.qr((flat[1:] - flat[0]).T)[1].T
    sides = sides * np.where(np.diag(sides) < 0, -1.0, 1.0)
    frame = np.concatenate([np.zeros((1, 2)), sides])
    corners = np.concatenate([np.zeros((1, 2)), sides])
    order = [int(np.flatnonzero((flat == a.ravel()).all(axis=1))[0]) for a in probe.anchors]
    return frame, corners[order]
