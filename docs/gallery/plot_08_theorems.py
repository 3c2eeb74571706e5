"""
A theorem that is tight, and one that says nothing
==================================================

``inscape.theory`` computes both sides of each inequality of four papers on your own network. A bound whose right side is just above the left
is informative; one that is larger by ten powers of ten is true but vacuous.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from inscape import theory
from inscape.training import Recipe, mlp, train

x, y = make_moons(120, noise=0.15, random_state=0)
net = mlp(2, (32, 32), 2, random_state=0)
train(net, x, y, Recipe(0.1, 20, 40), random_state=0)
checks = theory.check_all(net, x, y, random_state=0)
print(checks)

# %%
# Each line joins the two sides of one inequality. The shorter the line, the more the theorem says about this network. Some
# statements come twice: as they are printed, and with a constant of the proof corrected. Where the smaller side is on the wrong side of
# the line the inequality is violated; :doc:`/theory` says which, and why.

rows = [c for c in checks.checks if np.isfinite([c.lhs, c.rhs]).all() and min(c.lhs, c.rhs) > 0]
rows.sort(key=lambda c: c.rhs / c.lhs)
colours = {"holds": "#3f90da", "vacuous": "#94a4a2", "violated": "#bd1f01"}
figure, ax = plt.subplots(figsize=(9, 0.42 * len(rows) + 1.4), layout="constrained")
for i, check in enumerate(rows):
    ax.plot([check.lhs, check.rhs], [i, i], color=colours[check.verdict], lw=5, solid_capstyle="round")
    ax.text(
        1.3 * max(check.lhs, check.rhs), i, f"{check.rhs / check.lhs:,.2g} times", va="center", fontsize=9
    )
for verdict, colour in colours.items():
    ax.plot([], [], color=colour, lw=5, label=verdict)
ax.set_yticks(range(len(rows)), [f"{c.name} ({c.form})" for c in rows])
ax.set(xscale="log", xlim=(None, 5e6), title="From the left side of an inequality to its right side")
ax.invert_yaxis()
ax.legend(loc="upper right")
plt.show()
