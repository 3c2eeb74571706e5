"""Chains of transformers compute what `transform` computes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from inscape.models.from_sklearn.transformers import (
    Unread,
    affine_map,
    applied,
    read_transformers,
    unrolled,
)

RNG = np.random.default_rng(0)
X = RNG.normal(3.0, 2.0, (60, 6)) * [1, 10, 100, 1e-3, 1, 1]
Y = (X[:, 0] + X[:, 4] > 6).astype(int)
TABLE = pd.DataFrame(X, columns=list("abcdef"))
POINTS = RNG.normal(3.0, 4.0, (40, 6)) * [1, 10, 100, 1e-3, 1, 1]

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 2)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
]
AFFINE = [
    *SCALERS,
    PCA(3),
    PCA(whiten=True),
    IncrementalPCA(2),
    TruncatedSVD(3),
    FastICA(2, random_state=0, tol=0.1),
    GaussianRandomProjection(4, random_state=0),
    SparseRandomProjection(4, random_state=0),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="eigen"),
    NeighborhoodComponentsAnalysis(2, max_iter=2, random_state=0),
    SelectKBest(k=2),
    VarianceThreshold(0.1),
    SelectFromModel(RidgeClassifier()),
    SimpleImputer(),
    FunctionTransformer(),
    make_pipeline(StandardScaler(), "passthrough", make_pipeline(PCA(2), MaxAbsScaler())),
    FeatureUnion([("a", PCA(2)), ("b", "passthrough"), ("c", "drop")], transformer_weights={"a": 3.0}),
    ColumnTransformer(
        [("a", StandardScaler(), [4, 0]), ("b", "passthrough", slice(2, 4)), ("c", "drop", [1])]
    ),
    ColumnTransformer([("a", PCA(1), [-1, 1]), ("none", "passthrough", [])], remainder=MinMaxScaler()),
    ColumnTransformer([("a", StandardScaler(), X.std(axis=0) > 3)], remainder="passthrough"),
]


@pytest.mark.parametrize("transformer", AFFINE, ids=str)
def test_a_chain_and_its_affine_map_are_the_transform(transformer):
    expected = transformer.fit(X, Y).transform(POINTS)
    chain = read_transformers([("step", transformer)])
    size = np.abs(expected).max(axis=0)
    assert (np.abs(applied(chain, POINTS) - expected) <= 1e-12 * size).all()
    matrix, offset = affine_map(chain, 6)
    assert (np.abs(POINTS @ matrix.T + offset - expected) <= 1e-11 * size).all()


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_scalers_round_as_scikit_learn_does(scaler):
    expected = scaler.fit(X).transform(POINTS)
    assert np.array_equal(applied(read_transformers([("", scaler)]), POINTS), expected)


def test_columns_by_name():
    by_name = ColumnTransformer([("a", StandardScaler(), ["f", "b"])], remainder="passthrough").fit(TABLE)
    expected = by_name.transform(TABLE)
    assert np.allclose(applied(read_transformers([("", by_name)]), X), expected, rtol=1e-12)


def test_clipping_is_no_affine_map():
    scaler = MinMaxScaler(clip=True).fit(X)
    chain = read_transformers([("scale", scaler)])
    assert np.array_equal(applied(chain, POINTS), scaler.transform(POINTS))
    with pytest.raises(Unread, match="clipped, which is not affine"):
        affine_map(chain, 6)


@pytest.mark.parametrize(
    ("transformer", "words"),
    [
        (Normalizer(), "its step 'step', a Normalizer, divides a point by its length"),
        (PolynomialFeatures(2), "multiplies features"),
        (FunctionTransformer(np.log1p), "calls the function log1p, of which nothing is known"),
        (SimpleImputer(missing_values=-1), "does more than to fill in NaN"),
        (make_pipeline(StandardScaler(), Normalizer()), "its step 'normalizer', a Normalizer"),
        (
            ColumnTransformer([("log", FunctionTransformer(np.exp), [0])]),
            "its step 'log', a FunctionTransformer",
        ),
    ],
    ids=str,
)
def test_what_is_refused_is_named(transformer, words):
    with pytest.raises(Unread, match=words):
        read_transformers([("step", transformer.fit(X))])


def test_a_class_of_ones_own_is_not_read():
    class Own(StandardScaler):
        def transform(self, X, copy=None):
            return np.exp(X)

    with pytest.raises(Unread, match="its step 'mine', a Own, does is not known to be affine"):
        read_transformers([("mine", Own().fit(X))])


def test_unrolled_finds_what_predicts():
    inner = Pipeline([("scale", StandardScaler()), ("fit", RidgeClassifier())])
    search = GridSearchCV(inner, {"fit__alpha": [1.0]}, cv=2).fit(X, Y)
    steps, last = unrolled(Pipeline([("first", MaxAbsScaler()), ("search", search)]))
    assert [name for name, _ in steps] == ["first", "scale"]
    assert last is search.best_estimator_.steps[-1][1]
    chosen = RFE(RidgeClassifier(), n_features_to_select=2).fit(X, Y)
    steps, last = unrolled(chosen)
    assert last is chosen.estimator_
    assert np.array_equal(last.predict(applied(read_transformers(steps), POINTS)), chosen.predict(POINTS))
