"""Files of boosters: opened, and tried in a process of their own first.

XGBoost, LightGBM and CatBoost do not check all that a file says, and a damaged one may crash the process
that opens it. So this module is also a program, which opens a file, reads it out and predicts: what survives
that is opened here. It imports nothing of inscape, so that the program starts quickly.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MOST_FEATURES = 10**6
MOST_SECONDS = 120
PROGRAM = """
import os, runpy, sys
sys.modules["pandas"] = sys.modules["sklearn"] = None  # the libraries start four times as fast without
sys.path[:], file, sys.argv[1:] = sys.argv[1].split(os.pathsep), sys.argv[2], sys.argv[3:]
runpy.run_path(file, run_name="__main__")
"""
"""Runs this module by itself with the packages that are found here, and nothing of the working folder."""


def load_xgboost(path: Path, content: bytes) -> Any:
    """The booster in a file of JSON or UBJSON."""
    from xgboost import Booster

    booster = Booster({"nthread": 1})
    booster.load_model(bytearray(content))
    return booster


def load_lightgbm(path: Path, content: bytes) -> Any:
    """The booster in a text."""
    from lightgbm import Booster

    text = content.decode("utf-8")
    check_text(text)
    trees, end, _ = text.partition("\nend of trees")
    return Booster(model_str=f"{trees}{end}\n")  # what follows are settings of the training


def check_text(text: str) -> None:
    r"""Raise a ValueError if a tree in the text of LightGBM is not one, which the library does not check.

    >>> check_text("max_feature_idx=1\nTree=0\nnum_leaves=2\nleaf_value=1")
    Traceback (most recent call last):
    ValueError: tree 0 has not as many leaves as it says
    """
    header, *trees = text.partition("\nend of trees")[0].split("\nTree=")
    widest = int(_entries(header)["max_feature_idx"])
    for i, block in enumerate(trees):
        given = _entries(block)
        n = int(given["num_leaves"])
        if not 1 <= n < 2**20 or len(given.get("leaf_value", "0").split()) != n:
            raise ValueError(f"tree {i} has not as many leaves as it says")
        if n == 1:
            continue
        features, left, right = (
            [int(v) for v in given[k].split()] for k in ("split_feature", "left_child", "right_child")
        )
        if len(given["threshold"].split()) != n - 1 or len(given["decision_type"].split()) != n - 1:
            raise ValueError(f"tree {i} has not as many splits as it says")
        # every node and leaf but the root is the child of one node: then there is no way around in a circle
        if sorted(left + right) != sorted([*range(-n, 0), *range(1, n - 1)]):
            raise ValueError(f"tree {i} has a child that is no node of it")
        if len(features) != n - 1 or not all(0 <= f <= widest for f in features):
            raise ValueError(f"tree {i} compares a feature that there is not")


def _entries(block: str) -> dict[str, str]:
    """The entries name=value of a block of text, one per line."""
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def load_catboost(path: Path, content: bytes) -> Any:
    """The classifier in a file, or what has no classes."""
    from catboost import CatBoost, CatBoostClassifier

    kind = "json" if path.suffix.lower() == ".json" else "cbm"
    model = CatBoostClassifier()
    model.load_model(str(path), format=kind)
    if len(model.classes_):
        return model
    model = CatBoost()
    model.load_model(str(path), format=kind)
    return model


LOADERS: dict[str, Callable[[Path, bytes], Any]] = {
    "xgboost": load_xgboost,
    "lightgbm": load_lightgbm,
    "catboost": load_catboost,
}


def try_apart(library: str, path: Path) -> None:
    """Raise a ModelError if a process that opens a file of a library dies of it.

    An exception of the library is no reason to: it is raised again where the file is opened.
    """
    from inscape.errors import ModelError

    if not sys.executable:
        return
    # what is freed or not yet written is filled with a pattern, so that reading it does not go well by chance
    environment = os.environ | {"MALLOC_PERTURB_": "165", "OMP_NUM_THREADS": "1"}
    folders = os.pathsep.join(sys.path)
    program = [sys.executable, "-I", "-c", PROGRAM, folders, __file__, library, str(path.resolve())]
    try:
        ended = subprocess.run(
            program, env=environment, capture_output=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"{path} is damaged: {library} was still reading it after {MOST_SECONDS} seconds"
        ) from None
    if ended.returncode not in (0, 1):
        raise ModelError(f"{path} is damaged: {library} crashes when it is opened or predicts")


def ask(library: str, booster: Any) -> None:
    """Read a booster out, and let it predict at random points of several sizes."""
    n = {"xgboost": "num_features", "lightgbm": "num_feature"}.get(library)
    n_features = int(getattr(booster, n)() if n else len(booster.feature_names_))
    if not 0 < n_features <= MOST_FEATURES:
        raise ValueError(f"it says that it has {n_features} features")
    scale = 10.0 ** np.arange(-3, 5).repeat(8)[:, None]
    points = scale * np.random.default_rng(0).standard_normal((len(scale), n_features))
    if library == "xgboost":
        from xgboost import DMatrix

        booster.save_raw(raw_format="json")
        booster.save_config()
        booster.predict(DMatrix(points, feature_names=booster.feature_names))
    elif library == "lightgbm":
        booster.dump_model()
        booster.predict(points)
    else:
        booster.predict(points, prediction_type="RawFormulaVal")


def main() -> None:
    """Open the file of a library; both are arguments of the program."""
    library, name = sys.argv[1:]
    path = Path(name)
    ask(library, LOADERS[library](path, path.read_bytes()))


if __name__ == "__main__":
    main()
