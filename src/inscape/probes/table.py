"""Tables whose columns have names, and models that were fitted to such: columns are found by name."""

from collections.abc import Iterable
from typing import Any

from inscape.errors import DataError, ProbeError
from inscape.models import Model

MOST_LISTED = 4
"""Names of columns in a message."""


def column_names(x: Any) -> tuple[str, ...] | None:
    """The names of a table's columns, or of the entries of one of its rows; None if they have none.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"alcohol": [12.3, 13.1], "proline": [520.0, 1065.0]})
    >>> column_names(table), column_names(table.iloc[0]), column_names([[1.0, 2.0]])
    (('alcohol', 'proline'), ('alcohol', 'proline'), None)
    """
    names = getattr(x, "columns", None)
    if names is None and getattr(x, "ndim", None) == 1:
        names = getattr(x, "index", None)
    if names is None or callable(names) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def check_columns(x: Any, what: str = "the data") -> None:
    """Raise an error that names the columns of a data frame which do not hold numbers."""
    kinds: Any = getattr(x, "dtypes", None)
    if not hasattr(x, "columns") or not hasattr(kinds, "items"):
        return
    strange = [str(name) for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]
    if strange:
        raise ProbeError(
            f"{what} have columns that are not numbers: {_listed(strange)}; leave them out, or encode them. "
            "Of a pipeline that encodes them itself, measure the rest: pipeline[1:] on "
            "pipeline[0].transform(x)"
        )


def for_model(model: Model, x: Any) -> Any:
    """The data as a model was fitted to them: of a table, the columns that it knows by name, in its order.

    Anything without names stays as it is, and so does a table for a model that was fitted without names.
    """
    if isinstance(x, tuple) and len(x) == 2 and hasattr(x[0], "columns"):
        return for_model(model, x[0]), x[1]
    names, known = model.feature_names, column_names(x)
    if names is None or known is None or not hasattr(x, "columns") or names == known:
        return x
    missing = [name for name in names if name not in known]
    if missing:
        raise DataError(
            f"the table has no column {_listed(missing)}, which {model.name} was fitted with: it needs "
            f"{_listed(names)}"
        )
    return x[list(names)]


def for_models(models: Iterable[Model], x: Any) -> Any:
    """The same for several models, which must want the same columns in the same order."""
    named = [model for model in models if model.feature_names is not None]
    for model in named[1:]:
        if model.feature_names != named[0].feature_names and column_names(x) is not None:
            raise DataError(
                f"{named[0].name} and {model.name} were fitted to different columns, or in another order: "
                "look at one input space, and fit all models to the same table"
            )
    return for_model(named[0], x) if named else x


def check_features(model: Model, probes: Iterable[Any]) -> None:
    """Raise an error if a probe was made from other columns than the model was fitted to."""
    names = model.feature_names
    if names is None:
        return
    for probe in probes:
        known = getattr(probe, "feature_names", None)
        if known is not None and known != names:
            raise ProbeError(
                f"the {type(probe).__name__.lower()} was made from the columns {_listed(known)}, and "
                f"{model.name} was fitted to {_listed(names)}, in that order: make it from "
                "x[model.feature_names_in_]"
            )


def _listed(names: Iterable[str]) -> str:
    """Some names for a message.

    >>> _listed("abcdef")
    "'a', 'b', 'c', 'd' and 2 more"
    """
    all_names = [repr(name) for name in names]
    more = len(all_names) - MOST_LISTED
    return ", ".join(all_names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
