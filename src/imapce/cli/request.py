"""From the words of a command to what the estimator takes: features, priors, and the columns that go along.

Columns named as labels or as known are answers, so they leave the features; the rows keep them in the output.

    request = Request("penguins.csv", known_rows=("species=Adelie",), labels=("island",))
    prepare(request).priors          # [Subset(rows=...)]
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.cli.messages import in_own_words, named, note, warnings_in_one_line
from imapce.cli.on_disk import DRAWN_ROWS, scanned, whole_columns
from imapce.cli.options import DataOptions, Dates
from imapce.common.words import close_matches, counted, listing
from imapce.errors import InvalidValueError
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Samples, Subset
from imapce.priors.names import priors_by_name
from imapce.tables.cells import ReadCells, dates_as_days, keeping_dates, read_cells
from imapce.tables.encode import Table, column_names, is_table
from imapce.tables.files import Contents, is_text_file, read_contents
from imapce.tables.named import NamedMatrix
from imapce.tables.reading import choose_features, file_notes
from imapce.tables.remarks import known_notes, looked_over
from imapce.tables.usable import select

if TYPE_CHECKING:
    from imapce.tables.scan import Scan

# These name features; the other options name what is told of rows. In a table both are columns.
OF_FEATURES = ("--columns", "--drop")
OF_BOTH = ("--known", "--erase")


@dataclass(frozen=True)
class Request:
    """What a user asked of a data file, the lists in the user's order; `known_rows` holds COLUMN=VALUE texts.

    `known` holds lists of columns as they were written, since one with = may be the old way to name rows; `as_labels`
    are those of them that are no features, whatever they hold.
    """

    data: str
    known: tuple[str, ...] = ()
    background: str | None = None
    known_rows: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    as_labels: tuple[str, ...] = ()
    known_labels: str | None = None
    erase: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    dates: Dates = Dates.leave_out
    reading: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()

    @property
    def transform(self) -> dict[str, str] | None:
        """The columns that are looked at on another scale, and which; None where there are none."""
        return (dict.fromkeys(self.log, "log") | dict.fromkeys(self.rank, "rank")) or None

    @classmethod
    def of_options(cls, options: DataOptions, known_labels: str | None = None) -> Request:
        """The request as the options of a command spell it, with names in comma-separated texts."""
        known = list(options.known or ())
        if options.attributes is not None:
            tell_of_old("--attributes", "--known")
            known.append(options.attributes)
        if options.known_label is not None:
            tell_of_old("--known-label", "--known")
            known.append(options.known_label)
        if known_labels is not None:
            tell_of_old("--known-labels", "--known")
        return cls(
            options.data,
            known=tuple(known),
            background=options.background,
            known_rows=tuple(options.known_rows or ()),
            labels=listed_names(options.labels),
            drop=listed_names(options.drop),
            as_labels=listed_names(options.known_label),
            known_labels=known_labels,
            erase=listed_names(options.erase),
            columns=listed_names(options.columns),
            dates=options.dates,
            reading=options.reading,
            log=listed_names(options.log),
            rank=listed_names(options.rank),
        )

    def with_names(self, names: Collection[str]) -> Request:
        """The same with one name in each entry of `known`, and rows that were named there among the `known_rows`.

        >>> request = Request("rows.csv", known=("age, sex", "town")).with_names(["age", "sex", "town"])
        >>> request.known
        ('age', 'sex', 'town')
        """
        columns: list[str] = []
        rows = list(self.known_rows)
        for text in self.known:
            listed = listed_names(text)
            if "=" in text and not set(listed) <= set(names):
                tell_of_old(f"--known {text}", f"--known-rows {text}")
                rows.append(text)
            else:
                columns += listed
        return replace(self, known=tuple(dict.fromkeys(columns)), known_rows=tuple(rows))

    @property
    def columns_by_option(self) -> dict[str, tuple[str, ...]]:
        """The columns that are known, by the option that named them."""
        return {"--known": self.known, "--erase": self.erase}

    @property
    def columns_known(self) -> tuple[str, ...]:
        """The columns that are known or erased."""
        return (*self.known, *self.erase)


def tell_of_old(old: str, new: str) -> None:
    """Say what an option is called by now."""
    note(f"{old} is now {new}; the old spelling goes with the next release.")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features and priors for `IMAPCE.fit`, the priors in words, and what the output and the plot need besides.

    `everything` are all columns of DATA, `colours` those that colour the pictures, by name, `told` what is said of
    those columns that are known ("erased", "known"), and `row_labels` the known labels of the rows that are drawn, as
    `IMAPCE.transform` takes them, from the columns `label_names`.
    """

    features: Any
    priors: list[Prior]
    words: list[str]
    known: NDArray[np.bool_] | None
    colours: dict[str, NDArray[Any]] = field(default_factory=dict)
    known_labels: NDArray[Any] | None = None
    everything: pa.Table = field(default_factory=lambda: pa.table({}))
    told: Mapping[str, str] = field(default_factory=dict)
    row_labels: Any = None
    label_names: tuple[str, ...] = ()
    # Of a table that stays on disk: all of it, and the rows that stand for it in pictures, of which `colours` are.
    on_disk: Scan | None = None
    drawn: pa.Table | None = None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The first of the columns that colour the pictures, by which structure is scored."""
        return next(iter(self.colours.values()), None)


def listed_names(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated text; a name that holds a comma goes in double quotes.

    >>> listed_names('age, "size, cm"')
    ('age', 'size, cm')
    """
    if text is None:
        return ()
    names = next(csv.reader([text], skipinitialspace=True), [])
    listed = tuple(name.strip() for name in names if name.strip())
    if not listed:
        raise InvalidValueError(f"a list of columns must name at least one, got {text!r}: leave the option out.")
    return listed


