"""What every kind of prior answers: what it says of columns, rows and labels, in words, in Python and in a file.

A kind overrides what it has, in `priors/kinds.py`; the rest says nothing. Rows, columns and labels are asked for as
masks and codes, so that no other room has to know which kind it is:

    column_mask (d,), row_mask (n,), read_labels      what is known
    has_effect, erase, is_background, names_rows      what is done with it
    sentence, phrase, python, to_json, from_json      how it is told and kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.words import listing
from imapce.errors import InvalidValueError
from imapce.priors.labels import ReadLabels
from imapce.tables.encode import Table
from imapce.tables.reader import Missing, Reader
from imapce.tables.remarks import known_notes

MOST_NAMES = 8
# What labels are called that came without a title.
UNTITLED = "the known label"

Arrays = dict[str, NDArray[Any]]
Reads = Callable[[Any], Any]


class Prior:
    """One thing that is known: what it says of columns, rows and labels, and how it is worded, written and kept.

    >>> from imapce import Subset
    >>> prior = Subset([0, 2])
    >>> prior.row_mask(4), prior.column_mask(Reader(2)), prior.read_labels(4)
    (array([ True, False,  True, False]), array([False, False]), None)
    """

    kind: ClassVar[str]
    described: ClassVar[str]
    # Whether it does something to the rows that can be explained away or erased.
    has_effect: ClassVar[bool] = False
    is_background: ClassVar[bool] = False
    names_rows: ClassVar[bool] = False

    weight: float
    erase: bool = False

    # --- what it says -------------------------------------------------------------------------------------------------

    def column_mask(self, reader: Reader) -> Mask:
        """(d,), the encoded columns of X that are known."""
        return np.zeros(reader.n_features, dtype=bool)

    def row_mask(self, n_rows: int) -> Mask:
        """(n,), the rows of X that are known."""
        return np.zeros(n_rows, dtype=bool)

    def read_labels(self, n_rows: int | None = None) -> ReadLabels | None:
        """The labels of n rows, or of as many as there are, as they are understood; None where it has none."""
        return None

    def check(self, reader: Reader, n_rows: int) -> None:
        """Refuse what does not fit the table."""
        self.column_mask(reader), self.row_mask(n_rows), self.read_labels(n_rows)

    def require_same_index(self, X: Any) -> None:
        """Refuse a pandas mask or labels whose index is not X's: by position they mean other rows."""

    def class_codes(self, matrix: Array, reader: Reader) -> list[Codes]:
        """Classes of the rows of X, (n,) for each column, for methods that can be told nothing else."""
        raise NotImplementedError

    # --- the same of other rows, in other forms -----------------------------------------------------------------------

    def resolve(self, n_rows: int) -> Prior:
        """The same, understood: rows as a mask and labels as they were read."""
        return self

    def of_rows(self, rows: Any, n_rows: int) -> Prior:
        """What is known of some of n rows, by mask or positions."""
        return self

    @property
    def says_nothing(self) -> bool:
        """Whether a prior of some of the rows has nothing left to say."""
        return False

    def look_up(self, *, labels: Reads, rows: Reads, background: Reads) -> Prior:
        """The same with what it was given read by these, which know the names of a container."""
        return self

    def background_matrix(self, reader: Reader, *, means: Array, missing: Missing) -> Any:
        """The other rows that are known, in the encoding of X, whose means fill gaps."""
        raise NotImplementedError

    def encode(self, reader: Reader, *, means: Array, missing: Missing) -> Prior:
        """The same in plain arrays, as a file can keep it."""
        return self

    # --- in words, in Python, in a file -------------------------------------------------------------------------------

    @property
    def listed(self) -> list[Any]:
        """The columns by which it was given, as names or positions."""
        return []

    @property
    def title(self) -> str | None:
        """What labels that were read are called."""
        return None

    def names(self, reader: Reader, *, untitled: str = UNTITLED) -> list[str]:
        """What the known columns and labels are called; a category is one column."""
        return []

    def sentence(self, reader: Reader) -> str:
        """What was known before an exploration and what became of it."""
        raise NotImplementedError

    @property
    def phrase(self) -> str:
        """What is known, in a few words that need no table."""
        raise NotImplementedError

    def python(self, *, background: str = "...", labels: str = "...") -> str:
        """The call that makes it; `background` and `labels` say how its data are read, {names} being the columns."""
        raise NotImplementedError

    def to_json(self, place: int, arrays: Arrays, n_rows: int) -> dict[str, Any]:
        """The entry of a session file; what is large goes to `arrays`, under names with its place among the priors."""
        # A kind of its own: a reader that cannot erase must refuse the session, not go on with a softer prior.
        return {"kind": f"erased {self.kind}" if self.erase else self.kind, "weight": float(self.weight)}

    @classmethod
    def from_json(cls, place: int, stored: dict[str, Any], arrays: Arrays, *, shape: tuple[int, int]) -> Self:
        """What `to_json` wrote, for a table of this shape; a ValueError or KeyError where it does not fit."""
        raise NotImplementedError


