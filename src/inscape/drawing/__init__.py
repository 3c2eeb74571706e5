"""Pictures: arrays in, Axes out. Imports nothing else of inscape, and so has names of its own for arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]
"""Of any width: the ends of edges have 32 bits."""
Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Array = npt.NDArray[Any]