def prepare(request: Request, *, from_disk: bool = False) -> Prepared:
    """Read the file of a request and take apart features, labels and what is known.

    `from_disk` says that the command can do without the rows in memory, where they are too many.

    >>> list(prepare(Request("penguins.csv", labels=("species",))).colours)   # doctest: +SKIP
    ['species']
    """
    table = scanned(request.data, request.reading)
    if table is None:
        contents = file_contents(request.data, request.reading)
        return of_table(request, contents.table, decimal=contents.decimal)
    if not from_disk:
        raise InvalidValueError(
            f"DATA must fit in memory for this command, and {Path(request.data).name!r} is larger than half of it: "
            "take a sample of its rows, or use embed."
        )
    return on_disk(request, table)


def of_table(
    request: Request,
    data: Any,
    *,
    about: Callable[[list[str]], pa.Table] | None = None,
    decimal: str | None = None,
) -> Prepared:
    """What was asked of a table that was read; `about` reads columns of all rows where `data` has some of the rows,
    which then lies on disk and is taken as it is typed. `decimal` is the decimal sign of the file.

    >>> of_table(Request("rows.csv", drop=("y",)), pa.table({"x": [1.0, 2.0], "y": [1, 2]})).features.column_names
    ['x']
    """
    # The features of an AnnData are its variables; what is told of its rows is a table beside them.
    matrix = data if isinstance(data, NamedMatrix) else None
    data = data if matrix is None else matrix.about_rows
    if not is_table(data):
        return _prepared_array(data, request)
    names = column_names(data, "DATA")
    variables = names if matrix is None else list(matrix.names)
    every = list(dict.fromkeys([*names, *variables]))
    request = request.with_names(every)
    cells = ReadCells(data) if about is not None else read_cells(data, decimal=decimal)
    # Dates that are no features are carried as they were written.
    data = keeping_dates(cells, data)
    known = [_column_and_value(text, names) for text in request.known_rows]
    known_columns = list(dict.fromkeys(column for column, _ in known))
    classes = () if request.known_labels is None else (request.known_labels,)
    for option, asked in {
        "--known-rows": known_columns,
        "--labels": request.labels,
        "--known-labels": classes,
        "--drop": request.drop,
        "--columns": request.columns,
        **request.columns_by_option,
    }.items():
        among = variables if option in OF_FEATURES else every if option in OF_BOTH else names
        for column in asked:
            require_column(option, column, among, beside=every)
    _require_once(request)
    # A column that is known may colour the pictures as well, and stays a feature where it is one.
    colours = [name for name in request.labels if name not in request.columns_known]
    answers = (*colours, *classes, *known_columns, *request.as_labels)
    removed = {*(answers if matrix is None else ()), *request.drop}
    if lost := [column for column in request.columns if column in removed]:
        raise InvalidValueError(
            f"--columns must name columns that are features, and {listing(map(repr, lost))} is a label, known or "
            "dropped: name it in one option only."
        )
    features: Any
    if matrix is None:
        features = _features(cells, [name for name in names if name not in removed], request)
        of_features = set(features.column_names)
    else:
        # Where a variable has the name of a column of obs, that column is meant.
        of_features = {name for name in request.columns_known if name not in names}
        if lost := [column for column in request.drop if column in of_features]:
            raise InvalidValueError(
                f"--drop must name no variable that is known, and {listing(map(repr, lost))} is: name it in one "
                "option only."
            )
        features = _variables(matrix, request)
    labels = [name for name in request.columns_known if name not in of_features]
    # At once, since a table on disk is read for it.
    whole = (about or data.select)(list(dict.fromkeys([*labels, *known_columns])))
    priors, words = _priors_of_columns(request, of_features, whole)
    _tell_stand_ins(features, request.columns_known, priors)
    if request.background is not None:
        priors.append(_background(request, request.background))
        words.append(f"{priors[-1].phrase}: {Path(request.background).name}")
    mask: NDArray[np.bool_] | None = None
    for column in known_columns:
        wanted = [value for name, value in known if name == column]
        rows = np.logical_or.reduce([select(whole, column, value) for value in wanted])
        priors.append(Subset(rows))
        verb = "is" if rows.sum() == 1 else "are"
        told = f"{rows.sum():,} of {counted(len(rows), 'row')} {verb} known"
        words.append(f"{told}, with {column} = {' or '.join(wanted)}")
        mask = rows if mask is None else mask | rows
    values = {name: plain_columns(data, [name]).column(0).to_numpy() for name in (*request.labels, *classes)}
    explained = tuple(name for name in labels if name in request.known)
    return Prepared(
        features=features,
        everything=plain_columns(data, names),
        priors=priors,
        words=words,
        known=mask,
        colours={name: values[name] for name in request.labels},
        told=dict.fromkeys((*request.known, *known_columns), "known") | dict.fromkeys(request.erase, "erased"),
        row_labels=labels_to_place(data, explained),
        label_names=explained,
        known_labels=None if request.known_labels is None else values[request.known_labels],
    )


