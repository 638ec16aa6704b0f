"""Leakage: the accuracy with which the prior can be predicted from a view and from the clusters.

    view      prediction for a row from its 15 nearest neighbors in the view
    clusters  prediction for a row from all rows of its cluster
    chance    accuracy without either

The accuracy is balanced if the columns and labels of the prior have at most 20 distinct rows of values (chance
1/classes), otherwise it is the largest R² of a column (chance 0). Leakage is reported and does not select the view.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from imapce.choice.scores import FEWEST_ROWS
from imapce.clusters.clustering import SampleClusters
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.neighbours import jittered, nearest
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.words import listing
from imapce.priors.effect import explained_away
from imapce.priors.problem import Problem

# The message in `stop_reason_`, also as models were saved up to version 0.2.
MESSAGE = re.compile(
    r" The (?:prior|known)(?: \(.*?\))? (?:can be predicted|is read back) from the view .*?chance \d\.\d\d\)?\."
)


@dataclass(frozen=True)
class PriorLeakage:
    """Accuracy with which the prior can be predicted from a view and from the clusters, and by chance.

    Parameters
    ----------
    view, clusters : accuracy, or R² if `chance` is 0; None if there is no view or no clusters.
    chance : accuracy of a prediction that uses neither.
    prior : names of the columns and labels, for the message.

    Examples
    --------
    >>> PriorLeakage(0.36, 0.34, 1 / 3, "species").message
    'The prior (species) can be predicted from the view with accuracy 0.36, from the clusters with 0.34; chance 0.33.'
    """

    view: float | None
    clusters: float | None
    chance: float
    prior: str = ""

    @classmethod
    def from_dict(cls, scores: Mapping[str, Any], prior: str = "") -> PriorLeakage:
        """Return the leakage of which `scores` is the `to_dict()`."""
        return cls(**scores, prior=prior)

    @classmethod
    def from_model(cls, model: Any) -> PriorLeakage | None:
        """Return the leakage of a fitted model and name the covariates; None without columns or labels as prior."""
        names = explained_away(model)
        return None if model.read_back_ is None else cls.from_dict(model.read_back_, listing(names, 5) if names else "")

    def to_dict(self) -> dict[str, float | None]:
        """Return the three accuracies, the attribute `read_back_` of a model."""
        return {"view": self.view, "clusters": self.clusters, "chance": self.chance}

    @property
    def message(self) -> str:
        """The leakage as a sentence for `stop_reason_`, reports and the terminal."""
        prior = f" ({self.prior})" if self.prior else ""
        measure = "accuracy" if self.chance else "R²"
        clusters = "" if self.clusters is None else f", from the clusters with {self.clusters:.2f}"
        predicted = f"can be predicted from the view with {measure} {self.view:.2f}{clusters}"
        return f"The prior{prior} {predicted}; chance {self.chance:.2f}."


def without_leakage(stop_reason: str) -> str:
    """Return a stop reason without the message on leakage."""
    return MESSAGE.sub("", stop_reason)


class PriorPredictor:
    """Predicts the prior (m, q) of rows from other rows: as a class if there are few classes, otherwise as numbers."""

    def __init__(self, prior: Array, settings: ClusterSettings = SETTINGS.clusters):
        classes = np.unique(prior.round(9), axis=0, return_inverse=True)[1].ravel()
        self.class_sizes = np.bincount(classes)
        n_classes = len(self.class_sizes)
        self.chance = 1.0 / n_classes if n_classes <= settings.most_classes else 0.0
        self.values = np.eye(n_classes)[classes] if self.chance else prior
        self.n_neighbors = settings.neighbours

    def from_view(self, view: Array) -> float:
        """Return the accuracy of predictions from the nearest neighbors in a view (m, k)."""
        spread = view.std(axis=0)
        points = jittered((view - view.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        neighbors = nearest(points, min(self.n_neighbors, len(view) - 1))
        return self._accuracy(self.values[neighbors.T].sum(axis=0), neighbors.shape[1])

    def from_clusters(self, clusters: Codes) -> float:
        """Return the accuracy of predictions from the rows of the same cluster 0, 1, ... (m,)."""
        members = np.eye(int(clusters.max()) + 1)[clusters]
        return self._accuracy((members.T @ self.values)[clusters], np.bincount(clusters)[clusters, None])

    def _accuracy(self, sums: Array, counts: int | Codes) -> float:
        """Return the accuracy of predictions by the sums (m, c) of the values of `counts` rows each."""
        if self.chance:
            is_right = np.argmax(sums / self.class_sizes, axis=1) == np.argmax(self.values, axis=1)
            return float(np.mean(is_right @ self.values / self.class_sizes))
        error = np.sum((self.values - sums / counts) ** 2, axis=0)
        total = np.sum((self.values - self.values.mean(axis=0)) ** 2, axis=0)
        return float(np.max(1 - error[total > 0] / total[total > 0]))


def measure_leakage(
    problem: Problem,
    V: Array | None = None,
    candidate: SampleClusters | None = None,
    *,
    prior: str = "",
    settings: ClusterSettings = SETTINGS.clusters,
) -> PriorLeakage | None:
    """Return the leakage of the prior into the view with the axes V (d, k) and into the clusters.

    Without columns or labels as prior, or with fewer than four rows, return None.
    """
    Z = problem.Z
    if not problem.hides or Z.n_rows < FEWEST_ROWS:
        return None
    view: float | None = None
    clusters: float | None = None
    labels = np.full(Z.n_rows, -1)
    if candidate is not None:
        labels[candidate.sample.indices] = candidate.labels
        predictor, rows = _predictor_of_rows(problem, labels >= 0, settings)
        clusters = predictor.from_clusters(labels[rows])
    if V is not None:
        sample = Z.content_mask(settings.many_rows)
        if not np.array_equal(sample, labels >= 0):
            predictor, rows = _predictor_of_rows(problem, sample, settings)
        view = predictor.from_view(Z.project(V, rows))
    return PriorLeakage(view, clusters, predictor.chance, prior)


def _predictor_of_rows(problem: Problem, sample: Mask, settings: ClusterSettings) -> tuple[PriorPredictor, Mask]:
    """Return a predictor for the rows in a sample that have a label and their mask; for all if fewer than four have."""
    values, has_label = problem.known_values(sample)
    rows = sample.copy()
    if has_label.sum() >= FEWEST_ROWS:
        rows[sample] = has_label
        values = values[has_label]
    return PriorPredictor(values, settings), rows
