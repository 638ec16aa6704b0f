"""What the clusters are found by: every number that decides a result, in one record, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The numbers that decide which clusters are found; `experiments tables` judges each by leaving one table out.

    >>> Settings().share
    0.95
    """

    share: float = 0.95
    coarser: float = 0.90
    finer: float = 0.98
    trim: float = 0.1
    rows_per_component: int = 8
    sure: float = 1.2


SETTINGS = Settings()
