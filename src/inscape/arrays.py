"""The kinds of arrays that pass between functions, named by what they hold; axes stand in docstrings."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Shape = tuple[int, ...]
"""The shape of one point, without the batch axis."""
