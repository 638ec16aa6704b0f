"""Sessions of version 1: clusters had the place in which they were taken for a number, and places closed up."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.common.archive import in_json
from imapce.estimators.model_file import parameters_of_file


def with_todays_names(parameters: dict[str, Any], version: int) -> dict[str, Any]:
    """The parameters of the estimator as they are called now.

    >>> with_todays_names({"mu": "auto"}, 1)
    {'outliers': 'keep', 'mu': 'paper'}
    """
    if version == 1:
        return parameters_of_file(parameters)
    # A file has no infinity.
    return {**parameters, "alpha": np.inf} if parameters.get("alpha") == in_json(np.inf) else parameters


def with_numbers(steps: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    """The moves of a file as they are told now: numbers in the order of acceptance, which stay when clusters merge.

    >>> taken = {"clusters": [{"chosen": "hand"}, {"chosen": "hand"}]}
    >>> [one["number"] for one in with_numbers([taken], 1)[0]["clusters"]]
    [0, 1]
    """
    if version > 1:
        return steps
    told: list[dict[str, Any]] = []
    now: list[int] = []
    free = 0
    for step in steps:
        # By place: first the numbers of those replaced, then new ones.
        places = [int(place) for place in step.get("replaced", [])]
        if not all(0 <= place < len(now) for place in places):
            raise ValueError("a step regroups clusters that are not there")
        replaced = [now[place] for place in places]
        numbers = replaced[: len(step["clusters"])]
        n_new = len(step["clusters"]) - len(numbers)
        numbers += range(free, free + n_new)
        free += n_new
        gone = set(replaced) - set(numbers)
        now = [number for number in now if number not in gone] + numbers[len(replaced) :]
        pieces = list(range(free, free + int(step.get("pieces", 0))))
        free += len(pieces)
        clusters = [{**one, "number": number} for one, number in zip(step["clusters"], numbers, strict=True)]
        told.append({**step, "clusters": clusters, "replaced": replaced, "numbers": pieces})
    return told