def on_disk(request: Request, table: Scan) -> Prepared:
    """What was asked of a table that stays on disk: features and colours as some rows tell, what is known of all."""
    if request.dates == Dates.as_numbers:
        raise InvalidValueError(
            f"--dates as-numbers is for tables that are read whole, and {Path(request.data).name!r} is larger than "
            "half of the memory: write the dates as numbers first."
        )
    if request.transform is not None:
        raise InvalidValueError(
            f"--log and --rank are for tables that are read whole, and {Path(request.data).name!r} is larger than half "
            "of the memory: write the logarithm as a column of its own first."
        )
    drawn = table.sample(DRAWN_ROWS)
    prepared = of_table(request, drawn, about=partial(whole_columns, table))
    for sentence in read_cells(drawn).notes.values():
        note(f"{sentence.removesuffix('.')}; a table that stays on disk is taken as it is typed: write it as numbers.")
    features = table.selected(prepared.features.column_names)
    return replace(prepared, features=features, on_disk=table, drawn=drawn, everything=no_columns(), known=None)


def _features(cells: ReadCells, names: list[str], request: Request) -> Table:
    """The columns that are features, dates as numbers if asked for; those left out are told."""
    asked = {*request.columns, *request.columns_known}
    chosen = [name for name in names if name in asked] if request.columns else names
    features = choose_features(cells, chosen, keep=request.columns, labels=request.columns_known, dates=request.dates)
    features = looked_over(features, request.transform)
    for sentence in features.notes:
        note(in_own_words(sentence))
    return features


def _tell_stand_ins(features: Any, names: Collection[str], priors: Sequence[Prior]) -> None:
    """A note on features that tell what is known: columns by name, or labels of the rows."""
    if isinstance(features, Table):
        read = [prior.read_labels(None) for prior in priors]
        # Of a table on disk the labels are those of all rows, and the features a sample.
        labels = [one.column for one in read if one is not None and len(one) == len(features)]
        for sentence in known_notes(features, names, labels):
            note(in_own_words(sentence))


def _variables(matrix: NamedMatrix, request: Request) -> NamedMatrix:
    """The variables of an AnnData that are features: all of them, or those asked for."""
    asked = {*request.columns, *request.columns_known}
    chosen = [name for name in matrix.names if name not in request.drop and (not request.columns or name in asked)]
    if not chosen:
        raise InvalidValueError("DATA must keep at least one feature, and every variable is dropped: drop fewer.")
    return matrix.select(chosen)


def read_rows(path: str, reading: Mapping[str, Any], argument: str = "DATA") -> Any:
    """The table of a file, and notes on how it was read where that is not the usual way."""
    return file_contents(path, reading, argument).table


def file_contents(path: str, reading: Mapping[str, Any], argument: str = "DATA") -> Contents:
    """What a file holds, and notes on how it was read where that is not the usual way."""
    with warnings_in_one_line(), named(argument):
        contents = read_contents(path, given=reading, keep_words=True)
    for sentence in file_notes(contents, path):
        note(in_own_words(sentence))
    return contents


