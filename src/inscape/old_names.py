"""Old names of things that are called otherwise today: they still work, and say so."""

import warnings
from collections.abc import Callable, Mapping


def old_names(module: str, old: Mapping[str, type]) -> Callable[[str], object]:
    """A `__getattr__` for a module: each old name gives the class of today, with a DeprecationWarning.

    >>> lookup = old_names("inscape.partition", {"Whole": int})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     lookup("Whole"), str(caught[0].message)
    (<class 'int'>, 'inscape.partition.Whole is called int today')
    """

    def lookup(name: str) -> object:
        if name not in old:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is called {old[name].__name__} today", DeprecationWarning, stacklevel=2
        )
        return old[name]

    return lookup
