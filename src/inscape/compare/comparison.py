"""What two models say of one probe: where their labels differ, on how much of it, and by how much.

What high and low mean: high disagreement: on much of this probe the two models predict differently; 0:
nowhere, exactly so where the result is exact. When it does not hold: labels can agree where scores differ
widely, so look at `max_difference` too; and models can agree on a probe and differ beside it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compare.differences import MaxDifference, max_difference
from inscape.compare.on_probes import Pair
from inscape.errors import PartitionError
from inscape.models.class_names import name_of
from inscape.partition.decision.regions import (
    UNCERTAIN,
    DecisionGrid,
    DecisionMesh,
    DecisionPlane,
    DecisionRegions,
    DecisionSegment,
)
from inscape.partition.region_files import Exported
from inscape.pictures import Drawn, DrawnByClass, Style
from inscape.probes import Probe
from inscape.probes.plane import drawn_domain, frame_of, scene_of
from inscape.probes.segment import as_segment, dots_along
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, LeftOut, check_schema, plain, plain_fields, restored_fields
from inscape.status import Status

if TYPE_CHECKING:
    import pandas as pd

KIND = "comparison"
SEVERAL = "comparison of several models"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(DrawnByClass, Exported):
    """Two models on one probe.

    Attributes:
        regions: the regions of the pair: connected sets on which neither label changes. Their labels are
            numbers of `pairs`; polygons, areas and boundaries are as in every result of `decision_regions`.
        pairs: the pairs (label_a, label_b) that occur, in one numbering of the classes, (m, 2).
        shares: the share of the probe's length or area that each region has, (n_regions,).
        names: what the models are called.
        class_names: the class names in that numbering; None where neither model has names.
        matched_by: how classes were matched: by "name" or by "place".
        note: why scores cannot be compared, if they cannot; "" otherwise.
        scores: what `max_difference` compares: "own" or "softmax".
        provenance: of the first and of the second model.
        pair: the models themselves; None in a result that was read from a file.
    """

    _left_out: ClassVar[tuple[str, ...]] = ("regions", "pair")

    regions: DecisionRegions
    pairs: Ints
    shares: Floats
    names: tuple[str, str]
    class_names: tuple[str, ...] | None
    matched_by: str
    note: str
    scores: str
    provenance: tuple[Provenance, Provenance]
    pair: Pair | None = None

    @property
    def probe(self) -> Probe:
        """Where we looked."""
        return self.regions.probe

    @property
    def n_regions(self) -> int:
        """The number of regions of the pair."""
        return self.regions.n_regions

    @property
    def labels(self) -> Ints:
        """The labels that both models give to each region, (n_regions, 2)."""
        return self.pairs[self.regions.labels]

    @property
    def method(self) -> str:
        """How the regions were found: "exact", "adaptive" or "grid"."""
        return self.regions.method

    @property
    def is_exact(self) -> bool:
        """Whether the regions of both models are exact, and so all shares."""
        return self.regions.is_exact

    @property
    def status(self) -> Status:
        """How the search for the regions ended."""
        return self.regions.status

    @property
    def n_evaluations(self) -> int:
        """At how many points the models were evaluated, together."""
        return self.regions.n_evaluations

    @cached_property
    def disagreement(self) -> float:
        """The share of the probe's length or area where the two labels differ."""
        differ = self.labels[:, 0] != self.labels[:, 1]
        return float(self.shares[differ].sum() / self.shares.sum())

    @property
    def agreement(self) -> float:
        """The share where they are equal: the reproducibility score of Somepalli et al. 2022, exactly."""
        return 1.0 - self.disagreement

    @cached_property
    def class_overlap(self) -> dict[int, float]:
        """For each class that occurs, the share where both models say so over that where one of them does."""
        first, second = self.labels.T
        overlap = {}
        for label in np.unique(self.labels).tolist():
            is_first, is_second = first == label, second == label
            union = self.shares[is_first | is_second].sum()
            overlap[label] = float(self.shares[is_first & is_second].sum() / union)
        return overlap

    @property
    def iou(self) -> float:
        """The mean of `class_overlap`: intersection over union of the classes' regions."""
        return float(np.mean(list(self.class_overlap.values())))

    @cached_property
    def max_difference(self) -> MaxDifference:
        """The largest |score_a - score_b| on the probe, found when it is first asked for.

        Of two piecewise-affine networks it is exact: both are affine on each linear region of the pair, so
        that the largest difference is at a vertex. On a plane that takes the walk of both networks side by
        side, up to ten times longer than the regions did. Where it is reckoned to take more than a minute,
        the largest difference at samples is given, a lower bound. An error says why scores cannot be
        compared.
        """
        if self.pair is None:
            raise PartitionError(
                "max_difference was not asked for when this result was written", remedy="compute it again"
            )
        return max_difference(self.pair, self.regions, self.scores)

    def is_equivalent(self, eps: float) -> bool:
        """Whether no score differs by more than `eps` anywhere on the probe: epsilon-equivalence.

        A certificate, up to rounding, if it is true: it is refused where `max_difference` is not exact.
        """
        difference = self.max_difference
        if difference.value > eps:
            return False
        if not difference.is_exact:
            raise PartitionError(
                f"the largest difference that was met is {difference.value:.3g}, but this is no bound for "
                f"others: that {difference.of} differ by at most {eps:g} can be shown of piecewise-affine "
                "networks only"
            )
        return True

    @property
    def certificate(self) -> str:
        """What is certain of the labels, in one line."""
        a, b = self.names
        if not self.is_exact:
            return f"nothing is certain: the regions of {a} and {b} were found by the {self.method} method"
        if self.disagreement == 0:
            return f"{a} and {b} have the same label everywhere on the probe (exact, up to rounding)"
        return f"{a} and {b} differ on {_percent(self.disagreement)} of the probe (exact, up to rounding)"

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region: both labels and class names, and what the regions' own has."""
        own = self.regions.to_frame().drop(columns=["label", "class_name"])
        first, second = self.labels.T
        columns = {
            "label_a": first,
            "label_b": second,
            "class_a": [name_of(k, self.class_names) for k in first.tolist()],
            "class_b": [name_of(k, self.class_names) for k in second.tolist()],
            "agree": first == second,
            "share": self.shares,
        }
        for column, (name, values) in enumerate(columns.items(), start=1):
            if name in own:
                own = own.drop(columns=name)
            own.insert(column, name, values)
        return own

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back. The largest difference is in it if it was asked for.

        Args:
            polygons: whether to write the polygons of an exact plane too.
        """
        numbers = {name: getattr(self, name) for name in ("n_regions", "disagreement", "iou", "is_exact")}
        known = vars(self).get("max_difference")
        return (
            {"schema": SCHEMA, "kind": KIND}
            | numbers
            | {"certificate": self.certificate, "max_difference": plain(known)}
            | plain_fields(self, without=self._left_out)
            | {"regions": self.regions.to_dict(polygons=polygons)}
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The comparison that `to_dict` wrote."""
        check_schema(data, "kind", KIND, what=KIND, error=PartitionError)
        regions = DecisionRegions.from_dict(data["regions"])
        comparison: Self = restored_fields(
            cls, data, what=KIND, error=PartitionError, regions=regions, pair=None
        )
        if data.get("max_difference") is not None:
            vars(comparison)["max_difference"] = MaxDifference.from_dict(data["max_difference"])
        return comparison

    def _features(self) -> list[dict[str, Any]]:
        features = self.regions._features()
        for feature in features:
            properties = feature["properties"]
            if properties["kind"] == "region":
                del properties["label"], properties["class_name"]  # of the pair, not of a model
                region = properties["region"]
                first, second = self.labels[region].tolist()
                properties |= {"label_a": first, "label_b": second}
                properties["class_a"] = name_of(first, self.class_names)
                properties["class_b"] = name_of(second, self.class_names)
                properties |= {"agree": first == second, "share": float(self.shares[region])}
        return features

    def __repr__(self) -> str:
        a, b = self.names
        how = "exactly" if self.is_exact else f"by {self.method}"
        differ = f"differ on {_percent(self.disagreement)} of" if self.disagreement else "agree everywhere on"
        count = f"{self.n_regions} region{'' if self.n_regions == 1 else 's'} of the pair"
        return f"<{a} and {b} {differ} {self.probe!r}, {count}, {how}, {self.status.heading}>"

    def _title(self) -> str:
        a, b = self.names
        differ = f"differ on {_percent(self.disagreement)}" if self.disagreement else "agree everywhere"
        text = f"a: {a}, b: {b}; they {differ}"
        return f"{text}, {self.status.heading}" if self.status.kind in UNCERTAIN else text

    def _draw(self, ax: Any, style: Style) -> Any:
        """Where both agree, quietly in the class's colour; where they differ, hatched in both colours."""
        return _drawn(self, ax, style)


