"""Values as people read them."""

import json
import math
from typing import Any

LONGEST = 60
"""Characters of a list or a dict in a cell of a table."""


def plain(value: Any) -> Any:
    """A value that JSON knows: scalars of numpy as Python's, None for what is missing or not finite.

    >>> plain(float("nan")), plain(float("inf")), plain(True), plain((1, 2))
    (None, None, True, '[1, 2]')
    """
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, default=str)
    return None if value != value else str(value)


def shown(value: Any) -> str:
    """A value in a few characters: four digits of a float, a long list cut off.

    >>> [shown(v) for v in (0.98765432, 123456.7, 1e-7, 3.0, 1200, True, None, float("inf"), "a")]
    ['0.9877', '123457', '1e-07', '3', '1200', 'yes', '', '∞', 'a']
    """
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "-∞"
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    text = str(value)
    return text if len(text) <= LONGEST or not text.startswith(("[", "{")) else text[: LONGEST - 1] + "…"


def duration(seconds: float) -> str:
    """A time in at most two units.

    >>> [duration(s) for s in (0.04, 7.23, 200, 7500, 200000)]
    ['0.04 s', '7.2 s', '3 min 20 s', '2 h 5 min', '2 d 7 h']
    """
    if seconds < 60:
        return f"{seconds:.2g} s"
    for size, unit, small, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            return f"{whole} {unit} {rest // small} {part}" if rest // small else f"{whole} {unit}"
    raise AssertionError("unreachable")
