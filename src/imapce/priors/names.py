"""What is known, by the names of columns: `prior="batch"`, `prior=["batch", Subset(rows)]`.

A column that is a feature is known as a column (`Attributes`), any other as a label of the rows (`Labels`). For classes
by name and for measurements the view and the clusters are the same either way; numbers that are features are taken as
numbers, and as labels they are classes where they repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from imapce.common.arrays import is_dask, is_scan
from imapce.common.words import close_matches
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Labels, as_list, is_label_of_row
from imapce.tables.cells import read_cells
from imapce.tables.encode import Table, column_names, is_table, selected
from imapce.tables.named import NamedMatrix
from imapce.tables.usable import usable_columns


def priors_by_name(
    names: Sequence[str], features: Collection[str], labels: Callable[[str], Any], *, erase: bool = False
) -> list[Prior]:
    """Attributes of the names that are features, and Labels of each other one, which `labels` reads.

    >>> priors_by_name(["age", "town"], ["age", "income"], {"town": ["A", "B"]}.get)
    [Attributes(columns=['age'], weight=1.0, erase=False), Labels(2 labels, weight=1.0, erase=False)]
    """
    columns = [name for name in names if name in features]
    attributes: list[Prior] = [Attributes(columns, erase=erase)] if columns else []
    return [*attributes, *(Labels(labels(name), erase=erase) for name in names if name not in features)]


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Where columns are found by their names: `features` that views are made of, and others, which `labels` reads.

    `called` says what messages call them.
    """

    features: Collection[str]
    beside: Collection[str]
    labels: Callable[[str], Any]
    called: str = "a column of X"

    def prior(self, name: str) -> Prior:
        """What is known where one column is."""
        if name not in self.features and name not in self.beside:
            # A label and a feature may have one name, and it is listed once.
            every = dict.fromkeys([*self.beside, *self.features])
            raise InvalidValueError("prior", f"must name {self.called}", repr(name), way_out=close_matches(name, every))
        return priors_by_name([name], () if name in self.beside else self.features, self.labels)[0]

    @classmethod
    def of(cls, X: Any, asked: Sequence[str]) -> NamedColumns:
        """Those of a table, of a matrix with names, or of what lies on disk or on a cluster, `asked` among them.

        >>> import pyarrow as pa
        >>> found = NamedColumns.of(pa.table({"age": [1.0, 2.0, 3.0], "id": ["a", "b", "c"]}), ["age", "id"])
        >>> found.features, found.beside
        (['age'], ['id'])
        """
        if isinstance(X, NamedMatrix):
            about = X.about_rows
            return cls(X.names, () if about is None else column_names(about), lambda name: selected(about, [name]))
        if is_scan(X) or is_dask(X):
            # Which of them can be features takes a pass to tell, and they are refused where they cannot.
            return cls([str(name) for name in getattr(X, "columns", ())], (), lambda name: X[name])
        if not is_table(X):
            raise InvalidTypeError(
                "prior",
                "must be Attributes(positions), labels or another prior where X has no names of columns",
                repr(asked[0]),
                way_out="pass X as a table to use names",
            )
        names = column_names(X)
        if isinstance(X, Table):
            if lost := [name for name in asked if name in X.left_out]:
                raise InvalidValueError(
                    "prior",
                    f"must name a feature of the table that was read, and {lost[0]!r} {X.left_out[lost[0]]}",
                    way_out="pass its values as Labels(y)",
                )
            return cls(names, (), lambda name: selected(X.native, [name]))
        # As they are read, which makes numbers of some texts.
        cells = read_cells(selected(X, [name for name in names if name in asked])).native
        left_out = list(usable_columns(cells, named=asked)[1]) if column_names(cells) else []
        return cls([name for name in names if name not in left_out], left_out, lambda name: selected(cells, [name]))


def with_names_read(prior: Any, X: Any) -> Any:
    """A prior in which the names of columns are read from `X`; one without names as it is.

    A list of texts is names where X has columns of all of them or other than one for each row, and else labels.

    >>> import pyarrow as pa
    >>> X = pa.table({"age": [1.0, 2.0, 3.0], "town": ["A", "B", "A"]})
    >>> with_names_read("age", X), with_names_read(["A", "B", "A"], X)
    ([Attributes(columns=['age'], weight=1.0, erase=False)], ['A', 'B', 'A'])
    """
    many = isinstance(prior, (list, tuple))
    entries = list(prior) if many else [prior]
    names = [one for one in entries if isinstance(one, str)]
    if not names or (many and all(map(is_label_of_row, entries)) and _are_labels(entries, X)):
        return prior
    found = NamedColumns.of(X, names)
    return [found.prior(one) if isinstance(one, str) else as_list(one)[0] for one in entries]


def named_columns(priors: Any) -> list[str] | None:
    """Return the names of the columns that priors were given by; None if positions were, which count all columns.

    >>> named_columns([Attributes(["age"])]), named_columns([Attributes(["age", 3])])
    (['age'], None)
    """
    listed = [column for prior in as_list(priors) for column in prior.listed]
    return listed if all(isinstance(column, str) for column in listed) else None


def _are_labels(texts: list[Any], X: Any) -> bool:
    """Whether the entries of a list are the labels of the rows, one for each, and no names of columns."""
    if not all(isinstance(text, str) for text in texts):
        return True
    n_rows = None if is_dask(X) else X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else None
    if len(texts) != n_rows:
        # Of an array any texts that are not one for each row are labels, of a number that is refused in words.
        return not (is_scan(X) or is_dask(X) or is_table(X) or isinstance(X, NamedMatrix))
    listed = NamedColumns.of(X, ()) if is_table(X) or is_scan(X) or isinstance(X, NamedMatrix) else None
    return listed is None or not {*listed.features, *listed.beside} >= set(texts)
