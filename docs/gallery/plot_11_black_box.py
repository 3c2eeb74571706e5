"""
A black box, and what may be missed
===================================

Nothing is known about this model but its answers. ``inscape`` looks where the scores say that another region could hide, and reports an
estimate of how many regions it may have missed, with an interval. A count that is not exact never claims to be.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import inscape

x, y = make_moons(300, noise=0.3, random_state=0)
machine = SVC(gamma=100.0, C=10.0).fit(x, y)


def black_box(points):
    """What a server might return: one score per point, and no word on how it was made."""
    return machine.decision_function(points)[:, None]


count = inscape.region_count(black_box, x, n_probes=100, random_state=0)
print(count)
print("missed per segment, estimate:", count.missed, " 95 % interval:", count.missed_interval)
print("evaluations per segment:", count.n_evaluations / count.n)

# %%
# The plane, with as many evaluations as were needed, beside a grid of about as many points.

plane = inscape.Patch.around(x)
adaptive = inscape.decision_regions(black_box, plane, method="adaptive")
side = round(adaptive.n_evaluations**0.5)
grid = inscape.decision_regions(black_box, plane, method="grid", resolution=side)
print(adaptive.status.detail)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
title = f"adaptive: {adaptive.n_regions} regions, {adaptive.n_evaluations} evaluations"
adaptive.plot(axes[0], title=title, points=(x, y))
grid.plot(axes[1], title=f"grid: {grid.n_regions} regions, {side**2} evaluations", legend=False)
plt.show()
