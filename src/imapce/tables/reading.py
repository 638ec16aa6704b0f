"""A table as it comes, from a file or in memory: which of its columns are features, and sentences on all the others.

The command line, `IMAPCE.fit` and `Exploration` read tables here and nowhere else.

>>> import pyarrow as pa
>>> table = read(pa.table({"id": ["k", "l", "m", "n"], "size": ["1.5", "2.5", "n.a.", "4"]}))
>>> table.column_names, table.notes[0]
(['size'], "'size' is numbers but for 'n.a.' in row 3, read as missing.")
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from imapce.common.checks import require_choice
from imapce.common.words import close_matches, listing
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence, Words
from imapce.tables.cells import ReadCells, dates_as_days, has_cells_to_read, read_cells
from imapce.tables.encode import Table, column_at, column_names, is_table, selected
from imapce.tables.named import NamedMatrix
from imapce.tables.remarks import looked_over
from imapce.tables.usable import IS_A_DATE, uninformative_columns, usable_columns

if TYPE_CHECKING:
    from imapce.tables.files import Contents

LEAVE_OUT, AS_NUMBERS = DATES = ("leave-out", "as-numbers")


def read(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    dates: str = LEAVE_OUT,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    transform: Any = None,
) -> Any:
    """The features of a file, or of a table of pandas, polars or Arrow, as `imapce explore` reads them: a `Table`.

    Ids, free text, dates and constants are left out, and cells are read as people write them: numbers among words for
    no value, currencies, per cent, dates by day, month and year. What was read how and what was left out is in
    `notes`, rows counted from 1 and without the header. `IMAPCE.fit` and `Exploration` take what comes of it.

    `columns` are those that shall be features, whatever they look like, `drop` those that shall not; `dates` are
    left out or, "as-numbers", days since 1970. `transform` looks at strongly skewed columns on another scale, "log" or
    "rank", {"income": "log"} at these; what is shown stays in the units of the table. `sheet`, `sep`, `decimal`,
    `encoding` and `header` are those of `tables.read_table`. An array of numbers (.npy, .npz) and an AnnData (.h5ad)
    have nothing to be read and come as they are there.

    >>> _ = Path("people.csv").write_text("id,paid,age\\nk7,€1.50,31\\nk8,€12,-\\nk9,€3,47\\nl1,€2.25,28\\n")
    >>> table = read("people.csv")
    >>> table.native.to_pydict()
    {'paid': [1.5, 12.0, 3.0, 2.25], 'age': [31, None, 47, 28]}
    >>> for note in table.notes:
    ...     print(note)
    'paid' is numbers in €, as '€1.50'.
    'age' is numbers but for '-' in row 2, read as missing.
    left out of the features: 'id' is an id, 4 distinct values in 4 rows; columns= keeps what can be kept.
    """
    require_choice("dates", dates, DATES)
    given = {"sep": sep, "decimal": decimal, "encoding": encoding, "header": header, "sheet": sheet}
    notes: list[str] = []
    if isinstance(data, (str, os.PathLike)):
        # What reads files takes a tenth of a second to import, and most who fit have none.
        from imapce.tables.files import read_contents

        contents = read_contents(data, given=given, keep_words=True)
        table, decimal, notes = contents.table, contents.decimal, file_notes(contents, data)
    else:
        if useless := [name for name, value in given.items() if value is not None]:
            raise InvalidValueError(useless[0], "is for files, got a table in memory", way_out="leave it out")
        table = data
    if not is_table(table):
        if not hasattr(table, "shape"):
            raise InvalidTypeError(
                "data",
                "must be a path or a table",
                f"{table!r:.80}",
                way_out="pass a file or a table of pandas, polars or Arrow",
            )
        if asked := [
            name
            for name, value in {"columns": columns, "drop": drop, "transform": transform}.items()
            if value is not None
        ]:
            raise InvalidTypeError(
                asked[0], f"needs columns with names, got {type(table).__name__}", way_out="leave it out"
            )
        return table
    names = column_names(table, "data")
    for argument, chosen in (("columns", columns), ("drop", drop)):
        for column in chosen or ():
            if column not in names:
                raise InvalidValueError(
                    argument, f"must name columns of the table, got {column!r}: {close_matches(str(column), names)}"
                )
    kept = [name for name in names if name not in set(drop or ()) and (columns is None or name in set(columns))]
    cells = read_cells(table, decimal=decimal, name="data")
    found = choose_features(cells, kept, keep=columns or (), dates=dates)
    dropped = {name: "was dropped" if columns is None else "was not asked for" for name in names if name not in kept}
    whole = replace(found, notes=[*notes, *found.notes], left_out={**found.left_out, **dropped})
    return looked_over(whole, transform)


def file_notes(contents: Contents, path: str | os.PathLike[str]) -> list[str]:
    """How a file was read where that is not the usual way, and what else is in it, in sentences."""
    notes = list(contents.notes)
    if contents.words:
        name = "standard input" if str(path) == "-" else repr(Path(path).name)
        ways = Phrase("overrule reading", "sep, decimal, encoding and header overrule it")
        notes.append(Sentence(f"{name} was read with {contents.words}; ", ways, "."))
    return notes


def choose_features(
    cells: ReadCells,
    names: Sequence[str],
    *,
    keep: Collection[str] = (),
    labels: Collection[str] = (),
    named: Collection[str] = (),
    dates: str = LEAVE_OUT,
    argument: str = "X",
) -> Table:
    """The columns among `names` that can be features, those to `keep` not questioned, and sentences on the others.

    Of `labels`, which are used where they are no features, nothing is said. They and the columns `named` in a prior are
    not left out because most of their values are missing or because they number the rows.

    >>> import pyarrow as pa
    >>> choose_features(read_cells(pa.table({"a": [1, 2], "b": [3, 3]})), ["a", "b"]).left_out
    {'b': 'is constant'}
    """
    table, written = selected(cells.native, names), dict(cells.written)
    if dates == AS_NUMBERS:
        table, as_days = dates_as_days(table, argument)
        written = {**as_days, **written}
    learned = Table.learn(table, argument, written={name: written[name] for name in names if name in written})
    features, reasons = usable_columns(learned, keep=keep, named={*labels, *named})
    reasons = {name: reason for name, reason in reasons.items() if name not in labels}
    left_dates = [name for name, reason in reasons.items() if reason == IS_A_DATE]
    reasons |= {name: f"{IS_A_DATE}, {cells.dates[name]}" for name in left_dates if name in cells.dates}
    told = listing((f"{name!r} {reason}" for name, reason in reasons.items()), 20)
    if not features:
        if not reasons:
            raise InvalidValueError(
                argument, "must keep at least one feature, and every column is a label, known or dropped: drop fewer."
            )
        raise InvalidValueError(
            argument,
            f"must keep at least one feature, a column of numbers or of few categories, and {told}",
            way_out=_way_to_a_feature(bool(left_dates)),
        )
    notes: list[str] = [note for name, note in cells.notes.items() if name in features]
    if reasons:
        notes.append(_left_out_note(reasons, has_dates=bool(left_dates)))
    return replace(learned.select(features), notes=notes, left_out=reasons)


def column_of(X: Any, name: str, argument: str = "color") -> list[Any]:
    """The values of one column of a table, or of what is told of the rows of a matrix with names, by its name.

    >>> import pyarrow as pa
    >>> column_of(pa.table({"sex": ["f", None]}), "sex")
    ['f', None]
    """
    table = X
    if isinstance(X, NamedMatrix):
        if name in X.names and (X.about_rows is None or name not in column_names(X.about_rows)):
            values = X.select([name]).matrix
            return np.asarray(values.toarray() if hasattr(values, "toarray") else values).ravel().tolist()
        table = X.about_rows
    if table is None or not is_table(table):
        raise InvalidValueError(
            argument,
            "must hold one label per row where X has no names of columns",
            repr(name),
            way_out="pass the labels themselves, or X as a table",
        )
    names = column_names(table)
    if name not in names:
        raise InvalidValueError(argument, "must name a column of X", repr(name), way_out=close_matches(name, names))
    return column_at(table, names.index(name)).to_list()


def _way_to_a_feature(has_dates: bool) -> Phrase:
    if has_dates:
        return Phrase("number of a date", 'add one, or take the dates with imapce.read(X, dates="as-numbers")')
    return Phrase("no feature", "add one, or name the right sep of a text file")


def as_read(X: Any, transform: Any = None, *, named: Collection[str] | None = ()) -> Any:
    """What an estimator learns from: a table is read as `read` does, where it cannot be taken as it is; all else is X.

    A table of which every column can be a feature as it is typed stays so, ids among whole numbers and constants too,
    unless text in it is clearly numbers or dates; without columns that are mostly missing or number the rows. `named`
    is that of `choose_features`; None keeps all columns.

    >>> import pyarrow as pa
    >>> as_read(pa.table({"x": [1.0, 2.0], "unit": [True, True]})).column_names
    ['x', 'unit']
    """
    if isinstance(X, Table):
        return X if transform is None else looked_over(X, transform)
    if not is_table(X) or not len(X) or not column_names(X):
        return X
    learned = Table.learn(X)
    usable = all(learned.summary.problem(place) is None for place in range(learned.shape[1]))
    if not usable or has_cells_to_read(X):
        return looked_over(choose_features(read_cells(X), column_names(X), named=named or ()), transform)
    reasons = {} if named is None else uninformative_columns(learned, named)
    kept = [name for name in column_names(X) if name not in reasons]
    if reasons and kept:
        note = _left_out_note(reasons, has_dates=False)
        learned = replace(learned.select(kept), notes=[*learned.notes, note], left_out=reasons)
    return looked_over(learned, transform)


def _left_out_note(reasons: Mapping[str, str], *, has_dates: bool) -> Sentence:
    """Return the note on columns that are left out."""
    ways: list[Words] = [Phrase("keep columns", "columns= keeps what can be kept")]
    if has_dates:
        ways += [", ", Phrase("keep dates", 'dates="as-numbers" the dates')]
    told = listing((f"{name!r} {reason}" for name, reason in reasons.items()), 20)
    return Sentence(Phrase("carried", "left out of the features"), f": {told}; ", *ways, ".")
