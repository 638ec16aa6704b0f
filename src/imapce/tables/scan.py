"""Tables that stay on disk: what a pass over them reads, and that they are still what they were.

>>> import pyarrow as pa
>>> from imapce.tables import write_table
>>> write_table(pa.table({"size": [1.0, 2.0, 3.0]}), "part.parquet")
>>> scan("*.parquet").shape
(3, 1)
"""

from __future__ import annotations

import glob
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from imapce.common.arrays import seeded_sample
from imapce.common.words import close_matches, counted, listing, roughly, size_in_words
from imapce.common.work import Tell
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.tables.dialect import Dialect
from imapce.tables.files import recognised
from imapce.tables.text import arrow_options, is_plain

FORMATS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".csv": "csv", ".tsv": "csv"}
# A batch of numbers that is decoded while another is computed with; memory in use is a few of them.
BATCH_BYTES = 8 << 20
MOST_BATCH_ROWS, FEWEST_BATCH_ROWS = 1 << 17, 1 << 10
BATCHES_AHEAD, FILES_AHEAD = 4, 1
# Whole row groups fetched ahead took twice the memory and three times the CPU (4,000,000 × 16 float32 on a local disk).
CSV_BLOCK_BYTES = 4 << 20
NO_SCAN = (
    "no scan can follow: convert the file once, for example with polars.scan_csv('rows.csv').sink_parquet("
    "'rows.parquet')"
)
PARQUET_OPTIONS = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
# What a fit reads a table for: its columns, its moments, two looks for outliers, one to four samples of rows to search
# in and to judge views by (one with a background, most with labels). Then come the evaluations on all rows.
PASSES_BEFORE = 6
# Measured: the process with all it imports, and what is kept of each row (masks; 2026-11-16). Labels take 90 more.
BASE_BYTES, BYTES_PER_ROW = 500_000_000, 4


@dataclass(frozen=True)
class Estimate:
    """What a fit of a table on disk will read, and the memory it will take.

    >>> str(Estimate(passes=6, bytes_per_pass=2_560_000_000, memory=900_000_000))
    'about 6 passes of 2.6 GB, in about 900 MB of memory'
    """

    passes: int
    bytes_per_pass: int
    memory: int

    def __str__(self) -> str:
        read = f"about {self.passes} passes of {size_in_words(self.bytes_per_pass)}"
        return f"{read}, in about {size_in_words(self.memory)} of memory"


@dataclass
class Meter:
    """Tells how far a pass is: which it is, what was read, how fast, and the time left.

    >>> said = []
    >>> meter = Meter(lambda words, share: said.append(words), 2_000_000_000, clock=iter([0.0, 4.0]).__next__)
    >>> meter.begin()
    >>> meter.reached(0.5)
    >>> said
    ['pass 1: 1.0 GB of 2.0 GB read, 0.25 GB/s, a few seconds left']
    """

    tell: Tell
    n_bytes: int
    clock: Callable[[], float] = time.monotonic
    passes: int = 0
    _began: float = field(default=0.0, repr=False)

    def begin(self) -> None:
        """A pass begins."""
        self.passes += 1
        self._began = self.clock()

    def reached(self, share: float) -> None:
        """So much of the pass was read."""
        gone = max(self.clock() - self._began, 1e-9)
        rate = share * self.n_bytes / gone
        words = f"pass {self.passes}: {size_in_words(share * self.n_bytes)} of {size_in_words(self.n_bytes)} read"
        self.tell(f"{words}, {rate / 1e9:.2f} GB/s, {roughly(gone * (1 - share) / max(share, 1e-9))} left", share)


