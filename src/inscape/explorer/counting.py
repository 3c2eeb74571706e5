"""The region count R_1 of all models on show, a few segments at a time, with its interval as it closes."""

import time
import warnings
from typing import Any

import numpy as np

from inscape.explorer.exhibit import Exhibit
from inscape.explorer.worker import Job
from inscape.measures.region_count import region_count
from inscape.measures.result import mean_with_error
from inscape.probes import Probe, sample_probes

N_SEGMENTS = 400
SEED = 0
PATIENCE = 0.08
"""Seconds of counting before other requests get their turn."""


class RunningCount:
    """Common segments between random data points, and the counts of each model on those that are done."""

    def __init__(self, exhibit: Exhibit) -> None:
        self._models, self._names = exhibit.models, exhibit.names
        self._probes: list[Probe] = [
            *sample_probes(exhibit.data.x, dim=1, n=N_SEGMENTS, how="pairs", random_state=SEED)
        ]
        self._counts: list[list[int]] = [[] for _ in self._models]
        self._missed = [0.0] * len(self._models)
        self._methods: list[str] = [""] * len(self._models)
        self._exact: list[bool] = [True] * len(self._models)
        self._block = 4

    def advance(self, job: Job) -> dict[str, Any]:
        """Count on the next segments, and say where things stand."""
        done = len(self._counts[-1])
        if done >= N_SEGMENTS:
            return self._message()
        probes = self._probes[done : done + self._block]
        start = time.perf_counter()
        for k, model in enumerate(self._models):
            job.check()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = region_count(model, probes=probes, progress=lambda *_: job.check())
            self._counts[k] += result.counts.tolist()
            self._methods[k], self._exact[k] = result.method, self._exact[k] and result.is_exact
            if result.missed_interval is not None:
                self._missed[k] = max(self._missed[k], result.missed_interval[1])
        seconds = time.perf_counter() - start
        self._block = int(np.clip(self._block * PATIENCE / max(seconds, 1e-4), 1, 64))
        return self._message()

    def _message(self) -> dict[str, Any]:
        n = len(self._counts[-1])
        rows = []
        for k, counts in enumerate(self._counts):
            mean, error, (low, high) = mean_with_error(np.array(counts))
            rows.append(
                {
                    "model": k,
                    "mean": mean,
                    "error": error,
                    "interval": [max(low, 1.0), high + self._missed[k]],
                    "most": max(counts),
                    "method": self._methods[k],
                    "is_exact": self._exact[k],
                }
            )
        return {"rows": rows, "n": n, "of": N_SEGMENTS, "seed": SEED, "is_done": n >= N_SEGMENTS}
