"""What was taken from the rows before the views of a session, on disk: every effect and its labels once.

Views of one session differ in where they are centred and, as long as nobody changes what is known, in nothing else that
was taken from the rows before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.errors import InvalidValueError
from imapce.priors.effect import Effect, Explained
from imapce.priors.labels import LabelCode, ReadLabels

Arrays = dict[str, NDArray]


class TellsExplained:
    """Writes explanations: `told` are those of the header, as many as there are different ones."""

    def __init__(self, arrays: Arrays):
        self.told: list[dict[str, Any]] = []
        self._arrays = arrays
        self._written: list[Explained] = []

    def place_of(self, explained: Explained, step: int) -> int:
        """Where the explanation of a step stands in the header; its centre is the step's own."""
        self._arrays[f"step{step}_centre"] = explained.centre
        for place, one in enumerate(self._written):
            if one.effect == explained.effect and one.labels == explained.labels:
                return place
        place = len(self._written)
        self._written.append(explained)
        self._arrays[f"explained{place}_columns"] = explained.effect.columns
        self._arrays[f"explained{place}_weights"] = explained.effect.weights
        codes = []
        for c, code in enumerate(explained.effect.codes):
            self._arrays[f"explained{place}_code{c}"] = code.centre
            names = None if code.names is None else list(code.names)
            codes.append({"names": names, "unit": code.unit, "title": code.title})
        labels = [one.to_json(f"explained{place}_labels{c}", self._arrays) for c, one in enumerate(explained.labels)]
        self.told.append({"codes": codes, "labels": labels})
        return place


def explained_of_file(stored: list[Any], arrays: Arrays, shape: tuple[int, int]) -> list[Explained]:
    """The explanations of a header for rows and columns (n, d), centred nowhere yet; what does not fit is refused."""
    return [_one(place, one, arrays, shape) for place, one in enumerate(stored)]


def of_step(step: int, place: Any, explained: list[Explained], arrays: Arrays) -> Explained | None:
    """The explanation of a step, by the place it names."""
    if place is None:
        return None
    if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(explained):
        raise ValueError(f"step {step} names an explanation that is not there")
    one, centre = explained[place], arrays[f"step{step}_centre"]
    if centre.shape != one.centre.shape or centre.dtype.kind != "f":
        raise ValueError(f"the centre of step {step} does not fit its labels")
    return replace(one, centre=centre)


def _one(place: int, stored: dict[str, Any], arrays: Arrays, shape: tuple[int, int]) -> Explained:
    n_rows, n_columns = shape
    columns, weights = arrays[f"explained{place}_columns"], arrays[f"explained{place}_weights"]
    inside = columns.ndim == 1 and (not len(columns) or 0 <= columns.min() <= columns.max() < n_columns)
    if columns.dtype.kind != "i" or not inside or len(np.unique(columns)) != len(columns):
        raise ValueError(f"the columns of explanation {place} are not columns of the data")
    codes = tuple(LabelCode.of_file(one, arrays[f"explained{place}_code{c}"]) for c, one in enumerate(stored["codes"]))
    width = sum(len(code.centre) for code in codes)
    if weights.shape != (len(columns) + width, n_columns) or weights.dtype.kind != "f" or not len(weights):
        raise ValueError(f"the weights of explanation {place} do not fit what it explains")
    named = enumerate(stored["labels"])
    labels = tuple(ReadLabels.from_json(one, f"explained{place}_labels{c}", arrays, n_rows) for c, one in named)
    if len(labels) != len(codes):
        raise ValueError(f"explanation {place} has other labels than it reads")
    effect = Effect(columns.astype(np.intp), codes, weights)
    if codes:
        try:
            effect.beside(labels)
        except InvalidValueError as problem:
            raise ValueError(f"explanation {place} cannot read its labels") from problem
    return Explained(effect, labels, np.zeros(width))
