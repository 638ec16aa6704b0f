"""What is said of every view alike: is the known gone, is other structure there, are neighbours kept.

>>> from imapce.datasets import make_synthetic
>>> data = make_synthetic(200)
>>> round(view_scores(data.X[:, 4:6], known=data.labels["batch"])["nls_share"], 2)
1.01
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.checks import as_classes, as_labels, as_matrix, is_missing
from imapce.errors import InvalidValueError
from imapce.metrics.readback import VOTERS, is_measurement, residual_predictability
from imapce.metrics.scores import kmeans_nmi, knn_accuracy, nls_ceiling, normalized_laplacian_score, trustworthiness

Score = float | None

SCORES = (
    "nls",
    "nls_ceiling",
    "nls_share",
    "prior_linear",
    "prior_knn",
    "prior_chance",
    "knn_accuracy",
    "kmeans_nmi",
    "silhouette",
    "trustworthiness",
)

QUANTILE_BINS = 10
MOST_CLUSTERS = 10
# Silhouettes take n × n distances and k-means asks for nine of them: 0.08 s each at 2,000 rows, 2.6 s at 10,000.
SILHOUETTE_SAMPLE = 2000


def view_scores(
    embedding: Any,
    X: Any = None,
    *,
    known: Any = None,
    labels: Any = None,
    unexplored: Mask | None = None,
    random_state: int = 0,
) -> dict[str, Score]:
    """The scores of one view, by the names in `SCORES`; None where a question does not apply.

    Is the known gone? `known` is one value per row, or a mapping of such columns, of which the one that shows most
    counts; rows where it is missing do not. nls, nls_ceiling and nls_share = nls/nls_ceiling: the normalised Laplacian
    score, what chance gives, and how much of it is reached (1: gone). prior_linear, prior_knn, prior_chance: how well a
    linear reader and 15 neighbours tell it from the view; balanced accuracy for classes, R² for a float column of more
    than 20 values, whose nls is that of its 10 quantile bins.

    Is something else there? knn_accuracy (15 neighbours, out of fold), kmeans_nmi and silhouette of `labels`; without
    labels the silhouette is that of k-means clusters, the best k from 2 to 10. Rows without a label do not count.
    `unexplored` masks the rows whose structure is asked for, where the others are known; trustworthiness is about all
    rows, and about the columns of `X` as they are scaled.

    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(200)
    >>> scores = view_scores(data.X[:, 4:6], data.X, known=data.labels["batch"], labels=data.labels["celltype"])
    >>> scores["prior_chance"], scores["knn_accuracy"]
    (0.5, 1.0)
    """
    points = as_matrix("embedding", embedding)
    scores: dict[str, Score] = dict.fromkeys(SCORES)
    columns = known if isinstance(known, Mapping) else {"known": known} if known is not None else {}
    scores |= _known_scores(points, columns)
    scores |= _structure_scores(points, labels, unexplored, random_state)
    if X is not None and len(points) > 2 * VOTERS:
        scores["trustworthiness"] = trustworthiness(X, points, VOTERS, random_state=random_state)
    return scores


def class_labels(labels: Any, n_rows: int) -> tuple[Mask, Codes] | str:
    """The rows that have a label and the codes of their classes, or why the labels are no classes.

    >>> class_labels([1.0, 1.0, float("nan"), 2.0, 2.0], 5)
    (array([ True,  True, False,  True,  True]), array([0, 0, 1, 1]))
    """
    column = np.asarray(labels)
    if column.shape != (n_rows,):
        raise InvalidValueError(
            f"labels must have one value for each of {n_rows} rows, got shape {column.shape}: align them."
        )
    present = np.array([value is not None and value == value for value in column.tolist()], dtype=bool)
    if not present.any():
        return "the labels are all missing"
    if is_measurement(column[present]):
        return "the labels are measurements, not classes"
    classes, codes = as_classes("labels", column[present].tolist(), None)
    if len(classes) < 2:
        return "all labels are the same"
    if len(classes) > len(codes) / 2:
        return f"the labels take {len(classes)} values in {len(codes)} rows, too many for classes"
    return present, codes


def _known_scores(points: Array, columns: Mapping[str, NDArray[Any]]) -> dict[str, Score]:
    """Of several columns the one that shows most: lowest share of the ceiling, read back furthest above chance."""
    mixing, reading = [], []
    for told in columns.values():
        column, seen = _stated(told, points)
        numeric = is_measurement(column)
        rows = np.ones(len(column), dtype=bool) if numeric else _repeated(column)
        if not rows.any() or len(as_classes("known", column[rows], None)[0]) < 2:
            continue
        classes = _quantile_bins(column) if numeric else column
        sizes = [k for k in range(10, 101, 10) if k < len(seen)] or [len(seen) - 1]
        nls, ceiling = normalized_laplacian_score(seen, classes, sizes), nls_ceiling(classes)
        mixing.append((nls / ceiling, nls, ceiling))
        read = residual_predictability(seen[rows], column[rows], n_splits=min(10, int(rows.sum())))
        above = (read["score"] - read["chance"]) / (1.0 - read["chance"])
        reading.append((above, read["linear"], read["knn"], read["chance"]))
    if not mixing:
        return {}
    share, nls, ceiling = min(mixing)
    _, linear, knn, chance = max(reading)
    return {
        "nls": nls,
        "nls_ceiling": ceiling,
        "nls_share": share,
        "prior_linear": linear,
        "prior_knn": knn,
        "prior_chance": chance,
    }


def _structure_scores(points: Array, labels: Any, unexplored: Mask | None, random_state: int) -> dict[str, Score]:
    asked = np.ones(len(points), dtype=bool) if unexplored is None else np.asarray(unexplored, dtype=bool)
    if labels is not None:
        read = class_labels(np.asarray(labels)[asked], int(asked.sum()))
        if not isinstance(read, str):
            present, codes = read
            rows = points[asked][present]
            return {
                "knn_accuracy": knn_accuracy(rows, codes, VOTERS),
                "kmeans_nmi": kmeans_nmi(rows, codes, random_state=random_state),
                "silhouette": _silhouette(rows, codes, random_state),
            }
    return {"silhouette": _clustered_silhouette(points[asked], random_state)}


def _silhouette(points: Array, codes: Codes, random_state: int) -> Score:
    """Mean (b − a)/max(a, b) over a sample: a the mean distance to the own class, b to the nearest other one."""
    if len(points) > SILHOUETTE_SAMPLE:
        sample = np.random.default_rng(random_state).choice(len(points), SILHOUETTE_SAMPLE, replace=False)
        points, codes = points[sample], codes[sample]
    n_classes = len(np.unique(codes))
    return float(silhouette_score(points, codes)) if 2 <= n_classes < len(points) else None


def _clustered_silhouette(points: Array, random_state: int) -> Score:
    """The best silhouette of k-means clusters, k = 2..10."""
    found = []
    with warnings.catch_warnings():
        # A view with few distinct points has fewer clusters than asked for, and those are scored.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k in range(2, min(MOST_CLUSTERS, len(points) - 1) + 1):
            clusters = KMeans(k, n_init=3, random_state=random_state).fit_predict(points)
            found.append(_silhouette(points, clusters, random_state))
    return max((score for score in found if score is not None), default=None)


def stated(column: NDArray[Any]) -> Mask:
    """The rows of which something is known.

    >>> stated(np.array(["a", None], dtype=object))
    array([ True, False])
    """
    return np.array([not is_missing(entry) for entry in column], dtype=bool)


def _stated(known: Any, points: Array) -> tuple[NDArray[Any], Array]:
    """A known column without its missing values, and the same rows of a view."""
    column = np.asarray(known)
    rows = stated(column) if column.shape == (len(points),) else np.zeros(0, dtype=bool)
    return (column[rows], points[rows]) if rows.any() else (as_labels("known", known, len(points)), points)


def _repeated(column: NDArray[Any]) -> Mask:
    """Rows whose class has another row: a class of one cannot be told from the rows of other folds."""
    _, codes = as_classes("known", column, None)
    return np.bincount(codes)[codes] > 1


def _quantile_bins(column: NDArray[Any]) -> Codes:
    edges = np.unique(np.quantile(column, np.linspace(0.0, 1.0, QUANTILE_BINS + 1)[1:-1]))
    # A value held by most rows can be every edge; it gets the bin below the edge, or above it where it is the largest.
    below = np.searchsorted(edges, column, side="left")
    return below if below.any() else np.searchsorted(edges, column, side="right")
