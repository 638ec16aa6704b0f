"""The problem a table and its priors pose: X, Y and Z of equation 2, each standardised on its own.

    X  the rows that count, (x − mean)/σ            Y  what is known, one term for each prior
    Z  the rows of X that no subset covers          set aside: gross outliers, which no mean, scale or moment counts

Priors combine: M = XᵀX − α Σ wⱼ YⱼᵀYⱼ. Attributes and labels to be erased add no term: they bind the axes, vᵀ C_X[:, A]
= 0 and vᵀXᵀL = 0. Others are weighed as the paper does, or explained away: `with_known` then holds them
beside the rows, and once their effect B is found, `given(B)` is the problem of X° = X − LB. It is posed once and read
by all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.settings import OutlierSettings
from imapce.common.words import listed
from imapce.errors import InvalidValueError
from imapce.priors.base import Prior, without_rows
from imapce.priors.effect import Effect
from imapce.priors.labels import LabelCode, LabelTerm
from imapce.rows.base import Rows
from imapce.rows.given import RowsBeside, RowsGiven
from imapce.rows.moment_tensor import MomentTensorRows, moment_tensor_pays
from imapce.rows.open import open_rows
from imapce.rows.outliers import outlying_rows, set_aside
from imapce.rows.standardized import QuadraticForm, StandardizedRows, levels_as_in
from imapce.rows.subspace import Subspace
from imapce.tables.reader import Missing, Reader


@dataclass(frozen=True)
class Known:
    """One Y as the methods need it: its weight, YᵀY, how many rows it has and which of its columns vary.

    `rows` is Y itself; None where Y is columns of X or what labels explain of it. `is_background` says that Y are other
    rows than those of X.
    """

    weight: float
    second_moment: QuadraticForm
    n_rows: int
    varies: Mask
    rows: StandardizedRows | None = None
    is_background: bool = False

    def given(self, with_known: RowsWithKnown, weights: Array, X: StandardizedRows, groups: Codes | None) -> Known:
        """Y less the effect of the known columns and, of rows of X, of the labels beside them; beside X less it."""
        if self.rows is None:
            return self
        d = with_known.n_features
        reached = ~with_known.erased & (with_known.places < self.rows.n_features)
        rows = RowsGiven(self.rows, with_known.places[reached], weights[reached], n_features=d)
        as_it_is = self.second_moment is self.rows.second_moment
        form = rows.second_moment if as_it_is else levels_as_in(X, rows, groups)
        return Known(self.weight, form, rows.n_rows, rows.informative, rows, self.is_background)


@dataclass(frozen=True, eq=False)
class RowsWithKnown:
    """Rows with what is to be explained away or erased beside them: X and Z as [x | l], each standardised.

    `places` (q,) are those of the known among the columns of [x | l], and `erased` (q,) tells which views are not to
    show linearly at all.
    """

    X: StandardizedRows
    Z: StandardizedRows
    places: Codes
    erased: Mask
    n_features: int
    codes: tuple[LabelCode, ...] = ()

    def effect(self, weights: Array) -> Effect:
        """B (q, d), in the units of the table, as the effect of the known."""
        return Effect(self.places[self.places < self.n_features], self.codes, weights)

    def shown(self, effect: Effect) -> Effect | None:
        """The part of an effect that views take off the rows: not of what is erased; None where all is."""
        return None if self.erased.all() else effect.only(~self.erased)

    def whole(self, shown: Effect) -> Effect:
        """An effect that was `shown`, with nothing where something is erased."""
        weights = np.zeros((len(self.places), self.n_features))
        weights[~self.erased] = shown.weights
        return self.effect(weights)

    @property
    def rest(self) -> RowsGiven:
        """Z with nothing taken from it yet, for those who look for clusters: given all that is known."""
        nothing = np.zeros((len(self.places), self.n_features))
        return RowsGiven(self.Z, self.places, nothing, n_features=self.n_features)

    def given(self, weights: Array) -> tuple[StandardizedRows, StandardizedRows]:
        """X° and Z° for views: less the effect (q, d) of what is not erased; that only binds the axes."""
        places, weights = self.places[~self.erased], weights[~self.erased]
        X = RowsGiven(self.X, places, weights, n_features=self.n_features)
        same = self.Z is self.X
        return X, X if same else RowsGiven(self.Z, places, weights, n_features=self.n_features)


@dataclass(frozen=True)
class PriorTerms:
    """The priors as the objective needs them: one Y for each, the rows known, and what is erased.

    `known` masks the rows of X that a subset covers, None where there is no subset. `erased` is C_X[:, A] (d, q), to
    which every axis must be orthogonal, beside XᵀL of `erased_labels`; `erased_columns` masks A; None where nothing is
    to be erased. `labels` are all that are known, `weighed_labels` those of them with a Y of their own;
    `explained_columns` masks the columns to be explained away.

    >>> PriorTerms((), None).any_known
    False
    """

    parts: tuple[Known, ...]
    known: Mask | None
    erased: Array | None = None
    erased_columns: Mask | None = None
    erased_labels: LabelTerm | None = None
    labels: LabelTerm | None = None
    weighed_labels: LabelTerm | None = None
    explained_columns: Mask | None = None

    @property
    def any_known(self) -> bool:
        return bool(self.parts)

    @property
    def is_background(self) -> bool:
        """Whether more is weighed than rows of X: other rows, columns or labels, of which its clusters know nothing."""
        return any(part.rows is None or part.is_background for part in self.parts)

    @property
    def backgrounds(self) -> list[StandardizedRows]:
        """The Y that show what else could split the rows. Known rows of X do not: they have left Z."""
        return [part.rows for part in self.parts if part.rows is not None and part.is_background]

    @property
    def second_moments(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ and YⱼᵀYⱼ, sums over rows as in the paper's objective."""
        return [(part.weight, part.second_moment) for part in self.parts]

    @property
    def covariances(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ/(mⱼ−1) and YⱼᵀYⱼ: what contrastive PCA weighs, whatever the number of rows."""
        return [(part.weight / max(1, part.n_rows - 1), part.second_moment) for part in self.parts]


class FlatRowsError(InvalidValueError):
    """The rows to explore vary in fewer directions than a view has axes."""

    @classmethod
    def of_views(cls, n_components: int) -> FlatRowsError:
        return cls(
            "X",
            f"must vary in at least n_components={n_components} directions among the rows to explore, and "
            "it does not: columns repeat each other (or what is erased), rows are too few, or a few lie so far out "
            'that nothing varies beside them (outliers="trim" sets these aside); lower n_components or add data.',
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """X, Y and Z, the axes a view is to have, the rows of the table that were set aside, and what is to be told of it.

    >>> from imapce import Subset
    >>> rng = np.random.default_rng(0)
    >>> reader, matrix = Reader.learn(rng.normal(size=(50, 4)))
    >>> problem = pose(open_rows(matrix), [Subset(np.arange(10))], reader, n_components=2)
    >>> problem.X.n_rows, problem.Z.n_rows, len(problem.Y.parts)
    (50, 40, 1)
    """

    X: StandardizedRows
    Y: PriorTerms
    Z: StandardizedRows
    n_components: int
    set_aside: Mask
    remarks: tuple[str, ...] = ()
    groups: Codes | None = None
    with_known: RowsWithKnown | None = None
    effect: Effect | None = None
    gaps: Array | None = None
    categories: Mask | None = None

    def given(self, effect: Effect) -> Problem:
        """The same problem of the rows less the effect of the known."""
        assert self.with_known is not None
        X, Z = self.with_known.given(effect.weights)
        parts = tuple(part.given(self.with_known, effect.weights, X, self.groups) for part in self.Y.parts)
        terms = replace(self.Y, parts=parts, erased=_bound(X, self.Y.erased_columns, self.Y.erased_labels))
        return replace(self, X=X, Y=terms, Z=Z, effect=effect)

    @property
    def known_columns(self) -> Mask:
        """The columns of X that are known and vary; none where only rows are known."""
        of_parts = [part.varies for part in self.Y.parts if part.rows is None]
        return np.logical_or.reduce([np.zeros(self.X.n_features, dtype=bool), *of_parts])

    @property
    def hidden_columns(self) -> Mask:
        """The columns of the table that a view is not to show: known or erased, and varying."""
        hidden = self.known_columns
        varying = self._as_read.informative[: len(hidden)]
        for columns in (self.Y.erased_columns, self.Y.explained_columns):
            hidden = hidden if columns is None else hidden | (columns & varying)
        return hidden

    @property
    def _as_read(self) -> StandardizedRows:
        """The rows to explore with all their columns, whatever was explained away."""
        return self.Z if self.with_known is None else self.with_known.Z

    @property
    def sources(self) -> Codes:
        """For each column of X the column of the table it came from."""
        return np.arange(self.X.n_features) if self.groups is None else self.groups

    @property
    def hides(self) -> bool:
        """Whether there are columns or labels that a view is not to show."""
        return bool(self.hidden_columns.any()) or self.Y.labels is not None

    @property
    def label_directions(self) -> Array:
        """S = XᵀL (d, q) of the labels that are not erased: a direction free of it is uncorrelated with them."""
        labels = self.Y.weighed_labels
        return np.zeros((self.X.n_features, 0)) if labels is None else labels.shared

    def known_values(self, rows: Mask) -> tuple[Array, Mask]:
        """What a view is not to show of some of the rows to explore (m, q), and which of them say it (m,)."""
        columns = np.flatnonzero(self.hidden_columns)
        units = np.zeros((self._as_read.n_features, len(columns)))
        units[columns, np.arange(len(columns))] = 1.0
        values = self._as_read.project(units, rows)
        labels = self.Y.labels
        if labels is None:
            return values, np.ones(len(values), dtype=bool)
        left = np.ones(self.X.n_rows, dtype=bool) if self.Y.known is None else ~self.Y.known
        return np.column_stack([values, labels.values[left][rows]]), labels.stated[left][rows]

    def contrast(self, alpha: float) -> QuadraticForm:
        """M = XᵀX − α Σ wⱼYⱼᵀYⱼ."""
        known = [(-alpha * weight, form) for weight, form in self.Y.second_moments]
        return QuadraticForm.combine([(1.0, self.X.second_moment), *known])

    def directions(self) -> Subspace:
        """Those an axis may take by what varies in X and by what is erased."""
        inside = Subspace(self.X.informative, self.Y.erased)
        if inside.n_erased and inside.size < self.n_components:
            kind = "Labels(y" if self.Y.erased_columns is None else "Attributes(columns"
            raise InvalidValueError(
                f"{kind}, erase=True)",
                f"leaves {inside.size} of {int(self.X.informative.sum())} directions, and a view "
                f"needs n_components={self.n_components}; erase fewer columns or classes, or lower n_components.",
            )
        return inside

    def directions_left(self, beside: Array | None = None) -> Subspace:
        """Those in which the rows to explore vary, free of what is erased and of the span of `beside` (d, c)."""
        excluded = [part for part in (beside, self.Y.erased) if part is not None and part.shape[1]]
        columns = self.X.informative & self.Z.informative
        return Subspace(columns, np.column_stack(excluded) if excluded else None)


def pose(
    rows: Rows,
    priors: Sequence[Prior],
    reader: Reader,
    *,
    n_components: int,
    standardize: bool = True,
    missing: Missing = "error",
    trim: OutlierSettings | None = None,
    explain: bool = False,
) -> Problem:
    """The problem of equation 2 of `rows`, read by `reader`: the data X, a Y for each prior, the rows to explore Z.

    What a prior becomes: erased, the axes must be free of it; with `explain`, known columns and labels are taken from
    the rows, X° = X − LB; else it is weighed, as a Y whose variance views give up, and rows that are known leave Z.
    Gross outliers by the rules of `trim` are set aside first; without rules there are none.
    """
    X = standardized_data(rows, reader, n_components=n_components, standardize=standardize)
    outlying = np.zeros(rows.n_rows, dtype=bool) if trim is None else _outlying(rows, priors, n_components, trim)
    remarks: list[str] = []
    if outlying.any():
        remarks.append(set_aside(outlying, "rows"))
        rows, priors = rows.without(outlying), without_rows(priors, outlying)
        X = standardized_data(rows, reader, n_components=n_components, standardize=standardize)

    terms = {id(prior): LabelTerm.of(read, X) for prior in priors if (read := prior.read_labels(X.n_rows)) is not None}
    labels = [terms[id(prior)] for prior in priors if id(prior) in terms]
    whole, sources = rows, reader.groups
    if explain and labels:
        whole = _beside(rows, np.column_stack([term.values for term in labels]), n_components)
        sources = _own_groups(reader.groups, X.n_features, whole.n_features)

    def standardized(some: Rows) -> StandardizedRows:
        groups = reader.groups if some.n_features == X.n_features else sources
        return StandardizedRows(some, groups=groups, standardize=standardize)

    parts: list[Known] = []
    known: Mask | None = None
    rest: Rows = whole
    erased, explained = np.zeros(X.n_features, dtype=bool), np.zeros(X.n_features, dtype=bool)
    weighed_labels: list[LabelTerm] = []
    erased_labels: list[LabelTerm] = []
    for prior in priors:
        columns, term = prior.column_mask(reader), terms.get(id(prior))
        if prior.erase:
            erased |= columns
            erased_labels += [] if term is None else [term]
            continue
        if prior.has_effect and explain:
            explained |= columns
            continue
        if term is not None:
            weighed_labels.append(term)
            parts.append(Known(prior.weight, term.explained, int(term.stated.sum()), np.zeros_like(erased)))
            continue
        if prior.has_effect:
            parts.append(Known(prior.weight, X.with_columns(columns), X.n_rows, columns & X.informative))
            continue
        if prior.is_background:
            with np.errstate(over="ignore", invalid="ignore"):
                background = open_rows(prior.background_matrix(reader, means=X.mean, missing=missing))
                _require_range(standardized(background), reader, "Samples(background)")
            if trim is not None and (strays := outlying_rows(background, trim)).any():
                remarks.append(set_aside(strays, "background rows"))
                background = background.without(strays)
            Y = standardized(background)
            form = levels_as_in(X, Y, reader.groups) if standardize else Y.second_moment
            parts.append(Known(prior.weight, form, Y.n_rows, Y.informative, Y, is_background=True))
            continue
        subset = prior.row_mask(X.n_rows)
        own, rest = whole.split(subset) if known is None else (whole.subset(subset), whole.subset(~(known | subset)))
        known = subset if known is None else known | subset
        Y = standardized(own)
        parts.append(Known(prior.weight, Y.second_moment, Y.n_rows, Y.informative, Y))
    if known is not None and X.n_rows - int(known.sum()) < n_components + 1:
        raise InvalidValueError(
            f"Subset(rows) leaves {X.n_rows - int(known.sum())} of {X.n_rows} rows to explore, and at least "
            f"{n_components + 1} are needed for this many components; name fewer rows as known."
        )
    together, erased_columns = _together(erased_labels), erased if erased.any() else None
    terms_of_priors = PriorTerms(
        parts=tuple(parts),
        known=known,
        erased=_bound(X, erased_columns, together),
        erased_columns=erased_columns,
        erased_labels=together,
        labels=_together(labels),
        weighed_labels=_together(weighed_labels),
        explained_columns=explained if explained.any() else None,
    )
    Z = X
    if known is not None:
        # Labels are beside the same rows, whose moments are known.
        Z = standardized(rest.base if isinstance(rest, RowsBeside) else rest if whole is rows else rows.subset(~known))
    with_known = None
    if explain and (labels or erased.any() or explained.any()):
        all_rows = X if whole is rows else standardized(whole)
        to_explore = all_rows if known is None else Z if whole is rows else standardized(rest)
        places, is_erased = _places(erased | explained, erased, [term in erased_labels for term in labels], labels)
        codes = tuple(code for term in labels for code in term.codes)
        with_known = RowsWithKnown(all_rows, to_explore, places, is_erased, n_features=X.n_features, codes=codes)
    return Problem(
        X,
        terms_of_priors,
        Z,
        n_components,
        set_aside=outlying,
        remarks=tuple(remarks),
        groups=reader.groups,
        with_known=with_known,
        gaps=reader.gaps,
        categories=reader.categories,
    )


def _together(terms: list[LabelTerm]) -> LabelTerm | None:
    """Several labels as one, None where there is none."""
    return LabelTerm.beside_each_other(terms) if terms else None


def _beside(rows: Rows, values: Array, n_components: int) -> Rows:
    """[x | l], folded where the rows were and it still pays."""
    joined = RowsBeside(rows, values)
    pays = rows.folded and moment_tensor_pays(joined.n_rows, joined.n_features, n_components)
    return MomentTensorRows(joined) if pays else joined


def _own_groups(groups: Codes | None, n_features: int, n_joined: int) -> Codes | None:
    """The source of every column of [x | l]; columns of labels are each their own."""
    if groups is None:
        return None
    return np.concatenate([groups, groups.max() + 1 + np.arange(n_joined - n_features)])


def _places(columns: Mask, erased: Mask, label_is_erased: list[bool], labels: list[LabelTerm]) -> tuple[Codes, Mask]:
    """Where the known stands among the columns of [x | l], and which of it is erased."""
    own = np.flatnonzero(columns)
    widths = [term.values.shape[1] for term in labels]
    of_labels = np.repeat(np.array(label_is_erased, dtype=bool), widths)
    return np.append(own, len(columns) + np.arange(sum(widths))), np.append(erased[own], of_labels)


def _bound(X: StandardizedRows, columns: Mask | None, labels: LabelTerm | None) -> Array | None:
    """C_X[:, A] and XᵀL (d, q), to which every axis is to be orthogonal; None where nothing is erased."""
    bound = [] if columns is None else [X.second_moment.columns(columns)]
    bound += [] if labels is None else [X.cross(labels.values)]
    return np.column_stack(bound) if bound else None


def require_shape(shape: tuple[int, ...], n_components: int) -> None:
    """Refuse a table too small for a view of so many axes.

    >>> require_shape((100, 5), 2)
    """
    n_rows, n_features = shape
    if n_components > n_features:
        raise InvalidValueError(
            "n_components", f"must be at most the number of columns; got {n_components} and {n_features} feature(s)."
        )
    if n_rows <= n_components:
        raise InvalidValueError("X", f"must have more rows than n_components={n_components}; got {n_rows} sample(s).")


def standardized_data(rows: Rows, reader: Reader, *, n_components: int, standardize: bool = True) -> StandardizedRows:
    """X in standardised form, refused where it is too large for its squares or varies in too few columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        X = StandardizedRows(rows, groups=reader.groups, standardize=standardize)
    _require_range(X, reader, "X")
    if int(X.informative.sum()) < n_components:
        raise InvalidValueError(
            "X",
            f"must have at least n_components={n_components} columns that vary; got "
            f"{int(X.informative.sum())}, the others are constant (or below 1e-150, where squares vanish).",
        )
    return X


def _require_range(rows: StandardizedRows, reader: Reader, argument: str) -> None:
    # Fourth powers of the raw deviations must fit in a float: 1e75 is far beyond any unit of measurement.
    with np.errstate(over="ignore", invalid="ignore"):
        too_large = ~(np.abs(rows.mean) + rows.scale < 1e75) | ~np.isfinite(rows.variance)
    if too_large.any():
        raise InvalidValueError(
            argument,
            f"must have values below about 1e75, or their squares overflow; "
            f"column {listed(reader.names, too_large)} has larger ones. Rescale it.",
        )


def _outlying(rows: Rows, priors: Sequence[Prior], n_components: int, rules: OutlierSettings) -> Mask:
    """The rows to set aside, as a mask; none where too few to explore would be left."""
    outlying = outlying_rows(rows, rules)
    unexplored = ~outlying
    for prior in priors:
        unexplored &= ~prior.row_mask(rows.n_rows)
    return outlying if int(unexplored.sum()) > n_components else np.zeros_like(outlying)
