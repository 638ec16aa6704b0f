"""The methods IMAPCE is compared with, each with its manners: `fit_transform(X, prior=...)`, `random_state`, tables in.

>>> from imapce import Samples
>>> from imapce.baselines import CPCA
>>> X = np.random.default_rng(0).normal(size=(100, 4))
>>> CPCA().fit_transform(X, prior=Samples(X[:50])).shape
(100, 2)
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use: most need nothing beyond the core, some need openTSNE or Numba.
_HOMES: dict[str, str] = {
    "CPCA": "cpca",
    "CTSNE": "ctsne",
    "FairNeRV": "fair_nerv",
    "FairTNeRV": "fair_nerv",
    "GCPCA": "gcpca",
    "KurtosisPursuit": "kurtosis_pursuit",
    "LEACE": "leace",
    "PCA": "cpca",
    "RevisedCTSNE": "ctsne",
    "SIDE": "side",
    "TSNE": "embedding",
    "UMAP": "embedding",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"imapce.baselines.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'imapce.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
