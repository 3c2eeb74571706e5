"""
A study of your own, on a Dask cluster
======================================

A claim about many models needs many models. A *study* is a grid of settings, a function that turns one setting into one row, and a store that survives being
killed. This tutorial asks whether deeper trees have more decision regions, and lets a Dask cluster do the work.
"""

# %%
# The grid and the function
# -------------------------
# ``configuration["seed"]`` is the only source of randomness, so the same study gives the same rows in any order, on any machine.

import tempfile

import matplotlib.pyplot as plt
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape.studies import Finding, Study, Summary


def configurations(scale):
    """Depths and repetitions; ``scale`` makes the study small or large."""
    depths = (2, 4, 6, 8, 10) if scale == "smoke" else range(2, 17)
    return [{"depth": depth, "replicate": i} for depth in depths for i in range(3)]


def cell(configuration):
    """Train one tree and measure it."""
    x, y = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(
        max_depth=configuration["depth"], random_state=configuration["seed"] % 2**32
    )
    tree.fit(x[:900], y[:900])
    count = inscape.region_count(tree, x[900:], n_probes=60, random_state=configuration["seed"])
    return {"region_count": count.mean, "test_accuracy": tree.score(x[900:], y[900:])}


def summarise(frame, out):
    """What the rows say about the claim."""
    means = frame.groupby("depth")["region_count"].mean()
    return Summary(
        findings={
            "grows": Finding(holds=means.is_monotonic_increasing, evidence=f"{means.round(2).to_dict()}")
        }
    )


study = Study(
    name="depths",
    title="Regions of trees against their depth",
    claims={"grows": "A deeper tree has more decision regions."},
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)

# %%
# Run it
# ------
# Any executor of ``concurrent.futures`` can do the work. A Dask client has one. Here the cluster is two threads of this process; on real machines
# give ``Client("tcp://host:8786")`` the address of your scheduler. Start the script again, and only missing rows are computed.

folder = tempfile.mkdtemp()
with (
    LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
    Client(cluster) as client,
):
    run = inscape.studies.run(
        study, scale="smoke", out=folder, executor=client.get_executor(), progress=False
    )
run

# %%
# Read the rows
# -------------

run.frame[["depth", "replicate", "region_count", "test_accuracy"]].head()

# %%

figure, ax = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
mean = run.frame.groupby("depth")[["region_count", "test_accuracy"]].mean()
ax.plot(run.frame["depth"], run.frame["region_count"], "o", color="#3f90da", alpha=0.5)
ax.plot(mean.index, mean["region_count"], color="#3f90da", label="decision regions between two digits")
ax.set(
    xlabel="depth of the tree",
    ylabel="region count",
    title=f"The claim {'held' if run.summary.findings['grows'].holds else 'did not hold'}",
)
ax.legend()
plt.show()

# %%
# Share it
# --------
# The folder has ``summary.md`` with the verdict, the store, and this report, one file to open or to send.

inscape.reports.write_report(run, f"{folder}/report.html").stat().st_size
