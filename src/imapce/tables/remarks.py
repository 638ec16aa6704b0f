"""What is told of the columns of a table before anybody looks for structure: skewed ones, repeats, those that stand
in for something known, and values that may stand for missing ones.

How much a column tells of another is the share of the variance of its encoded columns that it explains, adjusted for
chance: of a category Goodman and Kruskal's τ, of a number η² between the levels of the other or, of two numbers, r² of
their values or of their ranks.

    R²(b | a) = 1 − (1 − explained)·(n − 1)/(n − levels of a)

>>> import pyarrow as pa
>>> fees = np.random.default_rng(0).lognormal(sigma=1.5, size=300)
>>> for note in looked_over(Table.learn(pa.table({"fee": fees, "pence": 100 * fees}))).notes:
...     print(note)
strongly skewed: 'fee', 'pence'; transform="log" looks at them on a log scale.
'pence' repeats 'fee'; drop= leaves it out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np
from scipy.stats import rankdata

from imapce.common.arrays import Array, Codes, seeded_sample
from imapce.common.settings import SETTINGS, TableSettings
from imapce.common.words import listing
from imapce.errors import Phrase, Sentence
from imapce.tables.columns import Column, numbers, read_column
from imapce.tables.encode import Table, column_at
from imapce.tables.scales import scale_notes

MOST_SENTENCES = 10


def looked_over(table: Table, transform: Any = None) -> Table:
    """The table on the scales asked for, by default on those it has, and among its notes those on its columns.

    Of very many columns nothing is told: they are measured alike, as genes and pixels are.
    """
    remarks = _remarks(table) if table.notes or transform is None else []
    kept = [note for note in table.notes if note not in remarks]
    if transform is None:
        return replace(table, notes=[*kept, *remarks])
    made = table.transformed(transform)
    return replace(made, notes=[*kept, *_remarks(made, asked=True)])


def _remarks(table: Table, *, asked: bool = False) -> list[str]:
    some = sampled(table)
    if table.shape[1] > SETTINGS.tables.most_columns:
        return scale_notes({}, table.scales, asked=asked)
    notes = [*scale_notes(some.numbers, table.scales, asked=asked), *repeat_notes(columns_of(some))]
    return [*notes, *sentinel_notes(table)]


def known_notes(table: Table, names: Collection[str], labels: Sequence[Column] = ()) -> list[str]:
    """Sentences on columns that stand in for something known: columns of the table by name, or labels of its rows.

    >>> import pyarrow as pa
    >>> sex = Column("sex", codes=np.arange(60) % 2, levels=("f", "m"))
    >>> table = Table.learn(pa.table({"who": ["woman", "man"] * 30, "age": np.arange(60.0)}))
    >>> known_notes(table, [], [sex])
    ["'who' tells 'sex': add it to what is known?"]
    """
    if not (names or labels) or table.shape[1] > SETTINGS.tables.most_columns:
        return []
    columns = columns_of(sampled(table))
    known = [*(column for column in columns if column.name in names), *labels]
    return repeat_notes(columns, known) if known else []


def sampled(table: Table) -> Table:
    """Some rows of a table, with what was learned of all."""
    mask = seeded_sample(len(table), SETTINGS.tables.rows)
    if mask.all():
        return table
    rows = nw.from_native(table.native, eager_only=True)[np.flatnonzero(mask).tolist(), :]
    return replace(table, native=rows.to_native(), made={})


def columns_of(table: Table) -> list[Column]:
    """The columns of a table as people know them, in their order; those without a value are left out."""
    found = []
    for place, (name, kind) in enumerate(zip(table.summary.names, table.summary.kinds, strict=True)):
        if kind is not None:
            counts = table.summary.categories[place].counts if kind == "category" else {}
            found.append(read_column(name, column_at(table, place), kind, tuple(sorted(counts))))
    return found


# --- which values may stand for missing ones --------------------------------------------------------------------------


def sentinels(values: Array, settings: TableSettings = SETTINGS.tables) -> dict[float, int]:
    """Return repeated values far from all other values of a numeric column, each with its number of rows.

    The smallest or the largest value v is one if it occurs in 3 rows, 0.5 % of the rows and at most half of the values,
    and is farther from each other value than 3 times their range from the 1st to the 99th percentile. After one is
    found, the rest is examined again, so -99 beside -999 is found as well.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        The column; NaN and infinite values are ignored.
    settings : TableSettings
        The thresholds.

    Returns
    -------
    dict
        The number of rows of each value.

    Examples
    --------
    >>> sentinels(np.append(np.linspace(18.0, 80.0, 300), [-999.0] * 4 + [200.0]))
    {-999.0: 4}
    """
    fewest = max(settings.fewest_sentinels, settings.sentinel_share * len(values))
    rest, found = values[np.isfinite(values)], {}
    while (value := _isolated_end(rest, fewest, settings)) is not None:
        found[value] = int((rest == value).sum())
        rest = rest[rest != value]
    return found


def _isolated_end(values: Array, fewest: float, settings: TableSettings) -> float | None:
    """Return the smallest or largest value if it is repeated and far from all other values, else None."""
    for value in (values.min(initial=np.inf), values.max(initial=-np.inf)):
        others = values[values != value]
        # The zeros of sparse counts are most of the values, and the other values are the exception.
        if not fewest <= len(values) - len(others) <= len(values) / 2:
            continue
        low, high = np.quantile(others[seeded_sample(len(others), settings.rows)], [0.01, 0.99])
        with np.errstate(over="ignore"):
            # A range of 0 gives no unit for distances: nearly all other values are the same.
            if np.abs(others - value).min() > settings.sentinel_distance * (high - low) > 0:
                return float(value)
    return None


def sentinel_notes(table: Table) -> list[str]:
    """Return a note on the values of numeric columns that may stand for missing values; the values stay.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages = np.append(np.arange(20.0, 80.0), [-999.0] * 4)
    >>> print(*sentinel_notes(Table.learn(pa.table({"age": ages}))))
    far from all other values: 'age' is -999 in 4 of 64 rows; replace it by NaN if it stands for a missing value.
    """
    found = [
        f"{name!r} is {repr(value).removesuffix('.0')} in {count:,} of {len(table):,} rows"
        for position, (name, kind) in enumerate(zip(table.summary.names, table.summary.kinds, strict=True))
        if kind == "number"
        for value, count in sentinels(np.asarray(numbers(column_at(table, position)), dtype=np.float64)).items()
    ]
    if not found:
        return []
    is_single = len(found) == 1
    way_out = Phrase("replace sentinel", f"replace {'it' if is_single else 'each'} by NaN")
    return [
        Sentence(
            f"far from all other values: {listing(found, MOST_SENTENCES)}; ",
            way_out,
            " if it stands for a missing value.",
        )
    ]


# --- which columns say the same ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Told:
    """A column as one that tells and is told: `values` where it is a number, and `codes` of its levels, -1 where it is
    missing; a number of many values has even parts of them for levels.
    """

    name: str
    codes: Codes
    values: Array | None

    @classmethod
    def of(cls, column: Column, settings: TableSettings = SETTINGS.tables) -> Told:
        """A column of a table, a sample of its rows."""
        if column.codes is not None:
            return cls(column.name, column.codes[seeded_sample(len(column.codes), settings.rows)], None)
        assert column.values is not None
        values = column.values[seeded_sample(len(column.values), settings.rows)]
        values = np.where(np.isfinite(values), values, np.nan)
        # In units of the largest, whose squares fit in a float.
        values /= max(float(np.nanmax(np.abs(values), initial=0.0)), np.finfo(np.float64).tiny)
        there = ~np.isnan(values)
        codes = np.full(len(values), -1)
        found = np.unique(values[there])
        if len(found) > settings.levels:
            found = np.unique(np.quantile(values[there], np.arange(settings.levels) / settings.levels))
        codes[there] = np.searchsorted(found, values[there], side="right") - 1
        return cls(column.name, codes, values)

    @cached_property
    def ranks(self) -> Array:
        """Of a number, NaN where it is missing."""
        assert self.values is not None
        return rankdata(self.values, nan_policy="omit")

    @cached_property
    def is_whole(self) -> bool:
        """Whether no row lacks it."""
        return bool((self.codes >= 0).all())

    @cached_property
    def of_unit_length(self) -> Array:
        """(2, n): values and ranks of a number, each about its mean; 0 where it does not vary."""
        assert self.values is not None
        both = np.stack([self.values, self.ranks])
        both = both - both.mean(axis=1, keepdims=True)
        length = np.linalg.norm(both, axis=1, keepdims=True)
        return np.divide(both, length, out=np.zeros_like(both), where=length > 0)

    @property
    def n_levels(self) -> int:
        """How many levels it has; all that are asked for where it is a number of many values."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def has_many_values(self) -> bool:
        """Whether it is a number of which even parts are the levels."""
        return self.values is not None and self.n_levels >= SETTINGS.tables.levels

    @property
    def varies(self) -> bool:
        """Whether enough rows have another level than the most common one."""
        counts = np.bincount(self.codes[self.codes >= 0])
        return bool(counts.sum() - counts.max(initial=0) >= SETTINGS.tables.fewest_others)


