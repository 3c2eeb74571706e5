"""Decision regions against the predictions of the model's own library, next to every boundary and between.

`predict` takes points (n, ...) and returns labels (n,). It is made here, from the model as its library has
it: what `inscape.wrap` makes of the model is what is tested.
"""

import numpy as np


def own_labels(model):
    """What the library of a torch module, a fitted estimator or booster, or an ONNX file predicts."""
    if hasattr(model, "state_dict"):
        return lambda x: _torch_labels(model, x)
    if len(getattr(model, "classes_", ())) and type(model).__name__ != "CatBoost":  # which predicts scores
        return lambda x: _class_numbers(model.classes_, model.predict(_table(model, x)))
    if hasattr(model, "suffix"):
        return lambda x: _onnx_labels(model, x)
    return lambda x: _booster_labels(model, x.reshape(len(x), -1))


def _torch_labels(module, x):
    """The largest score; of one score, whether it is positive, or over 1/2 if all are probabilities."""
    import torch

    dtype = next(module.parameters()).dtype
    with torch.no_grad():
        out = module(torch.from_numpy(x).to(dtype)).double().numpy()
    if out.ndim == 2 and out.shape[1] > 1:
        return out.argmax(axis=1)
    out = out.reshape(len(out))
    is_probability = bool(((out > 0) & (out < 1)).all()) and len(out) > 100
    return (out > (0.5 if is_probability else 0.0)).astype(np.int64)


def _table(estimator, x):
    rows, names = x.reshape(len(x), -1), getattr(estimator, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _class_numbers(classes, predicted):
    predicted, classes = np.asarray(predicted).reshape(len(predicted)), np.asarray(classes)
    return np.array([int(np.flatnonzero(classes == p)[0]) for p in predicted])


def _onnx_labels(path, x):
    """The labels in the file, or the largest of its scores."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    dtype = np.float64 if "double" in given.type else np.float32
    out = np.asarray(session.run(None, {given.name: x.astype(dtype)})[0])
    if out.dtype.kind in "iu":
        return out.ravel()
    if out.dtype.kind in "OU":
        values = np.unique(out)
        return np.array([int(np.flatnonzero(values == v)[0]) for v in out.ravel()])
    return out.argmax(axis=1)


def _booster_labels(booster, x):
    library = type(booster).__module__.partition(".")[0]
    if library == "xgboost":
        from xgboost import DMatrix

        x = DMatrix(x)
    settings = {"prediction_type": "Probability"} if library == "catboost" else {}
    out = np.asarray(booster.predict(x, **settings))
    return out.argmax(axis=1) if out.ndim == 2 else (out > 0.5).astype(np.int64)


def assert_along(predict, regions, near):
    """The labels on a segment are predicted, at dense points and `near` both sides of every boundary."""
    predict = getattr(predict, "labels", predict)
    low, high = regions.span
    t = np.linspace(low, high, 2001)
    t = np.concatenate([t, regions.boundaries - near, regions.boundaries + near])
    gaps = np.abs(t[:, None] - regions.boundaries).min(axis=1, initial=np.inf)
    t = t[(gaps >= 0.99 * near) & (t >= low) & (t <= high)]
    expected = regions.labels[np.searchsorted(regions.boundaries, t)]
    assert np.array_equal(predict(regions.probe.points(t)), expected)


def assert_on_plane(predict, regions, near, n=2000):
    """The labels on a plane are those predicted, at random points and `near` both sides of every border.

    Points within `near` of any border are left out.
    """
    predict = getattr(predict, "labels", predict)
    corners, borders = regions.domain.corners, np.asarray(regions.boundary)
    at = np.random.default_rng(0).dirichlet(np.ones(len(corners)), n) @ corners
    if len(borders):
        edge = borders[:, 1] - borders[:, 0]
        length = np.linalg.norm(edge, axis=1)
        normal = np.stack([-edge[:, 1], edge[:, 0]], axis=1) / length[:, None]
        middle = borders.mean(axis=1)[length > 10 * near]
        push = 2 * near * normal[length > 10 * near]
        at = np.concatenate([at, middle + push, middle - push])
    far = np.ones(len(at), bool)
    for start, end in borders:
        edge = end - start
        along = np.clip((at - start) @ edge / (edge @ edge), 0, 1)
        far &= np.linalg.norm(at - start - along[:, None] * edge, axis=1) > near
    assert far[:n].mean() > 0.99
    at = at[far]
    region = regions.locate(at)
    at, region = at[region >= 0], region[region >= 0]  # what was pushed may have left the probe
    points = regions.domain.plane.points(at).reshape(-1, *regions.probe.input_shape)
    assert np.array_equal(regions.labels[region], predict(points))


def assert_samples(predict, regions):
    """An adaptive count on a segment has the predicted label at every sample, on both sides of boundaries."""
    t = regions.samples
    expected = regions.labels[np.searchsorted(regions.boundaries, t)]
    assert np.array_equal(predict(regions.probe.points(t)), expected)
