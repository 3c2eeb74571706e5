"""How wrong is a grid? Decision regions on triangles, exact and on grids: `python docs/compare_grids.py`.

MNIST and CIFAR-10 take part if the folder INSCAPE_DATA holds mnist.npz and cifar10.npz. About ten minutes in
all; name networks (digits, noisy_digits, mnist, cifar10) to take only those.
"""

import sys
import time

import numpy as np
import trained_networks

import inscape

RESOLUTIONS = (10, 20, 30, 40, 50, 100)
TRIANGLES = {"digits": 500, "noisy_digits": 500, "mnist": 500, "cifar10": 40}


def main() -> None:
    """One table per network."""
    for name in sys.argv[1:] or TRIANGLES:
        start = time.perf_counter()
        found = getattr(trained_networks, name)()
        if found is None:
            print(f"{name} is skipped: INSCAPE_DATA does not hold {name}.npz\n")
            continue
        net, x, y = found
        n = TRIANGLES[name]
        model = inscape.wrap(net)
        print(
            f"{name}: test accuracy {trained_networks.accuracy(net, x, y):.1%}, {n} triangles of test points"
        )
        line = inscape.region_count(model, x, n_probes=1000, method="exact", random_state=0)
        triangles = inscape.sample_probes(x, dim=2, n=n, random_state=0)
        corners = np.mean([len(set(model.labels(t.vertices))) for t in triangles])
        print(f"exact on segments: {line.mean:.2f} ± {line.std_error:.2f}")
        print(f"classes at the corners of a triangle: {corners:.2f}\n")
        exact = inscape.region_count(
            model, x, dim=2, n_probes=n, method="exact", random_state=0, progress=True
        )
        print("| count | mean | too few | right | too many | mean size of the error |")
        print("|---|---|---|---|---|---|")
        print(f"| exact | {exact.mean:.2f} ± {exact.std_error:.2f} | - | - | - | - |")
        for r in RESOLUTIONS:
            grid = inscape.region_count(model, x, dim=2, n_probes=n, resolution=r, random_state=0)
            off = grid.counts - exact.counts
            shares = " | ".join(f"{np.mean(np.sign(off) == sign):.1%}" for sign in (-1, 0, 1))
            print(f"| {r} x {r} | {grid.mean:.2f} | {shares} | {np.abs(off).mean():.2f} |")
        print(f"({time.perf_counter() - start:.0f} s with training)\n", flush=True)


if __name__ == "__main__":
    main()
