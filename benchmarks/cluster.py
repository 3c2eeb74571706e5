"""Many tiny configurations on a Dask cluster of two worker processes, beside a loop in this process.

Run `python -m benchmarks cluster`: what a study adds to the function of a configuration: sending it to
a worker, claiming and storing its row. CELLS in the environment gives another number than 10,000.
"""

import logging
import os
import tempfile
import time
from typing import Any

from benchmarks.timing import report
from inscape.studies import Store, Study, run

N_CELLS = int(os.environ.get("CELLS", "10000"))
BAR = 5.0
"""Milliseconds that a configuration may take beyond the function itself."""


def cell(configuration: dict[str, Any]) -> dict[str, float]:
    """A row that costs nothing."""
    return {"square": float(configuration["n"]) ** 2}


def configurations(scale: str) -> list[dict[str, Any]]:
    """The numbers."""
    return [{"n": n} for n in range(N_CELLS)]


STUDY = Study(name="tiny", title="Tiny cells", configurations=configurations, cell=cell)


def main() -> None:
    """Print the milliseconds of one configuration."""
    from distributed import Client, LocalCluster

    start = time.perf_counter()
    for configuration in configurations("small"):
        cell(configuration)
    loop = time.perf_counter() - start
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            host="127.0.0.1",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        tempfile.TemporaryDirectory() as out,
    ):
        start = time.perf_counter()
        result = run(STUDY, out=out, executor=client.get_executor(), progress=False)
        seconds = time.perf_counter() - start
        with Store(result.store) as store:
            n_rows = len(store.records())
    print(f"{n_rows:,} rows of {N_CELLS:,} configurations, {seconds:.1f} s in all, report included")
    report(
        "a tiny configuration on two Dask workers, beyond the loop",
        1e3 * (seconds - loop) / N_CELLS,
        f"at most {BAR:g}",
        "ms",
    )


if __name__ == "__main__":
    main()
