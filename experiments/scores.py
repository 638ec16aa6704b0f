"""Scores of one view of one problem: is the known gone, does the structure appear.

NLS alone misleads: a random cloud scores its ceiling, and a map can score it while the prior is still readable. So its
share of the ceiling, the prior read back and the structure's own scores stand beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.problems import Problem
from imapce import metrics


def scores(problem: Problem, embedding: np.ndarray) -> dict[str, Any]:
    nls = metrics.normalized_laplacian_score(embedding, problem.known)
    readers = metrics.residual_predictability(embedding, problem.known, attribute_kind="categorical")
    result = {
        "nls": nls,
        "NLS / ceiling": nls / metrics.nls_ceiling(problem.known),
        "prior, linear": readers["linear"],
        "prior, 15-NN": readers["knn"],
        "chance": readers["chance"],
    }
    for name, labels in problem.structure.items():
        result[f"{name}, 15-NN"] = metrics.knn_accuracy(embedding, labels)
        result[f"{name}, NMI"] = metrics.kmeans_nmi(embedding, labels)
    if problem.is_images:
        for classifier in ("linear", "svm"):
            scored = metrics.classifier_scores(embedding, problem.structure["clothes"], classifier)
            result |= {f"{classifier} {name}": scored[name] for name in ("accuracy", "f1", "recall", "recall_authors")}
    return result
