"""Reading an attribute back from a view that should have dropped it: the test that the normalised Laplacian
score, which saturates, cannot make.

>>> from imapce.datasets import make_synthetic
>>> data = make_synthetic(200)
>>> round(residual_predictability(data.X[:, 4:6], data.labels["batch"])["score"], 2)       # chance is 0.5
0.47
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from imapce.common.checks import MOST_CLASSES_OF_NUMBERS, as_classes, as_labels, as_matrix, check_splits
from imapce.common.neighbours import votes
from imapce.errors import InvalidTypeError, InvalidValueError

Folds = list[tuple[np.ndarray, np.ndarray]]

VOTERS = 15


def residual_predictability(
    embedding: Any,
    attribute: Any,
    X: Any = None,
    *,
    n_splits: int = 10,
    random_state: int = 0,
    attribute_kind: Literal["auto", "categorical", "numeric"] = "auto",
) -> dict[str, Any]:
    """How well an attribute can be read back from a view, which should have dropped it.

    Two readers, each predicting every row from the other folds of a shuffled cross-validation on standardised
    columns: a linear one, and the 15 nearest neighbours. For classes the measure is balanced accuracy, the
    readers are balanced logistic regression and a vote in which each vote is divided by the share of its
    class, the folds are stratified and chance is 1 / number of classes. For numbers it is R² of ridge
    regression and of the neighbours' mean, and chance is 0. An attribute counts as numeric (``"auto"``) when
    it is a float column of more than 20 values; whole numbers are taken for classes unless
    ``attribute_kind="numeric"``.

    Keys: score (the better reader), linear, knn, chance, measure, and ceiling, the score from ``X`` itself
    (None without X; with hundreds of columns this is the slow part).

    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(200)
    >>> residual_predictability(data.X[:, 4:6], data.labels["batch"], data.X)
    {'score': 0.47..., 'chance': 0.5, 'ceiling': 1.0, 'linear': 0.43..., 'knn': 0.47..., 'measure': 'balanced_accuracy'}
    """
    points = as_matrix("embedding", embedding)
    full = None if X is None else as_matrix("X", X, n_rows=len(points))
    check_splits(n_splits, at_least=2)
    if attribute_kind not in ("auto", "categorical", "numeric"):
        raise InvalidValueError(
            f"attribute_kind must be 'auto', 'categorical' or 'numeric', got {attribute_kind!r}: choose one of these."
        )
    if len(points) < n_splits:
        raise InvalidValueError(f"n_splits must not exceed the {len(points)} rows, got {n_splits}: give fewer folds.")
    values = as_labels("attribute", attribute, len(points))
    if attribute_kind == "auto":
        attribute_kind = "numeric" if is_measurement(values) else "categorical"
    readers: Callable[[np.ndarray, np.ndarray, Folds], tuple[float, float]]
    if attribute_kind == "numeric":
        target = _numeric_attribute(values)
        folds = list(KFold(n_splits, shuffle=True, random_state=random_state).split(points))
        readers, chance, measure = _read_numbers, 0.0, "r2"
    else:
        target = _class_attribute(values)
        folds = stratified_folds(target, n_splits, random_state)
        readers, chance, measure = _read_classes, 1.0 / (target.max() + 1), "balanced_accuracy"
    linear, knn = readers(points, target, folds)
    return {
        "score": max(linear, knn),
        "chance": float(chance),
        "ceiling": None if full is None else max(readers(full, target, folds)),
        "linear": linear,
        "knn": knn,
        "measure": measure,
    }


def is_measurement(values: np.ndarray) -> bool:
    """Whether a column that is scored as it stands is a measurement: floats of more than 20 different values.

    Whole numbers are classes here however many there are, as no row has to tell them apart: they are only scored.

    >>> is_measurement(np.arange(30.0)), is_measurement(np.arange(30))
    (True, False)
    """
    return values.dtype.kind == "f" and len(np.unique(values)) > MOST_CLASSES_OF_NUMBERS


def _read_classes(points: np.ndarray, codes: np.ndarray, folds: Folds) -> tuple[float, float]:
    """Balanced accuracy of logistic regression and of the neighbours' vote."""

    def linear(train: np.ndarray, train_codes: np.ndarray, test: np.ndarray) -> np.ndarray:
        model = LogisticRegression(class_weight="balanced", max_iter=2000)
        return model.fit(train, train_codes).predict(test)

    def vote(train: np.ndarray, train_codes: np.ndarray, test: np.ndarray) -> np.ndarray:
        n_classes = int(codes.max()) + 1
        shares = np.bincount(train_codes, minlength=n_classes) / len(train_codes)
        # A class absent from the training part has no votes to divide.
        told = votes(_nearest(train, test), train_codes, n_classes)
        return np.argmax(told / np.where(shares > 0, shares, 1.0), axis=1)

    # One measure over all rows, not a mean over folds: a fold may hold no row at all of a rare class.
    return (
        float(balanced_accuracy_score(codes, _out_of_fold(linear, points, codes, folds))),
        float(balanced_accuracy_score(codes, _out_of_fold(vote, points, codes, folds))),
    )


