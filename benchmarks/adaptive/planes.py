"""Counts and boundaries on planes through three points, against those of a grid of 200 x 200 points."""

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt

import inscape
from benchmarks.adaptive.cases import Case, Ints

SEED = 2027
GRID = 200


def heading() -> None:
    """What the rows hold."""
    print(
        "\n2D: how far counts are off the exact ones (GELU: those of a fine grid); area that is labelled "
        "wrongly, mean\n    and largest distance between boundaries, in steps of the 200 x 200 grid, against "
        "a fine grid of 601^2 to 1601^2;\n    bars: each as good as on the 200 x 200 grid, for a tenth of "
        "its 40,000 evaluations on every plane"
    )
    pairs = " ".join(f"{name:>9} {'of 200':>7}" for name in ("count off", "area", "distance", "largest"))
    print(f"{'network':34} {'planes':>6} {'regions':>7} {'evals':>6} {'most':>6} {pairs}", flush=True)


def on_planes(case: Case) -> None:
    """One row: how far counts are off, and how good boundaries are, on one network."""
    size = case.fine
    assert size is not None
    model, planes = case.model(), planes_of(case)
    off, area, apart = np.zeros(2), np.zeros(2), np.zeros((2, 2))
    n_regions, evaluations = [], []
    nearest = np.rint(np.arange(size) / (size - 1) * (GRID - 1)).astype(int)
    for plane, ours in zip(planes, inscape.decision_regions(model, planes, method="adaptive"), strict=True):
        fine, grid = (
            inscape.decision_regions(model, plane, method="grid", resolution=r) for r in (size, GRID)
        )
        count = fine.n_regions
        if case.has_exact:
            count = inscape.decision_regions(model, plane, method="exact").n_regions
        truth = fine.labels[fine.image()]  # type: ignore[attr-defined]
        drawn = ours.labels[ours.image(size)]  # type: ignore[attr-defined]
        coarse = grid.labels[grid.image()][np.ix_(nearest, nearest)]  # type: ignore[attr-defined]
        off += abs(ours.n_regions - count), abs(grid.n_regions - count)
        area += (drawn != truth).mean(), (coarse != truth).mean()
        apart += distances(drawn, truth), distances(coarse, truth)
        n_regions.append(count)
        evaluations.append(ours.n_evaluations)
    off, area, apart = off / len(planes), area / len(planes), apart / len(planes)
    good = off[0] <= off[1] and area[0] <= area[1] and (apart[0] <= apart[1]).all()
    good &= max(evaluations) <= GRID**2 // 10
    print(
        f"{case.name:34} {len(planes):6d} {np.mean(n_regions):7.1f} {np.mean(evaluations):6.0f} "
        f"{max(evaluations):6d} {off[0]:9.2f} {off[1]:7.2f} {area[0]:9.3%} {area[1]:7.3%} "
        f"{apart[0, 0]:9.3f} {apart[1, 0]:7.3f} {apart[0, 1]:9.2f} {apart[1, 1]:7.2f} "
        f"{'' if good else '  below a bar'}",
        flush=True,
    )


def planes_of(case: Case) -> list[inscape.Patch]:
    """Planes through three points each, drawn from the seed of the benchmark."""
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(case.n_planes):
        whole = inscape.Patch.through(case.x[rng.choice(len(case.x), 3, replace=False)])
        s, t = (middle_of(*bounds, case.part) for bounds in whole.bounds)
        found.append(inscape.Patch(whole.origin, whole.axes, (s, t)))
    return found


def middle_of(low: float, high: float, part: float) -> tuple[float, float]:
    """The middle part of an interval."""
    centre, reach = (low + high) / 2, part * (high - low) / 2
    return centre - reach, centre + reach


def distances(drawn: Ints, truth: Ints) -> tuple[float, float]:
    """Mean and largest distance between the boundaries of two images, both ways, in steps of the grid."""
    masks = boundary(drawn), boundary(truth)
    if not all(mask.any() for mask in masks):
        return (0.0, 0.0) if not any(mask.any() for mask in masks) else (float(GRID), float(GRID))
    ways = [distance_transform_edt(~masks[1 - i])[masks[i]] for i in range(2)]
    step = (len(truth) - 1) / (GRID - 1)
    return float(np.mean([w.mean() for w in ways])) / step, float(max(w.max() for w in ways)) / step


def boundary(image: Ints) -> npt.NDArray[np.bool_]:
    """The pixels whose neighbour below or to the right has another label."""
    mask = np.zeros(image.shape, bool)
    mask[:-1] |= image[:-1] != image[1:]
    mask[:, :-1] |= image[:, :-1] != image[:, 1:]
    return mask