def shares_of(regions: DecisionRegions) -> Floats:
    """The share of a probe's length or area, or of its samples, that each region has, (n_regions,)."""
    if isinstance(regions, DecisionSegment):
        edges = np.concatenate([[regions.span[0]], regions.boundaries, [regions.span[1]]])
        sizes = np.diff(edges)
    elif isinstance(regions, DecisionPlane):
        sizes = regions.areas
    elif isinstance(regions, DecisionGrid):
        sizes = np.bincount(regions.sample_regions, minlength=regions.n_regions).astype(np.float64)
    else:
        assert isinstance(regions, DecisionMesh)
        image = regions.image()
        sizes = np.bincount(image[image >= 0], minlength=regions.n_regions).astype(np.float64)
    return np.asarray(sizes / sizes.sum())


def _drawn(comparison: Comparison, ax: Any, style: Style) -> Any:
    """Draw two models on a segment or a plane."""
    from inscape.drawing.pairs import Pairs, draw_pair_faces, draw_pair_image, draw_pair_segment

    regions, probe = comparison.regions, comparison.probe
    shares: Any = np.bincount(regions.labels, weights=comparison.shares, minlength=len(comparison.pairs))
    title, said = comparison._title(), np.unique(comparison.pairs).tolist()
    if isinstance(regions, DecisionSegment):
        edges = np.concatenate([[regions.span[0]], regions.boundaries, [regions.span[1]]])
        dots, classes = dots_along(as_segment(probe), style, said, comparison.class_names)
        pairs = Pairs(comparison.pairs, shares, classes)
        return draw_pair_segment(
            edges, regions.labels, pairs=pairs, names=comparison.names, title=title, dots=dots, ax=ax
        )
    scene, classes = scene_of(probe, drawn_domain(probe), style, said, comparison.class_names)
    pairs = Pairs(comparison.pairs, shares, classes)
    if isinstance(regions, DecisionPlane):
        planar = regions.subdivision.planar
        sides = planar.sides()
        return draw_pair_faces(
            planar.xy,
            planar.corners,
            planar.start,
            planar.ends,
            sides=np.where(sides >= 0, regions.face_regions[sides], -1),
            face_pairs=regions.labels[regions.face_regions],
            pairs=pairs,
            scene=scene,
            title=title,
            ax=ax,
        )
    assert isinstance(regions, DecisionGrid | DecisionMesh)
    image = regions.image()
    image = np.where(image >= 0, regions.labels[image], -1)
    return draw_pair_image(image, frame_of(probe), pairs=pairs, scene=scene, title=title, ax=ax)


