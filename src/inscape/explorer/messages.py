"""The one message that travels from Python to the page: a header of JSON, then arrays as they lie in memory.

    b"INSC" | length of the header, uint32 | the header, UTF-8, filled with spaces to a multiple of 8 | arrays

The header's entry "arrays" has the name, type, shape and offset of each array, counted from the first byte
after the header. Numbers are little-endian, and each array starts at a multiple of 8 bytes, so that a browser
takes them without copying.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"INSC"
TYPES = ("float32", "int32", "uint8")
_ALIGNMENT = 8


def packed(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]] | None = None) -> bytes:
    """A header and arrays as one message.

    >>> header, arrays = unpacked(packed({"n": 2}, {"a": np.array([1, 2], np.int32)}))
    >>> header["n"], arrays["a"].tolist()
    (2, [1, 2])
    """
    described, parts, offset = [], [], 0
    for name, array in (arrays or {}).items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if little.dtype.name not in TYPES:
            raise TypeError(f"{name} is {little.dtype}: a message holds {', '.join(TYPES)}")
        described.append([name, little.dtype.name, list(little.shape), offset])
        filling = -little.nbytes % _ALIGNMENT
        parts += [little.tobytes(), bytes(filling)]
        offset += little.nbytes + filling
    text = json.dumps(finite(dict(header)) | {"arrays": described}, allow_nan=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *parts])


def unpacked(message: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The header and the arrays of a message."""
    if message[:4] != MAGIC:
        raise ValueError("this is not a message of the explorer: it does not begin with INSC")
    length = int.from_bytes(message[4:8], "little")
    header = json.loads(message[8 : 8 + length])
    arrays = {}
    for name, dtype, shape, offset in header.pop("arrays"):
        count = math.prod(shape)
        flat = np.frombuffer(message, np.dtype(dtype).newbyteorder("<"), count, 8 + length + offset)
        arrays[name] = flat.reshape(shape)
    return header, arrays


def finite(value: Any) -> Any:
    """Plain JSON of it: numpy's numbers as Python's, and null where a number is not finite.

    >>> finite({"a": np.float32("nan"), "b": [np.int64(1)]})
    {'a': None, 'b': [1]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, np.generic):
        return finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
