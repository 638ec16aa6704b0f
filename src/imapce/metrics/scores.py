"""Scores of a view: is the known structure gone, is other structure there, is it faithful to the data.

>>> from imapce.datasets import make_synthetic
>>> data = make_synthetic(200)
>>> view, batch = data.X[:, 4:6], data.labels["batch"]
>>> round(normalized_laplacian_score(view, batch), 2), round(nls_ceiling(batch), 2)         # alike: the batch is gone
(0.49, 0.48)

A score of removal alone is no success, since pure noise gets the best one: pair it with a score of what is
left.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse
import sklearn.manifold
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, f1_score, normalized_mutual_info_score, recall_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from imapce.common.checks import as_classes, as_codes, as_matrix, check_splits, is_whole
from imapce.errors import InvalidValueError
from imapce.metrics.readback import stratified_folds

NOT_TAKEN = -1
TRUSTWORTHINESS_SAMPLE = 5000


def normalized_laplacian_score(
    embedding: Any,
    labels: Any,
    n_neighbors: int | Iterable[int] = range(10, 101, 10),
    *,
    symmetrize: bool = False,
) -> float:
    """Mean share of a row's k nearest neighbours that carry another label, averaged over the k asked for.

    NLS_k = (1/n) Σ_l f_lᵀ L f_l, with f_l the indicator of label l and L = I − D^(−1/2) A D^(−1/2) the
    normalised Laplacian of the kNN graph A (directed, the row itself excluded). ``symmetrize`` takes max(A,
    Aᵀ) for A instead. 0: every neighbour has the row's own label; :func:`nls_ceiling`: labels independent of
    position; above that, neighbours avoid their own label. A k beyond n − 1 is cut to n − 1 with a warning
    and counted once.

    >>> normalized_laplacian_score([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"], n_neighbors=1)
    0.0
    """
    points = as_matrix("embedding", embedding)
    codes = as_codes("labels", labels, len(points))
    sizes = _neighbourhood_sizes(n_neighbors, len(points))
    # Ties go to the rows that come first, and tables are often sorted by label. Measured with 600 + 900
    # sorted rows, all in one point: 0.60 in table order, 0.47 shuffled, ceiling 0.48.
    shuffled = np.random.default_rng(0).permutation(len(points))
    points, codes = points[shuffled], codes[shuffled]
    # Without an argument, kneighbors leaves out each row's own index, also among exact duplicates.
    neighbours = NearestNeighbors(n_neighbors=sizes[-1]).fit(points).kneighbors(return_distance=False)
    if symmetrize:
        return float(np.mean([_symmetric_score(neighbours[:, :k], codes) for k in sizes]))
    strangers = (codes[neighbours] != codes[:, None]).mean(axis=0).cumsum()
    return float(np.mean([strangers[k - 1] / k for k in sizes]))


def nls_ceiling(labels: Any) -> float:
    """What :func:`normalized_laplacian_score` is on average when labels do not depend on position, 1 − ρ.

    Σ_l n_l (n − n_l) / (n (n − 1)): the chance that another row, drawn at random, has another label.

    >>> nls_ceiling([0, 0, 1, 1])
    0.6666666666666666
    """
    counts = np.bincount(as_codes("labels", labels, None)).astype(float)
    n = counts.sum()
    if n < 2:
        raise InvalidValueError("labels must have at least two values, got one: a single row has no neighbour.")
    return float(np.sum(counts * (n - counts)) / (n * (n - 1)))


def cluster_jaccard(
    labels_true: Any,
    labels_pred: Any,
    definition: Literal["union", "authors"] = "union",
    *,
    class_sizes: Mapping[Any, int] | None = None,
) -> float:
    """How well each class is met by its best cluster; rows with ``labels_pred`` −1 are in no cluster.

    N_cj rows of class j lie in cluster c of size |c|; n_j is the size of class j. ``class_sizes`` gives n_j
    where the class has further rows, such as those of the prior, that are not in ``labels_true``; a class it
    names that has no row here is not scored.

    ``"union"``: max_c N_cj / (n_j + |c| − N_cj), the mean over all classes: a class never found counts 0.
    ``"authors"``: with c the cluster holding most of class j (the first of equals), J_j = N_cj / max(n_j,
    |c|), and the result is Σ_j n_j J_j / Σ_{j: J_j > 0} n_j: J_j is never below the Jaccard of c and j, and
    a class never found costs nothing.

    >>> cluster_jaccard(["a", "a", "b", "b"], [0, 0, 1, -1])
    0.75
    """
    if definition not in ("union", "authors"):
        raise InvalidValueError(f"definition must be 'union' or 'authors', got {definition!r}: choose one of the two.")
    classes, class_codes = as_classes("labels_true", labels_true, None)
    clusters, cluster_codes = as_classes("labels_pred", labels_pred, len(class_codes))
    overlaps = np.zeros((len(clusters), len(classes)))
    np.add.at(overlaps, (cluster_codes, class_codes), 1)
    sizes = _class_sizes(class_sizes, classes, overlaps.sum(axis=0))
    overlaps = overlaps[[not _is_not_taken(cluster) for cluster in clusters]]
    if len(overlaps) == 0:
        return 0.0
    cluster_sizes = overlaps.sum(axis=1)
    if definition == "union":
        return float(np.mean(np.max(overlaps / (sizes + cluster_sizes[:, None] - overlaps), axis=0)))
    best = np.argmax(overlaps, axis=0)
    scores = overlaps[best, np.arange(len(classes))] / np.maximum(sizes, cluster_sizes[best])
    return float(np.sum(sizes * scores) / np.sum(sizes[scores > 0]))


def normalized_mutual_information(labels_true: Any, labels_pred: Any) -> float:
    """2 I(T; P) / (H(T) + H(P)), the mutual information over the arithmetic mean of the entropies.

    Rows never taken (``labels_pred`` −1) form one more cluster.

    >>> normalized_mutual_information(["a", "a", "b"], [7, 7, -1])
    1.0
    """
    truth = as_codes("labels_true", labels_true, None)
    return float(normalized_mutual_info_score(truth, as_codes("labels_pred", labels_pred, len(truth))))


def classifier_scores(
    embedding: Any, labels: Any, classifier: Literal["linear", "svm"] = "linear", *, n_splits: int = 10
) -> dict[str, float]:
    """How well a classifier tells the labels: mean and population standard deviation over 75/25 splits.

    Split s is unstratified with seed s; columns are standardised on its training part. ``"linear"`` is a
    hinge-loss SGDClassifier seeded with s, ``"svm"`` an SVC with radial kernel. F1 is weighted by class,
    recall is the plain mean over the classes of the test part, ``recall_authors`` the recall of the class of
    its first row, as the paper's code has it (another class from split to split). Keys: accuracy, f1, recall,
    recall_authors and each with ``_sd``.

    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(200)
    >>> classifier_scores(data.X[:, 4:6], data.labels["celltype"], n_splits=2)["accuracy"]
    1.0
    """
    points = as_matrix("embedding", embedding)
    codes = as_codes("labels", labels, len(points))
    if classifier not in ("linear", "svm"):
        raise InvalidValueError(f"classifier must be 'linear' or 'svm', got {classifier!r}: choose one of the two.")
    check_splits(n_splits, at_least=1)
    results = np.array([_split_scores(points, codes, classifier, seed) for seed in range(n_splits)])
    names = ("accuracy", "f1", "recall", "recall_authors")
    scores = dict(zip(names, results.mean(axis=0).tolist(), strict=True))
    return scores | {f"{name}_sd": sd for name, sd in zip(names, results.std(axis=0).tolist(), strict=True)}


def knn_accuracy(embedding: Any, labels: Any, n_neighbors: int = 15) -> float:
    """Share of rows whose label is that of most of their nearest neighbours among the rows of other folds.

    Every row is predicted once, in 10 shuffled stratified folds with a fixed seed; distances are those of the view as
    it is drawn, so its axes are not rescaled. There are fewer folds where no label has 10 rows.

    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(200)
    >>> knn_accuracy(data.X[:, 4:6], data.labels["celltype"])
    1.0
    """
    points = as_matrix("embedding", embedding)
    codes = as_codes("labels", labels, len(points))
    _require_repeats(codes)
    folds = stratified_folds(codes, 10, random_state=0)
    smallest = min(len(train) for train, _ in folds)
    if not is_whole(n_neighbors) or n_neighbors < 1:
        raise InvalidValueError(f"n_neighbors must be a whole number of at least 1, got {n_neighbors!r}: 15 is usual.")
    voters = KNeighborsClassifier(min(int(n_neighbors), smallest))
    return float(accuracy_score(codes, cross_val_predict(voters, points, codes, cv=folds)))


def kmeans_nmi(embedding: Any, labels: Any, random_state: int = 0) -> float:
    """Normalised mutual information of the labels and as many k-means clusters of the view (best of 10 starts).

    >>> kmeans_nmi([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"])
    1.0
    """
    points = as_matrix("embedding", embedding)
    codes = as_codes("labels", labels, len(points))
    _require_repeats(codes)
    with warnings.catch_warnings():
        # Fewer distinct points than labels: the clusters that stay empty only cost agreement.
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusters = KMeans(int(codes.max()) + 1, n_init=10, random_state=random_state).fit_predict(points)
    return float(normalized_mutual_info_score(codes, clusters))


def trustworthiness(X: Any, embedding: Any, n_neighbors: int = 15, *, random_state: int = 0) -> float:
    """1 minus the penalty for neighbours in the view that are far in X, by rank; 1 is a faithful view.

    T = 1 − 2 / (n k (2n − 3k − 1)) Σ_i Σ_{j ∈ N_k(i)} max(0, r(i, j) − k), with N_k(i) the neighbours in the
    view and r the rank of j among the neighbours of i in X. It takes n × n distances, so above 5,000 rows it
    is computed on a sample of 5,000 rows drawn with ``random_state``, neighbourhoods being those within the
    sample.

    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> trustworthiness(X, 2 * X)
    1.0
    """
    rows = as_matrix("X", X)
    points = as_matrix("embedding", embedding, n_rows=len(rows))
    if len(rows) > TRUSTWORTHINESS_SAMPLE:
        sample = np.random.default_rng(random_state).choice(len(rows), TRUSTWORTHINESS_SAMPLE, replace=False)
        rows, points = rows[sample], points[sample]
    if not is_whole(n_neighbors) or not 1 <= n_neighbors < len(rows) / 2:
        raise InvalidValueError(
            f"n_neighbors must be a whole number from 1 to less than half of the {len(rows)} rows, "
            f"got {n_neighbors!r}: "
            "give a smaller one."
        )
    return float(sklearn.manifold.trustworthiness(rows, points, n_neighbors=n_neighbors))


def _require_repeats(codes: np.ndarray) -> None:
    if np.bincount(codes).max() < 2:
        raise InvalidValueError(
            f"labels must name classes, got a label of its own for each of {len(codes)} rows: pass a coarser column."
        )


def _symmetric_score(neighbours: np.ndarray, codes: np.ndarray) -> float:
    n, k = neighbours.shape
    starts = np.arange(0, n * k + 1, k)
    directed = scipy.sparse.csr_array((np.ones(n * k), neighbours.ravel(), starts), shape=(n, n))
    graph = directed.maximum(directed.T).tocoo()
    degrees = graph.sum(axis=0)
    rows, columns = graph.coords
    alike = codes[rows] == codes[columns]
    return float(1.0 - np.sum(1.0 / np.sqrt(degrees[rows[alike]] * degrees[columns[alike]])) / n)


def _split_scores(points: np.ndarray, codes: np.ndarray, classifier: str, seed: int) -> tuple[float, ...]:
    train, test, train_codes, test_codes = train_test_split(points, codes, test_size=0.25, random_state=seed)
    if len(np.unique(train_codes)) < 2:
        raise InvalidValueError(
            f"labels must have two classes in the training part of every split, got one in split {seed}: "
            "give more rows of the rarer class."
        )
    scaler = StandardScaler().fit(train)
    model = SGDClassifier(random_state=seed) if classifier == "linear" else SVC(kernel="rbf")
    guess = model.fit(scaler.transform(train), train_codes).predict(scaler.transform(test))
    present = np.unique(test_codes)
    return (
        accuracy_score(test_codes, guess),
        f1_score(test_codes, guess, average="weighted", zero_division=0),
        recall_score(test_codes, guess, labels=present, average="macro", zero_division=0),
        float(np.mean(guess[test_codes == test_codes[0]] == test_codes[0])),
    )


def _neighbourhood_sizes(n_neighbors: int | Iterable[int], n_rows: int) -> list[int]:
    asked = [n_neighbors] if not isinstance(n_neighbors, Iterable) else list(n_neighbors)
    if not asked or not all(is_whole(k) and k >= 1 for k in asked):
        raise InvalidValueError(
            f"n_neighbors must be whole numbers of at least 1, got {n_neighbors!r}: "
            "give for example range(10, 101, 10)."
        )
    if max(asked) > n_rows - 1:
        warnings.warn(
            f"n_neighbors asks for up to {max(asked)} neighbours and {n_rows} rows have {n_rows - 1} each: "
            f"larger numbers are cut to {n_rows - 1}.",
            UserWarning,
            stacklevel=3,
        )
    return sorted({min(int(k), n_rows - 1) for k in asked})


def _class_sizes(given: Mapping[Any, int] | None, classes: list[Any], counted: np.ndarray) -> np.ndarray:
    if given is None:
        return counted
    missing = [name for name in classes if name not in given]
    if missing:
        raise InvalidValueError(f"class_sizes must have every class, got none for {missing[0]!r}: add its size.")
    sizes = np.array([given[name] for name in classes], dtype=float)
    short = np.flatnonzero(sizes < counted)
    if len(short):
        raise InvalidValueError(
            f"class_sizes must count the rows of labels_true too, "
            f"got {sizes[short[0]]:g} for {classes[short[0]]!r} with "
            f"{counted[short[0]]:g} rows: give the size in the whole data."
        )
    return sizes


def _is_not_taken(cluster: Any) -> bool:
    return not isinstance(cluster, str) and bool(cluster == NOT_TAKEN)