def labels_to_place(data: pa.Table, names: Sequence[str]) -> Any:
    """Known labels of rows as `IMAPCE.transform` takes them: a column, a list of several, None where none are known.

    >>> labels_to_place(pa.table({"sex": ["f", None]}), ["sex"]).to_pylist()
    ['f', None]
    """
    columns = [plain_columns(data, [name]).column(0) for name in names]
    return columns if len(columns) > 1 else next(iter(columns), None)


def _prepared_array(data: Any, request: Request) -> Prepared:
    request = request.with_names(())
    for option, asked in (
        ("--known-rows", request.known_rows),
        ("--labels", request.labels),
        ("--known-labels", request.known_labels),
        ("--drop", request.drop),
        ("--columns", request.columns),
        ("--log", request.log),
        ("--rank", request.rank),
    ):
        if asked:
            raise InvalidValueError(
                f"{option} needs column names, and {Path(request.data).name!r} has none: write it as .csv or .parquet."
            )
    _require_once(request)
    priors: list[Prior] = []
    for option, texts in request.columns_by_option.items():
        if strangers := [text for text in texts if not text.isdecimal()]:
            raise InvalidValueError(
                f"{option} must be positions from 0, since {Path(request.data).name!r} has no column names; "
                f"got {strangers[0]!r}."
            )
        if texts:
            priors.append(Attributes([int(text) for text in texts], erase=option == "--erase"))
    words = [prior.phrase for prior in priors]
    if request.background is not None:
        priors.append(_background(request, request.background))
        words.append(f"{priors[-1].phrase}: {Path(request.background).name}")
    return Prepared(data, priors, words, None)


def _require_once(request: Request) -> None:
    if twice := set(request.known) & set(request.erase):
        raise InvalidValueError(
            f"--erase and --known must name different columns, and {listing(map(repr, sorted(twice)))} is in both: "
            "name it in one option only."
        )


def _priors_of_columns(request: Request, features: Collection[str], labels: pa.Table) -> tuple[list[Prior], list[str]]:
    """What is known by --known and --erase, and in words; `labels` holds those of the columns that are no features."""
    priors: list[Prior] = []
    words: list[str] = []
    for option, names in request.columns_by_option.items():
        if not names:
            continue
        erase, state = option == "--erase", "erased" if option == "--erase" else "known"
        priors += priors_by_name(names, features, lambda name: plain_columns(labels, [name]), erase=erase)
        if columns := [name for name in names if name in features]:
            words.append(f"{counted(len(columns), 'column is', 'columns are')} {state}: {listing(columns, 10)}")
        for name in [name for name in names if name not in features]:
            missing = labels.column(name).null_count
            words.append(f"the label {name} is {state}{f', which {missing:,} rows lack' if missing else ''}")
    return priors, words


def _background(request: Request, path: str) -> Samples:
    rows = scanned(path, {}, "--background")
    if rows is None:
        rows = read_rows(path, request.reading if is_text_file(path) else {}, "--background")
    if is_table(rows) and request.dates == Dates.as_numbers:
        rows = dates_as_days(rows)[0]
    return Samples(rows)


def _column_and_value(text: str, names: list[str]) -> tuple[str, str]:
    """COLUMN=VALUE taken apart at the first = that leaves the name of a column, since names may hold = too."""
    splits = [(text[:place], text[place + 1 :]) for place, letter in enumerate(text) if letter == "="]
    if not splits:
        raise InvalidValueError(
            f"--known-rows must be COLUMN=VALUE, got {text!r}: write for example --known-rows species=Adelie."
        )
    return next((split for split in splits if split[0] in names), splits[0])


def require_column(option: str, column: str, names: Sequence[str], *, beside: Collection[str] = ()) -> None:
    """Refuse a name that is none of the columns that an option may name; `beside` are all that there are.

    >>> require_column("--labels", "kind", ["kind", "size"])
    """
    if column in beside and column not in names:
        kind, other = ("variables", "a column of obs") if option in OF_FEATURES else ("columns of obs", "a variable")
        raise InvalidValueError(f"{option} must name {kind}, and {column!r} is {other}: leave it out.")
    if column not in names:
        raise InvalidValueError(f"{option} must name a column of DATA, got {column!r}: {close_matches(column, names)}")


def plain_columns(data: pa.Table, names: list[str]) -> pa.Table:
    """These columns with dictionaries written out and lists and bytes as text, which not every file format can hold."""
    columns = {}
    for name in names:
        values = data.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_nested(values.type) or pa.types.is_binary(values.type) or pa.types.is_duration(values.type):
            texts = [None if value is None else json.dumps(value, default=str) for value in values.to_pylist()]
            values = pa.chunked_array([pa.array(texts, pa.string())])
        columns[name] = values
    return pa.table(columns)


def no_columns() -> pa.Table:
    """A table that carries nothing along."""
    return pa.table({})