def _percent(share: float) -> str:
    """A share as text, never 0 where it is not.

    >>> _percent(0.01234), _percent(2e-9), _percent(1.0)
    ('1.23 %', '2e-07 %', '100 %')
    """
    return f"{100 * share:.3g} %"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparisonMatrix(Drawn):
    """Several models on one probe, two by two.

    Attributes:
        names: of the models, (m,).
        disagreement: the share of the probe on which the labels of each two differ, (m, m).
        iou: mean intersection over union of each two, (m, m).
        probe: where we looked.
        is_exact: whether all shares are exact.
        status: that of the pair of which least is known.
        provenance: of each model.
        comparisons: the comparisons themselves, by the numbers of both models, i < j; left out of files.

    >>> import inscape
    >>> above = lambda t: lambda x: (x[:, 0] > t).astype(int)
    >>> models = {"a": above(0.2), "b": above(0.5), "c": above(0.6)}
    >>> m = inscape.compare(models, inscape.Segment([0.0], [1.0]))
    >>> m.disagreement.round(2).tolist()
    [[0.0, 0.3, 0.4], [0.3, 0.0, 0.1], [0.4, 0.1, 0.0]]
    """

    _left_out: ClassVar[tuple[str, ...]] = ("probe", "comparisons")

    names: tuple[str, ...]
    disagreement: Floats
    iou: Floats
    probe: Probe
    is_exact: bool
    status: Status
    provenance: tuple[Provenance, ...]
    comparisons: dict[tuple[int, int], Comparison]

    @classmethod
    def of(cls, names: tuple[str, ...], pairs: dict[tuple[int, int], Comparison]) -> Self:
        """From the comparisons of all pairs of models, on one probe."""
        m = len(names)
        differ, overlap = np.zeros((m, m)), np.eye(m)
        provenance: dict[int, Provenance] = {}
        for (i, j), d in pairs.items():
            differ[i, j] = differ[j, i] = d.disagreement
            overlap[i, j] = overlap[j, i] = d.iou
            provenance[i], provenance[j] = d.provenance
        every = list(pairs.values())
        worst = min(every, key=lambda d: (d.is_exact, d.status.kind in ("complete", "converged")))
        return cls(
            names=names,
            disagreement=differ,
            iou=overlap,
            probe=every[0].probe,
            is_exact=all(d.is_exact for d in every),
            status=worst.status,
            provenance=tuple(provenance[i] for i in range(m)),
            comparisons=pairs,
        )

    def between(self, a: str, b: str) -> Comparison:
        """The comparison of two models, by their names, in the order in which the models were given."""
        for name in (a, b):
            if name not in self.names:
                raise PartitionError(f"no model is called {name!r}: there are {', '.join(self.names)}")
        i, j = sorted((self.names.index(a), self.names.index(b)))
        if i == j:
            raise PartitionError(f"{a!r} was not compared with itself")
        return self.comparisons[i, j]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table of disagreements, a row and a column for each model."""
        import pandas as pd

        return pd.DataFrame(self.disagreement, index=list(self.names), columns=list(self.names))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the regions of the pairs; `from_dict` reads it back."""
        about = {"schema": SCHEMA, "kind": SEVERAL, "probe_data": self.probe.to_dict()}
        return about | plain_fields(self, without=self._left_out)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The matrix that `to_dict` wrote."""
        check_schema(data, "kind", SEVERAL, what=SEVERAL, error=PartitionError)
        matrix: Self = restored_fields(
            cls,
            data,
            what=SEVERAL,
            error=PartitionError,
            probe=Probe.from_dict(data["probe_data"]),
            comparisons=LeftOut("comparisons", PartitionError),
        )
        return matrix

    def _draw(self, ax: Any) -> Any:
        """The shares of disagreement as a table of colours."""
        from inscape.drawing.pairs import draw_matrix

        return draw_matrix(
            100 * self.disagreement, self.names, title="labels differ on, %", text="{:.3g}", ax=ax
        )

    def __repr__(self) -> str:
        above = self.disagreement[np.triu_indices(len(self.names), 1)]
        how = "exactly" if self.is_exact else "not exactly"
        share = f"differ on {100 * above.min():.3g} to {100 * above.max():.3g} %"
        return f"<{len(self.names)} models {share} of {self.probe!r}, {how}, {self.status.heading}>"
