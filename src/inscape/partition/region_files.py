"""Regions as files: tables, polygons and pictures, by the ending of a file's name.

Rings: the first ring of a polygon runs anticlockwise around the region, others clockwise around its holes.
In `polygons` and JSON a ring is open, its first corner is not repeated; in GeoJSON (RFC 7946) and in the
well-known text of tables it is closed, as these formats have it. Coordinates are those of the probe's plane
(of a patch, its own s and t), not places on the Earth. Areas and lengths are those in the input space.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.drawing.axes import apart_from_pyplot
from inscape.errors import PictureError
from inscape.files import replacing

if TYPE_CHECKING:
    import pandas as pd

PICTURES = (".png", ".pdf", ".svg", ".jpg")
TABLES = (".json", ".csv", ".geojson")
WRITE_ALL = "write it by save, or with to_dict(polygons=True); or compute it again"
"""What to do about what a short `to_dict` has left out."""


class Exported:
    """Regions that can be written into files."""

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region."""
        raise NotImplementedError

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        raise NotImplementedError

    def _features(self) -> list[dict[str, Any]]:
        """The regions and borders as GeoJSON has them; an error if there are no polygons."""
        raise PictureError(
            f"a {type(self).__name__} has no polygons for GeoJSON, which regions of an exact plane have: "
            "write .json, .csv or .svg"
        )

    def save(self, path: str | Path) -> Path:
        """Write the regions into a file and return its path.

        Args:
            path: .json for everything that `from_dict` reads, polygons included; .csv for the table of
                `to_frame`; .geojson for polygons and borders; .svg, .png, .pdf or .jpg for the picture.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in (*TABLES, *PICTURES):
            known = ", ".join((*TABLES, *PICTURES))
            raise PictureError(f"cannot write {path}: the file must end in {known}")
        text = None
        if ending == ".json":
            text = json.dumps(self.to_dict(polygons=True), allow_nan=False)
        elif ending == ".geojson":
            text = json.dumps({"type": "FeatureCollection", "features": self._features()}, allow_nan=False)
        elif ending == ".csv":
            text = self.to_frame().to_csv(index=False)
        try:
            with replacing(path) as draft:
                if text is None:
                    with apart_from_pyplot():
                        self.plot().figure.savefig(draft, dpi=150)  # type: ignore[attr-defined]
                else:
                    draft.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PictureError(f"cannot write {path}: {error.strerror or error}") from error
        return path


def closed(ring: Floats) -> list[list[float]]:
    """The corners of a ring, its first one repeated at the end."""
    return [*ring.tolist(), ring[0].tolist()]


def well_known_text(rings: Iterable[Floats]) -> str:
    """A polygon as well-known text.

    >>> import numpy as np
    >>> well_known_text([np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])])
    'POLYGON ((0.0 0.0, 1.0 0.0, 0.0 1.0, 0.0 0.0))'
    """
    rings_as_text = ("(" + ", ".join(f"{x!r} {y!r}" for x, y in closed(ring)) + ")" for ring in rings)
    return f"POLYGON ({', '.join(rings_as_text)})"


def polygon_feature(rings: Sequence[Floats], **properties: Any) -> dict[str, Any]:
    """A region as a feature of GeoJSON."""
    geometry = {"type": "Polygon", "coordinates": [closed(ring) for ring in rings]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def border_features(edges: Floats, sides: Ints, lengths: Floats) -> list[dict[str, Any]]:
    """The borders as features of GeoJSON, one for each two regions that share edges.

    Args:
        edges: the ends of each edge between two regions, (n, 2, 2).
        sides: these regions, (n, 2).
        lengths: the length of each edge in the input space, (n,).
    """
    if not len(edges):
        return []
    pairs, pair, n_edges = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True)
    pair = pair.reshape(-1)
    total = np.bincount(pair, weights=lengths)
    of_pair = np.split(np.argsort(pair, kind="stable"), np.cumsum(n_edges)[:-1])
    return [
        {
            "type": "Feature",
            "properties": {"kind": "border", "regions": regions, "length": length},
            "geometry": {"type": "MultiLineString", "coordinates": edges[which].tolist()},
        }
        for regions, length, which in zip(pairs.tolist(), total.tolist(), of_pair, strict=True)
    ]