def told_share(column: Told, by: Told) -> float:
    """R²(column | by), of the rows that have both; 0 where they are few.

    >>> codes = np.arange(60) % 3
    >>> round(told_share(Told("a", codes, None), Told("b", 2 - codes, None)), 3)
    1.0
    """
    both = (column.codes >= 0) & (by.codes >= 0)
    n, groups = int(both.sum()), by.codes[both]
    n_groups = len(np.unique(groups))
    if n <= n_groups + SETTINGS.tables.fewest_others:
        return 0.0
    if column.values is None:
        explained = _of_levels(column.codes[both], groups)
    else:
        explained = _of_numbers(column.values[both], groups)
    found = 1 - (1 - explained) * (n - 1) / (n - n_groups)
    return found if column.values is None or by.values is None else max(found, _goes_with(column, by))


def _goes_with(one: Told, other: Told) -> float:
    """The larger r² of two numbers, that of their values or that of their ranks."""
    if one.is_whole and other.is_whole:
        mine, theirs = one.of_unit_length, other.of_unit_length
        return max(float(mine[0] @ theirs[0]) ** 2, float(mine[1] @ theirs[1]) ** 2)
    both = (one.codes >= 0) & (other.codes >= 0)
    assert one.values is not None
    assert other.values is not None
    values = _correlation(one.values[both], other.values[both])
    return max(values**2, _correlation(one.ranks[both], other.ranks[both]) ** 2) if both.any() else 0.0


