r"""
A larger step size finds a smoother function
============================================

Both networks fit the same ten points exactly, from the same start; only the step size of gradient descent differs. Descent with a large step
cannot stay at a sharp minimum, and a flat one has to be smooth where data lie: Mulayoff, Michaeli and Soudry (2021) prove it for
networks of one input. Dots mark the knots, where the slope changes; the roughness is their weighted sum of changes of slope,
1 + 2 int \|f''\| g, which the theorem bounds by 2 / step size.
"""

import matplotlib.pyplot as plt
import numpy as np

from inscape.univariate import ShallowNet, gradient_descent, stability

x = np.linspace(-1.5, 1.5, 10)
y = np.where(np.arange(10) % 3 == 0, 1.0, -0.3) + 0.2 * np.random.default_rng(2).normal(size=10)
start = ShallowNet.random(100, random_state=3)
small, large = gradient_descent(start, x, y, [0.01, 0.2], n_steps=400_000, warm_up=20_000)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
for ax, run, step_size in zip(axes, (small, large), (0.01, 0.2), strict=True):
    at = np.linspace(-1.6, 1.6, 2000)
    knots = run.net.knots[np.abs(run.net.knots) < 1.5]
    found = stability(run.net, x, y, step_size)
    ax.plot(at, run.net(at), color="#3f90da")
    ax.plot(knots, run.net(knots), "o", ms=3.5, color="#bd1f01", label=f"{len(knots)} knots")
    ax.plot(x, y, "k+", ms=9, label="data")
    ax.set(
        title=f"step size {step_size}: roughness {found.lower_bound:.1f}, sharpness {found.sharpness:.1f}, at most {2 / step_size:.0f}",
        xlabel="x",
    )
    ax.legend()
    print(run)
plt.show()
