"""What is learned of the columns of a table, in one way from all of it, from the batches of a scan and on a cluster.

A batch of rows becomes a `Summary`, summaries of several batches are joined, and `encoding_of` makes of the whole one
how each column becomes columns of a matrix, or the one sentence that says which columns cannot.

>>> import pyarrow as pa
>>> batches = [{"size": [1.0, 2.0, 6.0], "colour": ["red", "blue", "red"]}, {"size": [3.0, 3.0], "colour": ["red"] * 2}]
>>> first, second = (Summary.of_batch(pa.RecordBatch.from_pydict(batch)) for batch in batches)
>>> encoding_of(first.join(second)).fill
(3.0, 0.2, 0.8)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from imapce.common.words import close_matches, listing
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError, Phrase, Sentence, Words
from imapce.tables.columns import (
    CATEGORY_TYPES,
    MAKE_TEXT,
    MIXED_TYPES,
    Category,
    Kind,
    UnusableColumn,
    as_arrow_values,
    is_free_text,
    kind_of,
    numbers,
    type_name,
)
from imapce.tables.scales import Scale, rescaled, scale_of_json
from imapce.tables.values import Writing

Missing = Literal["error", "mean"]
Array = NDArray[np.float64]

_FLOATS = (pa.float32(), pa.float64())
# Text of more values is refused in the end; they are counted and not kept.
MOST_KEPT_VALUES = 50_000
_KINDS = ("number", "boolean", "category")
# What Arrow, pandas and polars can hold in an integer column; Python reads longer ones from JSON.
_INTEGERS = range(-(2**63), 2**64)


@dataclass
class Categories:
    """How often each value of a category occurs; of text with very many values, only how many there are."""

    counts: dict[Any, int]
    is_text: bool
    n_values: int
    at_least: bool = False

    def join(self, other: Categories) -> Categories:
        """Those of all rows that either saw."""
        counts = dict(Counter(self.counts) + Counter(other.counts))
        is_text, most = self.is_text or other.is_text, max(self.n_values, other.n_values, len(counts))
        if is_text and most > MOST_KEPT_VALUES:
            return Categories({}, is_text, most, at_least=True)
        return Categories(counts, is_text, len(counts))


@dataclass
class Summary:
    """What some rows tell of their columns: (d,) gaps, infinite values and means, and the values of categories.

    `kinds` has None where no row has a value, `refused` the reason by the place of a column that cannot be used.

    >>> Summary.of_matrix(["a", "b"], np.array([[1.0, np.nan], [3.0, 4.0]])).means
    array([2., 4.])
    """

    names: tuple[str, ...]
    kinds: list[Kind | None]
    n_rows: int
    n_missing: NDArray[np.intp]
    n_infinite: NDArray[np.intp]
    means: Array
    categories: dict[int, Categories] = field(default_factory=dict)
    refused: dict[int, UnusableColumn] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, names: Sequence[str], columns: Iterable[Any]) -> Summary:
        """Of columns of any type, as pandas, polars and Arrow hold them."""
        summary = cls._empty(names)
        for place, values in enumerate(columns):
            summary.n_rows = len(values)
            try:
                summary._look_at(place, values)
            except UnusableColumn as problem:
                summary.refused[place] = problem
        return summary

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> Summary:
        """Of a batch of Arrow's."""
        return cls.of_columns(batch.schema.names, (pa.chunked_array([values]) for values in batch.columns))

    @classmethod
    def of_matrix(cls, names: Sequence[str], matrix: NDArray[Any]) -> Summary:
        """Of a matrix of numbers."""
        summary = cls._empty(names)
        summary.n_rows, summary.kinds = len(matrix), ["number"] * len(names)
        # One pass finds every column to look at: a NaN or an infinity in it makes its mean not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            summary.means = matrix.mean(axis=0, dtype=np.float64) if len(matrix) else summary.means
        for place in np.flatnonzero(~np.isfinite(summary.means)):
            summary._look_closely(int(place), matrix[:, place])
        return summary

    @classmethod
    def _empty(cls, names: Sequence[str]) -> Summary:
        nothing = np.zeros(len(names), dtype=np.intp)
        return cls(tuple(names), [None] * len(names), 0, nothing, nothing.copy(), np.zeros(len(names)))

    def _look_at(self, place: int, values: Any) -> None:
        if isinstance(values, pa.ChunkedArray) and values.type in _FLOATS and not values.null_count:
            # One read of float32 in half the time of a cast and a sum.
            self.kinds[place], total = "number", pc.sum(values).as_py()
            self.means[place] = total / max(1, len(values))
            if np.isfinite(total):
                return
        series = nw.from_native(values, series_only=True)
        if series.null_count() == len(series):
            # The type of a column without values says nothing.
            self.n_missing[place] = len(series)
            return
        kind = kind_of(series)
        self.kinds[place] = kind
        if kind == "category":
            self._count(place, series)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            self.means[place] = numbers(series).mean(dtype=np.float64)
        if not np.isfinite(self.means[place]):
            self._look_closely(place, numbers(series))

    def _look_closely(self, place: int, values: NDArray[Any]) -> None:
        """The mean of what is finite, and how much is not."""
        values = values.astype(np.float64)
        gone, endless = np.isnan(values), np.isinf(values)
        self.n_missing[place], self.n_infinite[place] = gone.sum(), endless.sum()
        present = values[~gone & ~endless]
        with np.errstate(over="ignore"):
            mean = present.mean() if present.size else 0.0
        # The sum of values near 1e308 overflows though their mean does not.
        self.means[place] = mean if not np.isinf(mean) else (present / present.size).sum()

    def _count(self, place: int, series: nw.Series[Any]) -> None:
        counted = pc.value_counts(as_arrow_values(series))
        values, counts = counted.field("values"), counted.field("counts")
        is_text = series.dtype == nw.String
        self.n_missing[place] = series.null_count()
        if is_text and len(counted) > MOST_KEPT_VALUES:
            self.categories[place] = Categories({}, is_text, len(counted) - int(values.null_count > 0))
            return
        both = zip(values.to_pylist(), counts.to_pylist(), strict=True)
        pairs = [(value, count) for value, count in both if value is not None and value == value]
        types = {type(value) for value, _ in pairs}
        if len(types) > 1 or not types <= set(CATEGORY_TYPES):
            raise UnusableColumn(f"has categories of type {type_name(series)}", MAKE_TEXT)
        self.n_missing[place] = len(series) - sum(count for _, count in pairs)
        self.categories[place] = Categories(dict(pairs), is_text, len(pairs))

    def join(self, other: Summary) -> Summary:
        """What the rows of both tell, this one's first."""
        present, others = self.n_present, other.n_present
        share = others / np.maximum(present + others, 1)
        joined = Summary(
            self.names,
            [mine or theirs for mine, theirs in zip(self.kinds, other.kinds, strict=True)],
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            self.n_infinite + other.n_infinite,
            np.where(present == 0, other.means, self.means * (1 - share) + other.means * share),
            {**self.categories},
            {**other.refused, **self.refused},
        )
        for place, more in other.categories.items():
            joined.categories[place] = joined.categories[place].join(more) if place in joined.categories else more
            if len({type(value) for value in joined.categories[place].counts}) > 1:
                joined.refused[place] = UnusableColumn(*MIXED_TYPES)
        for place, kinds in enumerate(zip(self.kinds, other.kinds, strict=True)):
            if None not in kinds and kinds[0] != kinds[1]:
                here, there = sorted(map(str, kinds))
                joined.refused[place] = UnusableColumn(
                    f"is a {here} in one part and a {there} in another", " (convert it)"
                )
        return joined

    def select(self, places: Sequence[int], names: Sequence[str] | None = None) -> Summary:
        """Of some of the columns, which may get other names."""
        chosen = list(places)
        return Summary(
            tuple(self.names[place] for place in chosen) if names is None else tuple(names),
            [self.kinds[place] for place in chosen],
            self.n_rows,
            self.n_missing[chosen],
            self.n_infinite[chosen],
            self.means[chosen],
            {new: self.categories[old] for new, old in enumerate(chosen) if old in self.categories},
            {new: self.refused[old] for new, old in enumerate(chosen) if old in self.refused},
        )

    @property
    def n_present(self) -> NDArray[np.intp]:
        """(d,), how many rows have a finite value."""
        return self.n_rows - self.n_missing - self.n_infinite

    @property
    def gaps(self) -> dict[str, int]:
        """How many values are missing, by the columns that lack some."""
        return {name: int(count) for name, count in zip(self.names, self.n_missing, strict=True) if count}

    def problem(self, place: int) -> UnusableColumn | None:
        """Why a column cannot become numbers; None where it can."""
        if place in self.refused:
            return self.refused[place]
        if self.n_missing[place] == self.n_rows:
            return UnusableColumn("has only missing values", Phrase("drop column", " (drop it)"))
        found = self.categories.get(place)
        if found is None or not found.is_text or not is_free_text(found.n_values, self.n_rows):
            return None
        values = f"{found.n_values} distinct values{' or more' if found.at_least else ''} in {self.n_rows} rows"
        way_out = Phrase("drop column", " (drop it, or make it categorical)")
        return UnusableColumn(f"is free text with {values}", way_out)

    def require_usable(self, name: str = "X") -> None:
        """Refuse columns that cannot become numbers, all of them in one sentence."""
        problems = ((column, self.problem(place)) for place, column in enumerate(self.names))
        refuse_columns({column: problem for column, problem in problems if problem is not None}, name)

    def require_finite(self, name: str = "X") -> None:
        """Refuse infinite values."""
        if self.n_infinite.any():
            endless = {column: count for column, count in zip(self.names, self.n_infinite, strict=True) if count}
            way_out = Phrase("drop or clip", "drop those rows or clip the values")
            raise InvalidValueError(
                name, f"must hold finite values, and inf or -inf is in it ({_listed(endless)})", way_out=way_out
            )

    def require_whole(self, name: str = "X", *, can_be_filled: bool = True) -> None:
        """Refuse missing values."""
        if self.n_missing.any():
            way_out: Words = "drop those rows or columns"
            if can_be_filled:
                way_out = Phrase("drop or fill", f'{way_out}, or fill them with missing="mean"')
            raise InvalidValueError(
                name, f"must not hold missing values (NaN), and {_listed(self.gaps)}", way_out=way_out
            )


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, what each becomes and the value that fills its gaps.

    ``kinds`` and ``categories`` go along ``columns`` (no categories: an empty tuple); ``fill`` goes along the
    columns of the matrix and holds their learned means, which for a category are its shares. ``gaps`` are the columns
    that had missing values where the encoding was learned; a stored encoding does not keep them. ``written`` says, by
    the name of a column, how its cells are written where that is not plain numbers, and ``scales`` on which scale it
    is looked at where that is not its own; ``fill`` is on these.

    >>> Encoding(("colour",), ("category",), (("blue", "red"),), fill=(0.5, 0.5)).feature_names
    ('colour=blue', 'colour=red')
    """

    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    categories: tuple[tuple[Category, ...], ...]
    _: KW_ONLY
    fill: tuple[float, ...]
    gaps: tuple[str, ...] = field(default=(), compare=False)
    scales: Mapping[str, Scale] = field(default_factory=dict, hash=False)
    written: Mapping[str, Writing] = field(default_factory=dict, hash=False)

    def writing(self, place: int) -> Writing | None:
        """How the cells of a column are written that a program would take for text; None where they are plain.

        >>> Encoding(("a",), ("number",), ((),), fill=(2.0,)).writing(0) is None
        True
        """
        return self.written.get(self.columns[place])

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the matrix columns: ``size`` for a number, ``colour=red`` for a category."""
        names: list[str] = []
        for column, kind, values in zip(self.columns, self.kinds, self.categories, strict=True):
            names.extend([f"{column}={value}" for value in values] if kind == "category" else [column])
        return tuple(names)

    @cached_property
    def groups(self) -> np.ndarray:
        """For each matrix column the position of the table column it came from; read-only."""
        widths = [
            len(values) if kind == "category" else 1 for kind, values in zip(self.kinds, self.categories, strict=True)
        ]
        groups = np.repeat(np.arange(len(widths)), widths)
        groups.setflags(write=False)
        return groups

    def columns_of(self, name_or_index: str | int) -> np.ndarray:
        """The positions of the matrix columns that one table column became.

        >>> Encoding(("a", "b"), ("category", "number"), (("x", "y"), ()), fill=(0.5, 0.5, 0.0)).columns_of("a")
        array([0, 1])
        """
        if isinstance(name_or_index, str):
            if name_or_index not in self.columns:
                raise InvalidValueError(
                    f"a column must be one of the table, got {name_or_index!r}: "
                    f"{close_matches(name_or_index, self.columns)}"
                )
            index = self.columns.index(name_or_index)
        elif isinstance(name_or_index, (int, np.integer)) and not isinstance(name_or_index, bool):
            index = int(name_or_index)
            named = str(index)
            if named in self.columns and self.columns.index(named) != index:
                # pandas tables often have whole numbers as names, and the other reading would be wrong in silence.
                raise InvalidValueError(
                    f"a column given as {index} is unclear, since another column is named {named!r}: pass the name as "
                    f"text, {named!r}."
                )
            if not 0 <= index < len(self.columns):
                raise InvalidValueError(
                    f"a column must be from 0 to {len(self.columns) - 1}, got {index}: pass a position in the table."
                )
        else:
            raise InvalidTypeError(
                f"a column must be a name or a position, got {type(name_or_index).__name__}: pass text or an int."
            )
        # groups ascends, so the block of one column is found by bisection, also among 100,000 columns.
        start, stop = np.searchsorted(self.groups, [index, index + 1])
        return np.arange(start, stop)

    def to_scale(self, matrix: Any) -> Any:
        """A matrix (n, d) in the units of the table, on the scales of its columns."""
        return rescaled(matrix, {self.columns_of(name)[0]: scale.to_scale for name, scale in self.scales.items()})

    def to_units(self, matrix: Any) -> Any:
        """A matrix (n, d) on the scales of its columns, in the units of the table."""
        return rescaled(matrix, {self.columns_of(name)[0]: scale.to_units for name, scale in self.scales.items()})

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, text and numbers, one entry per table column.

        >>> Encoding(("a",), ("number",), ((),), fill=(2.0,)).to_json()
        {'columns': [{'name': 'a', 'kind': 'number', 'categories': [], 'fill': [2.0]}]}
        """
        return {
            "columns": [
                {
                    "name": column,
                    "kind": kind,
                    "categories": list(values),
                    "fill": [self.fill[position] for position in self.columns_of(index)],
                    # Only where there is something to tell, so that other files are as they were.
                    **({"written": self.written[column].to_json()} if column in self.written else {}),
                    **({"scale": self.scales[column].to_json()} if column in self.scales else {}),
                }
                for index, (column, kind, values) in enumerate(
                    zip(self.columns, self.kinds, self.categories, strict=True)
                )
            ]
        }

    @classmethod
    def from_json(cls, stored: Any) -> Encoding:
        """The encoding that ``to_json`` wrote; anything else, however built, is refused.

        >>> Encoding.from_json(Encoding(("a",), ("number",), ((),), fill=(2.0,)).to_json()).columns
        ('a',)
        """
        try:
            entries = stored["columns"]
            encoding = cls(
                tuple(entry["name"] for entry in entries),
                tuple(entry["kind"] for entry in entries),
                tuple(tuple(entry["categories"]) for entry in entries),
                fill=tuple(value for entry in entries for value in entry["fill"]),
                written={entry["name"]: Writing.from_json(entry["written"]) for entry in entries if "written" in entry},
                scales={entry["name"]: scale_of_json(entry["scale"]) for entry in entries if "scale" in entry},
            )
            # Whatever else a hostile file holds, it is not what this encoding would write.
            is_sound = encoding._is_sound() and encoding.to_json() == stored
        except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            is_sound = False
        if not is_sound:
            raise FileFormatError(
                "The stored encoding must give name, kind, sorted categories and finite fill values of every column, "
                "each once, and it does not: save the model again."
            )
        return encoding

    def _is_sound(self) -> bool:
        """Whether these are columns that could have been learned."""
        everything: tuple[Any, ...] = self.categories
        for kind, values in zip(self.kinds, everything, strict=True):
            types = {type(value) for value in values}
            one_type = len(types) == 1 and types <= set(CATEGORY_TYPES)
            rising = all(before < after for before, after in pairwise(values))
            if kind not in _KINDS or (kind == "category") != one_type or not rising:
                return False
            if any(type(value) is int and value not in _INTEGERS for value in values):
                return False
        plain = all(type(name) is str for name in self.columns) and all(type(value) is float for value in self.fill)
        shares = [value for value, place in zip(self.fill, self.groups, strict=True) if self.kinds[place] != "number"]
        floats = (*self.fill, *(value for values in self.categories for value in values if type(value) is float))
        distinct = all(len(set(names)) == len(names) > 0 for names in (self.columns, self.feature_names))
        of_numbers = all(self.kinds[self.columns.index(name)] == "number" for name in self.scales)
        if not of_numbers or not all(scale.is_sound for scale in self.scales.values()):
            return False
        return plain and distinct and all(map(math.isfinite, floats)) and all(0.0 <= value <= 1.0 for value in shares)


def encoding_of(
    summary: Summary,
    *,
    missing: Missing = "error",
    name: str = "X",
    written: Mapping[str, Writing] | None = None,
) -> Encoding:
    """How columns that were looked at whole become those of a matrix, or what is wrong with them in one sentence."""
    summary.require_usable(name)
    kinds = tuple(kind for kind in summary.kinds if kind is not None)
    found = [summary.categories[place].counts if kind == "category" else {} for place, kind in enumerate(kinds)]
    fill: list[float] = []
    for kind, counts, mean, present in zip(kinds, found, summary.means, summary.n_present, strict=True):
        fill += [counts[value] / int(present) for value in sorted(counts)] if kind == "category" else [float(mean)]
    categories = tuple(tuple(sorted(counts)) for counts in found)
    of_columns = {column: writing for column, writing in (written or {}).items() if column in summary.names}
    encoding = Encoding(
        summary.names, kinds, categories, fill=tuple(fill), gaps=tuple(summary.gaps), written=of_columns
    )
    if repeats := [feature for feature, count in Counter(encoding.feature_names).items() if count > 1]:
        raise InvalidValueError(
            name,
            f"must give each encoded column a name of its own, got {listing(map(repr, repeats))} "
            "twice, as a column and as column=category: rename one of the columns.",
        )
    summary.require_finite(name)
    if missing == "error":
        summary.require_whole(name)
    return encoding


def refuse_columns(problems: Mapping[str, UnusableColumn], name: str) -> None:
    """Raise one sentence that names every refused column; nothing where there is none."""
    if problems:
        refused = listing(Sentence(f"{column!r} ", problem.sentence) for column, problem in problems.items())
        raise InvalidValueError(name, Sentence("must have columns that can become numbers, but ", refused))


def _listed(counts: Mapping[str, int]) -> str:
    return listing((f"{column!r} has {count}" for column, count in counts.items()), 10)
