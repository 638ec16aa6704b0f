"""The effect of the known on the rows: x° = x − Bᵀl, with l the known columns and labels of a row.

B is kept in the units of the table, so that it means the same for X, for the rows left to explore and for new rows,
whatever each is standardised with. It is found in `clusters/given.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.axes import axis_in_words, features_of_axis
from imapce.common.records import Comparable
from imapce.common.words import listing
from imapce.priors.labels import LabelCode, ReadLabels
from imapce.rows.base import Rows
from imapce.rows.given import RowsBeside

# So many names of what an axis is given; its label has no room for more.
_MOST_GIVEN = 3


@dataclass(frozen=True, eq=False)
class Effect(Comparable):
    """B (q, d) of known `columns` (by place) and then of labels, each read as its code says.

    >>> effect = Effect(np.array([0]), (), np.array([[0.0, 2.0, -1.0]]))
    >>> effect.frame(np.array([[0.0, 1.0, 0.0]]), np.ones(3)).tolist()
    [[-2.0, 1.0, 0.0]]
    """

    columns: Codes
    codes: tuple[LabelCode, ...]
    weights: Array

    @property
    def n_features(self) -> int:
        """d."""
        return self.weights.shape[1]

    @property
    def places(self) -> Codes:
        """Where the known stands among the columns of [x | l]."""
        return np.append(self.columns, self.n_features + np.arange(len(self.weights) - len(self.columns)))

    def names(self, sources: Sequence[str]) -> list[str]:
        """What is known, by name, each once: columns by their `sources` (d,), those of the table, and then labels.

        >>> Effect(np.array([0, 1]), (), np.zeros((2, 3))).names(["make", "make", "price"])
        ['make']
        """
        titles = [code.title or "labels" for code in self.codes]
        return list(dict.fromkeys([*(sources[place] for place in self.columns), *titles]))

    def only(self, kept: Mask) -> Effect:
        """The effect of some of the known (q,): whole columns and whole labels."""
        own = len(self.columns)
        starts = own + np.cumsum([0, *(len(code.centre) for code in self.codes)])[:-1].astype(np.intp)
        codes = tuple(code for code, start in zip(self.codes, starts, strict=True) if kept[start])
        return Effect(self.columns[kept[:own]], codes, self.weights[kept])

    def beside(self, labels: Sequence[ReadLabels]) -> Array:
        """L (n, q) of the labels of some rows, one for each code."""
        return np.column_stack([code.columns(one) for code, one in zip(self.codes, labels, strict=True)])

    def joined(self, rows: Rows, labels: Sequence[ReadLabels]) -> Rows:
        """[x | l]; the rows themselves where no label is known."""
        return RowsBeside(rows, self.beside(labels)) if self.codes else rows

    def scales(self, scale: Array) -> Array:
        """The scales (d + q,) of [x | l] whose columns x have these: labels stay as they are."""
        return np.append(scale, np.ones(len(self.weights) - len(self.columns)))

    def frame(self, components: Array, scale: Array) -> Array:
        """[V; −BV]ᵀ (k, d + q): axes (k, d) of x° as those of [x | l], both in units of these scales."""
        d = self.n_features
        frame = np.zeros((len(components), d + len(self.weights) - len(self.columns)))
        frame[:, :d] = components
        frame[:, self.places] -= components @ self.standardized(scale).T
        return frame

    def standardized(self, scale: Array) -> Array:
        """B (q, d) for columns in units of these scales."""
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        return self.scales(scale)[self.places][:, None] * self.weights * inverse


def explained_away(model: Any) -> list[str]:
    """What a fitted model explained away, by name: known columns, a category once, then labels; [] where nothing was.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> explained_away(IMAPCE().fit(X, prior=Attributes([1])))
    ['x1']
    """
    effect, reader = getattr(model, "effect_", None), getattr(model, "reader_", None)
    if effect is None or reader is None:
        return []
    return effect.names(reader.names if reader.columns is None else [reader.columns[place] for place in reader.groups])


def strongest(model: Any, most: int) -> Codes:
    """The places of the columns that make most of a fitted view, the strongest first; none that was explained away.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> 1 in strongest(IMAPCE().fit(X, prior=Attributes([1])), 4)
    False
    """
    share = np.mean(model.components_**2, axis=0)
    effect = getattr(model, "effect_", None)
    if effect is not None:
        share[effect.columns] = -1.0
    order = np.argsort(-share, kind="stable")[:most]
    return order[share[order] >= 0]


def axes_of_model(model: Any) -> list[str]:
    """What the axes of a fitted view are made of, as "+ age − alone, given sex"; their names where nothing tells.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 1.0, 9.0]
    >>> axes_of_model(IMAPCE(standardize=False, alpha=0.0, mu=0.0).fit(X))[0]
    '+ x2'
    """
    weights, effect, known = np.array(model.components_), getattr(model, "effect_", None), explained_away(model)
    if effect is not None:
        weights[:, effect.columns] = 0.0
    given = f"given {listing(known, _MOST_GIVEN)}" if known else ""
    names = model.encoded_feature_names_
    told = [axis_in_words(features_of_axis(axis.tolist(), names), given) for axis in weights]
    return [words or name for words, name in zip(told, model.get_feature_names_out(), strict=True)]


@dataclass(frozen=True, eq=False)
class Explained(Comparable):
    """What was taken from all rows of a table before a view was looked for: an effect, and the labels it is read from.

    `centre` (q,) are the means of these labels, as columns, among the rows the view was found in.
    """

    effect: Effect
    labels: tuple[ReadLabels, ...]
    centre: Array

    def of_rows(self, rows: Any) -> Explained:
        """The same of some rows, by mask or positions."""
        return replace(self, labels=tuple(one.of_rows(rows) for one in self.labels))

    def joined(self, rows: Rows) -> Rows:
        """[x | l]."""
        return self.effect.joined(rows, self.labels)

    def between(self, gap: Array, inside: Mask, outside: Mask) -> Array:
        """(d,): what the known explains of the difference `gap` (d,) of the means of some rows and others."""
        known = gap[self.effect.columns]
        if self.effect.codes:
            labels = self.effect.beside(self.labels)
            known = np.append(known, labels[inside].mean(axis=0) - labels[outside].mean(axis=0))
        return known @ self.effect.weights

    def placed(self, rows: Rows, components: Array, mean: Array, scale: Array) -> Array:
        """(n, k): ((x − mean)/scale − Bᵀl)·componentsᵀ of all rows."""
        scales = self.effect.scales(scale)
        inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
        W = (self.effect.frame(components, scale) * inverse).T
        joined = self.joined(rows)
        return joined.project(W, (np.append(mean, self.centre) - joined.origin) @ W)
