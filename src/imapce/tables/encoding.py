"""How the columns of a table become the columns of a matrix, as plain data that can be stored and read back.

>>> encoding = Encoding(("size", "colour"), ("number", "category"), ((), ("blue", "red")), fill=(3.5, 0.4, 0.6))
>>> encoding.feature_names
('size', 'colour=blue', 'colour=red')
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from imapce.common.words import close_matches
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError

Kind = Literal["number", "boolean", "category"]
Category = str | int | float | bool

CATEGORY_TYPES = (str, int, float, bool)

_KINDS = ("number", "boolean", "category")
_ENTRY_KEYS = {"name", "kind", "categories", "fill"}
# What Arrow, pandas and polars can hold in an integer column; Python reads longer ones from JSON.
_INTEGERS = range(-(2**63), 2**64)


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, what each becomes and the value that fills its gaps.

    ``kinds`` and ``categories`` go along ``columns`` (no categories: an empty tuple); ``fill`` goes along the
    columns of the matrix and holds their learned means, which for a category are its shares. ``gaps`` are the columns
    that had missing values where the encoding was learned; a stored encoding does not keep them.

    >>> Encoding(("colour",), ("category",), (("blue", "red"),), fill=(0.5, 0.5)).feature_names
    ('colour=blue', 'colour=red')
    """

    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    categories: tuple[tuple[Category, ...], ...]
    _: KW_ONLY
    fill: tuple[float, ...]
    gaps: tuple[str, ...] = field(default=(), compare=False)

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
        _must(isinstance(stored, dict) and set(stored) == {"columns"}, "be an object with columns only", stored)
        entries = stored["columns"]
        _must(isinstance(entries, list) and len(entries) > 0, "list at least one column", entries)
        for entry in entries:
            _must(
                isinstance(entry, dict) and set(entry) == _ENTRY_KEYS,
                "give name, kind, categories and fill",
                entry,
            )
            _must(type(entry["name"]) is str, "have column names that are text", entry["name"])
            _must(entry["kind"] in _KINDS, f"have kinds among {', '.join(_KINDS)}", entry["kind"])
            _check_categories(entry["categories"], entry["kind"])
            _check_fill(entry["fill"], entry["kind"], len(entry["categories"]))
        encoding = cls(
            tuple(entry["name"] for entry in entries),
            tuple(entry["kind"] for entry in entries),
            tuple(tuple(entry["categories"]) for entry in entries),
            fill=tuple(float(value) for entry in entries for value in entry["fill"]),
        )
        for names in (encoding.columns, encoding.feature_names):
            _must(len(set(names)) == len(names), "not name a column twice", names)
        return encoding


def _must(holds: bool, rule: str, got: Any) -> None:
    if not holds:
        # A hostile file may hold megabytes or nest deeply: only the start of plain values is shown.
        plain = got is None or isinstance(got, (str, float, bool))
        shown = repr(got[:60] if isinstance(got, str) else got) if plain else f"a {type(got).__name__}"
        raise FileFormatError(f"The stored encoding must {rule}, got {shown}: save the model again.")


def _check_categories(values: Any, kind: Kind) -> None:
    _must(isinstance(values, list), "list categories", values)
    if kind != "category":
        _must(len(values) == 0, f"have no categories for a {kind}", values)
        return
    _must(len(values) > 0, "have categories for a category", values)
    one_type = {type(value) for value in values}
    _must(len(one_type) == 1 and one_type <= set(CATEGORY_TYPES), "have categories of one plain type", values)
    for value in values:
        if type(value) is int:
            _must(value in _INTEGERS, "have categories of at most 64 bits", values)
        elif type(value) is float:
            _must(math.isfinite(value), "have finite categories", value)
    rising = all(before < after for before, after in pairwise(values))
    _must(rising, "have sorted categories without repeats", values)


def _check_fill(values: Any, kind: Kind, categories: int) -> None:
    wide = categories if kind == "category" else 1
    _must(isinstance(values, list) and len(values) == wide, "have one fill value per encoded column", values)
    for value in values:
        # Integers are left out: to_json writes floats only, and a long integer would overflow float().
        _must(type(value) is float and math.isfinite(value), "have finite fill values", value)
        _must(kind == "number" or 0.0 <= value <= 1.0, "have fill values from 0 to 1 for 0/1 columns", value)