def sentence_of(prior: Prior, what: str, names: list[str]) -> str:
    """That so many columns or labels, called so, are known, and what becomes of them.

    >>> from imapce import Attributes
    >>> sentence_of(Attributes([0], erase=True), "column", ["age"])
    'The column age was erased: nothing linear of it is left in views and clusters.'
    """
    single = len(names) == 1
    begin = f"The {what} {names[0]} was" if single else f"{len(names)} {what}s were"
    if names == [UNTITLED]:
        begin = "A label was"
    rest = "" if single else f" ({listing(names, MOST_NAMES)})"
    if prior.erase:
        left = f"nothing linear of {'it' if single else 'them'} is left in views and clusters"
        return f"{begin} erased{rest}: {left}."
    effect = "its effect is" if single else "their effects are"
    return f"{begin} known{rest}: {effect} explained away, given the clusters."


def stand_in_notes(table: Any, priors: Sequence[Prior], reader: Reader) -> list[str]:
    """Sentences on columns of a table that stand in for what is known and explained away or erased.

    >>> import pyarrow as pa
    >>> from imapce import Attributes
    >>> table = Table.learn(pa.table({"sex": ["f", "m"] * 30, "who": ["woman", "man"] * 30, "age": range(60)}))
    >>> stand_in_notes(table, [Attributes(["sex"])], Reader.learn(table)[0])
    ["'who' tells 'sex': add it to what is known?"]
    """
    if not isinstance(table, Table):
        return []
    known = [prior for prior in priors if prior.has_effect]
    labels = [read.column for prior in known if (read := prior.read_labels(len(table))) is not None]
    names = {name for prior in known for name in given_names(prior.column_mask(reader), reader)}
    return known_notes(table, names, labels)


def column_sources(reader: Reader) -> Codes:
    """(d,), the place of the given column that every column of the matrix is made of.

    >>> column_sources(Reader(3))
    array([0, 1, 2])
    """
    return np.arange(len(reader.names)) if reader.groups is None else np.asarray(reader.groups)


def given_names(mask: Mask, reader: Reader) -> list[str]:
    """What the given columns are called that masked columns (d,) of the matrix are made of.

    >>> given_names(np.array([True, False]), Reader(2))
    ['x0']
    """
    names = reader.columns or reader.names
    return [names[place] for place in np.unique(column_sources(reader)[mask])]


def labels_among(priors: Iterable[Prior], n_rows: int | None = None) -> list[ReadLabels]:
    """The labels among some priors, as they are understood.

    >>> from imapce import Labels, Subset
    >>> [labels.names for labels in labels_among([Subset([0]), Labels(["a", "b"])])]
    [('a', 'b')]
    """
    return [labels for prior in priors if (labels := prior.read_labels(n_rows)) is not None]


def without_rows(priors: Sequence[Prior], dropped: Mask) -> list[Prior]:
    """The priors of the table that lacks some rows; a subset of nothing but these is gone with them, as are labels that
    are all the same without them.

    >>> from imapce import Subset
    >>> without_rows([Subset([0, 2]), Subset([1])], np.array([False, True, False]))[0].row_mask(2)
    array([ True,  True])
    """
    kept = [prior.of_rows(~dropped, len(dropped)) for prior in priors]
    return [prior for prior in kept if not prior.says_nothing]


def rows_in_python(rows: Any) -> str:
    """Positions as ranges where they run on, which shortens sorted data to a line.

    >>> rows_in_python([0, 1, 2, 3, 7])
    'np.r_[0:4, 7]'
    """
    places = np.sort(np.asarray(rows))
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    ends = np.append(starts[1:], len(places))
    runs = [(int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, ends, strict=True)]
    if len(runs) * 2 > len(places):
        return f"np.array({places.tolist()})"
    parts = ", ".join(str(a) if b == a + 1 else f"{a}:{b}" for a, b in runs)
    return f"np.r_[{parts}]"


def require_index(values: Any, X: Any, argument: str, what: str, name: str) -> None:
    """Refuse values of a pandas object whose index is not X's; `what` they are, and how they are called.

    >>> require_index(np.ones(3), np.eye(3), "Labels(y)", "has labels", "y")
    """
    index: Any = getattr(values, "index", None)
    own: Any = getattr(X, "index", None)
    comparable = hasattr(index, "equals") and hasattr(own, "equals")
    if comparable and len(index) == len(own) and not index.equals(own):
        raise InvalidValueError(
            argument,
            f"{what} with another index than X, so it is not clear which rows it means; reindex it with "
            f"{name}.reindex(X.index), or pass {name}.to_numpy() to go by position.",
        )
