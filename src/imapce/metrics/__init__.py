"""Scores of a view: is the known gone, is other structure there.

>>> from imapce.metrics import knn_accuracy
>>> knn_accuracy([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]], list("aaabbb"), n_neighbors=1)
1.0
"""

from imapce.metrics.readback import residual_predictability
from imapce.metrics.scores import (
    classifier_scores,
    cluster_jaccard,
    kmeans_nmi,
    knn_accuracy,
    nls_ceiling,
    normalized_laplacian_score,
    normalized_mutual_information,
    trustworthiness,
)

__all__ = [
    "classifier_scores",
    "cluster_jaccard",
    "kmeans_nmi",
    "knn_accuracy",
    "nls_ceiling",
    "normalized_laplacian_score",
    "normalized_mutual_information",
    "residual_predictability",
    "trustworthiness",
]
