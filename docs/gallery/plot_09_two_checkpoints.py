"""
Two checkpoints, and where they disagree
========================================

Two checkpoints of one training run have nearly the same accuracy. ``compare`` says on how much of a plane through three images their
predictions differ, exactly, and ``agreement`` says it for random lines between images, with an interval.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import inscape
from inscape.training import Recipe, mlp, train

digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
early, late = mlp(64, (64, 64), 10, random_state=0), mlp(64, (64, 64), 10, random_state=0)
train(early, x[:900], y[:900], Recipe(0.05, 32, 8, schedule="constant"), random_state=0)
train(late, x[:900], y[:900], Recipe(0.05, 32, 40, schedule="constant"), random_state=0)

for name, net in {"after 8 epochs": early, "after 40 epochs": late}.items():
    print(name, (inscape.wrap(net).labels(x[900:]) == y[900:]).mean().round(3))
print(inscape.agreement(early, late, x[900:], n_probes=200, random_state=0))

# %%
# The plane through three test images. Where the two agree the picture is pale.

difference = inscape.compare(early, late, inscape.Patch.through(x[[1025, 1617, 1728]]))
print(difference)
figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
difference.plot(ax, title=f"a after 8 epochs, b after 40: they differ on {difference.disagreement:.0%}")
plt.show()