def _of_levels(codes: Codes, groups: Codes) -> float:
    """τ: how much less often two rows of one group have different levels than two of all."""
    width = int(codes.max()) + 1
    table = np.bincount(groups * width + codes, minlength=(int(groups.max()) + 1) * width).reshape(-1, width)
    sizes = np.maximum(table.sum(axis=1), 1)
    alike, within = float(np.sum((table.sum(axis=0) / len(codes)) ** 2)), float(np.sum(table**2 / sizes[:, None]))
    return (within / len(codes) - alike) / (1 - alike) if alike < 1 else 0.0


def _of_numbers(values: Array, groups: Codes) -> float:
    """η²: the share of the variance that lies between the groups."""
    deviation = values - values.mean()
    total = float(deviation @ deviation)
    sums, sizes = np.bincount(groups, weights=deviation), np.maximum(np.bincount(groups), 1)
    return float(np.sum(sums**2 / sizes)) / total if total > 0 else 0.0


def _correlation(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else 0.0


def repeats(columns: Sequence[Column], settings: TableSettings = SETTINGS.tables) -> dict[str, str]:
    """The columns that repeat one before them, and which; of very many columns none is looked for.

    >>> alive = Column("alive", codes=np.arange(60) % 2, levels=("no", "yes"))
    >>> repeats([Column("survived", values=np.arange(60.0) % 2), alive])
    {'alive': 'survived'}
    """
    if len(columns) > settings.most_columns:
        return {}
    told = [one for column in columns if (one := Told.of(column, settings)).varies]
    found: dict[str, str] = {}
    for first, second in combinations(told, 2):
        if first.name not in found and second.name not in found and _same(first, second, settings):
            found[second.name] = first.name
    return found


def _same(first: Told, second: Told, settings: TableSettings) -> bool:
    """Whether two columns tell each other."""
    if first.values is not None and second.values is not None:
        if first.has_many_values or second.has_many_values:
            # Even parts of numbers would tell no more than this, and later.
            return _goes_with(first, second) >= settings.same_numbers
        if first.n_levels != second.n_levels:
            return False
    elif first.has_many_values or second.has_many_values:
        # A category says which heap of a number a row lies in, and the number more.
        return False
    return all(told_share(*pair) >= settings.same_levels for pair in ((second, first), (first, second)))


def stand_ins(
    columns: Sequence[Column], known: Sequence[Column], settings: TableSettings = SETTINGS.tables
) -> dict[str, list[str]]:
    """For each class that is known the columns of levels that tell it nearly, by names; known ones are none.

    What goes with a number, or a number with a class, is explained away with it: the line or the means are the effect.
    """
    names = {column.name for column in known}
    others = [column for column in columns if column.name not in names]
    if len(others) > settings.most_columns:
        return {}
    told = [one for column in others if (one := Told.of(column, settings)).varies and not one.has_many_values]
    found: dict[str, list[str]] = {}
    for one in (Told.of(column, settings) for column in known):
        if one.has_many_values:
            continue
        if telling := [other.name for other in told if told_share(one, other) >= settings.tells]:
            found[one.name] = telling
    return found


def repeat_notes(columns: Sequence[Column], known: Sequence[Column] = ()) -> list[str]:
    """Sentences on columns that stand in for the known, and else on those that repeat others."""
    if known:
        add = Phrase("add known", "to what is known?")
        return [
            Sentence(
                f"{_named(names)} {'tells' if len(names) == 1 else 'tell'} {name!r}: add "
                f"{'it' if len(names) == 1 else 'them'} ",
                add,
            )
            for name, names in list(stand_ins(columns, known).items())[:MOST_SENTENCES]
        ]
    found = repeats(columns)
    if not found:
        return []
    them = "it" if len(found) == 1 else "them"
    told = listing((f"{name!r} repeats {of!r}" for name, of in found.items()), MOST_SENTENCES)
    return [Sentence(f"{told}; ", Phrase("drop repeats", "drop="), f" leaves {them} out.")]


def _named(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
