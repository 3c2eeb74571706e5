r"""
A larger step size finds a smoother function
============================================

Both networks fit the same eight points exactly, and both start from the same large random weights. Only the step size of gradient
descent differs. Descent with a large step cannot stay at a sharp minimum, and a flat minimum has to be smooth where the data lie:
Mulayoff, Michaeli and Soudry (2021) prove this for networks of one input. Dots mark the knots, where the slope changes. The roughness,
1 + 2 int \|f''\| g, sums up how much it changes, with a weight g that is largest in the middle of the data. The theorem bounds it by the
sharpness, and the sharpness by 2 / step size.
"""

import matplotlib.pyplot as plt
import numpy as np

from inscape.univariate import ShallowNet, gradient_descent, stability

x = np.linspace(-1.5, 1.5, 8)
y = np.sin(2 * x)
usual = ShallowNet.random(100, random_state=3)
start = ShallowNet(6 * usual.w, 6 * usual.b, 6 * usual.v)
small, large = gradient_descent(start, x, y, [0.001, 0.2], n_steps=200_000, warm_up=20_000)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
for ax, run, step_size in zip(axes, (small, large), (0.001, 0.2), strict=True):
    at = np.linspace(-1.6, 1.6, 2000)
    knots = run.net.knots[np.abs(run.net.knots) < 1.5]
    found = stability(run.net, x, y, step_size)
    ax.plot(at, run.net(at), color="#3f90da")
    ax.plot(knots, run.net(knots), "o", ms=3.5, color="#bd1f01", label="knots")
    ax.plot(x, y, "k+", ms=9, label="data")
    ax.set(
        title=f"step size {step_size}\nroughness {found.lower_bound:.1f} ≤ sharpness {found.sharpness:.1f} ≤ {2 / step_size:.0f}",
        xlabel="x",
    )
    ax.legend()
    print(run)
plt.show()