@dataclass(frozen=True)
class Scan:
    """Files of one table, read in batches whenever asked; `IMAPCE.fit`, `transform` and `Exploration` take it as X.

    `shape` and `columns` are known before anything is read but what the files tell of themselves (of a CSV file, its
    lines are counted).

    >>> from imapce.tables import write_table
    >>> write_table({"a": np.arange(5), "b": np.ones(5)}, "table.parquet")
    >>> [batch.num_rows for batch in scan("table.parquet", columns=["b"]).batches()]
    [5]
    """

    files: tuple[str, ...]
    columns: tuple[str, ...]
    n_rows: int
    kind: str
    schema: pa.Schema
    # Size and time of last change of every file when it was opened.
    states: tuple[tuple[int, int], ...]
    # How text files are written; None for the others.
    dialect: Dialect | None = None
    # Who is told how far a pass is; shared by all that are made of this scan.
    meter: Meter | None = field(default=None, compare=False, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.n_rows, len(self.columns)

    @property
    def n_bytes(self) -> int:
        """What the files take on disk."""
        return sum(size for size, _ in self.states)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        files = self.files[0] if len(self.files) == 1 else f"{len(self.files)} files, {self.files[0]} the first"
        shape = f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}"
        return f"Scan of {files}: {shape}, {self.n_bytes / 1e9:.2f} GB"

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in order, some megabytes at a time; the next ones are read ahead by other threads."""
        names = list(self.columns if columns is None else columns)
        self.require_unchanged()
        wide = 4 * max(1, len(names))
        rows = min(MOST_BATCH_ROWS, max(FEWEST_BATCH_ROWS, BATCH_BYTES // wide))
        with self._one_sentence():
            batches = self._dataset().to_batches(
                columns=names,
                batch_size=rows,
                batch_readahead=BATCHES_AHEAD,
                fragment_readahead=FILES_AHEAD,
                fragment_scan_options=PARQUET_OPTIONS if self.kind == "parquet" else None,
            )
        read = 0
        if self.meter is not None:
            self.meter.begin()
        while True:
            with self._one_sentence(read):
                batch = next(batches, None)
            if batch is None:
                break
            read += batch.num_rows
            if self.meter is not None:
                self.meter.reached(min(1.0, read / self.n_rows))
            if batch.num_rows:
                yield batch
        self.require_unchanged()
        if read != self.n_rows:
            raise InvalidValueError(
                f"{self._named()} must hold the {self.n_rows:,} rows it had when it was opened, and {read:,} were "
                "read; scan it again."
            )

    def head(self, n_rows: int) -> pa.Table:
        """The first rows as a table."""
        with self._one_sentence():
            return self._dataset().head(n_rows, columns=list(self.columns), batch_size=max(n_rows, 1))

    def sample(self, n_rows: int) -> pa.Table:
        """So many rows, or all where there are no more, drawn with a fixed seed, in their order; one pass."""
        mask = seeded_sample(self.n_rows, n_rows)
        kept, start = [], 0
        for batch in self.batches():
            kept.append(batch.filter(pa.array(mask[start : start + batch.num_rows])))
            start += batch.num_rows
        return pa.Table.from_batches(kept)

    def estimate(self, *, evaluations: int = 1) -> Estimate:
        """What a fit will read and take: 1 evaluation where alpha and mu are automatic or there are at most 32
        columns; else each round of the search is one, 30 to 500 of them.

        >>> from imapce.tables import write_table
        >>> write_table({"a": np.arange(5.0)}, "table.parquet")
        >>> scan("table.parquet").estimate().passes
        7
        """
        n, d = self.shape
        # Samples of rows lie in memory for the search, and sums of columns by columns while they are made.
        memory = BASE_BYTES + BYTES_PER_ROW * n + 8 * d * min(n, 100_000) + 64 * d**2
        return Estimate(PASSES_BEFORE + evaluations, self.n_bytes, memory)

    def watched(self, progress: Tell) -> Scan:
        """The same table; progress(words, share) is told how far each pass is, its rate and the time left.

        >>> from imapce.tables import write_table
        >>> write_table({"a": np.arange(5.0)}, "table.parquet")
        >>> for _ in scan("table.parquet").watched(lambda words, share: print(share)).batches():
        ...     pass
        1.0
        """
        if not callable(progress):
            raise InvalidTypeError(f"progress must be a function of words and a share; got {progress!r:.80}.")
        return replace(self, meter=Meter(progress, self.n_bytes))

    def selected(self, columns: Sequence[str]) -> Scan:
        """The same files with some of their columns."""
        absent = [name for name in columns if name not in self.schema.names]
        if absent:
            raise InvalidValueError(
                f"columns must be among those of {self._named()}, got {absent[0]!r}: "
                f"{close_matches(absent[0], [name for name in self.schema.names if name not in columns])}"
            )
        return replace(self, columns=tuple(columns))

    def require_unchanged(self) -> None:
        """Refuse files that were written to since they were opened: passes must see the same rows."""
        for file, state in zip(self.files, self.states, strict=True):
            try:
                now = _state(file)
            except OSError as error:
                raise InvalidValueError(
                    f"{file!r} was there when it was scanned and is gone: {error.strerror}."
                ) from error
            if now != state:
                raise InvalidValueError(
                    f"{file!r} was changed while it was being read; scan it again when it is finished."
                )

    def _dataset(self) -> Any:
        kind: Any = self.kind
        if self.dialect is not None:
            # The columns of a text file that does not name them, where it is known how many there are.
            names = None if self.dialect.header or self.schema is None else list(self.schema.names)
            options = arrow_options(self.dialect, block=CSV_BLOCK_BYTES, names=names)
            kind = pyarrow.dataset.CsvFileFormat(**options)
        return pyarrow.dataset.dataset(list(self.files), format=kind, schema=self.schema)

    def _named(self) -> str:
        return repr(self.files[0]) if len(self.files) == 1 else f"the {len(self.files)} files"

    @contextmanager
    def _one_sentence(self, n_read: float = 0) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            # Arrow tells the way to an error first, then the error, then what it may be.
            whole = " ".join(str(error).split()).rpartition("Invalid: ")[2]
            reason = re.sub(r".* input source '.*?': ", "", whole).split(". ")[0][:300].removesuffix(".")
            way_out = "mend the file or write it again"
            if "conversion error" in reason:
                way_out = f"types are those of its first rows, and other ones {NO_SCAN}"
            elif self.kind == "ipc" and reason == "Not an Arrow file":
                way_out = "write it again, whole and as an Arrow file, not as a stream"
            raise FileFormatError(
                f"{self._file_of_row(n_read)!r} cannot be read to its end: {reason}; {way_out}."
            ) from error

    def _file_of_row(self, number: float) -> str:
        """The file that cannot be read: that of the row, or one after it, since files are read ahead."""
        for file in self.files[:-1]:
            alone = replace(self, files=(file,))._dataset()
            try:
                number -= alone.count_rows()
                if number < 0:
                    for _ in alone.to_batches(columns=list(self.columns)):
                        pass
            except (pa.ArrowException, OSError):
                return file
        return self.files[-1]


def scan(path: str | os.PathLike[str] | Sequence[str], *, columns: Sequence[str] | None = None) -> Any:
    """A table that is larger than memory, read from disk whenever it is needed.

    `path` is a file, a folder, a pattern ("part-*.parquet") or a list of files of one table: Parquet, Arrow/Feather or
    CSV; of a .npy file a memory map is returned. `columns` chooses some of the columns.

    >>> from imapce import IMAPCE, scan
    >>> from imapce.tables import write_table
    >>> rows = np.random.default_rng(0).normal(size=(300, 4))
    >>> write_table({name: rows[:, i] for i, name in enumerate("abcd")}, "rows.parquet")
    >>> IMAPCE(random_state=0).fit(scan("rows.parquet")).components_.shape
    (2, 4)
    """
    files = _files(path)
    suffixes = {Path(file).suffix.lower() for file in files}
    if suffixes == {".npy"}:
        return _memory_map(files, columns)
    kinds = {FORMATS.get(suffix) for suffix in suffixes}
    if None in kinds or len(kinds) > 1:
        raise InvalidValueError(
            "path", f"must name files of one kind among {', '.join(FORMATS)} and .npy; got {listing(sorted(suffixes))}."
        )
    kind = kinds.pop()
    assert kind is not None
    dialect = _dialect(files) if kind == "csv" else None
    states = tuple(_state(file) for file in files)
    schemas = [_schema(file, kind, dialect) for file in files]
    schema = _common(files, schemas, columns)
    whole = Scan(tuple(files), tuple(schema.names), 0, kind, schema, states, dialect)
    with whole._one_sentence(math.inf):
        n_rows = whole._dataset().count_rows()
    whole = replace(whole, n_rows=int(n_rows))
    if not n_rows:
        raise InvalidValueError(f"{whole._named()} has columns and no rows; check the step that wrote it.")
    return whole if columns is None else whole.selected(_listed(columns))


def _files(path: Any) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if os.path.isdir(text):
            # Names that begin so are notes of whoever wrote the folder (_SUCCESS, _metadata), or not finished.
            seen = (file for file in Path(text).iterdir() if not file.name.startswith((".", "_")))
            found = sorted(str(file) for file in seen if file.suffix.lower() in FORMATS)
        elif os.path.exists(text):
            found = [text]
        else:
            found = sorted(glob.glob(text, recursive=True))
    elif isinstance(path, Sequence) and all(isinstance(file, (str, os.PathLike)) for file in path):
        found = [os.fspath(file) for file in path]
    else:
        raise InvalidTypeError("path", f"must be a file, a folder, a pattern or a list of files; got {path!r:.80}.")
    missing = [file for file in found if not os.path.isfile(file)]
    if not found and isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        raise InvalidValueError(
            "path",
            f"must be a folder with tables in it, and {str(path)!r} has none among {', '.join(FORMATS)}; tables "
            f"in folders of their own are {os.path.join(path, '**', '*.parquet')!r}.",
        )
    if missing or not found:
        raise InvalidValueError("path", f"must name files that exist; got {missing[0] if missing else str(path)!r}.")
    return found


def _listed(columns: Any) -> list[str]:
    listable = isinstance(columns, Iterable) and not isinstance(columns, str)
    if not listable or not all(isinstance(name, str) for name in columns):
        raise InvalidTypeError(f"columns must be a list of names; got {columns!r:.80}.")
    names = list(columns)
    if not names or len(set(names)) < len(names):
        raise InvalidValueError(f"columns must name at least one column and none twice; got {columns!r:.80}.")
    return names


def _memory_map(files: list[str], columns: Any) -> Any:
    file = files[0]
    if len(files) > 1:
        raise InvalidValueError(
            "path",
            f"must name one .npy file, got {len(files)}: join them with numpy.concatenate, or write Parquet files.",
        )
    if columns is not None:
        raise InvalidValueError(f"columns are chosen by name, and those of {file!r} have none; leave columns out.")
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise FileFormatError(f"{file!r} is no whole .npy file of numbers: {reason}.") from error
    return array


def _state(file: str) -> tuple[int, int]:
    stat = os.stat(file)
    return stat.st_size, stat.st_mtime_ns


def _dialect(files: list[str]) -> Dialect:
    """How the text files are written: all in one way, that of the first, and plainly."""
    first = recognised(files[0])
    for file in files:
        own = first if file == files[0] else recognised(file)
        # Arrow's datasets do not pass over lines.
        if own.skipped or not is_plain(Path(file), own):
            raise FileFormatError(f"{file!r} is read with {own.words or 'blanks before quotes'}, which {NO_SCAN}.")
        if own != first:
            raise FileFormatError(
                f"{file!r} is written otherwise than {files[0]!r} ({own.words or 'as any CSV file'} there, "
                f"{first.words or 'as any CSV file'} here); write all files of a table in one way."
            )
    return first


def _schema(file: str, kind: str, dialect: Dialect | None) -> pa.Schema:
    alone = Scan((file,), (), 0, kind, None, (_state(file),), dialect)
    with alone._one_sentence():
        schema = alone._dataset().schema
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise FileFormatError(f"{file!r} names column {twice!r} twice; rename one of them.")
    if dialect is None:
        return schema
    names = schema.names
    if not dialect.header:
        names = dialect.names or [f"x{place}" for place in range(len(names))]
    # A column without values so far holds numbers, if anything: text would have been seen by now.
    types = [pa.float64() if pa.types.is_null(kind) else kind for kind in schema.types]
    return pa.schema(list(zip(names, types, strict=True)))


def _common(files: Sequence[str], schemas: Sequence[pa.Schema], columns: Any) -> pa.Schema:
    """The columns of the first file, each with a type that holds those of all; or the file that does not fit."""
    first = schemas[0]
    wanted = list(first.names) if columns is None else [name for name in first.names if name in set(_listed(columns))]
    fields = {name: first.field(name) for name in first.names}
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        for name in wanted:
            if name not in schema.names:
                raise FileFormatError(
                    f"{file!r} lacks column {name!r}, which {files[0]!r} has; scan files of one table."
                )
            here, there = schema.field(name).type, fields[name].type
            if here == there:
                continue
            if _is_text(here) and _is_text(there):
                fields[name] = pa.field(name, pa.large_string())
                continue
            if not (_is_number(here) and _is_number(there)):
                raise FileFormatError(
                    f"column {name!r} is {here} in {file!r} and {there} in {files[0]!r}; write it as one type."
                )
            fields[name] = pa.field(name, pa.float64())
    return pa.schema([fields[name] for name in first.names])


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