def _read_numbers(points: np.ndarray, target: np.ndarray, folds: Folds) -> tuple[float, float]:
    """R² of ridge regression and of the neighbours' mean."""

    def linear(train: np.ndarray, train_target: np.ndarray, test: np.ndarray) -> np.ndarray:
        return Ridge().fit(train, train_target).predict(test)

    def mean(train: np.ndarray, train_target: np.ndarray, test: np.ndarray) -> np.ndarray:
        return train_target[_nearest(train, test)].mean(axis=1)

    return (
        float(r2_score(target, _out_of_fold(linear, points, target, folds))),
        float(r2_score(target, _out_of_fold(mean, points, target, folds))),
    )


def _out_of_fold(
    predict: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    points: np.ndarray,
    target: np.ndarray,
    folds: Folds,
) -> np.ndarray:
    guess = np.empty_like(target)
    for train, test in folds:
        scaler = StandardScaler().fit(points[train])
        guess[test] = predict(scaler.transform(points[train]), target[train], scaler.transform(points[test]))
    return guess


def _nearest(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    index = NearestNeighbors(n_neighbors=min(VOTERS, len(train))).fit(train)
    return index.kneighbors(test, return_distance=False)


def stratified_folds(codes: np.ndarray, n_splits: int, random_state: int) -> Folds:
    """Shuffled folds with the classes' shares, as (train, test) rows; fewer than asked where no class has as many rows.

    >>> len(stratified_folds(np.array([0, 0, 0, 1, 1]), 10, random_state=0))
    3
    """
    splitter = StratifiedKFold(min(n_splits, int(np.bincount(codes).max())), shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is only absent from some test parts, which the pooled measure
        # allows.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return list(splitter.split(codes, codes))


def _class_attribute(values: np.ndarray) -> np.ndarray:
    classes, codes = as_classes("attribute", values, None)
    counts = np.bincount(codes)
    if len(classes) < 2:
        raise InvalidValueError("attribute must have at least two classes, got one: there is nothing to read back.")
    if counts.min() < 2:
        raise InvalidValueError(
            f"attribute must have two rows or more in each of its {len(classes)} classes, got one in "
            f"{classes[int(np.argmin(counts))]!r}: merge rare classes, "
            "or pass attribute_kind='numeric' for numbers."
        )
    return codes


def _numeric_attribute(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iufb":
        raise InvalidTypeError(
            f"attribute must hold numbers when attribute_kind is 'numeric', got dtype {values.dtype}: "
            "pass numbers or attribute_kind='categorical'."
        )
    target = values.astype(np.float64)
    if not np.all(np.isfinite(target)) or np.ptp(target) == 0:
        raise InvalidValueError(
            f"attribute must be finite and not constant, got values from {target.min()} to {target.max()}: "
            "drop rows without a value."
        )
    return target
